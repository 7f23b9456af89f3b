"""Cuts Markdown into finished blocks while it is being written.

A block (paragraph, list, table, code fence, …) is finished when nothing that comes later can change how
it looks; it can then be rendered once and never again. Every line is looked at once, so a long answer
costs time in proportion to its length. Where it is unclear whether a block goes on, it goes on: the
renderer decides, and only a cut in the wrong place could be wrong.

How text is cut does not depend on the pieces in which it came.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")


class BlockSplitter:
    """`feed` gives the sources of the blocks that were finished; `tail` is the block being written."""

    def __init__(self):
        self._lines: list[str] = []    # of the block being written, complete
        self._line: list[str] = []     # pieces of the line being written
        self._fence = ""               # the marks that opened a code block which is still open
        self._has_list = False         # a line of the block begins a list item
        self._after_blank = False      # the last complete line of a list or indented code was empty

    @property
    def tail(self) -> str:
        return "".join(self._lines + self._line)

    def feed(self, text: str) -> list[str]:
        finished: list[str] = []
        *complete, rest = text.split("\n")
        for end_of_line in complete:
            self._line.append(end_of_line)
            line = "".join(self._line)
            self._line.clear()
            self._take_line(line, finished)
        if rest:
            self._line.append(rest)
        return finished

    def finish(self) -> list[str]:
        """The text ended: what is left is a block, if there is anything in it."""
        finished: list[str] = []
        line = "".join(self._line)
        self._line.clear()
        if line:
            self._take_line(line, finished)
        self._end_block(finished)
        self._fence = ""
        return finished

    def _take_line(self, line: str, finished: list[str]) -> None:
        if self._fence:
            self._lines.append(line + "\n")
            if self._closes_fence(line):
                self._end_block(finished)
        elif not line.strip():
            self._take_blank(finished)
        else:
            if self._ends_before(line):
                self._end_block(finished)
            fence = _FENCE.match(line)
            if fence and not self._lines:
                self._fence = fence.group(1)
            self._lines.append(line + "\n")
            self._has_list = self._has_list or bool(_LIST_ITEM.match(line)) and not self._fence
            self._after_blank = False
            if _HEADING.match(line) and len(self._lines) == 1:
                self._end_block(finished)

    def _take_blank(self, finished: list[str]) -> None:
        if self._lines and (self._has_list or self._is_indented(self._lines[0])):
            self._lines.append("\n")  # may go on after an empty line
            self._after_blank = True
        else:
            self._end_block(finished)

    def _ends_before(self, line: str) -> bool:
        """Whether a line that is not empty begins a new block."""
        if not self._lines:
            return False
        if self._has_list:
            if line[0] in " \t":
                return False
            is_other_block = bool(_FENCE.match(line) or _HEADING.match(line))
            return is_other_block or (self._after_blank and not _LIST_ITEM.match(line))
        if self._is_indented(self._lines[0]):
            return self._after_blank and not self._is_indented(line)
        return bool(_FENCE.match(line) or _HEADING.match(line))

    def _closes_fence(self, line: str) -> bool:
        marks = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        is_long_enough = len(marks) >= len(self._fence) and not marks.strip(self._fence[0])
        return len(self._lines) > 1 and indent <= 3 and is_long_enough

    def _end_block(self, finished: list[str]) -> None:
        source = "".join(self._lines)
        if source.strip():
            finished.append(source)
        self._lines.clear()
        self._fence, self._has_list, self._after_blank = "", False, False

    @staticmethod
    def _is_indented(line: str) -> bool:
        return line.startswith(("    ", "\t"))
