"""The Llama architecture: the formulas, and the same through any cache."""

import random
from itertools import combinations

import pytest
import torch
import torch.nn.functional as F

from app.engine import Engine, KVCache
from app.engine.kv_cache import CacheFullError
from app.models.errors import ContextError
from app.models.llama_layers import compiled_layers, run_layers
from tests.engine.tiny import PlainTokenizer
from tests.models.tiny_llama import (CONTEXT, add, logits_of, random_ids, random_weights, same, tiny_config, tiny_llama)

SHAPES = [pytest.param({}, id="three query heads a KV head"), pytest.param({"n_kv_head": 6}, id="a KV head a head"),
          pytest.param({"n_kv_head": 1}, id="one KV head"),
          pytest.param({"tied_head": False, "n_layer": 1}, id="untied head")]


def plain_llama(config, weights, ids):
    """The formulas written out: nothing fused, nothing cached, keys repeated, one token after the other."""
    def norm(x, name):
        return x / (x.pow(2).mean(-1, keepdim=True) + config.norm_eps).sqrt() * weights[f"{name}.weight"]

    def rotated(x):  # (T, heads, D)
        half = config.head_dim // 2
        y = x.clone()
        for position in range(len(ids)):
            for j in range(half):
                angle = torch.tensor(position * config.rope_base ** (-2 * j / config.head_dim))
                a, b = x[position, :, j], x[position, :, j + half]
                y[position, :, j] = a * angle.cos() - b * angle.sin()
                y[position, :, j + half] = b * angle.cos() + a * angle.sin()
        return y

    num_new = len(ids)
    x = weights["token_embd.weight"][ids]  # (T, C)
    for layer in range(config.n_layer):
        w = {name: weights[f"blk.{layer}.{name}.weight"] for name in
             ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")}
        h = norm(x, f"blk.{layer}.attn_norm")
        q = rotated((h @ w["attn_q"].T).view(num_new, config.n_head, -1))
        k = rotated((h @ w["attn_k"].T).view(num_new, config.n_kv_head, -1))
        v = (h @ w["attn_v"].T).view(num_new, config.n_kv_head, -1)
        heads = []
        for head in range(config.n_head):
            group = head // (config.n_head // config.n_kv_head)
            scores = q[:, head] @ k[:, group].T / config.head_dim**0.5
            scores = scores.masked_fill(torch.ones(num_new, num_new).triu(1).bool(), float("-inf"))
            heads.append(scores.softmax(-1) @ v[:, group])
        x = x + torch.cat(heads, dim=-1) @ w["attn_output"].T
        h = norm(x, f"blk.{layer}.ffn_norm")
        x = x + (F.silu(h @ w["ffn_gate"].T) * (h @ w["ffn_up"].T)) @ w["ffn_down"].T
    return norm(x, "output_norm") @ weights["token_embd.weight" if config.tied_head else "output.weight"].T


@pytest.mark.parametrize("shape", SHAPES)
def test_the_forward_gives_what_the_formulas_give(shape):
    config = tiny_config(**shape)
    model = tiny_llama(**shape)
    ids = random_ids(model, 19)
    same(logits_of(model, ids), plain_llama(config, random_weights(config), ids))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_split_of_a_prompt_in_two_and_in_three_is_the_whole_prompt(shape):
    model = tiny_llama(**shape)
    ids = random_ids(model, 13)
    whole = logits_of(model, ids)
    for cuts in [*combinations(range(1, len(ids)), 1), *combinations(range(1, len(ids)), 2)]:
        cache = KVCache.for_model(model, 1, CONTEXT)
        edges = [0, *cuts, len(ids)]
        same(torch.cat([add(model, cache, ids[a:b])[0] for a, b in zip(edges, edges[1:])]), whole)
        assert cache.lengths() == [len(ids)]


def test_rows_of_different_lengths_in_one_batch_are_each_their_own_conversation():
    model = tiny_llama()
    rows = [random_ids(model, length, seed) for seed, length in enumerate([8, 3, 0, 21])]
    cache = KVCache.for_model(model, len(rows), CONTEXT)
    for index, ids in enumerate(rows):
        if ids:
            add(model, cache.select([index]), ids)
    for count in (1, 4, 1):
        new = [random_ids(model, count, seed=50 + index) for index in range(len(rows))]
        rows = [ids + more for ids, more in zip(rows, new)]
        together = add(model, cache, *new)
        for index, ids in enumerate(rows):
            same(together[index], logits_of(model, ids)[-count:])


def test_several_rows_without_a_cache_are_each_their_own_conversation():
    model = tiny_llama()
    rows = [random_ids(model, 9, seed) for seed in range(3)]
    together = model.forward(torch.tensor(rows))
    for index, ids in enumerate(rows):
        same(together[index], logits_of(model, ids))


@pytest.mark.parametrize("seed", range(3))
def test_any_schedule_of_reading_writing_cutting_and_copying_is_exact(seed):
    """Rows are added to in random company and order, cut and copied; the truth is always one pass."""
    dice = random.Random(seed)
    model = tiny_llama(seed=seed, n_layer=2, n_kv_head=dice.choice([1, 2, 3, 6]))
    cache, rows = KVCache.for_model(model, 4, CONTEXT), [[] for _ in range(4)]
    for _ in range(60):
        index, other = dice.sample(range(4), 2)
        action = dice.choice(["add", "add", "add", "cut", "copy"])
        if action == "add":
            count = dice.choice([1, 1, 2, 11])
            chosen = [row for row in dice.sample(range(4), dice.randint(1, 4)) if len(rows[row]) + count <= CONTEXT]
            if chosen:
                new = [random_ids(model, count, seed=dice.randrange(10**6)) for _ in chosen]
                logits = add(model, cache.select(chosen), *new)
                for place, row in enumerate(chosen):
                    rows[row] += new[place]
                    same(logits[place], logits_of(model, rows[row])[-count:])
        elif action == "cut":
            rows[index] = rows[index][:dice.randint(0, len(rows[index]))]
            cache.cut(index, len(rows[index]))
        else:
            cache.copy_row(index, other)
            rows[other] = list(rows[index])
        assert cache.lengths() == [len(ids) for ids in rows]


def test_what_lies_beyond_a_rows_length_is_never_read():
    model = tiny_llama()
    ids, cache = random_ids(model, 12), KVCache.for_model(model, 2, CONTEXT)
    cache.k_cache.fill_(float("nan"))
    cache.v_cache.fill_(float("nan"))
    for count in (5, 1, 6):
        start = cache.get_pos()
        logits = add(model, cache, ids[start:start + count], ids[start:start + count])
        same(logits[1], logits_of(model, ids)[start:start + count])


def test_logits_of_the_last_position_alone_are_the_last_of_all():
    model = tiny_llama()
    ids = torch.tensor([random_ids(model, 11), random_ids(model, 11, seed=1)])
    last = model.forward(ids, last_only=True)
    assert last.shape == (2, 1, model.config.vocab_size) and last.dtype == torch.float32
    same(last, model.forward(ids)[:, -1:], 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_read_for_its_last_position_alone_leaves_the_same_in_the_cache(dtype):
    model = tiny_llama(dtype)
    ids = torch.tensor([random_ids(model, 9), random_ids(model, 9, seed=1)])
    caches = [KVCache.for_model(model, 2, CONTEXT) for _ in range(2)]
    for cache in caches:  # rows of different lengths
        model.forward(torch.tensor([random_ids(model, 3, seed=2)]), cache.select([1]))
    last, whole = (model.forward(ids, cache, last_only=only) for cache, only in zip(caches, (True, False)))
    same(last, whole[:, -1:], 1e-5 if dtype == torch.float32 else 0.05)
    assert torch.equal(caches[0].k_cache, caches[1].k_cache) and torch.equal(caches[0].v_cache, caches[1].v_cache)


# --- the edges of the context

def test_a_prompt_as_long_as_the_context_is_computed_and_one_more_token_is_refused_before_anything_is_written():
    model = tiny_llama(context=20)
    assert model.max_context == 20
    ids, cache = random_ids(model, 20), KVCache.for_model(model, 1, CONTEXT)
    same(torch.cat([add(model, cache, ids[:19])[0], add(model, cache, ids[19:])[0]]), logits_of(model, ids))
    keys = cache.k_cache.clone()
    with pytest.raises(ContextError, match="21 positions are more than the 20"):
        add(model, cache, [5])
    with pytest.raises(ContextError):
        logits_of(model, ids + [5])
    assert cache.lengths() == [20] and torch.equal(cache.k_cache, keys)


def test_a_full_cache_is_refused_before_anything_is_written():
    model = tiny_llama()
    ids, cache = random_ids(model, 8), KVCache.for_model(model, 2, 10)
    add(model, cache.select([1]), ids)
    keys = cache.k_cache.clone()
    with pytest.raises(CacheFullError):
        add(model, cache, ids[:3], ids[:3])
    assert cache.lengths() == [0, 8] and torch.equal(cache.k_cache, keys)


def test_a_context_longer_than_the_model_was_trained_for_gives_way():
    assert tiny_llama(context=10 * CONTEXT).max_context == CONTEXT
    assert tiny_llama().max_context == CONTEXT


# --- both ways of writing

@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"temperature": 0.9, "top_k": 20, "seed": 7},
                                      {"temperature": 1.3}])
@pytest.mark.parametrize("prompt_tokens", [1, 2, 30])
def test_the_engine_writes_the_same_tokens_as_the_reference(prompt_tokens, settings):
    model = tiny_llama(vocab_size=265)
    prompt = random_ids(model, prompt_tokens)
    reference = list(model.generate(prompt, max_tokens=24, **settings))
    written = [column[0] for column, mask in Engine(model, PlainTokenizer()).generate(prompt, max_tokens=24, **settings)
               if mask[0] == 1]
    assert written == reference[:len(written)]
    assert len(written) == 24 or written[-1] in (256, 260) or 261 in written  # ended early, or called the tool


def test_the_reference_stops_where_the_context_ends_and_refuses_an_empty_prompt():
    model = tiny_llama(context=12)
    assert len(list(model.generate(random_ids(model, 10), max_tokens=50, temperature=0))) == 2
    with pytest.raises(ValueError):
        next(model.generate([], max_tokens=5))


# --- types and sizes

@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_cache_has_the_type_of_the_model_and_another_is_refused(dtype):
    model = tiny_llama(dtype)
    cache = KVCache.for_model(model, 1, CONTEXT)
    ids = random_ids(model, 9)
    assert cache.dtype == dtype and model.cache_dtype == dtype
    assert add(model, cache, ids).dtype == torch.float32
    other = torch.bfloat16 if dtype == torch.float32 else torch.float32
    wrong = KVCache(1, model.config.n_kv_head, CONTEXT, model.config.head_dim, model.config.n_layer, dtype=other)
    with pytest.raises(AssertionError):
        add(model, wrong, ids)


@pytest.mark.parametrize(("dtype", "share"), [(torch.bfloat16, 0.03), (torch.float16, 0.004)])
def test_sixteen_bits_give_nearly_the_logits_of_thirty_two(dtype, share):
    model, exact = tiny_llama(dtype), tiny_llama()
    ids, cache = random_ids(model, 20), KVCache.for_model(model, 1, CONTEXT)
    truth = logits_of(exact, ids)
    for logits in (logits_of(model, ids), torch.cat([add(model, cache, ids[:15])[0], add(model, cache, ids[15:])[0]])):
        assert (logits - truth).std() < share * truth.std()


def test_the_weights_are_counted_in_bytes_as_they_lie_in_memory():
    weights = sum(values.numel() for values in random_weights(tiny_config(tied_head=False)).values())
    assert tiny_llama(tied_head=False).weight_bytes == 4 * weights


# --- compiled and as it stands

@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_compiled_layers_give_the_same_numbers_bit_for_bit(monkeypatch, dtype):
    monkeypatch.setattr("app.models.llama.can_multiply_half", lambda device: False)  # all goes through these layers then
    model = tiny_llama(dtype)
    assert isinstance(model._run_layers, torch.jit.ScriptFunction)
    logits = {}
    for run in (model._run_layers, run_layers):
        model._run_layers = run
        cache = KVCache.for_model(model, 3, CONTEXT)
        logits[run] = [logits_of(model, random_ids(model, 14)),
                       model.forward(torch.tensor([random_ids(model, 4)]), cache.select([2]), last_only=True),
                       add(model, cache.select([1]), random_ids(model, 9)),
                       add(model, cache, *([[5, 6]] * 3)), add(model, cache, [7], [8], [9]),
                       add(model, cache.select([0, 2]), [1], [2])]
    compiled, plain = logits.values()
    assert all(torch.equal(a, b) for a, b in zip(compiled, plain, strict=True))


def test_where_nothing_can_be_compiled_the_layers_run_as_they_stand(monkeypatch):
    def fail(_):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch.jit, "script", fail)
    compiled_layers.cache_clear()
    try:
        assert compiled_layers() is run_layers
    finally:
        compiled_layers.cache_clear()
