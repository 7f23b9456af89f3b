"""The Llama architecture: what the default model, SmolLM2, is built as.

    x = embedding(ids)
    every layer:  x = x + out(attention(norm(x)))      queries, keys and values in one projection
                  x = x + down(silu(gate) · up)        gate and up in one projection
    logits = head(norm(x))

Keys and queries are rotated by their position (RoPE, half-split: first half of a head against the second).
The sums x are kept in float32, everything else in the weights' type.

This module must never read a file or know about text. Shape letters as in app/engine/kv_cache.py; C is
the model's width, M that of the MLP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from app.models.attention import attend
from app.models.cache_views import CacheViews
from app.models.errors import ContextError
from app.models.projection import Projection
from app.models.reference import ReferenceGeneration


@dataclass(frozen=True)
class LlamaConfig:
    n_layer: int
    n_head: int
    n_kv_head: int
    n_embd: int
    n_mlp: int
    vocab_size: int
    sequence_len: int           # positions that the model was trained for
    rope_base: float = 10_000.0
    norm_eps: float = 1e-5
    tied_head: bool = True      # the embedding is the output head, too

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head


def weight_shapes(config: LlamaConfig) -> dict[str, tuple[int, ...]]:
    """Every weight that a model of this config has, by its name in a GGUF file, and its shape."""
    width, mlp, kv_width = config.n_embd, config.n_mlp, config.n_kv_head * config.head_dim
    shapes = {"token_embd.weight": (config.vocab_size, width), "output_norm.weight": (width,)}
    if not config.tied_head:
        shapes["output.weight"] = (config.vocab_size, width)
    for layer in range(config.n_layer):
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in {
            "attn_norm": (width,), "attn_q": (width, width), "attn_k": (kv_width, width), "attn_v": (kv_width, width),
            "attn_output": (width, width), "ffn_norm": (width,), "ffn_gate": (mlp, width), "ffn_up": (mlp, width),
            "ffn_down": (width, mlp)}.items()}
    return shapes


class Llama(ReferenceGeneration):
    """A model ready to compute. `weight(name)` gives each of `weight_shapes` as a float32 tensor, once.

    `context` is how many positions can be computed (the RoPE table is made as large), at most and by default
    `config.sequence_len`; a forward beyond it raises ContextError before anything is written.
    """

    recommended = {"temperature": 0.2, "top_k": 50}

    def __init__(self, config: LlamaConfig, weight: Callable[[str], torch.Tensor], device: torch.device | str = "cpu",
                 dtype: torch.dtype = torch.float32, context: int | None = None, name: str = "llama"):
        self.config, self.name = config, name
        self.max_context = min(context or config.sequence_len, config.sequence_len)
        self.cache_dtype = dtype
        self.weights_dtype = str(dtype).removeprefix("torch.")

        def take(*names: str) -> torch.Tensor:
            return torch.cat([weight(f"{each}.weight").to(device, dtype) for each in names])

        def norm(name: str) -> _Norm:
            return _Norm(weight(f"{name}.weight").to(device), config.norm_eps, dtype)

        self.embedding = take("token_embd")  # (V, C)
        self._layers = [_Layer(config, layer, take, norm) for layer in range(config.n_layer)]
        self._norm = norm("output_norm")
        self._head = Projection(self.embedding if config.tied_head else take("output"))
        self._cos, self._sin = _rotary_table(config, self.max_context, device, dtype)  # (positions, D)

    def get_device(self) -> torch.device:
        return self.embedding.device

    @property
    def weight_bytes(self) -> int:
        """What the weights take in memory. A packed head is a second copy of the embedding."""
        head = 0 if self._head.shares_memory_with(self.embedding) else self._head.weight_bytes
        embedding = self.embedding.numel() * self.embedding.element_size()
        return embedding + head + self._norm.weight_bytes + sum(layer.weight_bytes for layer in self._layers)

    @torch.no_grad()
    def forward(self, ids: torch.Tensor, kv_cache=None, last_only: bool = False) -> torch.Tensor:
        """ids (B, T) -> float32 logits (B, T, V), or (B, 1, V) of the last position with `last_only`.

        With a cache the T tokens of each row follow what the row holds, which may differ from row to row.
        Raises CacheFullError (from the cache) or ContextError before anything is written.
        """
        num_rows, num_new = ids.shape
        assert num_new > 0, "there must be at least one new token"
        starts = [0] * num_rows if kv_cache is None else kv_cache.positions_for(num_new)
        rotary = self._rotary(starts, num_new)
        if kv_cache is not None:
            assert kv_cache.dtype == self.cache_dtype, f"a cache of {kv_cache.dtype} for a model of {self.cache_dtype}"
        views = None if kv_cache is None else CacheViews(kv_cache, starts, num_new)
        x = F.embedding(ids, self.embedding).float()  # (B, T, C)
        for layer in self._layers:
            layer.forward(x, rotary, views)
        if kv_cache is not None:
            kv_cache.advance(num_new)
        if last_only:
            x = x[:, -1:]
        return self._head(self._norm(x)).float()  # (B, T, V)

    def _rotary(self, starts: list[int], num_new: int) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and sin for T positions from each start, (1 or B, T, 1, D)."""
        end = max(starts) + num_new
        if end > self.max_context:
            raise ContextError(f"{end} positions are more than the {self.max_context} that {self.name} was loaded for")
        if min(starts) == end - num_new:
            positions = slice(starts[0], end)
            return self._cos[None, positions, None], self._sin[None, positions, None]
        positions = torch.tensor([range(start, start + num_new) for start in starts], device=self.get_device())  # (B, T)
        return self._cos[positions].unsqueeze(2), self._sin[positions].unsqueeze(2)


class _Layer:
    def __init__(self, config: LlamaConfig, index: int, take, norm):
        self.index = index
        self.num_heads, self.num_kv_heads, self.head_dim = config.n_head, config.n_kv_head, config.head_dim
        block = f"blk.{index}"
        self.attention_norm = norm(f"{block}.attn_norm")
        self.qkv = Projection(take(f"{block}.attn_q", f"{block}.attn_k", f"{block}.attn_v"))
        self.attention_out = Projection(take(f"{block}.attn_output"))
        self.mlp_norm = norm(f"{block}.ffn_norm")
        self.up_gate = Projection(take(f"{block}.ffn_up", f"{block}.ffn_gate"))
        self.mlp_down = Projection(take(f"{block}.ffn_down"))

    @property
    def weight_bytes(self) -> int:
        return sum(part.weight_bytes for part in (self.attention_norm, self.qkv, self.attention_out, self.mlp_norm,
                                                  self.up_gate, self.mlp_down))

    def forward(self, x: torch.Tensor, rotary: tuple[torch.Tensor, torch.Tensor], views: CacheViews | None) -> None:
        """Adds to x (B, T, C) in place. Keys and values go into the cache, if there is one."""
        num_rows, num_new, _ = x.shape
        heads = self.qkv(self.attention_norm(x)).view(num_rows, num_new, -1, self.head_dim)  # (B, T, H + 2G, D)
        qk, v = heads.split((self.num_heads + self.num_kv_heads, self.num_kv_heads), dim=2)
        q, k = rotate(qk, *rotary).split((self.num_heads, self.num_kv_heads), dim=2)
        y = attend(q, k, v, views, self.index)  # (B, T, H, D)
        x += self.attention_out(y.reshape(num_rows, num_new, -1))
        up_gate = self.up_gate(self.mlp_norm(x))  # (B, T, 2M)
        x += self.mlp_down(silu_gate(up_gate))


class _Norm:
    """RMS norm: x / sqrt(mean(x²) + eps) · weight, computed in float32 and given in `dtype`.

    With n = |x| over C channels, sqrt(mean(x²) + eps) = hypot(n, sqrt(C·eps)) / sqrt(C): four operations
    instead of the nine of F.rms_norm, which for a single token are what the norm costs.
    """

    def __init__(self, weight: torch.Tensor, eps: float, dtype: torch.dtype):
        width = weight.shape[0]
        self.dtype, self.weight_bytes = dtype, 4 * width
        self._weight = weight * width**0.5  # (C,)
        self._eps = torch.tensor((width * eps)**0.5, device=weight.device)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        size = torch.hypot(torch.linalg.vector_norm(x, dim=-1, keepdim=True), self._eps)  # (B, T, 1)
        return (x * self._weight).div_(size).to(self.dtype)


def silu_gate(up_gate: torch.Tensor) -> torch.Tensor:
    """(…, 2M) -> up · silu(gate) (…, M), where up is the first half and gate the second.

    silu(g) = g · sigmoid(g), and F.glu gives up · sigmoid(gate): on a half that is not contiguous F.silu
    takes fifty times as long.
    """
    gate = up_gate[..., up_gate.shape[-1] // 2:]
    return F.glu(up_gate, dim=-1).mul_(gate)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn each pair (x1[j], x2[j]) of the two halves of x (B, T, heads, D) by its position's angle.

        (x1, x2)·(cos, cos) + (x2, x1)·(-sin, sin)  =  (x1·cos - x2·sin, x2·cos + x1·sin)
    """
    return (x * cos).addcmul_(x.roll(x.shape[-1] // 2, dims=-1), sin)


def _rotary_table(config: LlamaConfig, num_positions: int, device, dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin of every position's angles, (positions, D) each, laid out for `rotate`."""
    pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=device)
    frequencies = config.rope_base ** (-pairs / config.head_dim)  # (D/2,)
    angles = torch.outer(torch.arange(num_positions, dtype=torch.float32, device=device), frequencies)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([cos, cos], dim=-1).to(dtype), torch.cat([-sin, sin], dim=-1).to(dtype)
