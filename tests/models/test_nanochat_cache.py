"""Adding any number of tokens to a cache of any length gives what one pass over all of them gives."""

import random

import pytest
import torch

from app.engine import KVCache
from app.models.nanochat_architecture import JULY_2026
from tests.models.tiny_nanochat import CONTEXT, DATES, VARIANTS, add, logits_of, random_ids, same, tiny_nanochat


@pytest.fixture(params=VARIANTS)
def model(request):
    architecture, changes = request.param
    return tiny_nanochat(architecture, **changes)


def test_a_prompt_split_in_two_at_every_point_is_the_whole_prompt(model):
    ids = random_ids(model, 24)
    whole = logits_of(model, ids)
    for split in range(1, len(ids)):
        cache = KVCache.for_model(model, 1, CONTEXT)
        same(add(model, cache, ids[:split])[0], whole[:split])
        same(add(model, cache, ids[split:])[0], whole[split:])


def test_a_prompt_split_in_three_is_the_whole_prompt(model):
    ids = random_ids(model, 20)
    whole = logits_of(model, ids)
    for first in range(1, 19, 3):
        for second in range(first + 1, 20, 2):
            cache = KVCache.for_model(model, 1, CONTEXT)
            pieces = [add(model, cache, piece)[0] for piece in (ids[:first], ids[first:second], ids[second:])]
            same(torch.cat(pieces), whole)


def test_tokens_one_by_one_are_the_whole_prompt(model):
    ids, cache = random_ids(model, 40), KVCache.for_model(model, 1, CONTEXT)
    same(torch.cat([add(model, cache, [id])[0] for id in ids]), logits_of(model, ids))


def test_a_row_that_was_cut_goes_on_as_if_nothing_had_been_there(model):
    ids, other, cache = random_ids(model, 30), random_ids(model, 10, seed=1), KVCache.for_model(model, 1, CONTEXT)
    add(model, cache, ids)
    for length in (29, 20, 8, 1, 0):
        cache.cut(0, length)
        whole = logits_of(model, ids[:length] + other)
        same(add(model, cache, other[:4])[0], whole[length:length + 4])
        same(add(model, cache, other[4:])[0], whole[length + 4:])


def test_rows_of_different_lengths_in_one_batch_are_each_their_own_conversation(model):
    rows = [random_ids(model, length, seed) for seed, length in enumerate([8, 3, 0, 27])]
    cache = KVCache.for_model(model, len(rows), CONTEXT)
    for index, ids in enumerate(rows):
        if ids:
            add(model, cache.select([index]), ids)
    for count in (1, 5, 1):  # written token by token, and read in chunks, all in one forward
        new = [random_ids(model, count, seed=50 + index) for index in range(len(rows))]
        rows = [ids + more for ids, more in zip(rows, new)]
        together = add(model, cache, *new)
        for index, ids in enumerate(rows):
            same(together[index], logits_of(model, ids)[-count:])


def test_a_prompt_copied_to_n_rows_goes_on_in_each_by_itself(model):
    ids = random_ids(model, 15)
    prompt = KVCache.for_model(model, 1, CONTEXT)
    add(model, prompt, ids)
    cache = KVCache.for_model(model, 3, CONTEXT)
    cache.prefill(prompt)
    rows = [list(ids) for _ in range(3)]
    for step in range(9):
        new = [random_ids(model, 1, seed=10 * step + index) for index in range(3)]
        together = add(model, cache, *new)
        for index in range(3):
            rows[index] += new[index]
            same(together[index, -1], logits_of(model, rows[index])[-1])


@pytest.mark.parametrize("architecture", DATES, ids=lambda architecture: architecture.date)
@pytest.mark.parametrize("seed", range(4))
def test_any_schedule_of_reading_writing_cutting_and_copying_is_exact(architecture, seed):
    """Rows are added to in random company and order, cut, copied and emptied; the truth is always one pass."""
    dice = random.Random(seed)
    model = tiny_nanochat(architecture, seed=seed, n_kv_head=dice.choice([1, 2, 4]), n_layer=dice.choice([2, 3]),
                          window=dice.choice([1, 3, 7, 20]))
    cache, rows = KVCache.for_model(model, 4, CONTEXT), [[] for _ in range(4)]
    for step in range(60):
        index = dice.randrange(4)
        action = dice.choice(["add", "add", "add", "add", "cut", "copy", "empty"])
        if action == "add":
            chosen = dice.sample(range(4), dice.randint(1, 4))
            count = dice.choice([1, 1, 1, 2, 5, 13])
            chosen = [row for row in chosen if len(rows[row]) + count <= CONTEXT]
            if chosen:
                new = [random_ids(model, count, seed=dice.randrange(10**6)) for _ in chosen]
                logits = add(model, cache.select(chosen), *new)
                for place, row in enumerate(chosen):
                    rows[row] += new[place]
                    same(logits[place], logits_of(model, rows[row])[-count:])
        elif action == "cut":
            rows[index] = rows[index][:dice.randint(0, len(rows[index]))]
            cache.cut(index, len(rows[index]))
        elif action == "copy":
            target = dice.choice([row for row in range(4) if row != index])
            cache.copy_row(index, target)
            rows[target] = list(rows[index])
        else:
            cache.cut(index, 0)
            rows[index] = []
        assert cache.lengths() == [len(ids) for ids in rows]


def test_what_lies_beyond_a_rows_length_is_never_read():
    model = tiny_nanochat(JULY_2026)
    ids, cache = random_ids(model, 12), KVCache.for_model(model, 2, CONTEXT)
    cache.k_cache.fill_(float("nan"))
    cache.v_cache.fill_(float("nan"))
    cache.token_ids.fill_(-1)
    for count in (5, 1, 6):
        start = cache.get_pos()
        logits = add(model, cache, ids[start:start + count], ids[start:start + count])
        same(logits[1], logits_of(model, ids)[start:start + count])


def test_logits_of_the_last_position_alone_are_the_last_of_all():
    for architecture in DATES:
        model = tiny_nanochat(architecture)
        ids = torch.tensor([random_ids(model, 11)])
        with torch.inference_mode():
            assert model.forward(ids, last_only=True).shape == (1, 1, model.config.vocab_size)
            same(model.forward(ids, last_only=True), model.forward(ids)[:, -1:], 1e-5)
