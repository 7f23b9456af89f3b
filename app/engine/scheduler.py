"""Who runs in the next step.

A step is: admit who waits, read a bounded chunk of the prompts that are being read, write one token for
every row that writes. A chunk that takes long is computed in parts, so that nobody's stream stalls behind
somebody's long paste; the oldest prompt is read first, so newer work never starves it. A prompt is always
read in the same chunks, however busy it is: others would round otherwise, and no reply may depend on company.

        submitted -> waiting -> reading -> writing --> finished
                        |          (row of the cache)
                        +------> reference lane -----> finished

The scheduler belongs to the engine thread and is plain synchronous code: `step` does one step.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from functools import partial

from app.engine.chances import Likeliest
from app.engine.kv_cache import KVCache
from app.engine.messages import Evicted, PoolNumbers, Queued, Reason, Request
from app.engine.model_runner import READ_S, ModelRunner
from app.engine.race_track import RaceTrack
from app.engine.reference_lane import ReferenceLane
from app.engine.reply_job import ReplyJob
from app.engine.retention import Retention, TooManyAnswersError
from app.engine.sequence import ReplyRules, Sequence, draw_together
from app.engine.thread_governor import ThreadGovernor

logger = logging.getLogger(__name__)


class Scheduler:
    """Serves many replies with one model and one cache of `rows` rows of `context` tokens."""

    def __init__(self, model, tokenizer, *, rows: int, context: int):
        self.runner = ModelRunner(model, ThreadGovernor.for_model(model))
        self.context = min(context, self.runner.max_context)
        self.cache = KVCache.for_model(model, rows, self.context)
        self.retention = Retention(self.cache)
        self.steps = 0
        self._rules = ReplyRules.of(tokenizer)
        self._waiting: deque[ReplyJob] = deque()
        self._reading: deque[ReplyJob] = deque()
        self._writing: list[ReplyJob] = []
        self._lane = ReferenceLane(self.runner, self.context)
        self.races = RaceTrack(model, self._rules, self.context)

    # --- commands

    def submit(self, request: Request, sink: Callable[[object], None], copies: SequenceOf[Request] = ()) -> None:
        """Take a request. Raises what `Sequence` raises for one that can never be served.

        `copies` are further answers to the same prompt: it is read once, into the row of `request`, and
        that row is copied for each of them. Each names a conversation of its own, where its row is kept.
        """
        assert all(copy.prompt_ids == request.prompt_ids and copy.use_cache for copy in copies), \
            "copies answer the same prompt, with the cache"
        job = self._make_job(request, sink)
        job.copies = [self._make_job(copy, sink) for copy in copies]
        if 1 + len(copies) > self.cache.batch_size:
            raise TooManyAnswersError(1 + len(copies), self.cache.batch_size)
        self._waiting.append(job)
        self._admit()
        self._tell_places()

    def _make_job(self, request: Request, sink: Callable[[object], None]) -> ReplyJob:
        sequence = Sequence(request.prompt_ids, self._rules, limit=self.context, temperature=request.temperature,
                            top_k=request.top_k, max_tokens=request.max_tokens, seed=request.seed,
                            device=self.runner.device, reply=request.reply, tells_chances=True)
        return ReplyJob(request, sequence, sink)

    def cancel(self, reply: str) -> None:
        """End a reply, wherever it is. What it has read and written stays in its row. Unknown: nothing happens."""
        for job in self._jobs():
            if job.request.reply == reply:
                self._finish(job, Reason.CANCELLED)

    def adopt(self, conversation: str, copy: str) -> None:
        """Let a conversation go on in the kept row of one of its copies."""
        self.retention.rename(copy, conversation)

    def forget(self, conversation: str) -> None:
        """Free the row of a conversation, ending its reply if one is being made."""
        for job in self._jobs():
            if job.request.conversation == conversation:
                self._finish(job, Reason.CANCELLED)
        self.retention.forget(conversation)

    # --- the step

    @property
    def serving(self) -> bool:
        """Whether a reply is being made, or waited for."""
        return bool(self._waiting or self._reading or self._writing or self._lane.job)

    @property
    def busy(self) -> bool:
        return self.serving or self.races.busy

    def step(self) -> None:
        self._admit()
        until = time.perf_counter() + READ_S if self._writing else math.inf
        self._read(until)
        if self._lane.job is not None:
            self._compute_without_cache(until)
        self._write()
        self.races.advance(quiet=not self.serving)
        self.steps += 1

    def _admit(self) -> None:
        """First come, first served: nobody overtakes one that waits for rows."""
        rows_are_awaited = False
        for job in list(self._waiting):
            if job.sequence.finished:  # asked for no tokens, or the prompt fills the context
                self._finish(job, job.sequence.reason)
            elif job.request.use_cache:
                rows_are_awaited = rows_are_awaited or not self._admit_to_rows(job)
            elif self._lane.job is None:
                self._waiting.remove(job)
                self._lane.enter(job)

    def _admit_to_rows(self, job: ReplyJob) -> bool:
        """Give it a row, and one to each of its copies; False where there are not so many."""
        if not self.retention.can_acquire(1 + len(job.copies)):
            return False
        self._waiting.remove(job)
        lease = self.retention.acquire(job.request.conversation, job.sequence.prompt_ids)
        job.row, job.reused = lease.row, lease.reused
        for copy in job.copies:
            self.retention.forget(copy.request.conversation)
            copy.row = self.retention.acquire(copy.request.conversation, copy.sequence.prompt_ids).row
        self._reading.append(job)
        job.tell_reading()
        return True

    def _read(self, until: float) -> None:
        left = 1.0  # of what may be read in one step
        while self._reading:
            job = self._reading[0]
            try:
                if job.forward is None:
                    chunk = self.runner.chunk(job.sequence.prompt_ids, start := job.reused + job.read)
                    left -= len(chunk) / self.runner.chunk_tokens(start)
                    if left < 0:
                        return
                    job.forward = self.runner.begin([chunk], self.cache.select([job.row]))
                job.logits = job.forward.advance(until)
            except Exception as error:
                self._fail([job], error)
                continue
            if job.logits is None:
                return
            another_s = job.forward.part_seconds
            job.has_read(job.forward)
            if job.to_read == 0:
                self._reading.popleft()
                self._writing += [job, *self._copied(job)]
            if time.perf_counter() + another_s > until:
                return

    def _copied(self, job: ReplyJob) -> list[ReplyJob]:
        """The prompt has been read: give what its row holds to the other answers, and let them go their way."""
        copies, job.copies = job.copies, []
        for copy in copies:
            self.cache.copy_row(job.row, copy.row)
            copy.reused, copy.logits = len(job.sequence.prompt_ids), job.logits
            copy.tell_reading()
        return copies

    def _write(self) -> None:
        jobs = [job for job in [*self._writing, *self._in_lane()] if job.logits is not None]
        drawn = draw_together([job.sequence for job in jobs], [job.logits for job in jobs])
        for job, token in zip(jobs, drawn):
            try:
                job.write(self._cached_tokens(job), token)
            except Exception as error:
                self._fail([job], error)
                continue
            if job.sequence.finished:
                self._finish(job, job.sequence.reason)
        self._extend(self._writing)

    def _extend(self, jobs: list[ReplyJob]) -> None:
        """One forward for all rows that write: each row's last token in, the logits after it out."""
        if not jobs:
            return
        jobs = sorted(jobs, key=lambda job: job.row)
        try:
            logits = self.runner.forward([[job.sequence.last_id] for job in jobs],
                                         self.cache.select([job.row for job in jobs]))  # (B, V)
        except Exception as error:
            self._fail(jobs, error)
            return
        likeliest = Likeliest(logits)
        for index, job in enumerate(jobs):
            job.logits, job.chances = logits[index:index + 1], partial(likeliest.chances, index)

    def _compute_without_cache(self, until: float) -> None:
        try:
            self._lane.compute_slice(until)
        except Exception as error:
            self._fail([self._lane.job], error)

    # --- ends

    def _finish(self, job: ReplyJob, reason: Reason, error: str | None = None) -> None:
        if job.ended:  # with the one that it is a copy of
            return
        copies, job.copies = job.copies, []
        for copy in copies:  # it ends before its prompt was read, and so do the copies that wait for that
            self._finish(copy, reason, error)
        cached_tokens = self._cached_tokens(job)
        self._take_out(job)
        if job.row is not None:
            if error is None:
                self.retention.release(job.row, job.request.conversation, job.sequence.all_ids)
            else:
                self.retention.discard(job.row)  # what a failed forward has written cannot be told
                cached_tokens = 0
        job.finish(reason, cached_tokens, error)
        self._tell_places()

    def _fail(self, jobs: list[ReplyJob], error: Exception) -> None:
        logger.error("the engine failed at a step", exc_info=error)
        for job in list(jobs):
            self._finish(job, Reason.ERROR, f"The engine failed at this reply: {error}")

    def fail_all(self, error: Exception) -> None:
        """End every reply: something went wrong that belongs to none of them."""
        self._fail(self._jobs(), error)

    def interrupt_all(self) -> None:
        """End every reply, and a race, because the process ends."""
        for job in self._jobs():
            self._finish(job, Reason.INTERRUPTED)
        self.races.stop()

    def _take_out(self, job: ReplyJob) -> None:
        for place in (self._waiting, self._reading, self._writing):
            if job in place:
                place.remove(job)
        for leader in (*self._waiting, *self._reading):
            if job in leader.copies:
                leader.copies.remove(job)
        if job.forward is not None:  # what it has written so far is not to be kept
            job.forward = None
            self.cache.cut(job.row, self.cache.lengths()[job.row])
        if self._lane.job is job:
            self._lane.leave()

    # --- what can be seen

    def _jobs(self) -> list[ReplyJob]:
        jobs = [*self._waiting, *self._reading, *self._writing, *self._in_lane()]
        return [each for job in jobs for each in (job, *job.copies)]

    def _in_lane(self) -> list[ReplyJob]:
        return [self._lane.job] if self._lane.job else []

    def _tell_places(self) -> None:
        for place, job in enumerate(self._waiting, start=1):
            job.tell(Queued(job.request.reply, place))

    def _cached_tokens(self, job: ReplyJob) -> int:
        if job.row is not None:
            return self.cache.lengths()[job.row]
        return self.retention.kept_tokens().get(job.request.conversation, 0)

    def cached_tokens(self) -> dict[str, int]:
        """Tokens in the cache, by conversation."""
        lengths = self.cache.lengths()
        live = {job.request.conversation: lengths[job.row] for job in (*self._reading, *self._writing)}
        return self.retention.kept_tokens() | live

    def kept_ids(self) -> dict[str, tuple[int, ...]]:
        """The tokens of each kept row, by conversation."""
        return self.retention.kept_ids()

    def queued(self) -> tuple[str, ...]:
        return tuple(job.request.reply for job in self._waiting)

    def take_evictions(self) -> list[Evicted]:
        events, self.retention.events = self.retention.events, []
        return events

    def pool_numbers(self) -> PoolNumbers:
        cache = self.cache
        return PoolNumbers(rows=cache.batch_size, rows_used=self.retention.rows_used, tokens=sum(cache.lengths()),
                           bytes_used=cache.bytes_used, bytes_reserved=cache.bytes_reserved,
                           evictions=self.retention.evictions)
