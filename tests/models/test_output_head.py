"""The output head gives float32 logits, and a row the same ones in any company."""

import pytest
import torch

from app.models.half_projection import can_multiply_half
from app.models.output_head import OutputHead


def make_head(weight: torch.Tensor, dtype: torch.dtype) -> OutputHead:
    """As a model of this type has it here."""
    return OutputHead(weight, weight.to(dtype), in_float16=dtype != torch.float32 and can_multiply_half("cpu"))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.01), (torch.float16, 0.01)])
def test_logits_are_the_products_with_every_row_of_the_vocabulary(dtype, tolerance):
    weight, x = torch.randn(301, 64), torch.randn(7, 64)
    logits = make_head(weight, dtype)(x)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, x @ weight.T, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [2, 3, 8, 17, 32])
def test_a_row_gives_the_same_logits_alone_and_in_any_company(rows, dtype):
    weight, x = torch.randn(301, 64), torch.randn(rows, 64)
    head = make_head(weight, dtype)
    assert torch.equal(head(x), torch.cat([head(x[row:row + 1]) for row in range(rows)]))


def test_memory_beyond_the_embedding_is_counted():
    weight = torch.randn(301, 64)
    head = make_head(weight, torch.bfloat16)
    assert head.copied_bytes == 2 * 301 * 64 or not can_multiply_half("cpu")
    assert not can_multiply_half("cuda")


def test_without_float16_it_is_the_models_own_type():
    weight, x = torch.randn(301, 64), torch.randn(2, 64)
    torch.testing.assert_close(OutputHead(weight, weight.bfloat16())(x), x @ weight.T, rtol=0.02, atol=0.2)
