"""nanochat's forward by itself: windows, the ends of the context, types."""

import pytest
import torch

from app.engine import Engine, KVCache
from app.engine.kv_cache import CacheFullError
from app.models import nanochat
from app.models.nanochat import ContextError
from app.models.nanochat_architecture import JULY_2026, MARCH_2026, OCTOBER_2025
from app.models.nanochat_tokenizer import NanochatTokenizer
from app.models.random_weights import made_up_encoding, random_state
from tests.models.tiny_nanochat import (CONTEXT, DATES, VARIANTS, add, logits_of, random_ids, same, tiny_config,
                                        tiny_nanochat)

by_date = pytest.mark.parametrize("architecture", DATES, ids=lambda architecture: architecture.date)


def tokenizer_of(model):
    return NanochatTokenizer(made_up_encoding(model.config.vocab_size))


# --- windows

def plain_attention(q, k, v, groups=(), layer=0, window=None):
    """Attention without a cache as the formula says it, one query after the other."""
    assert not groups
    k, v = (x.repeat_interleave(q.shape[2] // x.shape[2], dim=2) for x in (k, v))
    out = torch.empty_like(q)
    for t in range(q.shape[1]):
        first = 0 if window is None else max(0, t - window)
        scores = torch.einsum("bhd,bshd->bhs", q[:, t], k[:, first:t + 1]) / q.shape[-1] ** 0.5
        out[:, t] = torch.einsum("bhs,bshd->bhd", scores.softmax(-1), v[:, first:t + 1])
    return out


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_cached_model_attends_as_the_formula_says(variant, monkeypatch):
    architecture, changes = variant
    model = tiny_nanochat(architecture, **changes)
    ids, cache = random_ids(model, 33), KVCache.for_model(model, 1, CONTEXT)
    pieces = [add(model, cache, ids[:20])[0], add(model, cache, ids[20:31])[0]]  # windows bite in chunks
    pieces += [add(model, cache, [id])[0] for id in ids[31:]]                    # and in single steps
    monkeypatch.setattr(nanochat, "attend", plain_attention)
    same(torch.cat(pieces), logits_of(model, ids))


def test_a_key_outside_every_window_has_no_influence():
    # Both layers but the last see 3 tokens back, so in two layers a change reaches 6 tokens further and no more.
    model = tiny_nanochat(MARCH_2026, window=3, n_layer=3, window_pattern="S")
    model.layers[-1].window = 3
    ids = random_ids(model, 20)
    changed = [*ids]
    changed[5] = (ids[5] + 1) % 256
    difference = (logits_of(model, ids) - logits_of(model, changed)).abs().amax(-1)
    reached = (difference > 1e-6).nonzero().flatten().tolist()
    assert reached[0] == 5 and reached[-1] == 5 + 3 * 3


def test_the_windows_of_each_date():
    config = tiny_config(sequence_len=2048, n_layer=6, window_pattern="SSL")
    assert [architecture.windows(config) for architecture in DATES] == [
        (None, None, None, None, None, None), (1024, 1024, None, 1024, 1024, None),
        (768, 768, None, 768, 768, None), (512, 512, None, 512, 512, None)]
    assert JULY_2026.windows(tiny_config(n_layer=2, window_pattern="S")) == (128, None)


def test_a_step_reads_fewer_bytes_than_are_stored_where_there_are_windows():
    windowed, full = tiny_nanochat(JULY_2026, window=7), tiny_nanochat(JULY_2026, window_pattern="L")
    bytes_per_token = KVCache.for_model(full, 1, CONTEXT).bytes_per_token
    assert full.bytes_read(50) == 50 * bytes_per_token
    assert windowed.windows == (7, 7, 7, None, None)
    assert windowed.bytes_read(50) == (3 * 7 + 2 * 50) * bytes_per_token // 5
    assert windowed.bytes_read(5) == 5 * bytes_per_token


def test_backout_takes_off_the_layer_that_comes_after_the_middle():
    # Of two layers that is the last: taking a part of the whole off the whole leaves its direction, and so the logits.
    model = tiny_nanochat(JULY_2026, n_layer=2)
    ids = random_ids(model, 12)
    logits = logits_of(model, ids)
    model.backout_lambda = 0.0
    same(logits_of(model, ids), logits)


# --- where the context begins and ends

@by_date
def test_a_prompt_of_one_token_is_enough(architecture):
    model = tiny_nanochat(architecture)
    for prompt in ([0], [200]):
        reference = list(model.generate(prompt, 8, temperature=0))
        columns = Engine(model, tokenizer_of(model)).generate(prompt, max_tokens=8, temperature=0)
        assert [column[0] for column, _ in columns] == reference


def test_an_empty_prompt_is_refused():
    model = tiny_nanochat()
    with pytest.raises(ValueError, match="empty"):
        next(model.generate([], 5))
    with pytest.raises(ValueError):
        next(Engine(model, tokenizer_of(model)).generate([], max_tokens=5))


@by_date
def test_a_reply_goes_to_the_very_end_of_the_context_and_no_further(architecture):
    model = tiny_nanochat(architecture)
    prompt = random_ids(model, CONTEXT - 5)
    reference = list(model.generate(prompt, 50, temperature=0))
    columns = list(Engine(model, tokenizer_of(model)).generate(prompt, temperature=0))
    assert len(reference) == 5
    assert [column[0] for column, _ in columns] == reference


@by_date
def test_a_prompt_as_long_as_the_context_is_read_whole(architecture):
    model = tiny_nanochat(architecture)
    ids, cache = random_ids(model, CONTEXT), KVCache.for_model(model, 1, CONTEXT)
    same(add(model, cache, ids)[0], logits_of(model, ids))
    assert list(model.generate(ids, 5)) == []
    with pytest.raises(ValueError, match="97 tokens"):
        next(model.generate([*ids, 1], 5))


@by_date
def test_tokens_that_do_not_fit_are_refused_before_anything_is_written(architecture):
    model = tiny_nanochat(architecture)
    cache = KVCache.for_model(model, 2, 16)
    add(model, cache.select([0]), random_ids(model, 14))
    before = cache.k_cache.clone(), cache.v_cache.clone(), cache.token_ids.clone()
    for count in (3, 40):
        with pytest.raises(CacheFullError):
            add(model, cache, random_ids(model, count), random_ids(model, count))
    assert cache.lengths() == [14, 0]
    assert all(torch.equal(old, new) for old, new in zip(before, (cache.k_cache, cache.v_cache, cache.token_ids)))


@by_date
def test_a_conversation_may_be_ten_times_as_long_as_the_model_was_trained_on(architecture):
    model = tiny_nanochat(architecture, sequence_len=16, max_context=160)
    ids, cache = random_ids(model, 160), KVCache.for_model(model, 1, 160)
    same(torch.cat([add(model, cache, ids[start:start + 50])[0] for start in range(0, 160, 50)]), logits_of(model, ids))
    assert len(list(model.generate(ids[:157], 10))) == 3


def test_the_rotary_table_grows_when_it_is_asked_for_more_and_stays_the_same_table():
    short, long = (tiny_nanochat(JULY_2026, sequence_len=16, max_context=context) for context in (None, 160))
    ids, cache = random_ids(short, 40), KVCache.for_model(short, 1, 40)
    for id in ids:
        logits = add(short, cache, [id])
    same(logits[0, -1], logits_of(long, ids)[-1])


def test_positions_that_the_model_cannot_tell_apart_are_refused_before_anything_is_written():
    model = tiny_nanochat(JULY_2026, sequence_len=16)
    cache = KVCache.for_model(model, 1, 200)
    add(model, cache, random_ids(model, 158))
    with pytest.raises(ContextError, match="161 is past the 160"):
        add(model, cache, [1, 2, 3])
    assert cache.lengths() == [158]
    with pytest.raises(ContextError):
        logits_of(model, random_ids(model, 161))


# --- types

@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 0.4), (torch.float16, 0.05)], ids=str)
@by_date
def test_a_16_bit_model_computes_nearly_what_the_32_bit_model_does(architecture, dtype, tolerance):
    exact, model = tiny_nanochat(architecture), tiny_nanochat(architecture, dtype=dtype)
    assert model.cache_dtype == model.embedding.dtype == dtype
    assert model.weight_bytes < 0.51 * exact.weight_bytes, "weights are cast when the model is made"
    ids, cache = random_ids(model, 30), KVCache.for_model(model, 1, CONTEXT)
    assert cache.dtype == dtype
    pieces = [add(model, cache, ids[:20])[0], *(add(model, cache, [id])[0] for id in ids[20:])]
    logits = torch.cat(pieces)
    assert logits.dtype == torch.float32
    same(logits, logits_of(exact, ids), tolerance)


@pytest.mark.parametrize("of_model, of_cache", [(torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16)])
def test_a_cache_of_another_type_is_refused(of_model, of_cache):
    model = tiny_nanochat(dtype=of_model)
    cache = KVCache(1, 2, 16, 8, 5, dtype=of_cache)
    with pytest.raises(AssertionError, match="a cache of"):
        add(model, cache, [1, 2])
    assert cache.lengths() == [0]


@by_date
def test_the_weights_that_loading_takes_are_left_unchanged(architecture):
    state = random_state(tiny_config(), architecture)
    kept = {name: tensor.clone() for name, tensor in state.items()}
    given = dict(state)
    model = nanochat.Nanochat(tiny_config(), architecture, given)
    logits_of(model, random_ids(model, 9))
    assert not given, "each weight is taken out as it is used, so that none is held twice"
    assert all(torch.equal(state[name], kept[name]) for name in kept)


@by_date
def test_random_weights_have_no_zeros(architecture):
    # Behind a zero a fault would not show; a checkpoint fresh from nanochat's initialisation is full of them.
    assert all((tensor != 0).all() for tensor in random_state(tiny_config(), architecture).values())


def test_rotation_is_the_one_that_nanochat_writes_out():
    x = torch.randn(2, 3, 4, 6)
    model = tiny_nanochat(OCTOBER_2025, n_head=4, n_kv_head=4, n_embd=24)
    cos, sin = (table[:3, None, :3] for table in (model._cos, model._sin))
    x1, x2 = x[..., :3], x[..., 3:]
    expected = torch.cat([x1 * cos + x2 * sin, -x1 * sin + x2 * cos], dim=-1)
    same(nanochat.rotate(x, *model._rotary([0, 0], 3)), expected, 1e-6)
    angle = torch.tensor(2.0) * 10_000 ** (-2 / 6)
    same(torch.stack([cos[2, 0, 1], sin[2, 0, 1]]), torch.stack([angle.cos(), angle.sin()]), 1e-6)
    same(x.norm(dim=-1), nanochat.rotate(x, *model._rotary([0, 0], 3)).norm(dim=-1), 1e-5)
