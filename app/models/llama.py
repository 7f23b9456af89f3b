"""The Llama architecture: what the default model, SmolLM2, is built as.

    x = embedding(ids)
    every layer:  x = x + out(attention(norm(x)))      queries, keys and values in one projection
                  x = x + down(silu(gate) · up)        gate and up in one projection
    logits = head(norm(x))

Keys and queries are rotated by their position (RoPE, half-split: first half of a head against the second).
The sums x are kept in float32, everything else in the weights' type. But a 16-bit model on a processor writes single tokens
with float16 copies of its layers (see llama_steps); where the processor does not multiply in its type, it has nothing
else, and reads with them too.

This module must never read a file or know about text. Shape letters as in app/engine/kv_cache.py; C is
the model's width, M that of the MLP.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Generator
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from app.models.attention import masks_for
from app.models.cache_views import NO_CACHE, cut
from app.models.errors import ContextError
from app.models.half_projection import can_multiply_half, keep_half
from app.models.llama_layers import LayerWeights, compiled_layers, rms_norm, run_layers
from app.models.llama_steps import MOST_ROWS, LlamaSteps, StepWeights, interleave
from app.models.output_head import OutputHead
from app.models.parts import PARTS, outcome, spans_of
from app.models.projection import Projection, can_pack, dense
from app.models.reference import ReferenceGeneration


PROJECTIONS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_gate", "ffn_down")


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
    """A model ready to compute. `weight(name)` gives each of `weight_shapes` as a float32 tensor.

    `context` is how many positions can be computed (the RoPE table is made as large), at most and by default
    `config.sequence_len`; a forward beyond it raises ContextError before anything is written.
    """

    recommended = {"temperature": 0.2, "top_k": 50}

    def __init__(self, config: LlamaConfig, weight: Callable[[str], torch.Tensor], device: torch.device | str = "cpu",
                 dtype: torch.dtype = torch.float32, context: int | None = None, name: str = "llama"):
        self.config, self.name = config, name
        self.max_context = min(context or config.sequence_len, config.sequence_len)
        self.cache_dtype, device_type = dtype, torch.device(device).type
        with_halves = dtype in (torch.bfloat16, torch.float16) and can_multiply_half(device_type)
        self._has_only_halves = with_halves and not can_pack(device_type, dtype)
        self._reading_dtype = torch.float32 if self._has_only_halves else dtype  # of all that is not a copy
        self.weights_dtype = str(torch.float16 if self._has_only_halves else dtype).removeprefix("torch.")

        def read(*names: str) -> torch.Tensor:
            return torch.cat([weight(f"{each}.weight") for each in names])

        def kept(values: torch.Tensor) -> torch.Tensor:
            return Projection(values.to(device, self._reading_dtype)).kept

        def norm(name: str) -> torch.Tensor:  # as `rms_norm` wants it
            return weight(f"{name}.weight").to(device) * config.n_embd**0.5

        table = weight("token_embd.weight")
        self.embedding = table.to(device, self._reading_dtype)  # (V, C)
        if config.tied_head:
            self._head = OutputHead(table, self.embedding, with_halves)
        else:
            head = read("output")
            self._head = OutputHead(head, head if with_halves else head.to(device, dtype), with_halves)
        self._layers, copies = [], []
        for layer in range(config.n_layer):
            q, k, v, out, up, gate, down = (f"blk.{layer}.{part}" for part in PROJECTIONS)
            attention_norm, mlp_norm = norm(f"blk.{layer}.attn_norm"), norm(f"blk.{layer}.ffn_norm")
            qkv, out, up, gate, down = read(q, k, v), read(out), read(up), read(gate), read(down)  # each is read once
            if not self._has_only_halves:
                self._layers.append(LayerWeights(attention_norm, kept(qkv), kept(out), mlp_norm,
                                                 kept(torch.cat([up, gate])), kept(down)))
            if with_halves:
                copies.append(StepWeights(attention_norm.numpy(), keep_half(qkv), keep_half(out), mlp_norm.numpy(),
                                          interleave(keep_half(up), keep_half(gate)), keep_half(down)))
        self._norm = norm("output_norm")
        self._eps = torch.tensor((config.n_embd * config.norm_eps)**0.5, device=device)
        self._cos, self._sin = _rotary_table(config, self.max_context, device, dtype)  # (positions, D)
        self._steps = LlamaSteps(copies, self._norm, config, *_angles(config, self.max_context)) if with_halves else None
        self._packed = can_pack(device_type, self._reading_dtype)
        self._run_layers = compiled_layers() if device_type == "cpu" and not self._has_only_halves else run_layers
        # What the weights take in memory. A tied head that lies otherwise than the embedding is a second copy of it.
        sizes = {name: math.prod(shape) for name, shape in weight_shapes(config).items()}
        projected = sum(size for name, size in sizes.items() if name.startswith("blk.") and "norm" not in name)
        self.weight_bytes = self._head.copied_bytes * config.tied_head + sum(
            size * (4 if "norm" in name else self._reading_dtype.itemsize) for name, size in sizes.items())
        if with_halves:
            self.weight_bytes += 2 * projected
        if self._has_only_halves:  # what was counted as float32 is not there, or of half the size
            self.weight_bytes -= 4 * projected + 2 * sizes.get("output.weight", 0)

    def get_device(self) -> torch.device:
        return self.embedding.device

    def forward(self, ids: torch.Tensor, kv_cache=None, last_only: bool = False) -> torch.Tensor:
        """ids (B, T) -> float32 logits (B, T, V), or (B, 1, V) of the last position with `last_only`.

        With a cache the T tokens of each row follow what the row holds, which may differ from row to row.
        Raises CacheFullError (from the cache) or ContextError before anything is written.
        """
        return outcome(self.forward_in_parts(ids, kv_cache, last_only, parts=1))

    @torch.no_grad()
    def forward_in_parts(self, ids: torch.Tensor, kv_cache=None, last_only: bool = False,
                         parts: int = PARTS) -> Generator[None, None, torch.Tensor]:
        """`forward`, bit for bit, as a generator that yields between some of the layers and returns the logits, so that
        something else can be computed meanwhile. Until then the rows must be left alone, and their lengths stay."""
        num_rows, num_new = ids.shape
        assert num_new > 0, "there must be at least one new token"
        starts = [0] * num_rows if kv_cache is None else kv_cache.positions_for(num_new)
        self._check_positions(starts, num_new)
        if kv_cache is not None:
            assert kv_cache.dtype == self.cache_dtype, f"a cache of {kv_cache.dtype} for a model of {self.cache_dtype}"
        x = self._embed(ids.flatten())  # (B·T, C)
        spans = spans_of(self.config.n_layer, 1 if num_new == 1 else parts)
        if self._goes_in_steps(num_rows, num_new, kv_cache):
            keys, values, rows = self._no_cache(num_rows, num_new) if kv_cache is None else (
                kv_cache.k_cache, kv_cache.v_cache, kv_cache.row_numbers())
            for first, end in spans:
                if first > 0:
                    yield
                x = self._steps.run(x, starts, keys, values, rows, last_only, first, end)
            if kv_cache is not None:
                kv_cache.advance(num_new)
            return self._logits(self._steps.normed(x), num_rows)
        rotary = self._rotary(starts, num_new)
        views = NO_CACHE if kv_cache is None else cut(kv_cache, starts, num_new)
        masks = masks_for(views.groups, num_new, self.cache_dtype, ids.device)
        for first, end in spans:
            if first > 0:
                yield
            x = self._run_layers(x, *rotary, self._eps, self._layers, self._packed, num_rows, self.config.n_head,
                                 self.config.n_kv_head, views, masks, last_only, first, end)
        if kv_cache is not None:
            kv_cache.advance(num_new)
        return self._logits(rms_norm(x, self._norm, self._eps, torch.float32), num_rows)

    def _embed(self, ids: torch.Tensor) -> torch.Tensor:
        """ids (N,) -> (N, C), float32."""
        if self._has_only_halves:  # PyTorch's threads are left asleep: they would be in the way of the steps'
            assert int(ids.min()) >= 0, "there are no negative tokens"
            return torch.from_numpy(self.embedding.numpy()[ids.numpy()])
        return F.embedding(ids, self.embedding).float()

    def _goes_in_steps(self, num_rows: int, num_new: int, kv_cache) -> bool:
        if self._steps is None or self._has_only_halves:
            return self._steps is not None
        return kv_cache is not None and num_new == 1 and num_rows <= MOST_ROWS

    def _no_cache(self, num_rows: int, num_new: int) -> tuple[torch.Tensor, torch.Tensor, range]:
        """Where keys and values go that nobody will ask for again."""
        shape = (self.config.n_layer, num_rows, self.config.n_kv_head, num_new, self.config.head_dim)
        keys, values = (torch.empty(shape, dtype=self.cache_dtype).transpose(2, 3) for _ in range(2))
        return keys, values, range(num_rows)

    def _logits(self, normed: torch.Tensor, num_rows: int) -> torch.Tensor:
        """(B·N, C) -> (B, N, V)."""
        return self._head(normed).view(num_rows, -1, self.config.vocab_size)

    # --- in float32

    @property
    def float32_twin_bytes(self) -> int:
        """What `float32_twin` takes in memory beside this model."""
        if self.cache_dtype == torch.float32:
            return 0
        sizes = {name: math.prod(shape) for name, shape in weight_shapes(self.config).items()}
        num_copies = self.config.tied_head - self._has_only_halves  # of the table: as the head, and of the embedding itself
        return 4 * (sum(sizes.values()) + num_copies * sizes["token_embd.weight"])

    def float32_twin(self) -> Generator[None, None, Llama]:
        """This model once more in float32, with exactly the numbers that it reads a text with. Made in steps, so that
        nobody is kept waiting: the generator yields after each, and returns the twin. In float32 it is its own."""
        if self.cache_dtype == torch.float32:
            return self
        twin, device = copy.copy(self), self.get_device()
        twin.name, twin.cache_dtype, twin.weights_dtype = f"{self.name} in float32", torch.float32, "float32"
        twin._packed, twin._steps, twin._layers = can_pack(device.type, torch.float32), None, []
        twin._has_only_halves, twin._reading_dtype, twin.embedding = False, torch.float32, self.embedding.float()
        yield
        head = self._head.wide_weight()
        yield
        twin._head = OutputHead(head, head)
        del head
        for layer in range(self.config.n_layer):
            yield
            twin._layers.append(self._wide_layer(layer))
        twin._cos, twin._sin = _rotary_table(self.config, self.max_context, device, torch.float32)
        twin._run_layers = compiled_layers() if device.type == "cpu" else run_layers
        twin.weight_bytes = self.float32_twin_bytes
        return twin

    def _wide_layer(self, layer: int) -> LayerWeights:
        """A layer in float32: the numbers that a text is read with."""
        if self._has_only_halves:
            weights = self._steps.wide_layer(layer)
        else:
            weights = [each if each.ndim == 1 else dense(each, self._packed).float() for each in self._layers[layer]]
        return LayerWeights(*(each if each.ndim == 1 else Projection(each).kept for each in weights))

    # --- positions

    def _check_positions(self, starts: list[int], num_new: int) -> None:
        end = max(starts) + num_new
        if end > self.max_context:
            raise ContextError(f"{end} positions are more than the {self.max_context} that {self.name} was loaded for")

    def _rotary(self, starts: list[int], num_new: int) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and sin for T positions from each start, (1 or B, T, 1, D)."""
        end = max(starts) + num_new
        if min(starts) == end - num_new:
            positions = slice(starts[0], end)
            return self._cos[None, positions, None], self._sin[None, positions, None]
        positions = torch.tensor([range(start, start + num_new) for start in starts])  # (B, T)
        positions = positions.to(self.get_device())
        return self._cos[positions].unsqueeze(2), self._sin[positions].unsqueeze(2)


def _angles(config: LlamaConfig, num_positions: int, device="cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin of every position's angles, (positions, D/2) each."""
    pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=device)
    frequencies = config.rope_base ** (-pairs / config.head_dim)  # (D/2,)
    angles = torch.outer(torch.arange(num_positions, dtype=torch.float32, device=device), frequencies)
    return angles.cos(), angles.sin()


def _rotary_table(config: LlamaConfig, num_positions: int, device, dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, (positions, D) each, laid out for `rotate`."""
    cos, sin = _angles(config, num_positions, device)
    return torch.cat([cos, cos], dim=-1).to(dtype), torch.cat([-sin, sin], dim=-1).to(dtype)
