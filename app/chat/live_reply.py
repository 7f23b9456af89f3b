"""One reply while it is being written: what is known of it, and what its readers are told.

Takes engine events and gives the events of the contract. It is kept under the lock of its conversation's
channel. It must never write to the database or to a socket.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from app.chat.conversation import Message
from app.chat.chance_records import fit, pack
from app.chat.errors import CannotStoreError
from app.chat.hub import Channel
from app.chat.numbers import last_reply_numbers, reply_stats
from app.chat.parts import Parts
from app.chat.timeline import Recorder
from app.chat.token_names import names_of
from app.chat.transcript import TextSegment, Transcript, special_id
from app.chat.turn_story import Story
from app.engine.messages import (
    Counts, Finished, Part, Queued, Reading, Reason, Request, Timing, Token, ToolCall, Tokens, ToolState,
)


class LiveReply:
    """`message` is the stored reply that grows; `request` what the engine was asked, named for this run alone."""

    def __init__(self, message: Message, request: Request, channel: Channel, tokenizer):
        self.message, self.request, self.channel = message, request, channel
        self.state: dict = {"state": "queued", "place": None}
        self.counts = Counts()
        self.cached_tokens: int | None = None  # None: not told yet
        self.story: Story | None = None        # what the turn means for the memory, until it is told
        self.question_tokens = 0               # with all marks
        self.abandoned = False                 # nobody listened, so it was cancelled
        self.made_way = False                  # and that because somebody waited for its row
        self.told_to_stop = False
        self.began_s = time.monotonic()
        self.dirty = False                     # more was written than was stored
        self.finished: Finished | None = None
        self.unstored: CannotStoreError | None = None  # it has ended, and the disk does not take it
        self._names = names_of(tokenizer)
        self._ids, self._masks = list(message.ids or []), list(message.masks or [])
        self._before = len(self._ids)          # tokens of a reply that goes on, which it had already
        self.recorder = Recorder(self._before, len(request.prompt_ids), request.use_cache, self.began_s)
        self.forced_marks = 0                  # marks around results, of what this run put in
        self._call: int | None = None          # the tool call that is open
        self.chances = bytearray(fit(b"", self._before))  # see chance_records
        self.cells_to_tell: Iterator[dict] | None = None  # what is read for it, token by token, while it is read
        self.cells_told = 0                               # up to which position
        self._opened_at: int | None = None     # where an open tool block begins in them
        self.transcript = Transcript(tokenizer, message.segments, _ids_of_last_prose(tokenizer, self._ids))
        self.parts = Parts.of(self.transcript.as_json(), is_finished=False)

    @property
    def is_in_row(self) -> bool:
        """Whether the row is this reply's: it uses the cache, and its turn has come."""
        return self.request.use_cache and self.cached_tokens is not None and self.counts.reused + self.counts.read > 0

    @property
    def last_reply(self) -> dict:
        return last_reply_numbers(self.counts)

    @property
    def ids(self) -> list[int]:
        """All tokens of the message so far, those of an open tool block too."""
        return self._ids

    @property
    def masks(self) -> list[int]:
        return self._masks

    @property
    def own_ids(self) -> list[int]:
        """Those that this run has made."""
        return self._ids[self._before:]

    def had_chances(self, records: bytes) -> None:
        """How likely the tokens were that a reply had before it goes on."""
        self.chances[:] = fit(records, self._before)

    def progress(self) -> dict:
        """The fields of the message as it stands, never with an open tool block in its ids."""
        kept = len(self._ids) if self._opened_at is None else self._opened_at
        return {"text": self.transcript.text, "segments": self.transcript.as_json(),
                "ids": self._ids[:kept], "masks": self._masks[:kept]}

    def take(self, event) -> list[dict]:
        """What readers are told of an engine event."""
        self.dirty = True
        if isinstance(event, Tokens):
            return self._take_tokens(event)
        if isinstance(event, ToolCall):
            return self._take_call(event)
        if isinstance(event, Reading):
            return self._take_reading(event)
        if isinstance(event, Queued):
            return self._set_state("queued", place=event.place)
        if isinstance(event, Finished):
            return self._take_end(event)
        raise AssertionError(f"an engine event of an unknown kind: {event!r}")

    def could_not_be_stored(self, error: CannotStoreError) -> list[dict]:
        """It has ended, but for that. -> what readers are told: once."""
        self.unstored = error
        return self._set_state("writing", text=error.unstored)

    def cut_off(self, reason: Reason, sentence: str | None = None) -> Finished:
        """An end that the engine did not tell: it is no longer there."""
        kept_ids = self.progress()["ids"][len(self.message.ids or []):]
        return Finished(self.request.reply, reason, (), (), tuple(kept_ids), self.counts, Timing(), self.request.seed,
                        error=sentence)

    # --- events, one by one

    def _take_reading(self, event: Reading) -> list[dict]:
        self.recorder.take_reading(event)
        self.counts = Counts(reused=event.reused, read=event.done - event.reused)
        self.cached_tokens = event.done if self.request.use_cache else None
        told = self._set_state("reading")
        return [*told, {"type": "reading", "message": self.message.id, "done": event.done, "total": event.total,
                        "reused": event.reused}]

    def _take_tokens(self, event: Tokens) -> list[dict]:
        self.counts, self.cached_tokens = event.counts, event.counts.cached
        self._ids.extend(token.id for token in event.tokens)
        self._masks.extend(0 if token.forced else 1 for token in event.tokens)
        self.forced_marks += sum(token.forced and token.part is Part.MARK for token in event.tokens)
        for token in event.tokens:
            self.chances += pack(token.chance, token.runners_up)
        told = self._set_state("writing") if self._opened_at is None else []
        prose = "".join(self._prose_of(token, event) for token in event.tokens)
        told.append({"type": "token", "message": self.message.id, "text": prose,
                     "tokens": [self._cell(token) for token in event.tokens]})
        return told + self._blocks(self.parts.add_text(prose) if prose else [])

    def _prose_of(self, token: Token, event: Tokens) -> str:
        prose = self.transcript.take(replace(event, tokens=(token,)))
        self.recorder.take_token(token, prose)
        return prose

    def _cell(self, token: Token) -> dict:
        cell = {"id": token.id, **self._names.of(token.id), "origin": "forced" if token.forced else "written",
                "position": token.position, **self._names.chances(token.chance, token.runners_up)}
        if self._call is not None and token.part not in (Part.TEXT, Part.END):
            cell["call"] = self._call
        return cell

    def _take_call(self, event: ToolCall) -> list[dict]:
        told = []
        prose = self.transcript.take(event)
        if event.state is ToolState.WRITING and self._opened_at is None:
            self._opened_at = len(self._ids)
            told += self._end_text(prose)
        elif event.state is not ToolState.WRITING:
            self._opened_at = None
        segment = self.transcript.call(event)
        self._call = None if self._opened_at is None else segment.number
        self.recorder.take_call(event, segment.number)
        part = self.parts.set_call(segment)
        told.append({**part, "type": "tool_call", "message": self.message.id})
        return told + self._set_state("writing" if self._opened_at is None else "calculating")

    def _take_end(self, event: Finished) -> list[dict]:
        self.finished = event
        self.counts, self.cached_tokens = event.counts, event.counts.cached
        told = self._end_text(self.transcript.take(event))
        for segment in self.transcript.segments:  # one that the engine could not tell of any more
            if not isinstance(segment, TextSegment) and segment.state == ToolState.WRITING.value:
                segment.state = ToolState.UNFINISHED.value
                told.append({**self.parts.set_call(segment), "type": "tool_call", "message": self.message.id})
        return told

    def final(self) -> dict:
        """The fields of the message when it is finished."""
        event = self.finished
        ids = [*(self.message.ids or []), *event.kept_ids]
        masks = self._masks[:len(ids)] + [0] * (len(ids) - len(self._masks))  # a result may be completed after the end
        return {"text": self.transcript.text, "segments": self.transcript.as_json(), "ids": ids, "masks": masks,
                "reason": event.reason.value, "error": event.error, "stats": reply_stats(self.request, event)}

    def done_event(self, final: dict) -> dict:
        return {"type": "done", "message": self.message.id, "html": self.parts.html, "parts": self.parts.parts,
                "reason": final["reason"], "text": final["error"], "stats": final["stats"]}

    # --- small things

    def _set_state(self, state: str, **details) -> list[dict]:
        new = {"state": state, **details}
        if new == self.state:
            return []
        self.state = new
        return [{"type": "state", "message": self.message.id, **new}]

    def _end_text(self, prose: str) -> list[dict]:
        """The prose before a tool call or the end, all of it as blocks."""
        told = [{"type": "token", "message": self.message.id, "text": prose, "tokens": []}] if prose else []
        blocks = self.parts.add_text(prose) + self.parts.end_text()
        return told + self._blocks(blocks)

    def _blocks(self, blocks: list[dict]) -> list[dict]:
        rest = self.parts.tail if blocks else ""
        return [{**block, "message": self.message.id, "rest": rest if block is blocks[-1] else ""} for block in blocks]


def _ids_of_last_prose(tokenizer, ids: list[int]) -> list[int]:
    """The ids after the last tool block."""
    closing = {special_id(tokenizer, name) for name in ("<|output_end|>", "<|python_end|>")} - {None}
    last = next((index for index in range(len(ids) - 1, -1, -1) if ids[index] in closing), -1)
    return ids[last + 1:]
