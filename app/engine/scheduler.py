"""Who runs in the next step.

A step is: admit who waits, read a bounded chunk of the prompts that are being read, write one token for
every row that writes. Reading is bounded so that nobody's stream stalls behind somebody's long paste;
the oldest prompt is read first, so newer work never starves it.

A reply without the cache runs in a lane of its own, one at a time. Each of its tokens needs all tokens
before it computed anew: in slices of the same bounded size, in a row that is emptied after every token.

        submitted -> waiting -> reading -> writing -> finished
                        |          (row of the cache)
                        +-----> uncached lane ------> finished

The scheduler belongs to the engine thread and is plain synchronous code: `step` does one step.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

from app.engine.kv_cache import KVCache
from app.engine.messages import Evicted, PoolNumbers, Queued, Reason, Request
from app.engine.model_runner import READ_CHUNK_TOKENS, ModelRunner
from app.engine.reply_job import ReplyJob
from app.engine.retention import Retention
from app.engine.sequence import ReplyRules, Sequence

logger = logging.getLogger(__name__)

SHARED_READ_TOKENS = 96  # read a step while others are writing: bounds the gap in their streams


class Scheduler:
    """Serves many replies with one model and one cache of `rows` rows of `context` tokens."""

    def __init__(self, model, tokenizer, *, rows: int, context: int):
        self.runner = ModelRunner(model)
        self.context = min(context, self.runner.max_context)
        self.cache = KVCache.for_model(model, rows, self.context)
        self.retention = Retention(self.cache)
        self.steps = 0
        self._rules = ReplyRules.of(tokenizer)
        self._waiting: deque[ReplyJob] = deque()
        self._reading: deque[ReplyJob] = deque()
        self._writing: list[ReplyJob] = []
        self._uncached: ReplyJob | None = None
        self._scratch: KVCache | None = None  # the uncached lane's row, made when first needed

    # --- commands

    def submit(self, request: Request, sink: Callable[[object], None]) -> None:
        """Take a request. Raises what `Sequence` raises for one that can never be served."""
        sequence = Sequence(request.prompt_ids, self._rules, limit=self.context, temperature=request.temperature,
                            top_k=request.top_k, max_tokens=request.max_tokens, seed=request.seed,
                            device=self.runner.device, reply=request.reply)
        self._waiting.append(ReplyJob(request, sequence, sink))
        self._admit()
        self._tell_places()

    def cancel(self, reply: str) -> None:
        """End a reply, wherever it is. What it has read and written stays in its row. Unknown: nothing happens."""
        for job in self._jobs():
            if job.request.reply == reply:
                self._finish(job, Reason.CANCELLED)

    def forget(self, conversation: str) -> None:
        """Free the row of a conversation, ending its reply if one is being made."""
        for job in self._jobs():
            if job.request.conversation == conversation:
                self._finish(job, Reason.CANCELLED)
        self.retention.forget(conversation)

    # --- the step

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._reading or self._writing or self._uncached)

    def step(self) -> None:
        self._admit()
        self._read()
        self._read_without_cache()
        self._write()
        self.steps += 1

    def _admit(self) -> None:
        for job in list(self._waiting):
            if job.sequence.finished:  # asked for no tokens, or the prompt fills the context
                self._finish(job, job.sequence.reason)
            elif job.request.use_cache:
                self._admit_to_row(job)
            elif self._uncached is None:
                self._waiting.remove(job)
                self._uncached = job
                job.tell_reading()

    def _admit_to_row(self, job: ReplyJob) -> None:
        lease = self.retention.acquire(job.request.conversation, job.sequence.prompt_ids)
        if lease is None:
            return
        self._waiting.remove(job)
        job.row, job.reused = lease.row, lease.reused
        self._reading.append(job)
        job.tell_reading()

    def _read(self) -> None:
        budget = SHARED_READ_TOKENS if self._writing or self._uncached else READ_CHUNK_TOKENS
        while self._reading and budget > 0:
            job = self._reading[0]
            chunk = self._next_chunk(job, budget)
            started = time.perf_counter()
            try:
                job.logits = self.runner.forward([chunk], self.cache.select([job.row]))
            except Exception as error:
                self._fail([job], error)
                continue
            job.count_read(len(chunk), time.perf_counter() - started)
            job.tell_reading()
            budget -= len(chunk)
            if job.to_read == 0:
                self._reading.popleft()
                self._writing.append(job)

    def _next_chunk(self, job: ReplyJob, budget: int) -> list[int]:
        start = job.reused + job.read
        return job.sequence.prompt_ids[start:start + min(budget, job.to_read)]

    def _write(self) -> None:
        for job in [*self._writing, *([self._uncached] if self._uncached else [])]:
            if job.logits is None:
                continue
            try:
                job.write(self._cached_tokens(job))
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
        for index, job in enumerate(jobs):
            job.logits = logits[index:index + 1]

    def _read_without_cache(self) -> None:
        """One slice of the uncached lane: the whole text again, as far as this step goes."""
        job = self._uncached
        if job is None:
            return
        ids = job.sequence.all_ids
        slice_tokens = SHARED_READ_TOKENS if self._reading or self._writing else READ_CHUNK_TOKENS
        begun = self._scratch is not None and self._scratch.get_pos() > 0
        try:
            if len(ids) <= slice_tokens and not begun:
                job.logits = self.runner.forward([ids])
                done = len(ids)
            else:
                if self._scratch is None:
                    self._scratch = KVCache.for_model(self.runner.model, 1, self.context)
                start = self._scratch.get_pos()
                job.logits = self.runner.forward([ids[start:start + slice_tokens]], self._scratch)
                done = self._scratch.get_pos()
        except Exception as error:
            self._fail([job], error)
            return
        if done < len(ids):
            job.logits = None  # not yet those after the last token
        elif self._scratch is not None:
            self._scratch.reset()
        if not job.sequence.ids:
            job.count_read(done - job.read, 0.0)
            job.tell_reading()

    # --- ends

    def _finish(self, job: ReplyJob, reason: Reason, error: str | None = None) -> None:
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
        """End every reply because the process ends."""
        for job in self._jobs():
            self._finish(job, Reason.INTERRUPTED)

    def _take_out(self, job: ReplyJob) -> None:
        for place in (self._waiting, self._reading, self._writing):
            if job in place:
                place.remove(job)
        if self._uncached is job:
            self._uncached = None
            if self._scratch is not None:
                self._scratch.reset()

    # --- what can be seen

    def _jobs(self) -> list[ReplyJob]:
        return [*self._waiting, *self._reading, *self._writing, *([self._uncached] if self._uncached else [])]

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
