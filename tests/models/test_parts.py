"""A forward that stops between its layers gives the same numbers, whatever is computed meanwhile."""

import pytest
import torch

from app.engine.kv_cache import KVCache
from app.models.nanochat_architecture import JULY_2026, OCTOBER_2025
from app.models.parts import outcome, spans_of
from tests.models.tiny_llama import random_ids, tiny_llama
from tests.models.tiny_nanochat import tiny_nanochat

CONTEXT = 64
MODELS = {"llama": lambda dtype: tiny_llama(dtype, n_layer=4),
          "nanochat": lambda dtype: tiny_nanochat(JULY_2026, dtype=dtype),
          "the first nanochat": lambda dtype: tiny_nanochat(OCTOBER_2025, dtype=dtype)}


def filled(model) -> tuple[KVCache, KVCache, KVCache]:
    """A cache of three rows that hold something, its second row, and the two others."""
    cache = KVCache.for_model(model, 3, CONTEXT)
    for row, length in enumerate((5, 9, 2)):
        model.forward(torch.tensor([random_ids(model, length, seed=row)]), cache.select([row]))
    return cache, cache.select([1]), cache.select([0, 2])


@pytest.mark.parametrize("last_only", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", MODELS)
def test_others_write_between_the_parts_and_all_get_the_same_bits(family, dtype, last_only):
    model = MODELS[family](dtype)
    ids, new = torch.tensor([random_ids(model, 20, seed=7)]), torch.tensor([[3], [4]])
    cache, row, others = filled(model)
    whole = model.forward(ids, row, last_only)
    written = [model.forward(new, others) for _ in range(4)]

    parted, row, others = filled(model)
    parts, between = model.forward_in_parts(ids, row, last_only), []
    with pytest.raises(StopIteration) as end:
        while True:
            next(parts)
            assert row.lengths() == [9], "the tokens count when all layers have them"
            if len(between) < 4:
                between.append(model.forward(new, others))
    assert between, "it never stopped"
    while len(between) < 4:
        between.append(model.forward(new, others))
    assert torch.equal(end.value.value, whole)
    assert all(torch.equal(a, b) for a, b in zip(written, between, strict=True))
    assert parted.lengths() == cache.lengths()
    for index, length in enumerate(cache.lengths()):
        for mine, other in zip(parted.span(index), cache.span(index)):
            assert torch.equal(mine[:, :, :length], other[:, :, :length])


@pytest.mark.parametrize("family", MODELS)
def test_a_forward_that_is_given_up_leaves_the_row_as_it_was(family):
    model = MODELS[family](torch.float32)
    ids = torch.tensor([random_ids(model, 6, seed=8)])
    truth = model.forward(ids, filled(model)[1])
    cache, row, _ = filled(model)
    parts = model.forward_in_parts(torch.tensor([random_ids(model, 20, seed=7)]), row)
    next(parts)
    parts.close()
    cache.cut(1, 9)
    assert torch.equal(model.forward(ids, row), truth)


def test_no_gradient_is_kept_of_any_part():
    parts = tiny_llama().forward_in_parts(torch.tensor([[1, 2, 3]]))
    next(parts)
    assert torch.is_grad_enabled(), "what is computed in between is no business of the forward"
    assert not outcome(parts).requires_grad


def test_the_layers_are_parted_evenly_and_each_is_in_one_part():
    assert spans_of(30, 6) == [(0, 5), (5, 10), (10, 15), (15, 20), (20, 25), (25, 30)]
    assert spans_of(3, 6) == [(0, 1), (1, 2), (2, 3)]
    assert spans_of(20, 6) == [(0, 3), (3, 6), (6, 10), (10, 13), (13, 16), (16, 20)]
    assert spans_of(7, 1) == [(0, 7)]
