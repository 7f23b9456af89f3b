"""The slab: rows, lengths, bytes."""

import pytest
import torch

from app.engine.kv_cache import CacheFullError, KVCache
from tests.engine.tiny import TinyModel


def filled_cache(lengths, seq_len=16):
    cache = KVCache(len(lengths), 2, seq_len, 4, 3)
    cache.k_cache.copy_(torch.arange(cache.k_cache.numel()).view(cache.k_cache.shape))
    cache.v_cache.copy_(-cache.k_cache)
    cache.cache_seqlens.copy_(torch.tensor(lengths))
    return cache


def test_shapes_and_bytes_are_those_of_the_formula():
    cache = KVCache(5, 3, 128, 64, 30, dtype=torch.bfloat16)
    assert cache.k_cache.shape == cache.v_cache.shape == (30, 5, 128, 3, 64)
    assert cache.cache_seqlens.shape == (5,) and cache.cache_seqlens.dtype == torch.int32
    assert cache.bytes_per_token == 2 * 30 * 3 * 64 * 2 == 23_040
    assert cache.bytes_reserved == cache.k_cache.nbytes + cache.v_cache.nbytes == 5 * 128 * 23_040
    cache.cache_seqlens[1], cache.cache_seqlens[4] = 7, 100
    assert cache.bytes_used == 107 * 23_040


def test_all_rows_advance_together_from_their_own_positions():
    cache = filled_cache([2, 0, 9])
    cache.advance(3)
    assert cache.lengths() == [5, 3, 12]


def test_a_write_past_the_end_is_refused_before_anything_moves():
    cache = filled_cache([2, 15])
    with pytest.raises(CacheFullError, match="2 more tokens after 15 do not fit in a cache of 16"):
        cache.advance(2)
    assert cache.lengths() == [2, 15]


def test_a_copied_row_goes_on_by_itself():
    cache = filled_cache([6, 0])
    before = cache.k_cache[:, 0, :6].clone()
    cache.copy_row(0, 1)
    assert cache.lengths() == [6, 6]
    assert torch.equal(cache.k_cache[:, 1, :6], before) and torch.equal(cache.v_cache[:, 1, :6], -before)
    cache.k_cache[:, 1] = 0
    assert torch.equal(cache.k_cache[:, 0, :6], before)


def test_prefill_copies_one_row_into_all():
    source, cache = filled_cache([5]), KVCache(3, 2, 24, 4, 3)
    cache.prefill(source)
    assert cache.lengths() == [5, 5, 5]
    for row in range(3):
        assert torch.equal(cache.k_cache[:, row, :5], source.k_cache[:, 0, :5])
        assert torch.equal(cache.v_cache[:, row, :5], source.v_cache[:, 0, :5])


def test_prefill_refuses_what_does_not_fit():
    with pytest.raises(CacheFullError):
        KVCache(1, 2, 4, 4, 3).prefill(filled_cache([5]))
    with pytest.raises(AssertionError, match="types differ"):
        KVCache(1, 2, 16, 4, 3, dtype=torch.bfloat16).prefill(filled_cache([5]))
    with pytest.raises(AssertionError, match="cannot be prefilled again"):
        filled_cache([1]).prefill(filled_cache([5]))


@pytest.mark.parametrize("rows", [[1], [0, 1, 2], [2, 0], [0, 3]])
def test_selected_rows_write_home(rows):
    cache = filled_cache([2, 5, 0, 7])
    expected_k, expected_v, lengths = cache.k_cache.clone(), cache.v_cache.clone(), cache.lengths()
    view = cache.select(rows)
    assert view.batch_size == len(rows) and view.cache_seqlens.tolist() == [lengths[r] for r in rows]
    for layer in range(3):
        keys, values = view.get_layer_cache(layer)
        for index, row in enumerate(rows):
            start = lengths[row]
            keys[index, start:start + 2] = layer + 100.0 * index
            values[index, start:start + 2] = -layer - 100.0 * index
            expected_k[layer, row, start:start + 2] = layer + 100.0 * index
            expected_v[layer, row, start:start + 2] = -layer - 100.0 * index
    view.advance(2)
    assert torch.equal(cache.k_cache, expected_k) and torch.equal(cache.v_cache, expected_v)
    assert cache.lengths() == [n + 2 if r in rows else n for r, n in enumerate(lengths)]
    assert view.lengths() == [lengths[r] + 2 for r in rows]


@pytest.mark.parametrize("rows", [[1, 2], [2, 0]])
def test_the_rows_of_a_selection_are_views_of_the_slab(rows):
    cache = filled_cache([2, 5, 0])
    cache.select(rows).row(1, 1)[0][0] = 77.0
    assert (cache.k_cache[1, rows[1], 0] == 77.0).all()


def test_cut_forgets_the_end_of_a_row_only():
    cache = filled_cache([9, 3])
    cache.cut(0, 4)
    assert cache.lengths() == [4, 3]
    with pytest.raises(AssertionError, match="cannot cut row 0 of 4 positions to 5"):
        cache.cut(0, 5)


def test_the_cache_takes_the_type_of_the_model():
    class Typed(TinyModel):
        cache_dtype = torch.float16

    assert KVCache.for_model(Typed(), 1, 8).dtype == torch.float16
    assert KVCache.for_model(TinyModel(), 1, 8).dtype == torch.float32
    assert KVCache.for_model(TinyModel(), 2, 8).k_cache.shape == (2, 2, 8, 2, 8)


def test_what_lies_beyond_a_row_is_never_read():
    model = TinyModel()
    clean, dirty = KVCache.for_model(model, 2, 40), KVCache.for_model(model, 2, 40)
    dirty.k_cache.fill_(float("nan")), dirty.v_cache.fill_(float("nan"))
    for ids in ([[5, 6, 7], [8, 9, 10]], [[1], [2]]):
        assert torch.equal(model.forward(torch.tensor(ids), clean), model.forward(torch.tensor(ids), dirty))
