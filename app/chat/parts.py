"""A reply as a page shows it: finished blocks of HTML and tool calls, under one running index.

    0 block      <p>123 × 456 is</p>
    1 tool_call  123*456 = 56088
    2 block      <p>Together they eat …</p>
      tail       "That is quite a fea"      being written, still text

The same parts come out of a reply while it is written and of a stored one, so it looks the same live and
after a reload.
"""

from __future__ import annotations

from markupsafe import Markup

from app.chat.block_splitter import BlockSplitter
from app.chat.markdown import render_block
from app.chat.transcript import ToolSegment


class Parts:
    def __init__(self):
        self.parts: list[dict] = []
        self._splitter = BlockSplitter()
        self._place_of_call: dict[int, int] = {}

    @classmethod
    def of(cls, segments: list[dict], is_finished: bool = True) -> Parts:
        """Of a stored reply; one that is not finished may go on with its last text."""
        parts = cls()
        for segment in segments:
            if segment["type"] == "text":
                parts.add_text(segment["text"])
            else:
                parts.end_text()
                parts.set_call(ToolSegment.from_json(segment, number=len(parts._place_of_call)))
        if is_finished:
            parts.end_text()
        return parts

    @property
    def tail(self) -> str:
        return self._splitter.tail

    @property
    def html(self) -> Markup:
        """All blocks. Tool calls are not in it: a page makes them from their part."""
        return Markup("").join(part["html"] for part in self.parts if part["type"] == "block")

    def add_text(self, text: str) -> list[dict]:
        """The blocks that it finished."""
        return self._add_blocks(self._splitter.feed(text))

    def end_text(self) -> list[dict]:
        """No more text comes, or a tool call comes first: what is left is a block."""
        return self._add_blocks(self._splitter.finish())

    def set_call(self, call: ToolSegment) -> dict:
        """The part of a tool call, new or in its new state."""
        index = self._place_of_call.setdefault(call.number, len(self.parts))
        part = {**call.as_json(), "index": index}
        self.parts[index:index + 1] = [part]
        return part

    def _add_blocks(self, sources: list[str]) -> list[dict]:
        blocks = []
        for source in sources:
            html = render_block(source)
            if html:
                blocks.append({"type": "block", "index": len(self.parts), "html": Markup(html)})
                self.parts.append(blocks[-1])
        return blocks
