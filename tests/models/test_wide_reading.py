"""A 16-bit Llama on a processor that does not multiply in its type: all of it goes through the float16 copies, and how a
text comes into the cache changes no bit of it."""

import random

import pytest
import torch

from app.engine import KVCache
from app.models import llama
from app.models.half_projection import can_multiply_half
from app.models.projection import can_pack
from tests.models.tiny_llama import add, logits_of, random_ids, same, tiny_llama

pytestmark = pytest.mark.skipif(not can_multiply_half("cpu"), reason="this processor does not convert numbers of 16 bits")


@pytest.fixture(params=[torch.bfloat16, torch.float16])
def wide(monkeypatch, request):
    """A 16-bit model as it is where the processor has no instructions for that, whatever this one has."""
    monkeypatch.setattr(llama, "can_pack", lambda device, dtype: dtype == torch.float32 and can_pack(device, dtype))
    return tiny_llama(request.param, sequence_len=700)


def stored(cache: KVCache, row: int, length: int) -> torch.Tensor:
    return torch.stack([torch.stack(cache.row(layer, row))[:, :length] for layer in range(cache.num_layers)])


def test_its_text_is_read_as_in_float32_but_for_rounded_weights_keys_and_values(wide):
    exact, ids = tiny_llama(sequence_len=700), random_ids(wide, 40)
    assert wide.cache_dtype != torch.float32 and wide.embedding.dtype == torch.float32 and wide.weights_dtype == "float16"
    truth, ours = logits_of(exact, ids), logits_of(wide, ids)
    plain = tiny_llama(sequence_len=700)  # all of it in 16 bits, as it would be without copies
    plain._layers = [type(each)(*(part if part.ndim == 1 else part.to_dense().to(wide.cache_dtype) for part in each))
                     for each in plain._layers]
    plain._packed, plain._cos, plain._sin = False, plain._cos.to(wide.cache_dtype), plain._sin.to(wide.cache_dtype)
    plain.embedding, plain.cache_dtype = plain.embedding.to(wide.cache_dtype), wide.cache_dtype
    off = float((ours - truth).abs().mean())
    assert 0 < off < 0.75 * float((logits_of(plain, ids) - truth).abs().mean())


@pytest.mark.parametrize("num_new", [1, 2, 9, 40])
def test_the_last_tokens_of_several_rows_are_the_same_bits_where_only_they_leave_the_last_layer(wide, threads, num_new):
    ids = torch.tensor([random_ids(wide, num_new, seed=row) for row in range(3)])

    def cache() -> KVCache:
        filled = KVCache.for_model(wide, 3, 256)
        for row, length in enumerate((5, 70, 1)):
            add(wide, filled.select([row]), random_ids(wide, length, seed=9 + row))
        return filled

    whole, last = cache(), cache()
    logits = wide.forward(ids, whole)
    threads(3)
    assert torch.equal(wide.forward(ids, last, last_only=True), logits[:, -1:])
    for row, length in enumerate(whole.lengths()):
        assert torch.equal(stored(whole, row, length), stored(last, row, length))
    assert torch.equal(wide.forward(ids, last_only=True), wide.forward(ids)[:, -1:])


def test_a_text_leaves_the_same_bits_however_it_comes_into_the_cache(wide, threads):
    """At once or in any pieces, on any number of threads, alone or beside others, in any row; and without a cache."""
    rng, ids = random.Random(0), random_ids(wide, 200)
    with_none = wide.forward(torch.tensor([ids]))[0]
    whole = KVCache.for_model(wide, 1, 256)
    assert torch.equal(add(wide, whole, ids)[0], with_none)
    for _ in range(25):
        threads(rng.choice([1, 2, 3]))
        cache, row, start = KVCache.for_model(wide, 3, 256), rng.randrange(3), 0
        for each in range(3):  # the others hold texts of their own
            if each != row and (length := rng.randrange(60)):
                add(wide, cache.select([each]), random_ids(wide, length, seed=each))
        while start < len(ids):
            size = min(rng.choice([1, 1, 2, 5, 9, 64]), len(ids) - start)
            beside = sorted({row, *rng.sample(range(3), rng.randrange(1, 4))})
            beside = [each for each in beside if cache.lengths()[each] + size <= 256]
            batch = [ids[start:start + size] if each == row else random_ids(wide, size, seed=start) for each in beside]
            logits = wide.forward(torch.tensor(batch), cache.select(beside))[beside.index(row)]
            assert torch.equal(logits, with_none[start:start + size])
            start += size
        assert torch.equal(stored(cache, row, 200), stored(whole, 0, 200))


def test_only_the_last_position_is_the_same_bits_too(wide):
    ids = random_ids(wide, 30)
    for last_only, cache in ((True, None), (True, KVCache.for_model(wide, 1, 32))):
        assert torch.equal(wide.forward(torch.tensor([ids]), cache, last_only=last_only)[0, 0], logits_of(wide, ids)[-1])


def test_what_lies_beyond_a_rows_length_is_never_looked_at(wide):
    ids, cache = random_ids(wide, 70), KVCache.for_model(wide, 2, 128)
    cache.k_cache.fill_(float("nan"))
    cache.v_cache.fill_(float("nan"))
    for start, end in ((0, 1), (1, 66), (66, 70)):
        logits = add(wide, cache.select([1]), ids[start:end])
    assert torch.equal(logits[0], logits_of(wide, ids)[66:])


def test_a_row_that_is_not_a_number_harms_no_other(wide):
    cache = KVCache.for_model(wide, 3, 64)
    for row in range(3):
        add(wide, cache.select([row]), random_ids(wide, 20, seed=row))
    cache.v_cache[:, 1, :20] = float("nan")
    logits = wide.forward(torch.tensor([[3], [4], [5]]), cache)
    assert logits[1].isnan().all()
    for row, token in ((0, 3), (2, 5)):
        assert torch.equal(logits[row, 0], logits_of(wide, [*random_ids(wide, 20, seed=row), token])[-1])


@pytest.mark.parametrize("changes", [{"num_heads": 1}, {"num_layers": 2}, {"head_dim": 16}])
def test_a_cache_of_another_shape_is_refused_before_anything_is_written(wide, changes):
    shape = {"num_heads": 2, "seq_len": 64, "head_dim": 8, "num_layers": 3} | changes
    cache = KVCache(1, dtype=wide.cache_dtype, **shape)
    with pytest.raises(AssertionError):
        wide.forward(torch.tensor([[1, 2]]), cache)
    assert cache.k_cache.count_nonzero() == 0


def test_a_negative_token_is_refused(wide):
    with pytest.raises(AssertionError, match="negative"):
        wide.forward(torch.tensor([[1, -1]]))


def test_a_piece_behind_many_keys_is_read_in_float32_too(wide):
    exact, ids = tiny_llama(sequence_len=700), random_ids(wide, 640)
    cache = KVCache.for_model(wide, 1, 700)
    add(wide, cache, ids[:600])
    same(add(wide, cache, ids[600:])[0], logits_of(exact, ids)[600:], tolerance=1)
