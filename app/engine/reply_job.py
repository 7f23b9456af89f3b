"""One reply on its way through the engine: the request, its sequence, its row and its clocks.

The scheduler moves jobs; a job knows how to tell its asker what happened. It never runs the model.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import torch

from app.engine.chances import Chances
from app.engine.messages import Counts, Finished, Reading, Reason, Request, Timing, Token, Tokens
from app.engine.model_runner import BegunForward
from app.engine.sequence import Sequence

logger = logging.getLogger(__name__)


class ReplyJob:
    """`logits` (1, V) are those after the last token that was read or written, or None before that."""

    def __init__(self, request: Request, sequence: Sequence, sink: Callable[[object], None]):
        self.request, self.sequence = request, sequence
        self.ended = False                      # its Finished has been told
        self.copies: list[ReplyJob] = []        # other answers to the same prompt, until it has been read
        self.row: int | None = None
        self.reused = 0
        self.read = 0                           # prompt tokens read, beyond those reused
        self.forward: BegunForward | None = None  # of the chunk that is being read
        self.logits: torch.Tensor | None = None
        self.chances: Callable[[int], Chances] | None = None  # how likely each token was by them, where it was found
        self._sink = sink
        self._submitted_at = time.perf_counter()
        self._reading_s = 0.0
        self._first_token_at: float | None = None
        self._last_token_at: float | None = None

    @property
    def to_read(self) -> int:
        """Prompt tokens still to be read."""
        return len(self.sequence.prompt_ids) - self.reused - self.read

    def tell(self, event: object) -> None:
        """Hand an event to the asker. A sink that fails is the asker's loss, never the engine's."""
        try:
            self._sink(event)
        except Exception:
            logger.exception("the sink of reply %s failed", self.request.reply)

    def tell_reading(self) -> None:
        done = self.reused + self.read
        self.tell(Reading(self.request.reply, done, len(self.sequence.prompt_ids), self.reused, self._reading_s))

    def has_read(self, chunk: BegunForward) -> None:
        self.read += chunk.num_tokens
        self._reading_s += chunk.seconds
        self.forward = None
        self.tell_reading()

    def write(self, cached_tokens: int, drawn: int | None) -> None:
        """Choose the next token and tell of it, and of the tool call that it changed. `drawn`: see `draw_together`."""
        token: Token = self.sequence.choose(self.logits, self.chances, drawn)
        self.logits = self.chances = None
        self._last_token_at = time.perf_counter()
        if self._first_token_at is None:
            self._first_token_at = self._last_token_at
        opened = [call for call in self.sequence.tools.changes if call.state == "writing" and not call.expression]
        changed = [call for call in self.sequence.tools.changes if call not in opened]
        self.sequence.tools.changes.clear()
        for call in opened:
            self.tell(call)
        self.tell(Tokens(self.request.reply, (token,), self.counts(cached_tokens)))
        for call in changed:
            self.tell(call)

    def finish(self, reason: Reason, cached_tokens: int, error: str | None = None) -> None:
        """Complete the reply and tell the last of it. The reason it already ended for, if any, stands."""
        sequence, self.ended = self.sequence, True
        sequence.end(reason)
        for call in sequence.tools.changes:
            self.tell(call)
        sequence.tools.changes.clear()
        self.tell(Finished(self.request.reply, sequence.reason, tuple(sequence.ids), tuple(sequence.masks),
                           tuple(sequence.kept_ids()), self.counts(cached_tokens), self.timing(), sequence.seed, error))

    def counts(self, cached_tokens: int) -> Counts:
        sequence = self.sequence
        written = sequence.written
        return Counts(cached=cached_tokens, reused=self.reused, read=self.read, written=written,
                      forced=len(sequence.ids) - written, without_cache=sequence.positions_without_cache)

    def timing(self) -> Timing:
        first, last = self._first_token_at, self._last_token_at
        more = len(self.sequence.ids) - 1  # tokens after the first, whose time is the reading's
        return Timing(
            time_to_first_token_s=None if first is None else first - self._submitted_at,
            read_tokens_per_s=self.read / self._reading_s if self.read and self._reading_s else None,
            write_tokens_per_s=more / (last - first) if more > 0 and last > first else None)
