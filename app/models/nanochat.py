"""nanochat's transformer: one forward for all of its dates.

    ids -> embedding -> norm -> (smear) -> layers -> (backout) -> norm -> head -> 15·tanh(logits/15)

    layer:  x = resid·x + x0·(what entered the first layer)
            x = x + attention(norm(x))
            x = x + mlp(norm(x))

What differs between the dates is in an `Architecture`, and comes in here as numbers. Norms are RMS norms
without weights, there are no biases, and the head is not the embedding. Weights are cast once, when the
model is made; the tensor `state` that they come from is emptied as they are taken, so that loading needs
little more memory than the model itself.

Adding tokens to a cache of any length gives what one pass over all of them gives. Two things take care:
the position is each row's own, and smear mixes the previous token's normed embedding into each token. At
the start of a chunk that token lies in the cache, which notes its id (`KVCache.record`): the embedding is
looked up again, `norm(embedding[previous id])`, exact also after a row was cut, copied or prefilled.

This module must never read a file nor decide how long a conversation may be. Shape letters: see
app/engine/kv_cache.py; C is the width of the model.
"""

from __future__ import annotations

import copy
from collections.abc import Generator

import torch
import torch.nn.functional as F

from app.models.attention import attend
from app.models.cache_views import cut
from app.models.errors import ContextError
from app.models.nanochat_architecture import CONTEXT_FACTOR, SMEAR_CHANNELS, SOFTCAP, Architecture, NanochatConfig
from app.models.parts import PARTS, outcome, spans_of
from app.models.projection import Projection
from app.models.reference import ReferenceGeneration


def norm(x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],))


class Nanochat(ReferenceGeneration):
    """A nanochat model of any date.

    `state` maps the names of `architecture.shapes(config)` to tensors, and is empty afterwards.
    `max_context` is what one conversation may hold; positions up to 10 x sequence_len can be computed.
    """

    recommended = {"temperature": 0.8, "top_k": 50}

    def __init__(self, config: NanochatConfig, architecture: Architecture, state: dict[str, torch.Tensor],
                 device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32, name: str = "nanochat",
                 max_context: int | None = None):
        self.config, self.architecture, self.name = config, architecture, name
        self.cache_dtype = dtype
        self.weights_dtype = str(dtype).removeprefix("torch.")
        self.max_context = max_context or config.sequence_len
        self.windows = architecture.windows(config)  # one a layer, None for all

        def take(key: str) -> torch.Tensor:
            return state.pop(key).detach().to(device, dtype)

        resid_lambdas = state.pop("resid_lambdas").tolist() if architecture.residual_lambdas else [1.0] * config.n_layer
        x0_lambdas = state.pop("x0_lambdas").tolist() if architecture.residual_lambdas else [0.0] * config.n_layer
        self.embedding = take("transformer.wte.weight")  # (V or more, C)
        self.layers = [Layer(config, architecture, layer, take, self.windows[layer], resid_lambdas[layer],
                             x0_lambdas[layer]) for layer in range(config.n_layer)]
        self.head = Projection(take("lm_head.weight")[:config.vocab_size])  # without the padding rows
        self.smear_lambda = self.backout_lambda = 0.0
        if architecture.smear:
            self.smear_gate = take("smear_gate.weight")  # (1, 24)
            self.smear_lambda = state.pop("smear_lambda").item()
            self.backout_lambda = state.pop("backout_lambda").item()
        assert not state, f"these tensors belong nowhere: {sorted(state)}"
        self._make_rotary_table(max(config.sequence_len, self.max_context))

    # --- what the engine asks

    def get_device(self) -> torch.device:
        return self.embedding.device

    @property
    def weight_bytes(self) -> int:
        return _bytes_of(self.embedding) + self.head.weight_bytes + sum(layer.weight_bytes for layer in self.layers)

    def bytes_read(self, cached: int) -> int:
        """How much of a row of `cached` tokens the next step reads: a layer with a window reads no more than that."""
        config = self.config
        bytes_per_layer = 2 * config.n_kv_head * config.head_dim * self.cache_dtype.itemsize
        return bytes_per_layer * sum(cached if window is None else min(cached, window) for window in self.windows)

    @property
    def float32_twin_bytes(self) -> int:
        """What `float32_twin` takes in memory beside this model."""
        return 0 if self.cache_dtype == torch.float32 else self.weight_bytes * 4 // self.cache_dtype.itemsize

    def float32_twin(self) -> Generator[None, None, Nanochat]:
        """This model once more in float32, with exactly the numbers that it runs with. Made in steps, so that nobody
        is kept waiting: the generator yields after each, and returns the twin. In float32 it is its own."""
        if self.cache_dtype == torch.float32:
            return self
        twin = copy.copy(self)
        twin.name, twin.cache_dtype, twin.weights_dtype = f"{self.name} in float32", torch.float32, "float32"
        twin.embedding, twin.layers = self.embedding.float(), []
        yield
        twin.head = self.head.widened()
        if self.architecture.smear:
            twin.smear_gate = self.smear_gate.float()
        for layer in self.layers:
            yield
            twin.layers.append(layer.widened(self.architecture))
        twin._make_rotary_table(self._cos.shape[0])
        return twin

    # --- forward

    def forward(self, ids: torch.Tensor, kv_cache=None, last_only: bool = False) -> torch.Tensor:
        """ids (B, T) -> float32 logits (B, T, V), or (B, 1, V) of the last position with `last_only`.

        With a cache the T tokens of each row follow what the row holds, which may differ from row to row.
        Raises CacheFullError (from the cache) or ContextError before anything is written.
        """
        return outcome(self.forward_in_parts(ids, kv_cache, last_only))

    @torch.no_grad()
    def forward_in_parts(self, ids: torch.Tensor, kv_cache=None,
                         last_only: bool = False) -> Generator[None, None, torch.Tensor]:
        """`forward`, bit for bit, as a generator that yields between some of the layers and returns the logits, so that
        something else can be computed meanwhile. Until then the rows must be left alone, and their lengths stay."""
        num_rows, num_new = ids.shape
        assert num_new > 0, "there must be at least one new token"
        starts = [0] * num_rows if kv_cache is None else kv_cache.positions_for(num_new)
        rotary = self._rotary(starts, num_new)
        if kv_cache is not None:
            assert kv_cache.dtype == self.cache_dtype, f"a cache of {kv_cache.dtype} for a model of {self.cache_dtype}"
            kv_cache.record(ids, starts)
        x = norm(F.embedding(ids, self.embedding))  # (B, T, C)
        if self.architecture.smear:
            x = self._smear(x, kv_cache, starts)
        views = None if kv_cache is None else cut(kv_cache, starts, num_new)
        x0 = middle = x
        for first, end in spans_of(len(self.layers), PARTS):
            if first > 0:
                yield
            for index in range(first, end):
                x = self.layers[index].forward(x, x0, ids, rotary, views)
                if index == len(self.layers) // 2:
                    middle = x
        if kv_cache is not None:
            kv_cache.advance(num_new)
        if last_only:
            x, middle = x[:, -1:], middle[:, -1:]
        if self.architecture.smear:
            x = x - self.backout_lambda * middle
        logits = self.head(norm(x)).float()  # (B, T, V)
        return SOFTCAP * torch.tanh(logits / SOFTCAP)

    def _smear(self, x: torch.Tensor, kv_cache, starts: list[int]) -> torch.Tensor:
        """Mix into each token the embedding of the one before it; the first of a conversation has none.

            in the cache | new          x of the chunk     c d e
            a  b         | c d e        before             b c d
        """
        if any(starts):
            before_first = norm(F.embedding(kv_cache.previous_ids(starts), self.embedding))  # (B, C)
            if not all(starts):
                before_first = before_first * torch.tensor([[start > 0] for start in starts], device=x.device)
        else:
            before_first = torch.zeros_like(x[:, 0])
        before = torch.cat([before_first[:, None], x[:, :-1]], dim=1)  # (B, T, C)
        return x + self.smear_lambda * torch.sigmoid(F.linear(x[..., :SMEAR_CHANNELS], self.smear_gate)) * before

    # --- positions

    def _make_rotary_table(self, num_positions: int) -> None:
        """cos and sin of every position's angles, laid out for `rotate`."""
        head_dim, device = self.config.head_dim, self.get_device()
        pairs = torch.arange(0, head_dim, 2, dtype=torch.float32, device=device)
        frequencies = 1.0 / self.architecture.rope_base ** (pairs / head_dim)  # (D/2,)
        angles = torch.outer(torch.arange(num_positions, dtype=torch.float32, device=device), frequencies)
        cos, sin = angles.cos(), angles.sin()
        self._cos = torch.cat([cos, cos], dim=-1).to(self.cache_dtype)   # (positions, D)
        self._sin = torch.cat([sin, -sin], dim=-1).to(self.cache_dtype)  # (positions, D)

    def _rotary(self, starts: list[int], num_new: int) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and sin for T positions from each start, (1 or B, T, 1, D). A longer table is made when needed."""
        end, limit = max(starts) + num_new, CONTEXT_FACTOR * self.config.sequence_len
        if end > limit:
            raise ContextError(f"position {end} is past the {limit} positions that {self.name} can tell apart")
        if end > self._cos.shape[0]:
            self._make_rotary_table(min(2 * end, limit))
        if min(starts) == max(starts):
            positions = slice(starts[0], end)
            return self._cos[None, positions, None], self._sin[None, positions, None]
        positions = torch.tensor(starts)[:, None] + torch.arange(num_new)  # (B, T)
        positions = positions.to(self.get_device())
        return self._cos[positions].unsqueeze(2), self._sin[positions].unsqueeze(2)


class Layer:
    """Attention and MLP. The projections of queries, keys and values stand as one matrix."""

    def __init__(self, config: NanochatConfig, architecture: Architecture, index: int, take,
                 window: int | None, resid_lambda: float, x0_lambda: float):
        self.index, self.window = index, window
        self.num_heads, self.num_kv_heads, self.head_dim = config.n_head, config.n_kv_head, config.head_dim
        self.resid_lambda, self.x0_lambda = resid_lambda, x0_lambda
        self.gate_channels, self.gate_scale = architecture.gate_channels, architecture.gate_scale
        block = f"transformer.h.{index}"
        qkv = torch.cat([take(f"{block}.attn.c_{part}.weight") for part in "qkv"])
        self.qkv, self.qk_scale = Projection(qkv), qkv.new_full((self.head_dim,), architecture.qk_scale)  # (D,)
        self.attention_out = Projection(take(f"{block}.attn.c_proj.weight"))
        self.mlp_in = Projection(take(f"{block}.mlp.c_fc.weight"))
        self.mlp_out = Projection(take(f"{block}.mlp.c_proj.weight"))
        self.value_embedding = self.value_gate = None
        if architecture.has_value_embedding(config, index):
            self.value_embedding = take(f"value_embeds.{index}.weight")  # (V or more, G·D)
            self.value_gate = take(f"{block}.attn.ve_gate.weight")       # (G, 12 or 32)

    @property
    def weight_bytes(self) -> int:
        value = 0 if self.value_embedding is None else _bytes_of(self.value_embedding) + _bytes_of(self.value_gate)
        return value + sum(part.weight_bytes for part in (self.qkv, self.attention_out, self.mlp_in, self.mlp_out))

    def widened(self, architecture: Architecture) -> Layer:
        """The same numbers in float32."""
        wide = copy.copy(self)
        wide.qkv, wide.attention_out = self.qkv.widened(), self.attention_out.widened()
        wide.mlp_in, wide.mlp_out = self.mlp_in.widened(), self.mlp_out.widened()
        wide.qk_scale = torch.full_like(self.qk_scale, architecture.qk_scale, dtype=torch.float32)
        if self.value_embedding is not None:
            wide.value_embedding, wide.value_gate = self.value_embedding.float(), self.value_gate.float()
        return wide

    def forward(self, x, x0, ids, rotary, views):
        """x and x0 (B, T, C) -> (B, T, C). Keys and values go into the cache, if there is one."""
        if self.x0_lambda or self.resid_lambda != 1.0:
            x = torch.add(self.resid_lambda * x, x0, alpha=self.x0_lambda)
        x = x + self._attention(norm(x), ids, rotary, views)
        return x + self.mlp_out(F.relu(self.mlp_in(norm(x))).square())

    def _attention(self, x, ids, rotary, views):
        num_rows, num_new, _ = x.shape
        heads = self.qkv(x).view(num_rows, num_new, -1, self.head_dim)  # (B, T, H + 2G, D)
        qk, v = heads.split([self.num_heads + self.num_kv_heads, self.num_kv_heads], dim=2)
        qk = F.rms_norm(rotate(qk, *rotary), (self.head_dim,), self.qk_scale)
        q, k = qk.split([self.num_heads, self.num_kv_heads], dim=2)  # (B, T, H, D) and (B, T, G, D)
        if self.value_gate is not None:
            gate = self.gate_scale * torch.sigmoid(F.linear(x[..., :self.gate_channels], self.value_gate))  # (B, T, G)
            v = torch.addcmul(v, gate.unsqueeze(-1), F.embedding(ids, self.value_embedding).view_as(v))
        y = attend(q, k, v, views, self.index, self.window)  # (B, T, H, D)
        return self.attention_out(y.reshape(num_rows, num_new, -1))


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn each pair (x1[j], x2[j]) of x's two halves by its position's angle.

        (x1, x2)·(cos, cos) + (x2, x1)·(sin, -sin)  =  (x1·cos + x2·sin, -x1·sin + x2·cos)
    """
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, dims=-1), sin)


def _bytes_of(weight: torch.Tensor) -> int:
    return weight.numel() * weight.element_size()
