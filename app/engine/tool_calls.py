"""The tool-call state machine of one reply.

    text --start mark--> expression --end mark--> evaluate --> output start, result, output end --> text
                                                     \\--refused--> text

What the model samples moves the machine; when an expression is complete, the calculator's answer is put
into the reply as its next tokens, forced rather than sampled. The output marks can never be sampled, so
a model cannot forge a result; a block cannot be opened inside a block, nor closed where none is open.

Marks differ by model family and come from the tokenizer by name. This module never draws a token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.engine.calculator import CalculatorError, evaluate
from app.engine.messages import Part, ToolCall, ToolState


@dataclass(frozen=True)
class ToolMarks:
    """The ids of the four marks in one model family."""
    expression_start: int
    expression_end: int
    output_start: int
    output_end: int

    @classmethod
    def of(cls, tokenizer) -> ToolMarks | None:
        """The marks that `tokenizer` knows; None where the family lacks one: it then has no tool."""
        names = ("<|python_start|>", "<|python_end|>", "<|output_start|>", "<|output_end|>")
        try:
            ids = [tokenizer.encode_special(name) for name in names]
        except (KeyError, ValueError):
            return None
        return None if any(token is None for token in ids) else cls(*ids)


class ToolCalls:
    """Follows one reply token by token and says which tokens are forced next.

    `forced` holds tokens that must be put in before anything is sampled again. `changes` holds the
    states of tool calls since it was last emptied, for whoever tells the page.
    """

    def __init__(self, marks: ToolMarks | None, encode: Callable[[str], list[int]],
                 decode: Callable[[list[int]], str], reply: str = ""):
        self._marks, self._encode, self._decode = marks, encode, decode
        self._call: ToolCall | None = None
        self._reply = reply
        self._next_index = 0
        self._state = Part.TEXT
        self._expression_ids: list[int] = []
        self._opened_at = 0
        self.forced: deque[int] = deque()
        self.changes: list[ToolCall] = []

    def banned_ids(self) -> tuple[int, ...]:
        """Ids that must not be sampled next."""
        if self._marks is None:
            return ()
        marks = self._marks
        senseless = marks.expression_start if self._state is Part.EXPRESSION else marks.expression_end
        return marks.output_start, marks.output_end, senseless

    def observe(self, token: int, index: int) -> Part:
        """Take the reply's `index`-th token, sampled or forced, and say what it belongs to."""
        marks = self._marks
        if marks is None:
            return Part.TEXT
        if self._state is Part.OUTPUT:
            return self._observe_output(token)
        if self._state is Part.EXPRESSION:
            if token == marks.expression_end:
                self._call = replace(self._call, written_tokens=self._call.written_tokens + 1,
                                     written_marks=self._call.written_marks + 1)
                self._evaluate()
                return Part.MARK
            self._expression_ids.append(token)
            self._call = replace(self._call, written_tokens=self._call.written_tokens + 1)
            return Part.EXPRESSION
        if token == marks.expression_start:
            self._state, self._expression_ids, self._opened_at = Part.EXPRESSION, [], index
            self._change(ToolCall(self._reply, self._next_index, ToolState.WRITING, written_tokens=1, written_marks=1))
            self._next_index += 1
            return Part.MARK
        return Part.TEXT

    def end(self) -> None:
        """The reply ended: a call that is still open, or whose result is not all in, stays unfinished."""
        if self._state is Part.EXPRESSION:
            self._call = replace(self._call, expression=self._decode(self._expression_ids))
        if self._state is not Part.TEXT:
            self._change(replace(self._call, state=ToolState.UNFINISHED))

    def kept_ids(self, ids: list[int]) -> list[int]:
        """What stands for the reply in later turns: an open expression is dropped, an open result completed."""
        if self._state is Part.EXPRESSION:
            return ids[:self._opened_at]
        return ids + list(self.forced)

    def _observe_output(self, token: int) -> Part:
        assert self.forced and self.forced[0] == token, f"token {token} is not the forced {list(self.forced)[:1]}"
        self.forced.popleft()
        is_mark = token in (self._marks.output_start, self._marks.output_end)
        self._call = replace(self._call, forced_tokens=self._call.forced_tokens + 1,
                             forced_marks=self._call.forced_marks + is_mark)
        if not self.forced:
            self._state = Part.TEXT
            self._change(replace(self._call, state=ToolState.DONE))
        return Part.MARK if is_mark else Part.OUTPUT

    def _evaluate(self) -> None:
        expression = self._decode(self._expression_ids)
        try:
            result = evaluate(expression)
        except CalculatorError as refusal:
            self._state = Part.TEXT
            self._change(replace(self._call, state=ToolState.REFUSED, expression=expression, reason=str(refusal),
                                 refusal={"sentence": refusal.sentence, "figures": refusal.figures}))
            return
        self._state = Part.OUTPUT
        self.forced.extend([self._marks.output_start, *self._encode(result), self._marks.output_end])
        self._change(replace(self._call, expression=expression, result=result))

    def _change(self, call: ToolCall) -> None:
        self._call = call
        self.changes.append(call)
