"""A reply that is stopped, forgotten or fails ends once, and is nobody else's loss."""

from app.engine.messages import Finished, Reason, Request
from app.engine.model_runner import READ_CHUNK_TOKENS
from app.engine.scheduler import Scheduler
from tests.engine.scheduling import TOKENIZER, fresh_run, run, submit, tiny
from tests.engine.tiny import BOS, ScriptModel, TinyConfig, TinyModel


def test_stop_ends_that_reply_once_and_keeps_what_was_written():
    scheduler = Scheduler(ScriptModel({i: 65 for i in range(200)}), TOKENIZER, rows=2, context=96)
    stopped = submit(scheduler, "a", [BOS, 1, 2], "ca", max_tokens=None)
    other = submit(scheduler, "b", [BOS, 5], "cb", max_tokens=10)
    for _ in range(4):
        scheduler.step()
    scheduler.cancel("a")
    scheduler.cancel("a")
    scheduler.cancel("nobody")
    count = len(stopped)
    run(scheduler, other)
    assert len(stopped) == count and sum(isinstance(e, Finished) for e in stopped) == 1
    assert stopped.finished.reason is Reason.CANCELLED and len(stopped.finished.ids) == 4
    assert other.finished.reason is Reason.LENGTH
    again = submit(scheduler, "a2", [BOS, 1, 2, *stopped.finished.kept_ids, 9], "ca", max_tokens=1)
    run(scheduler, again)
    # The step after the fourth token had already extended the row by it.
    assert again.finished.counts.reused == 3 + 4


def test_stop_while_reading_keeps_completed_chunks_only():
    scheduler = Scheduler(tiny(sequence_len=1000), TOKENIZER, rows=1, context=1000)
    prompt = [BOS] + [i % 200 for i in range(900)]
    heard = submit(scheduler, "a", prompt, "c")
    scheduler.step()
    scheduler.cancel("a")
    assert heard.finished.reason is Reason.CANCELLED and heard.finished.counts.read == READ_CHUNK_TOKENS
    assert scheduler.cached_tokens() == {"c": READ_CHUNK_TOKENS}
    again = submit(scheduler, "b", prompt, "c", max_tokens=1)
    run(scheduler, again)
    assert again.finished.counts.reused == READ_CHUNK_TOKENS


def test_forgetting_frees_the_row_and_ends_the_reply():
    scheduler = Scheduler(tiny(), TOKENIZER, rows=1, context=96)
    heard = submit(scheduler, "a", [BOS, 1, 2], "c")
    scheduler.step()
    scheduler.forget("c")
    assert heard.finished.reason is Reason.CANCELLED
    assert scheduler.cached_tokens() == {} and scheduler.pool_numbers().rows_used == 0
    scheduler.retention.check()


def test_a_failing_forward_ends_its_replies_with_a_sentence_and_nobody_elses():
    class Fragile(TinyModel):
        def forward(self, ids, kv_cache=None):
            if (ids == 99).any():
                raise RuntimeError("the token 99 broke it")
            return super().forward(ids, kv_cache)

    model = Fragile(TinyConfig())
    scheduler = Scheduler(model, TOKENIZER, rows=2, context=96)
    bad, good = submit(scheduler, "bad", [BOS, 99]), submit(scheduler, "good", [BOS, 1])
    run(scheduler, bad, good)
    assert bad.finished.reason is Reason.ERROR and "the token 99 broke it" in bad.finished.error
    assert [(t.id, 0 if t.forced else 1) for t in good.tokens] == fresh_run(model, good.request)
    assert "bad" not in scheduler.cached_tokens()


def test_logits_that_are_not_finite_end_that_reply_alone():
    class Broken(TinyModel):
        def forward(self, ids, kv_cache=None):
            logits = super().forward(ids, kv_cache)
            logits[(ids == 99).any(-1)] = float("nan")
            return logits

    scheduler = Scheduler(Broken(), TOKENIZER, rows=2, context=96)
    bad, good = submit(scheduler, "bad", [BOS, 99]), submit(scheduler, "good", [BOS, 1])
    run(scheduler, bad, good)
    assert bad.finished.reason is Reason.ERROR and "not finite" in bad.finished.error
    assert good.finished.reason is not Reason.ERROR


def test_a_sink_that_fails_is_nobody_elses_loss():
    scheduler = Scheduler(tiny(), TOKENIZER, rows=2, context=96)

    def broken(event):
        raise OSError("gone")

    scheduler.submit(Request("x", "x", (BOS, 1), temperature=0.0, max_tokens=5), broken)
    run(scheduler, submit(scheduler, "good", [BOS, 2], max_tokens=5))
    while scheduler.busy:
        scheduler.step()
