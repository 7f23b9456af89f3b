"""The output head gives float32 logits, and a row the same ones in any company."""

import pytest
import torch

from app.models.half_projection import can_multiply_half
from app.models.output_head import OutputHead


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.01), (torch.float16, 0.01)])
def test_logits_are_the_products_with_every_row_of_the_vocabulary(dtype, tolerance):
    weight, x = torch.randn(301, 64), torch.randn(7, 64)
    logits = OutputHead(weight, weight.to(dtype))(x)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, x @ weight.T, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [2, 3, 8, 17, 32])
def test_a_row_gives_the_same_logits_alone_and_in_any_company(rows, dtype):
    weight, x = torch.randn(301, 64), torch.randn(rows, 64)
    head = OutputHead(weight, weight.to(dtype))
    assert torch.equal(head(x), torch.cat([head(x[row:row + 1]) for row in range(rows)]))


def test_where_float16_is_not_to_be_had_the_models_own_type_is_used(monkeypatch):
    monkeypatch.setattr(torch.backends.quantized, "engine", "qnnpack")
    can_multiply_half.cache_clear()
    try:
        weight, x = torch.randn(301, 64), torch.randn(2, 64)
        head = OutputHead(weight, weight.bfloat16())
        assert not head.in_float16
        torch.testing.assert_close(head(x), x @ weight.T, rtol=0.02, atol=0.2)
    finally:
        can_multiply_half.cache_clear()


def test_memory_beyond_the_embedding_is_counted():
    weight = torch.randn(301, 64)
    assert OutputHead(weight, weight.bfloat16()).copied_bytes in (0, 2 * 301 * 64)
    assert not can_multiply_half("cuda")
