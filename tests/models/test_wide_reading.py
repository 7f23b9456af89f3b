"""A 16-bit Llama on a processor that does not multiply in its type: it reads in float32 and keeps keys and values in 16 bits."""

import pytest
import torch

from app.engine import KVCache
from app.models import llama
from app.models.half_projection import can_multiply_half
from app.models.projection import can_pack
from tests.models.tiny_llama import add, logits_of, random_ids, same, tiny_llama

pytestmark = pytest.mark.skipif(not can_multiply_half("cpu"), reason="this PyTorch has no float16 multiplication for this processor")


@pytest.fixture
def wide(monkeypatch):
    """A bfloat16 model as it is where the processor has no instructions for that, whatever this one has."""
    monkeypatch.setattr(llama, "can_pack", lambda device, dtype: dtype == torch.float32 and can_pack(device, dtype))
    return tiny_llama(torch.bfloat16)


def test_its_text_is_read_as_in_float32_but_for_the_rounded_keys_and_values(wide):
    exact, ids = tiny_llama(), random_ids(wide, 40)
    assert wide.cache_dtype == torch.bfloat16 and wide.embedding.dtype == torch.float32
    truth = logits_of(exact, ids)
    off = float((logits_of(wide, ids) - truth).abs().mean())
    rounded = tiny_llama(torch.bfloat16)
    rounded._halves, rounded._layers = [], [type(each)(*(
        part if part.ndim == 1 else part.to_dense().to(torch.bfloat16) for part in each)) for each in wide._layers]
    rounded._packed = False
    assert 0 < off < 0.75 * float((logits_of(rounded, ids) - truth).abs().mean())


@pytest.mark.parametrize("chunks", [(20,), (7, 13), (1, 18, 1), (1,) * 20])
def test_it_gives_with_the_cache_what_it_gives_without(wide, chunks):
    ids, cache, start = random_ids(wide, 20), KVCache.for_model(wide, 1, 32), 0
    assert cache.dtype == torch.bfloat16
    for size in chunks:
        logits = add(wide, cache, ids[start:start + size])
        start += size
    same(logits[0, -1], logits_of(wide, ids)[-1], tolerance=0.3)


def test_a_piece_behind_many_keys_is_read_in_float32_too(wide):
    long, exact = tiny_llama(torch.bfloat16, sequence_len=700), tiny_llama(sequence_len=700)
    ids = random_ids(long, 640)
    cache = KVCache.for_model(long, 1, 700)
    add(long, cache, ids[:600])
    same(add(long, cache, ids[600:])[0], logits_of(exact, ids)[600:], tolerance=1)


@pytest.mark.parametrize("last_only", [False, True])
def test_reading_gives_the_same_numbers_on_any_number_of_threads(wide, last_only):
    """So that the engine may go down to fewer in the middle of a reply."""
    before, ids = torch.get_num_threads(), random_ids(wide, 60)
    try:
        results = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            cache = KVCache.for_model(wide, 1, 64)
            results.append([wide.forward(torch.tensor([ids[start:end]]), cache, last_only=last_only)
                            for start, end in ((0, 33), (33, 59), (59, 60))])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(one, two) for one, two in zip(results[0], other))
