"""Many replies at once: whoever is served beside you changes nothing, and no row is ever lost."""

import random

import pytest

from app.engine.messages import Finished, Queued, Reading, Reason, Tokens, ToolCall
from app.engine.model_runner import READ_CHUNK_TOKENS
from app.engine.scheduler import Scheduler
from app.engine.sequence import PromptTooLongError
from tests.engine.scheduling import TOKENIZER, Listener, fresh_run, run, submit, tiny
from tests.engine.tiny import BOS, END, ScriptModel, script_from


def test_a_reply_is_told_in_order_and_with_exact_counts():
    scheduler = Scheduler(tiny(), TOKENIZER, rows=2, context=96)
    heard = submit(scheduler, "r1", [BOS, 1, 2, 3, 4], "c")
    run(scheduler, heard)
    kinds = [type(event) for event in heard if not isinstance(event, ToolCall)]
    assert kinds[:2] == [Reading, Reading] and kinds[2:-1] == [Tokens] * len(heard.tokens) and kinds[-1] is Finished
    assert (heard[0].done, heard[0].total, heard[0].reused) == (0, 5, 0) and heard[1].done == 5
    done = heard.finished
    assert tuple(token.id for token in heard.tokens) == done.ids
    assert [token.position for token in heard.tokens] == list(range(5, 5 + len(done.ids)))
    assert done.counts.read == 5 and done.counts.reused == 0
    assert done.counts.written == sum(done.masks) and done.counts.written + done.counts.forced == len(done.ids)
    assert done.counts.without_cache == sum(5 + i for i in range(len(done.ids)))
    assert done.counts.cached == 5 + len(done.ids) - 1 == scheduler.cached_tokens()["c"]
    assert done.timing.time_to_first_token_s > 0 and done.timing.read_tokens_per_s > 0


def test_the_next_turn_reads_the_last_token_and_what_is_new():
    model = tiny()
    scheduler = Scheduler(model, TOKENIZER, rows=2, context=96)
    first = submit(scheduler, "r1", [BOS, 1, 2, 3], "c", max_tokens=6)
    run(scheduler, first)
    history = [BOS, 1, 2, 3, *first.finished.kept_ids]
    model.tokens_computed = 0
    second = submit(scheduler, "r2", [*history, 7, 8, 9], "c", max_tokens=1)
    run(scheduler, second)
    assert second.finished.counts.reused == len(history) - 1 and second.finished.counts.read == 4
    assert model.tokens_computed == 4
    assert [(t.id, 0 if t.forced else 1) for t in second.tokens] == fresh_run(model, second.request)


def test_no_forward_follows_the_last_token():
    model = ScriptModel(script_from(4, [65, 66, END]))
    scheduler = Scheduler(model, TOKENIZER, rows=1, context=96)
    run(scheduler, submit(scheduler, "r", [BOS, 1, 2, 3]))
    assert model.tokens_computed == 4 + 2


@pytest.mark.parametrize("settings", [dict(max_tokens=0), dict(prompt=[BOS] * 96)])
def test_replies_of_no_tokens_end_at_once_and_take_no_row(settings):
    scheduler = Scheduler(tiny(), TOKENIZER, rows=1, context=96)
    heard = submit(scheduler, "r", settings.pop("prompt", [BOS, 1]), **settings)
    run(scheduler, heard)
    assert heard.finished.ids == () and heard.finished.reason in (Reason.LENGTH, Reason.CONTEXT_FULL)
    assert scheduler.pool_numbers().rows_used == 0 and not scheduler.busy


def test_a_prompt_over_the_context_is_refused_and_others_go_on():
    scheduler = Scheduler(tiny(), TOKENIZER, rows=1, context=40)
    other = submit(scheduler, "other", [BOS, 1], max_tokens=3)
    with pytest.raises(PromptTooLongError, match="41 tokens long, and the model can hold 40"):
        submit(scheduler, "r", [BOS] * 41)
    run(scheduler, other)


def test_a_full_context_ends_a_reply_with_its_reason():
    model = ScriptModel({i: 65 for i in range(200)})
    scheduler = Scheduler(model, TOKENIZER, rows=1, context=64)
    heard = submit(scheduler, "r", [BOS] * 24, max_tokens=None)
    run(scheduler, heard)
    assert heard.finished.reason is Reason.CONTEXT_FULL and 24 + len(heard.finished.ids) == 64
    assert scheduler.cache.lengths() == [63]


def test_places_in_the_queue_are_told_and_kept_in_order():
    scheduler = Scheduler(tiny(), TOKENIZER, rows=1, context=96)
    heard = [submit(scheduler, f"r{i}", [BOS, i], max_tokens=5) for i in range(4)]
    assert [[e.place for e in h if isinstance(e, Queued)][-1:] for h in heard] == [[], [1], [2], [3]]
    scheduler.cancel("r2")
    assert heard[2].finished.reason is Reason.CANCELLED and heard[2].finished.ids == ()
    assert [e.place for e in heard[3] if isinstance(e, Queued)][-1] == 2
    run(scheduler, *heard)
    ends = [h.finished.reply for h in heard]
    assert ends == ["r0", "r1", "r2", "r3"]


def test_a_long_prompt_is_read_in_bounded_chunks_while_others_write():
    model = tiny(sequence_len=1000)
    model.head[[END]] = 0
    scheduler = Scheduler(model, TOKENIZER, rows=2, context=1000)
    writer = submit(scheduler, "w", [BOS, 1], max_tokens=30)
    scheduler.step()
    submit(scheduler, "long", [BOS] + [i % 200 for i in range(800)], max_tokens=1)
    while writer.finished is None:
        before, written = model.tokens_computed, len(writer.tokens)
        scheduler.step()
        assert len(writer.tokens) == written + 1
        assert model.tokens_computed - before <= READ_CHUNK_TOKENS + 2


def test_far_into_a_long_text_fewer_tokens_are_read_at_once_and_the_reply_stays_the_same():
    model = tiny(sequence_len=3000)
    scheduler = Scheduler(model, TOKENIZER, rows=1, context=3000)
    heard = submit(scheduler, "long", [BOS] + [i % 200 for i in range(2700)], max_tokens=2)
    read = []
    while not heard.tokens:
        before = model.tokens_computed
        scheduler.step()
        read.append(model.tokens_computed - before)
    read[-1] -= 1  # the step that reads the last of it writes a token, too
    first = [sum(read[:place]) for place in range(len(read))]
    assert all(size == 128 for size, start in zip(read, first) if start < 768)
    assert all(size == 64 for size, start in zip(read, first) if 768 <= start < 2560)
    assert all(size <= 32 for size, start in zip(read, first) if start >= 2560) and sum(read) == 2701
    run(scheduler, heard)
    assert [(t.id, 0 if t.forced else 1) for t in heard.tokens] == fresh_run(model, heard.request)


@pytest.mark.parametrize("length", [5, READ_CHUNK_TOKENS, READ_CHUNK_TOKENS + 1, 600])
def test_a_reply_without_the_cache_is_the_same_and_leaves_the_cache_alone(length):
    model = tiny(sequence_len=1000)
    scheduler = Scheduler(model, TOKENIZER, rows=1, context=1000)
    prompt = [BOS] + [i % 200 for i in range(length - 1)]
    kept = submit(scheduler, "k", [BOS, 1, 2], "c", max_tokens=3)
    run(scheduler, kept)
    cached = scheduler.cached_tokens()
    model.tokens_computed = 0
    heard = submit(scheduler, "r", prompt, "c", use_cache=False, max_tokens=6, temperature=1.0, seed=5)
    run(scheduler, heard)
    assert model.tokens_computed == heard.finished.counts.without_cache
    assert scheduler.cached_tokens() == cached
    assert heard.finished.counts.cached == cached["c"] and heard.finished.counts.reused == 0
    assert [(t.id, 0 if t.forced else 1) for t in heard.tokens] == fresh_run(model, heard.request)


def test_replies_without_the_cache_run_one_at_a_time_and_hold_nobody_up():
    model = tiny(sequence_len=1000)
    model.head[[END]] = 0
    scheduler = Scheduler(model, TOKENIZER, rows=1, context=1000)
    long = [BOS] + [i % 200 for i in range(500)]
    slow = [submit(scheduler, f"s{i}", long, use_cache=False, max_tokens=2) for i in range(2)]
    fast = submit(scheduler, "f", [BOS, 1], max_tokens=12)
    while fast.finished is None:
        before = model.tokens_computed
        scheduler.step()
        assert model.tokens_computed - before <= 2 * READ_CHUNK_TOKENS + 2
    run(scheduler, *slow)
    for heard in slow:
        assert [(t.id, 0 if t.forced else 1) for t in heard.tokens] == fresh_run(model, heard.request)


@pytest.mark.parametrize("seed", range(12))
def test_random_schedules_lose_no_row_and_change_no_reply(seed):
    """Admit, extend, stop, edit, forget, evict, resume, with and without cache: each reply equals a fresh run."""
    rng = random.Random(seed)
    model = tiny(sequence_len=80, seed=seed)
    scheduler = Scheduler(model, TOKENIZER, rows=rng.randrange(1, 4), context=80)
    histories: dict[str, list[int]] = {name: [] for name in "abcde"}
    live: dict[str, Listener] = {}
    compared = 0
    for number in range(400):
        name = rng.choice("abcde")
        action = rng.random()
        if name not in live and action < 0.5:
            history = histories[name]
            if history and rng.random() < 0.25:  # edit: cut anywhere
                history = history[:rng.randrange(len(history))]
            prompt = (history or [BOS]) + [rng.randrange(256) for _ in range(rng.randrange(1, 6))]
            if len(prompt) > 80:
                histories[name] = []
                continue
            live[name] = submit(scheduler, f"{name}{number}", prompt, name, max_tokens=rng.choice([1, 5, 12, None]),
                                temperature=rng.choice([0.0, 1.0]), top_k=rng.choice([None, 8]), seed=number,
                                use_cache=rng.random() < 0.9)
        elif name in live and action < 0.05:
            scheduler.cancel(live[name].request.reply)
        elif action > 0.98:
            scheduler.forget(name)
        scheduler.step()
        scheduler.retention.check()
        pool = scheduler.pool_numbers()
        assert pool.bytes_used == pool.tokens * scheduler.cache.bytes_per_token <= pool.bytes_reserved
        for name in [name for name, heard in live.items() if heard.finished]:
            heard = live.pop(name)
            done = heard.finished
            expected = fresh_run(model, heard.request)
            written = list(zip(done.ids, done.masks))
            assert written == expected[:len(written)]
            if done.reason is not Reason.CANCELLED:
                assert len(written) == len(expected)
            assert sum(isinstance(event, Finished) for event in heard) == 1
            histories[name] = [*heard.request.prompt_ids, *done.kept_ids]
            compared += 1
    assert compared > 30
