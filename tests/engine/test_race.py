"""The race: both lanes give what the reference gives, others are not held up, and nothing stays behind."""

import gc
import weakref

import pytest
import torch

from app.engine.messages import Finished, Request, Tokens
from app.engine.race import PATIENCE_S
from app.engine.race_messages import RaceFinished, RaceProgress, RaceRequest, Stage
from app.engine.scheduler import Scheduler
from app.engine.worker import EngineWorker
from tests.engine.tiny import BOS, END, PlainTokenizer, ScriptModel, TinyConfig, TinyModel, script_from
from tests.models.tiny_llama import tiny_llama
from tests.models.tiny_nanochat import tiny_nanochat

TOKENIZER = PlainTokenizer()
PROMPT = (BOS, *range(1, 20))


@pytest.fixture(autouse=True)
def as_on_the_engine_thread():
    with torch.inference_mode():
        yield


def start(model, context=96, **request):
    scheduler, events = Scheduler(model, TOKENIZER, rows=2, context=context), []
    scheduler.races.start(RaceRequest("race", **{"prompt_ids": PROMPT, "max_tokens": 12} | request), events.append)
    return scheduler, events


def run(scheduler, until=None):
    for _ in range(20_000):
        if not scheduler.races.busy or (until and until()):
            return
        scheduler.step()
    raise AssertionError("the race does not end")


def race(model, **request) -> RaceFinished:
    scheduler, events = start(model, **request)
    run(scheduler)
    assert events[-1].outcome == "done", events[-1].error
    return events[-1]


def ids(lane):
    return [token.id for token in lane.tokens]


def reference(model, prompt, max_tokens, **settings):
    """What the reference way gives, up to and with the first end token."""
    said = []
    for id in model.generate(prompt, max_tokens, **{"temperature": 0.0} | settings):
        said.append(id)
        if id in (BOS, END):
            break
    return said


@pytest.mark.parametrize("drawn", [{"temperature": 0.0}, {"temperature": 1.0, "top_k": 20, "seed": 5}])
@pytest.mark.parametrize("make", [TinyModel, tiny_llama, tiny_nanochat])
def test_both_lanes_give_the_ids_of_the_reference(make, drawn):
    model = make()
    finished = race(model, context=60, **drawn)
    expected = reference(model, PROMPT, 12, **drawn)
    assert ids(finished.cached) == ids(finished.uncached) == expected
    assert (finished.dtype, finished.running_dtype) == ("float32", "float32")


@pytest.mark.parametrize("make", [tiny_llama, tiny_nanochat])
def test_a_16_bit_model_races_in_float32_with_its_own_numbers(make):
    model = make(dtype=torch.bfloat16)
    finished = race(model, context=60)
    *_, twin = drain(model.float32_twin())
    assert ids(finished.cached) == ids(finished.uncached) == reference(twin, PROMPT, 12)
    assert (finished.dtype, finished.running_dtype) == ("float32", "bfloat16")
    assert finished.needed_bytes is None


def drain(making):
    while True:
        try:
            yield next(making)
        except StopIteration as end:
            yield end.value
            return


def test_where_the_widened_weights_do_not_fit_it_runs_in_the_running_type(monkeypatch):
    model = tiny_llama(dtype=torch.bfloat16)
    monkeypatch.setattr("app.engine.race.free_bytes", lambda device: model.float32_twin_bytes)
    finished = race(model, context=60)
    assert (finished.dtype, finished.running_dtype) == ("bfloat16", "bfloat16")
    assert finished.needed_bytes == finished.free_bytes == model.float32_twin_bytes


def test_where_widening_fails_half_way_it_runs_in_the_running_type(monkeypatch):
    model = tiny_llama(dtype=torch.bfloat16)

    def fill_up():
        yield
        raise RuntimeError("can't allocate memory")

    model.float32_twin = fill_up
    finished = race(model, context=60)
    assert finished.dtype == "bfloat16" and finished.needed_bytes == model.float32_twin_bytes


def test_the_positions_are_those_that_were_computed():
    model = TinyModel(TinyConfig(sequence_len=600))
    prompt = tuple([BOS] + [7] * 299)  # read in three pieces
    scheduler, events = start(model, context=600, prompt_ids=prompt, max_tokens=6)
    run(scheduler, until=lambda: any(event.stage is Stage.CACHED and event.cached.tokens for event in events))
    warm = model.tokens_computed - len(prompt)
    run(scheduler)
    finished = events[-1]
    assert finished.cached.positions == tuple(300 + n for n in range(6))
    assert finished.uncached.positions == tuple(n * 300 + n * (n - 1) // 2 for n in range(1, 7))
    assert model.tokens_computed - warm == finished.cached.positions[-1] + finished.uncached.positions[-1]


def test_every_token_has_a_time_and_is_told_of():
    scheduler, events = start(TinyModel())
    run(scheduler)
    *progress, finished = events
    assert all(isinstance(event, RaceProgress) for event in progress)
    cached = [event.cached for event in progress if event.stage is Stage.CACHED]
    uncached = [event.uncached for event in progress if event.stage is Stage.UNCACHED]
    for so_far, lane in ((cached, finished.cached), (uncached, finished.uncached)):
        assert [each.tokens for each in so_far] == [lane.tokens[:done] for done in range(13)], "from none on"
        assert [each.positions for each in so_far] == [0, *lane.positions]
        assert so_far[-1].seconds == pytest.approx(lane.total_s)
    assert all(event.cached == cached[-1] for event in progress if event.stage is Stage.UNCACHED)
    assert progress[-1].seconds_left == 0
    for lane in (finished.cached, finished.uncached):
        assert len(lane.seconds) == len(lane.positions) == len(lane.tokens) == 12 and min(lane.seconds) > 0
        assert lane.disturbed == 0
    assert finished.pace.seconds_for(12, 100) > 0


def test_an_answer_that_ends_by_itself_ends_both_lanes():
    finished = race(ScriptModel(script_from(len(PROMPT), [70, 71])))
    assert ids(finished.cached) == ids(finished.uncached) == [70, 71, END]


def test_nobody_waits_longer_than_for_a_chunk_while_it_races():
    model = TinyModel(TinyConfig(sequence_len=700))
    longest = watch_longest_forward(model)
    scheduler, events = start(model, context=600, prompt_ids=tuple([BOS] + [7] * 400), max_tokens=4)
    run(scheduler, until=lambda: any(event.stage is Stage.UNCACHED for event in events))
    heard = []
    scheduler.submit(Request("r", "c", (BOS, 1), temperature=0.0, max_tokens=10), heard.append)
    for _ in range(11):
        scheduler.step()
    assert isinstance(heard[-1], Finished) and len(heard[-1].ids) == 10, "a token a step, as without a race"
    run(scheduler)
    assert max(longest) <= 128


def watch_longest_forward(model):
    lengths, forward = [], model.forward

    def watched(ids, kv_cache=None):
        lengths.append(ids.shape[1])
        return forward(ids, kv_cache)

    model.forward = watched
    return lengths


def test_it_waits_for_a_quiet_moment():
    scheduler, events = start(TinyModel())
    run(scheduler, until=lambda: any(event.stage is Stage.CACHED for event in events))
    heard = []
    scheduler.submit(Request("r", "c", (BOS, 1), temperature=0.0, max_tokens=30), heard.append)
    scheduler.step()
    measured = len(events[-1].cached.tokens)
    while scheduler.serving:
        scheduler.step()
    waited = [event for event in events if event.waiting]
    assert [len(event.cached.tokens) for event in waited] == [measured], "told once, and nothing measured meanwhile"
    assert sum(isinstance(event, Tokens) for event in heard) == 30
    run(scheduler)
    assert events[-1].cached.disturbed == 0 and events[-1].outcome == "done"


def test_where_no_quiet_moment_comes_it_goes_on_and_says_so(monkeypatch):
    monkeypatch.setattr("app.engine.race.PATIENCE_S", 0.0)
    assert PATIENCE_S > 0
    scheduler, events = start(TinyModel())
    heard = []
    scheduler.submit(Request("r", "c", (BOS, 1), temperature=0.0, max_tokens=50), heard.append)
    run(scheduler)
    finished = events[-1]
    assert finished.outcome == "done" and 0 < finished.cached.disturbed <= 12
    assert ids(finished.cached) == ids(finished.uncached)


def test_the_replies_of_others_are_the_same_beside_a_race():
    def reply(with_race):
        model, heard = TinyModel(seed=3), []
        scheduler = Scheduler(model, TOKENIZER, rows=2, context=96)
        if with_race:
            scheduler.races.start(RaceRequest("race", PROMPT, 12), lambda event: None)
        scheduler.submit(Request("r", "c", (BOS, 1), temperature=1.0, seed=8, max_tokens=30), heard.append)
        while scheduler.busy:
            scheduler.step()
        return heard[-1].ids

    assert reply(with_race=True) == reply(with_race=False)


def test_it_can_be_stopped_at_any_stage_and_another_begun():
    for steps in (0, 1, 3, 12, 20, 30):
        scheduler, events = start(tiny_llama(dtype=torch.bfloat16), context=60)
        for _ in range(steps):
            scheduler.step()
        scheduler.races.stop("another race")
        assert scheduler.races.busy
        scheduler.races.stop("race")
        assert events[-1] == RaceFinished("race", "stopped") and not scheduler.busy
        scheduler.races.start(RaceRequest("again", PROMPT, 2), events.append)
        run(scheduler)
        assert (events[-1].race, events[-1].outcome) == ("again", "done")


def test_there_is_one_race_at_a_time():
    scheduler, events = start(TinyModel())
    scheduler.races.start(RaceRequest("second", PROMPT, 2), events.append)
    assert (events[-1].race, events[-1].outcome) == ("second", "failed") and "Another race" in events[-1].error
    run(scheduler)
    assert (events[-1].race, events[-1].outcome) == ("race", "done")


@pytest.mark.parametrize("ends", ["by itself", "stopped", "failed"])
def test_what_it_used_is_let_go_of(ends, monkeypatch):
    monkeypatch.setattr("app.engine.race.logger.error", lambda *args, **kwargs: None)  # pytest keeps what was logged
    model, held = tiny_llama(dtype=torch.bfloat16), []
    make = model.float32_twin

    def watched():
        twin = yield from make()
        held.extend(map(weakref.ref, (twin, twin._head)))
        if ends == "failed":
            twin.forward = lambda ids, kv_cache=None, last_only=False: 1 / 0
        return twin

    model.float32_twin = watched
    scheduler, events = start(model, context=60)
    run(scheduler, until=lambda: held)
    if ends == "stopped":
        scheduler.races.stop("race")
    run(scheduler)
    assert events[-1].outcome == {"by itself": "done"}.get(ends, ends)
    gc.collect()
    assert [ref() for ref in held] == [None, None]


def test_a_model_that_fails_fails_the_race_and_nothing_else():
    model = TinyModel()
    scheduler, events = start(model)
    forward, model.forward = model.forward, lambda ids, kv_cache=None: 1 / 0
    run(scheduler)
    assert events[-1].outcome == "failed" and "division by zero" in events[-1].error
    model.forward, heard = forward, []
    scheduler.submit(Request("r", "c", (BOS, 1), max_tokens=2), heard.append)
    while scheduler.busy:
        scheduler.step()
    assert heard[-1].error is None


def test_through_the_worker_it_is_measured_and_the_pace_is_known_afterwards():
    import queue
    worker, events = EngineWorker(lambda: (TinyModel(), TOKENIZER), context=96, warm_up=False), queue.Queue()
    worker.start()
    try:
        worker.wait_ready(60)
        assert worker.race_pace is None
        worker.race(RaceRequest("race", PROMPT, 5), events.put)
        while not isinstance(event := events.get(timeout=60), RaceFinished):
            pass
        assert event.outcome == "done" and worker.race_pace == event.pace
        worker.stop_race("race")  # has ended: nothing happens
    finally:
        worker.stop()


def test_a_race_is_stopped_when_the_process_ends():
    scheduler, events = start(TinyModel())
    scheduler.step()
    scheduler.interrupt_all()
    assert events[-1].outcome == "stopped" and not scheduler.busy
