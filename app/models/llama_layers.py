"""The arithmetic of Llama's layers, written so that PyTorch can run all of it without coming back to Python.

Writing one token takes 121 multiplications with large matrices and a thousand small operations between
them. Each time a matrix has been streamed through the processor's cache, Python is no longer in it, and every
small operation waits for memory: measured, 3 of 20 milliseconds a token. So on a processor `run_layers` is
compiled by TorchScript, which calls the very same operations one after the other; the results are the same,
bit for bit. Where TorchScript is not to be had, the function runs as it stands here.

TorchScript reads the annotations: they are plain types, without strings. Shape letters as in
app/engine/kv_cache.py; C is the model's width, M that of the MLP.
"""

import warnings
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from app.models.attention import attend_groups
from app.models.cache_views import Cut
from app.models.projection import project


class LayerWeights(NamedTuple):
    """One layer. The norms are float32 and multiplied by sqrt(C); projections are as `Projection` keeps them."""
    attention_norm: Tensor  # (C,)
    qkv: Tensor             # ((H + 2G)·D, C)
    attention_out: Tensor   # (C, H·D)
    mlp_norm: Tensor        # (C,)
    up_gate: Tensor         # (2M, C)
    mlp_down: Tensor        # (C, M)


def run_layers(x: Tensor, cos: Tensor, sin: Tensor, eps: Tensor, layers: list[LayerWeights], packed: bool,
               num_rows: int, num_heads: int, num_kv_heads: int, cut: Cut, masks: list[Tensor | None], last_only: bool,
               first: int, end: int) -> Tensor:
    """Takes x (B·T, C), float32, through the layers from `first` up to `end` -> what comes out, (B·T, C), or (B, C) of
    the last positions with `last_only`: in the last layer of all, the others are needed for their keys and values alone.
    x is written over. Keys and values go into the cache, if there is one."""
    num_new, num_wanted, turned = x.shape[0] // num_rows, x.shape[0] // num_rows, num_heads + num_kv_heads
    for index in range(first, end):
        layer = layers[index]
        dtype = layer.qkv.dtype
        heads = project(rms_norm(x, layer.attention_norm, eps, dtype), layer.qkv, packed)
        if last_only and index == len(layers) - 1:
            num_wanted, x = 1, x[num_new - 1::num_new]
        y = _attention(heads, cos, sin, num_rows, num_wanted, num_heads, turned, cut, masks, index)
        x += project(y, layer.attention_out, packed)
        up_gate_values = project(rms_norm(x, layer.mlp_norm, eps, dtype), layer.up_gate, packed)
        x += project(silu_gate(up_gate_values), layer.mlp_down, packed)
    return x


def _attention(heads: Tensor, cos: Tensor, sin: Tensor, num_rows: int, num_wanted: int, num_heads: int, turned: int,
               cut: Cut, masks: list[Tensor | None], index: int) -> Tensor:
    """heads (B·T, (H + 2G)·D), queries, keys and values -> (B·N, H·D) for the last N positions of each row: all, or one."""
    head_dim = cos.shape[-1]
    heads = heads.view(num_rows, heads.shape[0] // num_rows, -1, head_dim)  # (B, T, H + 2G, D)
    qk = rotate(heads[:, :, :turned], cos, sin)
    y = attend_groups(qk[:, -num_wanted:, :num_heads], qk[:, :, num_heads:], heads[:, :, turned:], cut, masks, index, None)
    return y.reshape(num_rows * num_wanted, num_heads * head_dim)


def rms_norm(x: Tensor, weight: Tensor, eps: Tensor, dtype: torch.dtype) -> Tensor:
    """RMS norm of x (N, C), float32: x / sqrt(mean(x²) + eps) · weight, as `dtype`.

    With n = |x|, sqrt(mean(x²) + eps) = hypot(n, sqrt(C·eps)) / sqrt(C): `eps` is given as sqrt(C·eps) and
    `weight` as weight·sqrt(C), and four operations do what takes nine in F.rms_norm.
    """
    size = torch.hypot(torch.linalg.vector_norm(x, 2.0, [-1], True), eps)  # (N, 1)
    return (x * weight).div_(size).to(dtype)


def silu_gate(up_gate: Tensor) -> Tensor:
    """(N, 2M) -> up · silu(gate) (N, M), where up is the first half and gate the second.

    silu(g) = g · sigmoid(g), and F.glu gives up · sigmoid(gate): on a half that is not contiguous F.silu
    takes fifty times as long.
    """
    return F.glu(up_gate, -1).mul_(up_gate[:, up_gate.shape[1] // 2:])


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (x1[j], x2[j]) of the two halves of x (B, T, heads, D) by its position's angle.

        (x1, x2)·(cos, cos) + (x2, x1)·(-sin, sin)  =  (x1·cos - x2·sin, x2·cos + x1·sin)
    """
    return (x * cos).addcmul_(torch.roll(x, [x.shape[-1] // 2], [-1]), sin)


@lru_cache(maxsize=1)
def compiled_layers():
    """`run_layers`, compiled if that can be done."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated; what replaces it needs a C++ compiler at hand
            return torch.jit.script(run_layers)
    except (RuntimeError, AttributeError, NotImplementedError):
        return run_layers
