"""The Llama of app/models/llama.py once more, written so that gradients reach an adapter and nothing else.

The published weights stand still, in the type that is trained in; beside each fused projection two thin matrices
are learned, and a row of its own for each tool mark. Sequences are padded at their right end, where a causal
model does not see the padding. This module must never read a file.

Shape letters as in app/engine/kv_cache.py; C is the model's width, N the number of positions that a loss is for.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from app.models.adapter import FUSED
from app.models.llama import LlamaConfig


class TrainableLlama(nn.Module):
    """`weight(name)` gives the published weights in float32. What is learned is float32 as well, and B begins at 0,
    so that the model begins as it was published. `token_ids` get rows of ordinary length, drawn with `seed`."""

    def __init__(self, config: LlamaConfig, weight: Callable[[str], torch.Tensor], token_ids: list[int], rank: int,
                 scale: float, seed: int, dtype: torch.dtype = torch.bfloat16, positions: int = 512):
        super().__init__()
        assert config.tied_head, "the tool marks have one row each, in embedding and head alike"
        self.config, self.scale, self.dtype = config, scale, dtype
        self.is_adapted = True
        rng = torch.Generator().manual_seed(seed)
        self.embedding = weight("token_embd.weight").to(dtype)  # (V, C)
        self.layers: list[dict[str, torch.Tensor]] = []
        self.pairs = nn.ParameterDict()
        for layer in range(config.n_layer):
            frozen = {part: torch.cat([weight(f"blk.{layer}.{name}.weight") for name in names]).to(dtype)
                      for part, names in FUSED.items()}
            for part, matrix in frozen.items():
                out, width = matrix.shape
                self.pairs[f"blk_{layer}_{part}_a"] = nn.Parameter(torch.randn(rank, width, generator=rng) / width**0.5)
                self.pairs[f"blk_{layer}_{part}_b"] = nn.Parameter(torch.zeros(out, rank))
            for name in ("attn_norm", "ffn_norm"):
                frozen[name] = weight(f"blk.{layer}.{name}.weight")
            self.layers.append(frozen)
        self.norm = weight("output_norm.weight")
        self.token_ids = torch.tensor(token_ids)
        ordinary_size = self.embedding.float().pow(2).mean().sqrt()
        self.token_rows = nn.Parameter(torch.randn(len(token_ids), config.n_embd, generator=rng) * ordinary_size)
        pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float32)
        angles = torch.outer(torch.arange(positions).float(), config.rope_base ** (-pairs / config.head_dim))
        self.cos, self.sin = angles.cos().to(dtype), angles.sin().to(dtype)  # (positions, D/2)

    def hidden(self, ids: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        """ids (B, T), padded at the right; wanted (B, T) bool -> the last hidden states there, (N, C)."""
        num_rows, num_new = ids.shape
        x = F.embedding(ids, self.embedding).float()  # (B, T, C)
        if self.is_adapted:
            for token_id, row in zip(self.token_ids.tolist(), self.token_rows):
                x = torch.where((ids == token_id).unsqueeze(-1), row, x)
        cos, sin = self.cos[:num_new, None], self.sin[:num_new, None]  # (T, 1, D/2)
        heads, kv_heads, size = self.config.n_head, self.config.n_kv_head, self.config.head_dim
        for index, layer in enumerate(self.layers):
            y = self._project(self._normed(x, layer["attn_norm"]), index, "qkv")
            q, k, v = y.view(num_rows, num_new, -1, size).split((heads, kv_heads, kv_heads), dim=2)
            y = _attention(_rotated(q, cos, sin), _rotated(k, cos, sin), v)
            x = x + self._project(y, index, "attention_out")
            up, gate = self._project(self._normed(x, layer["ffn_norm"]), index, "up_gate").chunk(2, dim=-1)
            x = x + self._project(up * F.silu(gate), index, "mlp_down")
        return self._normed(x[wanted], self.norm)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(N, C) -> (N, V), float32."""
        logits = F.linear(hidden, self.embedding).float()
        if self.is_adapted:
            logits = logits.index_copy(1, self.token_ids, F.linear(hidden.float(), self.token_rows))
        return logits

    def _normed(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, x.shape[-1:], weight, self.config.norm_eps).to(self.dtype)

    def _project(self, x: torch.Tensor, layer: int, part: str) -> torch.Tensor:
        weight = self.layers[layer][part]
        if not self.is_adapted:
            return F.linear(x, weight)
        a, b = (self.pairs[f"blk_{layer}_{part}_{which}"] for which in "ab")
        return _AdaptedProjection.apply(x.flatten(0, -2), weight, a, b, self.scale).view(*x.shape[:-1], -1)

    def tensors(self) -> dict[str, torch.Tensor]:
        """What was learned, by the names of app/models/adapter.py."""
        named = {"token_rows": self.token_rows.detach()}
        for layer in range(self.config.n_layer):
            for part in FUSED:
                for which in "ab":
                    named[f"blk.{layer}.{part}.{which}"] = self.pairs[f"blk_{layer}_{part}_{which}"].detach()
        return named


class _AdaptedProjection(torch.autograd.Function):
    """x (N, C) -> x Wᵀ + scale · x Aᵀ Bᵀ, with gradients for x, A and B. The sums are made within the large product's
    result, which takes a third of the time that PyTorch's own derivative of the formula takes."""

    @staticmethod
    def forward(context, x, weight, a, b, scale):
        a, b = a.to(x.dtype), (b * scale).to(x.dtype)
        inner = x @ a.t()  # (N, rank)
        context.save_for_backward(x, weight, a, b, inner)
        context.scale = scale
        return torch.mm(x, weight.t()).addmm_(inner, b.t())

    @staticmethod
    def backward(context, grad):
        x, weight, a, b, inner = context.saved_tensors
        grad = grad.contiguous()
        grad_inner = grad @ b
        grad_x = torch.mm(grad, weight).addmm_(grad_inner, a) if context.needs_input_grad[0] else None
        return grad_x, None, (grad_inner.t() @ x).float(), (grad.t() @ inner).float().mul_(context.scale), None


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q (B, T, H, D), k and v (B, T, G, D) -> (B, T, H·D), causal, each KV head for H / G query heads. Written out, as
    the derivative of the library's takes three times as long for sequences as short as these."""
    num_rows, num_new, heads, size = q.shape
    groups = k.shape[2]
    q = q.view(num_rows, num_new, groups, heads // groups, size).permute(0, 2, 3, 1, 4)  # (B, G, H/G, T, D)
    q = q.reshape(num_rows * groups, heads // groups * num_new, size)
    k, v = (each.transpose(1, 2).reshape(num_rows * groups, num_new, size) for each in (k, v))
    scores = torch.bmm(q, k.transpose(1, 2)).float().mul(size**-0.5).view(-1, heads // groups, num_new, num_new)
    future = torch.ones(num_new, num_new, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1).to(v.dtype)  # (B·G, H/G, T, S)
    y = torch.bmm(weights.view(num_rows * groups, -1, num_new), v)
    y = y.view(num_rows, groups, heads // groups, num_new, size).permute(0, 3, 1, 2, 4)
    return y.reshape(num_rows, num_new, heads * size)


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """RoPE, the first half of each head against the second: x (B, T, heads, D)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
