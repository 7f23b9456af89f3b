"""A stored chat as a script of timed events: what its page was told while it was made, told again without the model.

    [ms, event]              as on the socket; `run` besides, which begins the counting of a reply's tokens; the edges of
                             `edges` are one letter for each message so far, since they are told for every reply
    [ms, text, forced]       one token: the prose that became readable with it, and whether it was put in

Within a reply the times are those that were recorded. How long the person took to ask is not played: a question comes
soon after the answer before it. A reply of which no times are known is told whole. This module must never estimate a
time or a number of a reply.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from app.chat.conversation import MemoryEvent, Message
from app.chat.memory_events import event_of
from app.chat.parts import Parts
from app.chat.transcript import ToolSegment
from app.chat.views import edges_of, message_event
from app.engine.messages import ToolState

EDGE_LETTERS = {"none": "-", "reused": "u", "read": "r", "written": "w"}
PAUSE_MS = 700  # before a question, and before its answer begins


def script_of(messages: Sequence[Message], timelines: dict[str, list[dict]], events: Sequence[MemoryEvent]) -> list[list]:
    """`messages` are those that the chat goes on with; what stands beside them is not played."""
    script, now, waiting = [], 0, list(events)
    for index, message in enumerate(messages):
        now += PAUSE_MS if index else 0  # the first question is there from the start
        if not message.is_reply:
            script.append([now, message_event(message, edge="read")])
            continue
        until_s = messages[index + 1].created_s if index + 1 < len(messages) else float("inf")
        own, waiting = _split(waiting, lambda event, until_s=until_s: event.created_s < until_s)
        runs = timelines.get(message.id, [])
        played = list(_with_memory_events(_played(message, runs, messages[:index + 1]), own, message.created_s))
        script += [[now + at, *rest] for at, *rest in played]
        now += played[-1][0]
    return script


def _split(events: list[MemoryEvent], is_first) -> tuple[list[MemoryEvent], list[MemoryEvent]]:
    return [event for event in events if is_first(event)], [event for event in events if not is_first(event)]


def _with_memory_events(played: Iterator[list], events: list[MemoryEvent], began_s: float) -> Iterator[list]:
    """What happened to the memory, where it happened: not before the reply begins, nor after it has ended."""
    waiting = [(max(0, round(1000 * (event.created_s - began_s))), event_of(event)) for event in events]
    played = list(played)
    for place, entry in enumerate(played):
        yield entry
        following = played[place + 1][0] if place + 1 < len(played) else float("inf")
        while waiting and waiting[0][0] < following:
            yield [entry[0], waiting.pop(0)[1]]


def _played(message: Message, runs: list[dict], so_far: Sequence[Message]) -> Iterator[list]:
    """One reply, its times counted from its beginning. `so_far` are the messages up to it."""
    yield [0, message_event(replace(message, segments=[], text="", reason=None), edge="written")]
    reply, now = _Reply(message), 0
    for run in runs:
        yield [now, {"type": "run", "message": message.id, "first": run["first"], "prompt": run["prompt"], "reused": run["reused"],
                     "use_cache": run["use_cache"], "cached": run["cached"], "limit": run["limit"], "model": run["model"]}]
        for at, *rest in reply.play(run):
            yield [now + at, *rest]
            if isinstance(rest[0], dict) and rest[0]["type"] == "reading" and rest[0]["done"] == run["prompt"]:
                yield [now + at, {"type": "edges", "edges": _letters(edges_of(so_far, (), run["cached"]), so_far)}]
        now += run["ended"]
    for event in reply.rest():
        yield [now, event]
    yield [now, {"type": "done", "message": message.id, "reason": message.reason or "interrupted", "text": message.error,
                 "stats": message.stats}]


def _letters(edges: dict[str, str], messages: Sequence[Message]) -> str:
    return "".join(EDGE_LETTERS[edges[message.id]] for message in messages)


class _Reply:
    """Its segments, given out in as many pieces as there were tokens."""

    def __init__(self, message: Message):
        self._id, self._masks = message.id, message.masks or []
        self._segments, self._place, self._offset = message.segments, 0, 0
        self._places_of_calls = [place for place, segment in enumerate(self._segments) if segment["type"] != "text"]
        self._calls_told = 0  # those before the place where it stands
        self._parts = Parts()

    def play(self, run: dict) -> Iterator[list]:
        calls, now = deque(run["calls"]), 0
        for at, done in run["reads"]:
            yield [at, {"type": "reading", "message": self._id, "done": done, "total": run["prompt"], "reused": run["reused"]}]
        for index, (delta, shown) in enumerate(zip(run["times"], run["shown"], strict=True)):
            while calls and calls[0][0] <= index:
                yield from ([now, event] for event in self._call(*calls.popleft()[1:]))
            now += delta
            text = self._take(shown)
            place = run["first"] + index
            yield [now, text, int(place < len(self._masks) and not self._masks[place])]
            yield from ([now, event] for event in self._blocks(self._parts.add_text(text) if text else []))
        for _, number, state in calls:
            yield from ([now, event] for event in self._call(number, state))

    def rest(self) -> Iterator[dict]:
        """What no token stands for: the end of a text that was held back, or a whole reply without times."""
        while self._place < len(self._segments):
            segment = self._segments[self._place]
            if segment["type"] == "text":
                yield from self._text_up_to_call()
            else:
                yield from self._call(self._calls_told, segment["state"])
        yield from self._blocks(self._parts.end_text())

    def _take(self, count: int) -> str:
        """So many characters of the prose; none of what stands behind a tool call that has not come yet."""
        if self._place >= len(self._segments) or self._segments[self._place]["type"] != "text":
            return ""
        text = self._segments[self._place]["text"]
        piece = text[self._offset:self._offset + count]
        self._offset += len(piece)
        return piece

    def _text_up_to_call(self) -> Iterator[dict]:
        """The prose up to the next tool call, whole."""
        if self._place < len(self._segments) and self._segments[self._place]["type"] == "text":
            text = self._take(len(self._segments[self._place]["text"]))
            self._place, self._offset = self._place + 1, 0
            if text:
                yield {"type": "token", "message": self._id, "text": text, "tokens": []}
                yield from self._blocks(self._parts.add_text(text))
        yield from self._blocks(self._parts.end_text())

    def _call(self, number: int, state: str) -> Iterator[dict]:
        if number >= len(self._places_of_calls):
            return
        place = self._places_of_calls[number]
        if self._place <= place:
            if self._place < place:
                yield from self._text_up_to_call()
            self._place, self._offset, self._calls_told = place + 1, 0, number + 1
        segment = ToolSegment.from_json(self._segments[place], number)
        if state == ToolState.WRITING.value:
            segment = ToolSegment(number)
        yield {**self._parts.set_call(replace(segment, state=state)), "type": "tool_call", "message": self._id}

    def _blocks(self, blocks: list[dict]) -> Iterator[dict]:
        for block in blocks:
            yield {**block, "message": self._id, "rest": self._parts.tail if block is blocks[-1] else ""}
