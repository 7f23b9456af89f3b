"""Several answers to one question in the scheduler: their prompt is read once, and each goes its own way."""

import pytest

from app.engine.messages import Finished, Reason, Request
from app.engine.retention import TooManyAnswersError
from app.engine.scheduler import Scheduler
from tests.engine.scheduling import TOKENIZER, Listener, fresh_run, run, submit, tiny
from tests.engine.tiny import BOS


def test_several_answers_read_their_prompt_once_and_go_their_own_way():
    model = tiny()
    scheduler = Scheduler(model, TOKENIZER, rows=4, context=96)
    prompt = (BOS, *range(20))
    requests = [Request(f"r{i}", "c" if i == 0 else f"c/{i}", prompt, temperature=1.0, max_tokens=10, seed=30 + i)
                for i in range(3)]
    heard = {request.reply: Listener() for request in requests}
    model.tokens_computed = 0
    scheduler.submit(requests[0], lambda event: heard[event.reply].append(event), requests[1:])
    run(scheduler, *heard.values())
    written = [len(listener.tokens) for listener in heard.values()]
    assert model.tokens_computed == len(prompt) + sum(written) - 3
    for request in requests:
        done = heard[request.reply].finished
        assert list(zip(done.ids, done.masks)) == fresh_run(model, request)
    assert [heard[r.reply].finished.counts.read for r in requests] == [21, 0, 0]
    assert set(scheduler.cached_tokens()) == {"c", "c/1", "c/2"}
    scheduler.adopt("c", "c/2")
    scheduler.retention.check()
    assert set(scheduler.cached_tokens()) == {"c", "c/1"}
    picked = [*prompt, *heard["r2"].finished.kept_ids]
    again = submit(scheduler, "next", [*picked, 7], "c", max_tokens=1)
    run(scheduler, again)
    assert again.finished.counts.reused == len(picked) - 1


@pytest.mark.parametrize("stopped", ["r0", "r1"])
def test_stopping_one_of_several_answers(stopped):
    scheduler = Scheduler(tiny(sequence_len=400), TOKENIZER, rows=3, context=400)
    heard = {f"r{i}": Listener() for i in range(3)}
    requests = [Request(f"r{i}", f"c{i}", (BOS,) * 300, temperature=0.0, max_tokens=5) for i in range(3)]
    scheduler.submit(requests[0], lambda event: heard[event.reply].append(event), requests[1:])
    scheduler.step()
    scheduler.cancel(stopped)
    scheduler.retention.check()
    run(scheduler, *heard.values())
    reasons = [listener.finished.reason for listener in heard.values()]
    # While the prompt is being read all wait for the one that reads it; a copy can leave by itself.
    assert reasons.count(Reason.CANCELLED) == (3 if stopped == "r0" else 1)
    assert all(sum(isinstance(event, Finished) for event in listener) == 1 for listener in heard.values())


def test_the_end_of_the_process_ends_each_of_several_answers_once():
    scheduler = Scheduler(tiny(sequence_len=400), TOKENIZER, rows=2, context=400)
    heard = {f"r{i}": Listener() for i in range(2)}
    requests = [Request(f"r{i}", f"c{i}", (BOS,) * 300, temperature=0.0, max_tokens=5) for i in range(2)]
    scheduler.submit(requests[0], lambda event: heard[event.reply].append(event), requests[1:])
    scheduler.step()
    scheduler.interrupt_all()
    assert [listener.finished.reason for listener in heard.values()] == [Reason.INTERRUPTED] * 2
    assert not scheduler.busy
    scheduler.retention.check()


def test_more_answers_than_rows_are_refused_and_fewer_wait_for_all_their_rows():
    scheduler = Scheduler(tiny(), TOKENIZER, rows=2, context=96)
    requests = [Request(f"r{i}", f"c{i}", (BOS, 5), temperature=0.0, max_tokens=5) for i in range(3)]
    with pytest.raises(TooManyAnswersError, match="3 answers at once need as many rows of the cache, and it has 2"):
        scheduler.submit(requests[0], print, requests[1:])
    first = submit(scheduler, "first", [BOS, 1], max_tokens=4)
    heard = {f"r{i}": Listener() for i in range(2)}
    scheduler.submit(requests[0], lambda event: heard[event.reply].append(event), requests[1:2])
    later = submit(scheduler, "later", [BOS, 2], max_tokens=4)  # one row is free, but it came later
    scheduler.step()
    assert scheduler.queued() == ("r0", "later")
    run(scheduler, first, *heard.values(), later)
