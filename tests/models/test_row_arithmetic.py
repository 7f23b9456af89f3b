"""The arithmetic between the products, compared with PyTorch's and with exact numbers."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numba import njit

from app.models.half_projection import can_multiply_half
from app.models.row_arithmetic import (KEYS_A_BLOCK, LOG2_E, attend, gate_up, norm, padded, power_of_two, rotate, store, widen)


pytestmark = pytest.mark.skipif(not can_multiply_half("cpu"), reason="this processor does not convert numbers of 16 bits")


@njit
def powers(x, y):
    for each in range(x.shape[0]):
        y[each] = power_of_two(x[each])


def powers_of_two(exponents) -> np.ndarray:
    x = np.asarray(exponents, np.float32)
    y = np.empty_like(x)
    powers(x, y)
    return y


def test_a_power_of_two_is_right_to_float32s_last_digits():
    x = np.linspace(-126, 0, 400_001).astype(np.float32)
    assert np.abs(powers_of_two(x) / np.exp2(x.astype(np.float64)) - 1).max() < 2e-7
    assert (powers_of_two(np.arange(-126, 1)) == np.exp2(np.arange(-126.0, 1))).all()


def test_a_power_that_is_too_small_stays_a_number_and_nan_stays_nan():
    y = powers_of_two([-126, -127, -1e30, -np.inf])
    assert (y == 2.0**-126).all()
    others = np.array([0x7fffffff, 0x7fc00000, 0x7fc00001, 0x7f800001, 0xffc00000, 0xffffffff], np.uint32).view(np.float32)
    assert np.isnan(powers_of_two(others)).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_numbers_are_stored_and_read_as_pytorch_does(dtype):
    patterns = torch.randint(-2**31, 2**31, (40_000,), dtype=torch.int64).to(torch.int32)
    ties = torch.arange(1 << 15, dtype=torch.int32) << 16 | 0x8000  # exactly between two numbers of bfloat16
    numbers = torch.cat([patterns, ties]).view(torch.float32)
    numbers = torch.cat([numbers, torch.randn(40_000), torch.arange(-3000, 3000) / 2048,
                         torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan])])
    stored = np.empty(len(numbers), np.uint16)
    store(numbers.numpy(), stored, dtype == torch.float16)
    ours, theirs = torch.from_numpy(stored.view(np.int16)).view(dtype), numbers.to(dtype)
    assert torch.equal(ours.isnan(), theirs.isnan())
    assert torch.equal(ours[~ours.isnan()].view(torch.int16), theirs[~ours.isnan()].view(torch.int16))
    whole = len(stored) // 8
    block = np.empty((whole, 8), np.float32)
    widen(stored, 0, whole, 8, dtype == torch.float16, block)
    assert torch.equal(torch.from_numpy(block).nan_to_num(5.0), ours[:8 * whole].float().view(whole, 8).nan_to_num(5.0))


def test_norm_gate_and_rotation_are_those_of_the_formulas():
    x, weight = torch.randn(5, 48), torch.randn(48)
    normed = torch.empty(5, 48)
    norm(x.numpy(), (weight * 48**0.5).numpy(), np.float32(48e-5), normed.numpy())
    torch.testing.assert_close(normed, F.rms_norm(x, (48,), weight, 1e-5))
    up, gate = torch.randn(5, 24), 9 * torch.randn(5, 24)
    gated = up.clone()
    gate_up(gated.numpy(), gate.numpy())
    torch.testing.assert_close(gated, up * F.silu(gate))
    head, angles, turned = torch.randn(16), torch.randn(8), torch.empty(16)
    rotate(head.numpy(), angles.cos().numpy(), angles.sin().numpy(), turned.numpy())
    torch.testing.assert_close(torch.complex(turned[:8], turned[8:]), torch.complex(head[:8], head[8:]) * torch.exp(1j * angles))


def test_a_gate_that_is_far_from_zero_stays_a_number_and_nan_stays_nan():
    gate = torch.tensor([-1e30, -300, -90, -0.0, 0, 90, 300, 1e30, math.inf, math.nan])[None]
    gated = torch.ones_like(gate)
    gate_up(gated.numpy(), gate.numpy())
    torch.testing.assert_close(gated, F.silu(gate), rtol=1e-6, atol=1e-7, equal_nan=True)


def attended(q: torch.Tensor, ends: list[int], keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """q (Q, D), multiplied by 1/sqrt(D), to keys and values (S, D) of 16 bits."""
    num_queries, head_dim = q.shape
    columns = padded(head_dim)
    across = np.zeros((head_dim, KEYS_A_BLOCK), np.float32)
    block, seen = np.zeros((KEYS_A_BLOCK, columns), np.float32), np.empty((num_queries, KEYS_A_BLOCK), np.float32)
    sums, y = np.empty((num_queries, columns), np.float32), np.empty((num_queries, columns), np.float32)
    largest, total = np.empty(num_queries, np.float32), np.empty(num_queries, np.float32)
    patterns = [each.contiguous().view(torch.int16).numpy().view(np.uint16).ravel() for each in (keys, values)]
    attend((q * float(LOG2_E)).numpy(), np.array(ends), *patterns, head_dim, keys.dtype == torch.float16, across,
           block, seen, sums, largest, total, y)
    return torch.from_numpy(y[:, :head_dim])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("head_dim", [8, 16, 22, 64])
def test_attention_is_that_of_the_formula_and_a_query_does_not_depend_on_the_others(dtype, head_dim):
    for seed in range(30):
        rng = torch.Generator().manual_seed(seed)
        num_queries = int(torch.randint(1, 14, (1,), generator=rng))
        ends = sorted(torch.randint(1, 300, (num_queries,), generator=rng).tolist())
        q = 3 * torch.randn(num_queries, head_dim, generator=rng) / head_dim**0.5
        keys, values = (torch.randn(ends[-1], head_dim, generator=rng).to(dtype) for _ in range(2))
        y = attended(q, ends, keys, values)
        for each, end in enumerate(ends):
            shares = (q[each].double() @ keys[:end].double().T).softmax(dim=-1)
            torch.testing.assert_close(y[each].double(), shares @ values[:end].double(), rtol=0, atol=3e-6)
            beyond = torch.full((400 - end, head_dim), math.nan, dtype=dtype)  # nothing beyond its end is looked at
            alone = attended(q[each:each + 1], [end], torch.cat([keys[:end], beyond]), torch.cat([values[:end], beyond]))
            assert torch.equal(alone[0], y[each])


def test_a_query_that_is_not_a_number_harms_no_other():
    q, keys = torch.randn(3, 16), torch.randn(70, 16).bfloat16()
    broken = q.clone()
    broken[1] = math.nan
    y, right = (attended(each, [70, 70, 70], keys, keys) for each in (broken, q))
    assert y[1].isnan().all() and torch.equal(y[[0, 2]], right[[0, 2]])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("per_head", [1, 2, 3, 4, 5])
def test_keys_that_are_read_as_they_are_stored_give_the_same_as_those_made_wide(dtype, per_head):
    """Up to three queries are multiplied with stored keys, where so many are stored behind them; NaN there is not seen."""
    q, ends = torch.randn(per_head, 64), [150] * per_head
    keys, values = (torch.randn(150, 64).to(dtype) for _ in range(2))
    behind = torch.full((64, 64), math.nan, dtype=dtype)
    y = attended(q, ends, torch.cat([keys, behind]), torch.cat([values, behind]))
    assert torch.equal(y, attended(q, ends, keys, values))
    assert torch.equal(y[:1], attended(q[:1], [150], keys, values))
    many = attended(torch.cat([q, q, q, q]), 4 * ends, keys, values)
    assert torch.equal(torch.cat([y, y, y, y]), many)
