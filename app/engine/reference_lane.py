"""The lane of replies without the cache: one at a time, in slices.

Each token of such a reply needs all tokens before it computed anew, which is what the cache saves. So that
others are not held up for a whole text, a text longer than a chunk is computed chunk by chunk, in a row of
its own that is emptied after every token.
"""

from __future__ import annotations

import time

from app.engine.kv_cache import KVCache
from app.engine.model_runner import READ_CHUNK_TOKENS, ModelRunner
from app.engine.reply_job import ReplyJob


class ReferenceLane:
    """Holds at most one `job`. Belongs to the scheduler."""

    def __init__(self, runner: ModelRunner, context: int):
        self.job: ReplyJob | None = None
        self._runner, self._context = runner, context
        self._scratch: KVCache | None = None  # made when first needed

    def enter(self, job: ReplyJob) -> None:
        assert self.job is None, "the lane is taken"
        self.job = job
        job.tell_reading()

    def leave(self) -> None:
        self.job = None
        if self._scratch is not None:
            self._scratch.reset()

    def compute_slice(self) -> None:
        """One slice of the text so far; after the last, the job has the logits for its next token."""
        job, ids = self.job, self.job.sequence.all_ids
        started = time.perf_counter()
        if len(ids) <= READ_CHUNK_TOKENS:
            job.logits = self._runner.forward([ids])
            done = len(ids)
        else:
            if self._scratch is None:
                self._scratch = KVCache.for_model(self._runner.model, 1, self._context)
            start = self._scratch.get_pos()
            logits = self._runner.forward([self._runner.chunk(ids, start)], self._scratch)
            done = self._scratch.get_pos()
            if done == len(ids):
                job.logits = logits
                self._scratch.reset()
        if not job.sequence.ids:
            job.count_read(done - job.read, time.perf_counter() - started)
            job.tell_reading()
