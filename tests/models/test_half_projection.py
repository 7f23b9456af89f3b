"""Float16 copies: nearly the truth, and a row the same in any company."""

import pytest
import torch

from app.engine import KVCache
from app.models import half_projection, llama
from app.models.errors import ModelError
from app.models.half_projection import can_multiply_half, keep_half, project_half, widen_half
from tests.models.tiny_llama import random_ids, tiny_llama

needs_halves = pytest.mark.skipif(not can_multiply_half("cpu"), reason="this processor does not convert numbers of 16 bits")


@needs_halves
@pytest.mark.parametrize("num_out, num_in", [(144, 96), (1, 7), (25, 1), (500, 33)])
def test_a_row_gives_the_same_numbers_alone_and_in_any_company_and_they_are_right(threads, num_out, num_in):
    weight, x = torch.randn(num_out, num_in), torch.randn(40, num_in)
    copy = keep_half(weight)
    alone = torch.cat([project_half(x[row:row + 1], copy, num_out) for row in range(40)])
    torch.testing.assert_close(alone, x @ weight.half().float().T, rtol=1e-5, atol=1e-5)
    for number in (1, 2, 3):
        threads(number)
        for rows in range(1, 41):
            assert torch.equal(project_half(x[:rows], copy, num_out), alone[:rows])


@needs_halves
def test_a_copy_is_widened_to_the_numbers_that_it_multiplies_with():
    weight = torch.randn(50, 30)
    copy = keep_half(weight)
    assert torch.equal(widen_half(copy, 50), weight.half().float())
    assert torch.equal(project_half(torch.eye(30), copy, 50).T, widen_half(copy, 50))


@needs_halves
def test_a_row_that_is_not_a_number_harms_no_other():
    weight, x = torch.randn(30, 16), torch.randn(6, 16)
    broken = x.clone()
    broken[2, 3] = float("nan")
    y = project_half(broken, keep_half(weight), 30)
    assert y[2].isnan().all() and torch.equal(y[[0, 1, 3, 4, 5]], project_half(x, keep_half(weight), 30)[[0, 1, 3, 4, 5]])


@needs_halves
def test_a_weight_that_float16_does_not_hold_is_refused_in_a_sentence():
    weight = torch.randn(30, 16)
    weight[3, 4] = -70_000
    with pytest.raises(ModelError, match="65,504.*--dtype float32"):
        keep_half(weight)


@needs_halves
def test_whatever_is_pytorchs_own_type_of_numbers_or_the_weights_are_trained(monkeypatch):
    weight, x = torch.randn(30, 16, requires_grad=True), torch.randn(2, 16)
    y = project_half(x, keep_half(weight), 30)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(project_half(x, keep_half(weight), 30), y)
        with pytest.raises(AssertionError, match="float64"):
            project_half(x.double(), keep_half(weight), 30)
    finally:
        torch.set_default_dtype(torch.float32)


def test_only_the_processor_has_it():
    assert not can_multiply_half("cuda") and not can_multiply_half("mps")


@needs_halves
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


@needs_halves
@pytest.mark.parametrize("tied_head", [True, False])
@pytest.mark.parametrize("has_only_halves", [False, True])
def test_the_copies_are_counted_in_bytes(monkeypatch, has_only_halves, tied_head):
    monkeypatch.setattr(llama, "can_pack", lambda device, dtype: not has_only_halves or dtype == torch.float32)
    monkeypatch.setattr("app.models.projection.can_pack", lambda device, dtype: False)
    config = tiny_llama().config
    kv_width = config.n_kv_head * config.head_dim
    layers = config.n_layer * (2 * config.n_embd * (config.n_embd + kv_width) + 3 * config.n_embd * config.n_mlp)
    table, norms = config.vocab_size * config.n_embd, (2 * config.n_layer + 1) * config.n_embd
    read, copies = 4 * table if has_only_halves else 2 * (layers + table), 2 * (layers + table)
    assert tiny_llama(torch.bfloat16, tied_head=tied_head).weight_bytes == read + copies + 4 * norms


def test_where_float16_is_not_to_be_had_a_model_does_without(monkeypatch):
    monkeypatch.setattr(half_projection, "is_fast_here", lambda: False)
    can_multiply_half.cache_clear()
    try:
        model = tiny_llama(torch.bfloat16)
        assert model._steps is None and not model._head.in_float16 and model.embedding.dtype == torch.bfloat16
    finally:
        can_multiply_half.cache_clear()
