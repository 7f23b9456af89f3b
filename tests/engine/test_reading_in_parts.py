"""A chunk that takes long is computed in parts, and whoever is written to gets tokens in between."""

import time

import pytest

from app.engine.messages import Reason
from app.engine.model_runner import READ_CHUNK_TOKENS, READ_S
from app.engine.race_messages import RaceRequest
from app.engine.scheduler import Scheduler
from tests.engine.scheduling import TOKENIZER, fresh_run, run, submit
from tests.engine.tiny import BOS, END, TinyConfig, TinyModel

PART_S = 0.06
PARTS = 6
LONG = [BOS] + [i % 200 for i in range(400)]


class SlowModel(TinyModel):
    """Stops in a forward of several tokens as one of many layers would; by its clock each part takes 60 ms."""

    def __init__(self):
        super().__init__(TinyConfig(sequence_len=900))
        self.head[[END]] = 0
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def forward_in_parts(self, ids, kv_cache=None):
        for part in range(PARTS):
            if part > 0:
                yield
            self.now += PART_S
        return super().forward(ids, kv_cache)

    def forward(self, ids, kv_cache=None):
        if ids.shape[1] > 1:  # for what is written one by one, the clock stands
            self.now += PARTS * PART_S
        return super().forward(ids, kv_cache)


@pytest.fixture
def model(monkeypatch):
    model = SlowModel()
    monkeypatch.setattr(time, "perf_counter", model.clock)
    return model


@pytest.mark.parametrize("use_cache", [True, False])
def test_between_two_tokens_of_others_reading_takes_no_longer_than_it_may(model, use_cache):
    scheduler = Scheduler(model, TOKENIZER, rows=3, context=900)
    writers = [submit(scheduler, name, [BOS, 1], max_tokens=60) for name in "ab"]
    while not all(writer.tokens for writer in writers):
        scheduler.step()
    paste = submit(scheduler, "paste", LONG, max_tokens=2, use_cache=use_cache)
    waited = []
    while not paste.tokens:
        before, written = model.now, len(writers[0].tokens)
        scheduler.step()
        waited.append(model.now - before)
        assert all(len(writer.tokens) == written + 1 for writer in writers)
    assert max(waited) <= READ_S
    assert waited.count(pytest.approx(2 * PART_S)) >= PARTS // 2 * (len(LONG) // READ_CHUNK_TOKENS)
    run(scheduler, paste, *writers)
    assert paste.finished.counts.read == len(LONG)
    assert paste.finished.timing.read_tokens_per_s == pytest.approx(len(LONG) / (4 * PARTS * PART_S)), \
        "what others did in between is not counted"
    for heard in (paste, *writers):
        assert [(token.id, 0 if token.forced else 1) for token in heard.tokens] == fresh_run(model, heard.request)


def test_where_nobody_waits_a_chunk_is_computed_at_once(model):
    scheduler = Scheduler(model, TOKENIZER, rows=1, context=900)
    submit(scheduler, "paste", LONG, max_tokens=2)
    scheduler.step()
    assert model.now == pytest.approx(PARTS * PART_S) and scheduler.cached_tokens() == {"paste": READ_CHUNK_TOKENS}


def test_short_prompts_are_read_one_a_step_where_each_takes_long(model):
    scheduler = Scheduler(model, TOKENIZER, rows=4, context=900)
    writer = submit(scheduler, "w", [BOS, 1], max_tokens=90)
    while not writer.tokens:
        scheduler.step()
    others = [submit(scheduler, name, [BOS, 1, 2], max_tokens=1) for name in "abc"]
    while not all(other.finished for other in others):
        before = model.now
        scheduler.step()
        assert model.now - before <= READ_S
    assert [(token.id, 0 if token.forced else 1) for token in others[1].tokens] == fresh_run(model, others[1].request)


@pytest.mark.parametrize("act", ["cancel", "forget", "fail"])
def test_a_reply_that_ends_between_two_parts_keeps_whole_chunks_and_harms_nobody(model, act):
    scheduler = Scheduler(model, TOKENIZER, rows=2, context=900)
    writer = submit(scheduler, "w", [BOS, 1], max_tokens=40)
    while not writer.tokens:
        scheduler.step()
    paste = submit(scheduler, "paste", LONG, "c", max_tokens=2)
    for _ in range(4):  # the first chunk takes three steps
        scheduler.step()
    job = scheduler._reading[0]
    assert job.forward is not None and job.read == READ_CHUNK_TOKENS
    if act == "cancel":
        scheduler.cancel("paste")
        assert scheduler.cached_tokens()["c"] == READ_CHUNK_TOKENS == paste.finished.counts.cached
    elif act == "forget":
        scheduler.forget("c")
        assert "c" not in scheduler.cached_tokens()
    else:
        scheduler.fail_all(RuntimeError("a test"))
    assert paste.finished.reason is (Reason.ERROR if act == "fail" else Reason.CANCELLED)
    scheduler.retention.check()
    again = submit(scheduler, "again", LONG, "c", max_tokens=3)
    run(scheduler, again, writer)
    assert again.finished.counts.reused == (READ_CHUNK_TOKENS if act == "cancel" else 0)
    assert [(token.id, 0 if token.forced else 1) for token in again.tokens] == fresh_run(model, again.request)


def test_a_race_that_finds_no_quiet_moment_holds_nobody_up_and_counts_its_own_time(model, monkeypatch):
    monkeypatch.setattr("app.engine.race.PATIENCE_S", 0.0)
    scheduler = Scheduler(model, TOKENIZER, rows=1, context=900)
    writer, heard = submit(scheduler, "w", [BOS, 1], max_tokens=None), []
    while not writer.tokens:
        scheduler.step()
    scheduler.races.start(RaceRequest("race", tuple(LONG), max_tokens=2), heard.append)
    while scheduler.races.busy:
        before, written = model.now, len(writer.tokens)
        scheduler.step()
        assert model.now - before <= READ_S
        assert len(writer.tokens) == written + 1
    done = heard[-1]
    assert [token.id for token in done.cached.tokens] == [token.id for token in done.uncached.tokens]
    assert done.cached.seconds == pytest.approx([4 * PARTS * PART_S, PARTS * PART_S])
    assert done.uncached.seconds == pytest.approx([4 * PARTS * PART_S] * 2)
