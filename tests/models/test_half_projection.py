"""Float16 copies: nearly the truth, and a row the same in any company."""

import pytest
import torch

from app.engine import KVCache
from app.models import llama
from app.models.half_projection import MOST_ROWS, can_multiply_half, filled_up, keep_half, project_filled_up
from tests.models.tiny_llama import random_ids, tiny_llama

needs_fbgemm = pytest.mark.skipif(not can_multiply_half("cpu"), reason="this PyTorch has no float16 multiplication for this processor")


@needs_fbgemm
@pytest.mark.parametrize("rows", range(1, MOST_ROWS + 1))
def test_a_row_gives_the_same_numbers_alone_and_in_any_company_and_they_are_right(rows):
    weight, x = torch.randn(144, 96), torch.randn(rows, 96)
    copy = keep_half(weight)
    assert rows <= filled_up(rows) <= MOST_ROWS
    together = project_filled_up(x, copy)
    assert torch.equal(together, torch.cat([project_filled_up(x[row:row + 1], copy) for row in range(rows)]))
    torch.testing.assert_close(together, x @ weight.T, rtol=0, atol=0.02)


def test_only_the_processor_has_it():
    assert not can_multiply_half("cuda") and not can_multiply_half("mps")


@needs_fbgemm
def test_single_tokens_of_a_16_bit_model_come_nearer_to_float32_than_the_models_own_type(monkeypatch):
    exact, models = tiny_llama(), {"float16 copies": tiny_llama(torch.bfloat16)}
    monkeypatch.setattr(llama, "can_multiply_half", lambda device: False)
    models["bfloat16"], errors = tiny_llama(torch.bfloat16), dict.fromkeys(["float16 copies", "bfloat16"], 0.0)
    for seed in range(40):
        *prompt, last = random_ids(exact, 20, seed)
        truth = exact.forward(torch.tensor([[*prompt, last]]))[0, -1]
        for name, model in models.items():
            cache = KVCache.for_model(model, 1, 32)
            model.forward(torch.tensor([prompt]), cache)
            errors[name] += float((model.forward(torch.tensor([[last]]), cache)[0, -1] - truth).abs().mean())
    assert 0 < errors["float16 copies"] < errors["bfloat16"]


@needs_fbgemm
@pytest.mark.parametrize("reads_wide", [False, True])
def test_the_copies_are_counted_in_bytes(monkeypatch, reads_wide):
    monkeypatch.setattr(llama, "can_pack", lambda device, dtype: not reads_wide or dtype == torch.float32)
    monkeypatch.setattr("app.models.projection.can_pack", lambda device, dtype: False)
    config = tiny_llama().config
    kv_width = config.n_kv_head * config.head_dim
    layers = config.n_layer * (2 * config.n_embd * (config.n_embd + kv_width) + 3 * config.n_embd * config.n_mlp)
    table, norms = config.vocab_size * config.n_embd, (2 * config.n_layer + 1) * config.n_embd
    read, copies = (4 if reads_wide else 2) * (layers + table), 2 * (layers + table)
    assert tiny_llama(torch.bfloat16).weight_bytes == read + copies + 4 * norms


def test_where_float16_is_not_to_be_had_a_model_does_without(monkeypatch):
    monkeypatch.setattr(torch.backends.quantized, "engine", "qnnpack")
    can_multiply_half.cache_clear()
    try:
        model = tiny_llama(torch.bfloat16)
        assert not model._halves and not model._head.in_float16 and model.embedding.dtype == torch.bfloat16
    finally:
        can_multiply_half.cache_clear()
