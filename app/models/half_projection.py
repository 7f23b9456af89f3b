"""A second copy of a projection, in float16, for few rows at a time.

FBGEMM multiplies float32 rows with a float16 weight and adds up in float32. Few rows at a time cost what it costs
to read the weight, and it reads faster than oneDNN reads bfloat16: for the layers of the default model on two
cores 7.3 ms instead of 12.3 for one row, 12.6 instead of 13.6 for eight. The copy is more exact, too: float16
keeps three more bits of a weight than bfloat16, and the rows are not rounded at all. What it costs is memory:
the weight is there twice. Long prompts stay with `projection`, which is faster for many rows.

A row is to give the same numbers whatever rows stand beside it. With AVX-512 it does; FBGEMM's code for AVX2 adds up
in another order where it multiplies one row or two, alone or as the last of some. Such numbers of rows are filled up
(see `filled_up`).

This module must never decide when a copy is used.
"""

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

MOST_ROWS = 16  # more at once are faster in the model's own type

try:
    HalfWeight = torch.classes.quantized.LinearPackedParamsBase  # what FBGEMM keeps; TorchScript wants its name
except (RuntimeError, AttributeError):
    HalfWeight = Tensor


def keep_half(weight: Tensor) -> HalfWeight:
    """weight (out, in), float32 -> the copy that `project_half` reads."""
    return torch.ops.quantized.linear_prepack_fp16(weight, None)


def project_half(x: Tensor, weight: HalfWeight) -> Tensor:
    """x (N, in), float32 -> (N, out), float32."""
    return torch.ops.quantized.linear_dynamic_fp16(x, weight)


@lru_cache
def filled_up(num_rows: int) -> int:
    """How many rows to multiply, for `num_rows` of them to get the sums that they get among any others: from AVX2, 3 for
    1 and 2, 8 for 7, 15 for 14. Tried out here, as it depends on the processor."""
    weight, x = keep_half(_numbers(48, 64)), _numbers(1, 64)
    sums = project_half(x.repeat(MOST_ROWS, 1), weight)[0]
    for count in range(num_rows, num_rows + MOST_ROWS):
        if bool((project_half(x.repeat(count, 1), weight) == sums).all()):
            return count
    return num_rows


def project_filled_up(x: Tensor, weight: HalfWeight) -> Tensor:
    """`project_half`, and each row with the sums that it gets among any others."""
    num_rows = x.shape[0]
    return project_half(F.pad(x, (0, 0, 0, filled_up(num_rows) - num_rows)), weight)[:num_rows]


def _numbers(num_rows: int, size: int) -> Tensor:
    return torch.arange(num_rows * size).mul(0.7).sin().view(num_rows, size)


def widen_half(weight: HalfWeight) -> Tensor:
    """The copy's numbers, (out, in), float32."""
    return torch.ops.quantized.linear_unpack_fp16(weight)[0]


@lru_cache
def can_multiply_half(device_type: str) -> bool:
    """Whether FBGEMM is here. These operations are not PyTorch's public ones: they are tried once."""
    if device_type != "cpu" or torch.backends.quantized.engine not in ("x86", "fbgemm"):
        return False
    weight = torch.linspace(-1, 1, 48 * 32).view(48, 32)
    x = torch.linspace(1, -2, 3 * 32).view(3, 32)
    try:
        y = project_half(x, keep_half(weight))
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return torch.allclose(y, x @ weight.T, rtol=0.002, atol=0.005)
