"""Packed weights hold the same numbers."""

import pytest
import torch
import torch.nn.functional as F

from app.models import projection
from app.models.projection import Projection, can_pack


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (3, 1), (2, 40)])
@pytest.mark.parametrize(("width_out", "width_in"), [(96, 64), (80, 48), (33, 17), (8, 192)])
def test_a_projection_multiplies_with_the_transposed_weight(width_out, width_in, shape, dtype, tolerance):
    weight = torch.randn(width_out, width_in).to(dtype)
    x = torch.randn(*shape, width_in).to(dtype)
    y = Projection(weight.clone())(x)
    assert y.shape == (*shape, width_out) and y.dtype == dtype
    truth = F.linear(x.float(), weight.float())
    torch.testing.assert_close(y.float(), truth, rtol=tolerance, atol=tolerance * width_in**0.5)


def test_where_packing_does_not_work_the_weight_is_used_as_it_is(monkeypatch):
    def fail(*_):
        raise RuntimeError("no such operation")

    monkeypatch.setattr(projection, "packed_linear", fail)
    can_pack.cache_clear()
    try:
        weight, x = torch.randn(16, 32), torch.randn(1, 2, 32)
        multiply = Projection(weight)
        assert multiply.kept is weight
        torch.testing.assert_close(multiply(x), F.linear(x, weight))
    finally:
        can_pack.cache_clear()


def test_only_the_processor_packs_and_only_types_that_it_computes_in():
    assert not can_pack("cuda", torch.bfloat16) and not can_pack("cpu", torch.float16)
