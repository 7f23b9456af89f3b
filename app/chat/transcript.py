"""What a reply says: engine events to prose and tool calls.

A transcript follows one reply. Marks and whatever stands inside a tool block never become prose; the
calls themselves are segments of their own, between the prose before and after. It serves the page and
the terminal alike, so it must never know of HTML, a database or a socket.

    segments: [{"type": "text", "text": "123 × 456 is "},
               {"type": "tool_call", "expression": "123*456", "result": "56088", "state": "done", ...},
               {"type": "text", "text": "."}]
"""

from __future__ import annotations

from dataclasses import dataclass

from app.chat.detokenizer import Detokenizer
from app.engine.messages import Finished, Part, ToolCall, Tokens, ToolState

SPECIAL_NAMES = ("<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>", "<|assistant_end|>",
                 "<|python_start|>", "<|python_end|>", "<|output_start|>", "<|output_end|>")


def special_id(tokenizer, name: str) -> int | None:
    """The family's id for one of the nine names; None where it has none."""
    try:
        return tokenizer.encode_special(name)
    except (KeyError, ValueError):
        return None


@dataclass
class TextSegment:
    pieces: list[str]

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def as_json(self) -> dict:
        return {"type": "text", "text": self.text}


@dataclass
class ToolSegment:
    """`number` counts the tool calls of the reply from 0."""
    number: int
    state: str = ToolState.WRITING.value
    expression: str = ""
    result: str | None = None
    reason: str | None = None
    written_tokens: int = 0
    forced_tokens: int = 0
    written_marks: int = 0       # how many of the written ones are marks; 0 of a call from before marks were counted
    forced_marks: int = 0
    refusal: dict | None = None  # the reason as a sentence with slots, and its figures

    @classmethod
    def from_json(cls, segment: dict, number: int) -> ToolSegment:
        return cls(number, **{name: value for name, value in segment.items() if name != "type"})

    def as_json(self) -> dict:
        return {"type": "tool_call", "state": self.state, "expression": self.expression, "result": self.result,
                "reason": self.reason, "written_tokens": self.written_tokens, "forced_tokens": self.forced_tokens,
                "written_marks": self.written_marks, "forced_marks": self.forced_marks,
                **({"refusal": self.refusal} if self.refusal else {})}


class Transcript:
    """`take` an engine event -> the prose that it made readable; `segments` is all of it so far.

    A reply that goes on is given the `segments` it had and `ids`, those of its last prose: half a character
    at its end can then still be completed.
    """

    def __init__(self, tokenizer, segments: list[dict] = (), ids: list[int] = ()):
        self._detokenizer = Detokenizer(tokenizer)
        self._is_special = getattr(tokenizer, "is_special", None) or _nine_specials(tokenizer)
        self._tokenizer = tokenizer
        self.segments: list[TextSegment | ToolSegment] = []
        self._first_call = 0
        for segment in segments:
            self.segments.append(_segment_from_json(segment, self._first_call))
            self._first_call += isinstance(self.segments[-1], ToolSegment)
        if ids and self.segments and isinstance(self.segments[-1], TextSegment):
            self.segments[-1].pieces[:] = [self._detokenizer.feed([id for id in ids if not self._is_special(id)])]

    @property
    def text(self) -> str:
        """All of the prose, without the tool calls."""
        return "".join(segment.text for segment in self.segments if isinstance(segment, TextSegment))

    def as_json(self) -> list[dict]:
        return [segment.as_json() for segment in self.segments if isinstance(segment, ToolSegment) or segment.text]

    def take(self, event) -> str:
        """Events of one reply, in order. The prose of a ToolCall or Finished is what was held back before it."""
        if isinstance(event, Tokens):
            prose = [token.id for token in event.tokens if token.part is Part.TEXT and not self._is_special(token.id)]
            return self._add_text(self._detokenizer.feed(prose))
        if isinstance(event, ToolCall):
            return self._take_call(event)
        if isinstance(event, Finished):
            return self._add_text(self._detokenizer.flush())
        return ""

    def call(self, event: ToolCall) -> ToolSegment:
        """The segment of a tool call that was taken."""
        number = self._first_call + event.index
        calls = (segment for segment in self.segments if isinstance(segment, ToolSegment))
        return next(call for call in calls if call.number == number)

    def _take_call(self, event: ToolCall) -> str:
        prose = ""
        number = self._first_call + event.index
        if number >= self._number_of_calls():
            prose = self._add_text(self._detokenizer.flush())
            self.segments.append(ToolSegment(number))
        segment = self.call(event)
        segment.state, segment.expression = event.state.value, event.expression
        segment.result, segment.reason, segment.refusal = event.result, event.reason, event.refusal
        segment.written_tokens, segment.forced_tokens = event.written_tokens, event.forced_tokens
        segment.written_marks, segment.forced_marks = event.written_marks, event.forced_marks
        return prose

    def _add_text(self, text: str) -> str:
        if text:
            if not self.segments or isinstance(self.segments[-1], ToolSegment):
                self.segments.append(TextSegment([]))
            self.segments[-1].pieces.append(text)
        return text

    def _number_of_calls(self) -> int:
        return sum(isinstance(segment, ToolSegment) for segment in self.segments)


def _segment_from_json(segment: dict, number: int) -> TextSegment | ToolSegment:
    if segment["type"] == "text":
        return TextSegment([segment["text"]])
    return ToolSegment.from_json(segment, number)


def _nine_specials(tokenizer):
    ids = {special_id(tokenizer, name) for name in SPECIAL_NAMES} - {None}
    return ids.__contains__
