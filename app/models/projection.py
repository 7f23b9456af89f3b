"""A projection y = x·Wᵀ, with the weight laid out as the device reads it fastest.

Writing one token multiplies each weight with a single row, which costs what it costs to read the weight
from memory. On a processor, oneDNN reads a weight at full bandwidth only from its own blocked layout
("packed"): for the default model in bfloat16 on two cores, 10 ms a token instead of 14 for the layers and
1.4 ms instead of 3.1 for the head. The packed weight holds the same numbers in the same type.

Which layout that is, oneDNN decides by the processor and by a number of rows that it is told: a single one, but with
AVX2 alone many. There the layers of the default model in float32 take 22 ms instead of 42 for two rows so, 54 instead
of 79 for 20, 74 instead of 96 for 36 and 213 instead of 252 for 128 (two cores, least of five; not compared with
AVX-512).

A row of x gives the same numbers, bit for bit, whatever rows stand beside it: a reply must not depend on who
else is being served. oneDNN keeps to that but for a single float32 row, which in the layout for one it adds up in
another order; such a row is therefore multiplied twice. (Measured on x86 with AVX-512, and with AVX2: 20,000 products
with 55 weights, on one, two and three threads.)

oneDNN writes code for every shape of a product, here for every number of rows: half a megabyte each. It keeps the
last 1,024 of them, and PyTorch's layer above it as many again: in a server, through which texts of all lengths come,
that is half a gigabyte in time. With far fewer nothing was measured to be slower.

This module must never change a number: smaller types are another module's.
"""

from __future__ import annotations

import os
from functools import lru_cache

import torch
import torch.nn.functional as F

PACKED_DTYPES = (torch.bfloat16, torch.float32)
KEPT_SHAPES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "256", "LRU_CACHE_CAPACITY": "64"}  # of oneDNN and of PyTorch's layer

LAYOUT_ROWS = 32 if torch.backends.cpu.get_cpu_capability() == "AVX2" else 1

for _name, _count in KEPT_SHAPES.items():
    os.environ.setdefault(_name, _count)  # both look there when they come to their first product


class Projection:
    """`weight` (out, in) is taken over; call it with x (..., in) of the same type -> (..., out)."""

    def __init__(self, weight: torch.Tensor):
        self.weight_bytes = weight.numel() * weight.element_size()
        self.packed = can_pack(weight.device.type, weight.dtype)
        self.kept = pack(weight) if self.packed else weight

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return project(x, self.kept, self.packed)

    def wide_weight(self) -> torch.Tensor:
        """The weight's numbers in float32, (out, in)."""
        return dense(self.kept, self.packed).float()

    def widened(self) -> Projection:
        """The same numbers in float32."""
        return Projection(self.wide_weight())


def project(x: torch.Tensor, kept: torch.Tensor, packed: bool) -> torch.Tensor:
    """x (..., in) times a weight as a `Projection` keeps it -> (..., out)."""
    if not packed:
        return F.linear(x, kept)
    if x.dtype == torch.float32 and x.numel() == x.shape[-1]:  # a single row, which would be added up differently
        pair = packed_linear(x.reshape(1, -1).expand(2, -1), kept)
        return pair[0].view(list(x.shape[:-1]) + [-1])
    return packed_linear(x, kept)


def pack(weight: torch.Tensor) -> torch.Tensor:
    """A copy of a weight (out, in) in oneDNN's layout for this processor; only `packed_linear` can read it."""
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), LAYOUT_ROWS)


def dense(kept: torch.Tensor, packed: bool) -> torch.Tensor:
    """The weight (out, in) that a `Projection` keeps, laid out as any tensor is."""
    return kept.to_dense() if packed else kept


def packed_linear(x: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")


@lru_cache
def can_pack(device_type: str, dtype: torch.dtype) -> bool:
    """Whether packed weights work here. These operations are not PyTorch's public ones: they are tried once."""
    if device_type != "cpu" or dtype not in PACKED_DTYPES or not torch.backends.mkldnn.is_available():
        return False
    if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return False
    weight = torch.linspace(-1, 1, 48 * 32).view(48, 32).to(dtype)
    x = torch.linspace(1, -2, 3 * 32).view(1, 3, 32).to(dtype)
    try:
        y = packed_linear(x, pack(weight))
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return torch.allclose(y.float(), F.linear(x.float(), weight.float()), rtol=0.02, atol=0.05)
