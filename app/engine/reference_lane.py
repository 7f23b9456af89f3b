"""The lane of replies without the cache: one at a time, in slices.

Each token of such a reply needs all tokens before it computed anew, which is what the cache saves. So that
others are not held up for a whole text, a text longer than a chunk is computed chunk by chunk, in a row of
its own that is emptied after every token.
"""

from __future__ import annotations

from app.engine.kv_cache import KVCache
from app.engine.model_runner import READ_CHUNK_TOKENS, BegunForward, ModelRunner
from app.engine.reply_job import ReplyJob


class ReferenceLane:
    """Holds at most one `job`. Belongs to the scheduler."""

    def __init__(self, runner: ModelRunner, context: int):
        self.job: ReplyJob | None = None
        self._runner, self._context = runner, context
        self._scratch: KVCache | None = None  # made when first needed
        self._forward: BegunForward | None = None

    def enter(self, job: ReplyJob) -> None:
        assert self.job is None, "the lane is taken"
        self.job = job
        job.tell_reading()

    def leave(self) -> None:
        self.job = self._forward = None
        if self._scratch is not None:
            self._scratch.reset()

    def compute_slice(self, until: float) -> None:
        """One slice of the text so far, or as much of it as there is time `until` then; after the last slice, the job has
        the logits for its next token."""
        job, ids = self.job, self.job.sequence.all_ids
        if self._forward is None:
            self._forward = self._begin(ids)
        logits = self._forward.advance(until)
        if logits is None:
            return
        forward, self._forward = self._forward, None
        done = len(ids) if len(ids) <= READ_CHUNK_TOKENS else self._scratch.get_pos()
        if done == len(ids):
            job.logits = logits
            if self._scratch is not None:
                self._scratch.reset()
        if not job.sequence.ids:
            job.has_read(forward)

    def _begin(self, ids: list[int]) -> BegunForward:
        if len(ids) <= READ_CHUNK_TOKENS:
            return self._runner.begin([ids])
        if self._scratch is None:
            self._scratch = KVCache.for_model(self._runner.model, 1, self._context)
        return self._runner.begin([self._runner.chunk(ids, self._scratch.get_pos())], self._scratch)
