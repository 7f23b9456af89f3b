"""The engine thread, seen from others."""

import queue
import signal
import threading
import time

import pytest
import torch

from app.engine.messages import Finished, Reason, Request, Tokens
from app.engine.sampling import SamplingError
from app.engine.sequence import EmptyPromptError, PromptTooLongError
from app.engine.worker import EngineWorker, QueueFullError
from tests.engine.tiny import BOS, END, EXPRESSION_END, EXPRESSION_START, PlainTokenizer, ScriptModel, script_from

TOKENIZER = PlainTokenizer()
PATIENCE_S = 60  # a busy machine is slow, not wrong


@pytest.fixture
def start():
    workers = []

    def make(model=None, load=None, **options):
        worker = EngineWorker(load or (lambda: (model, TOKENIZER)), **{"warm_up": False, "context": 96} | options)
        workers.append(worker)
        worker.start()
        return worker

    yield make
    for worker in workers:
        worker.stop(PATIENCE_S)
        assert not worker.alive


def ask(worker, reply="r", prompt=(BOS, 1), **settings):
    events = queue.Queue()
    worker.submit(Request(reply, settings.pop("conversation", reply), tuple(prompt), temperature=0.0, **settings), events.put)
    return events


def until_finished(events, timeout_s=PATIENCE_S):
    heard = [events.get(timeout=timeout_s)]
    while not isinstance(heard[-1], Finished):
        heard.append(events.get(timeout=timeout_s))
    return heard


def wait_until(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "what was waited for did not happen"
        time.sleep(0.01)


def endless():
    return ScriptModel({i: 65 for i in range(100_000)}, sequence_len=50_000)


class Gate:
    """A model whose forward waits for permission: what happens meanwhile can be looked at."""
    def __init__(self, model):
        self.model, self.open = model, threading.Semaphore(0)
        self.config, self.get_device = model.config, model.get_device

    def forward(self, ids, kv_cache=None):
        assert self.open.acquire(timeout=PATIENCE_S)
        return self.model.forward(ids, kv_cache)


def test_it_is_loading_then_ready_and_knows_its_numbers(start):
    release = threading.Event()

    def load():
        release.wait(PATIENCE_S)
        return ScriptModel({}), TOKENIZER

    worker = start(load=load, rows=3)
    assert worker.snapshot().state == "loading" and worker.alive
    events = ask(worker)  # taken, and answered once there is a model
    release.set()
    snapshot = worker.wait_ready(PATIENCE_S)
    assert snapshot.state == "ready" and snapshot.context == 96 and snapshot.pool.rows == 3
    assert snapshot.model.bytes_per_token == 2 * 1 * 2 * 8 * 4
    assert until_finished(events)[-1].ids == (END,)


def test_a_model_that_cannot_be_loaded_is_said_so_to_everybody(start):
    def load():
        raise ValueError("the file is a picture")

    worker = start(load=load)
    assert worker.wait_ready(PATIENCE_S).state == "failed" and "the file is a picture" in worker.snapshot().failure
    done = until_finished(ask(worker))[-1]
    assert done.reason is Reason.ERROR and "the file is a picture" in done.error


def test_unfit_requests_are_refused_at_once(start):
    worker = start(ScriptModel({}))
    worker.wait_ready(PATIENCE_S)
    with pytest.raises(EmptyPromptError):
        ask(worker, prompt=())
    with pytest.raises(PromptTooLongError):
        ask(worker, prompt=[BOS] * 97)
    with pytest.raises(SamplingError):
        worker.submit(Request("r", "r", (BOS,), temperature=-1), lambda event: None)
    assert until_finished(ask(worker))[-1].reason is Reason.STOP


def test_a_request_that_proves_unfit_once_the_model_is_there_gets_its_sentence(start):
    release = threading.Event()
    worker = start(load=lambda: (release.wait(PATIENCE_S), (ScriptModel({}), TOKENIZER))[1])
    events = ask(worker, prompt=[BOS] * 97)
    release.set()
    done = until_finished(events)[-1]
    assert done.reason is Reason.ERROR and "97 tokens" in done.error


def test_more_answers_than_the_memory_proves_to_hold_are_refused_and_the_thread_lives_on(start):
    release, events = threading.Event(), queue.Queue()
    worker = start(load=lambda: (release.wait(PATIENCE_S), (ScriptModel({}), TOKENIZER))[1], cache_bytes=96 * 2 * 1 * 2 * 8 * 4)
    worker.submit(Request("r0", "c0", (BOS, 1)), events.put, [Request("r1", "c1", (BOS, 1))])  # nobody knows of one row yet
    release.set()
    refused = [events.get(timeout=PATIENCE_S) for _ in range(2)]
    assert [(event.reply, event.reason) for event in refused] == [("r0", Reason.ERROR), ("r1", Reason.ERROR)]
    assert "it has 1" in refused[0].error
    assert until_finished(ask(worker))[-1].reason is Reason.STOP


def test_memory_for_the_cache_sets_the_number_of_rows(start):
    bytes_per_row = 96 * 2 * 1 * 2 * 8 * 4
    worker = start(ScriptModel({}), cache_bytes=3 * bytes_per_row + 5)
    assert worker.wait_ready(PATIENCE_S).pool.rows == 3 and worker.snapshot().pool.bytes_reserved == 3 * bytes_per_row
    small = start(ScriptModel({}), cache_bytes=bytes_per_row - 1)
    assert small.wait_ready(PATIENCE_S).state == "failed"
    assert f"one conversation of 96 tokens takes {bytes_per_row:,}" in small.snapshot().failure


def test_the_queue_is_bounded_and_recovers(start):
    gate = Gate(ScriptModel({}))
    worker = start(gate, rows=1, max_queue=2)
    worker.wait_ready(PATIENCE_S)
    taken = [ask(worker, f"r{i}") for i in range(3)]
    with pytest.raises(QueueFullError, match="2 replies are waiting"):
        ask(worker, "r3")
    for _ in range(50):
        gate.open.release()
    for events in taken:
        assert until_finished(events)[-1].reason is Reason.STOP
    assert until_finished(ask(worker, "r4"))[-1].reason is Reason.STOP


def test_a_stop_takes_effect_within_two_tokens(start):
    gate = Gate(endless())
    worker = start(gate, context=50_000)
    events = ask(worker, max_tokens=None)
    for _ in range(5):
        gate.open.release()
    tokens = 0
    while tokens < 4:
        tokens += isinstance(events.get(timeout=PATIENCE_S), Tokens)
    worker.cancel("r")
    for _ in range(100):
        gate.open.release()
    done = until_finished(events)[-1]
    assert done.reason is Reason.CANCELLED and len(done.ids) <= 4 + 2


def test_the_engine_rests_when_nobody_asks(start):
    worker = start(endless(), context=50_000)
    events = ask(worker, max_tokens=20)
    until_finished(events)
    worker.cancel("r")
    wait_until(lambda: worker.snapshot().steps == 20)  # the last one is counted behind the end that it told
    time.sleep(0.3)
    assert worker.snapshot().steps == 20


def test_replies_in_the_making_end_as_interrupted_when_the_process_ends(start):
    worker = start(endless(), context=50_000)
    events = ask(worker, max_tokens=None)
    while not isinstance(events.get(timeout=PATIENCE_S), Tokens):
        pass
    worker.stop(PATIENCE_S)
    assert until_finished(events)[-1].reason is Reason.INTERRUPTED
    assert worker.snapshot().state == "stopped"


def test_the_calculator_works_on_the_engine_thread_and_uses_no_signal(start):
    before = signal.getsignal(signal.SIGALRM)
    expression = [EXPRESSION_START, *TOKENIZER.encode("123*456"), EXPRESSION_END]
    worker = start(ScriptModel(script_from(2, expression)))
    done = [until_finished(ask(worker, f"r{i}"))[-1] for i in range(2)]
    for reply in done:
        assert "56088" in TOKENIZER.decode(reply.ids) and reply.masks.count(0) == 7
    assert signal.getsignal(signal.SIGALRM) is before


def test_steps_run_in_inference_mode(start):
    seen = []

    class Watcher(ScriptModel):
        def forward(self, ids, kv_cache=None):
            seen.append(torch.is_inference_mode_enabled())
            return super().forward(ids, kv_cache)

    until_finished(ask(start(Watcher({}))))
    assert seen and all(seen)


def test_a_conversation_is_forgotten_on_request(start):
    worker = start(ScriptModel({}))
    until_finished(ask(worker, conversation="c"))
    assert worker.snapshot().cached_tokens == {"c": 2}
    worker.forget("c")
    wait_until(lambda: worker.snapshot().cached_tokens == {})
    assert worker.snapshot().pool.tokens == 0


def test_whoever_hears_of_the_end_of_a_reply_finds_it_in_the_snapshot(start):
    worker, held = start(ScriptModel({})), queue.Queue()

    def sink(event):
        if isinstance(event, Finished):
            held.put(worker.snapshot().cached_tokens)

    worker.submit(Request("r", "c", (BOS, 1), max_tokens=1), sink)  # read and ended in one step
    assert held.get(timeout=PATIENCE_S) == {"c": 2}
