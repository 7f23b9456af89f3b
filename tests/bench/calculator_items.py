"""The questions of the calculator's evaluation, as they lie in `calculator_set/`, and what is right for each.

    sums.json, counts.json   {"question", "expression", "answer", "system"?}
    ordinary.json            {"question", "system"?, "expect"?}       no calculator; any of `expect` has to be said
    two_turns.json           {"turns": [{"question", "expression", "answer"}, …]}   null where no tool belongs
    refusals.json            {"question", "expression"}               the calculator refuses this expression

The set is written by hand and apart from what any model is trained on, and must stay so. `answer` is the
calculator's own result for `expression`, which is one way to work it out, not the only one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from tests.bench.calculator_judge import numbers

FOLDER = Path(__file__).parent / "calculator_set"
KINDS = ("sums", "counts", "two_turns", "ordinary", "refusals")


@dataclass(frozen=True)
class Turn:
    question: str
    expression: str | None = None
    answer: str | None = None


@dataclass(frozen=True)
class Item:
    kind: str
    turns: tuple[Turn, ...]
    system: str | None = None
    expect: tuple[str, ...] = ()

    def given(self, turn: int) -> set[Decimal]:
        """The numbers that an answer to this turn may repeat: all that was asked or answered up to it."""
        known = [each.answer for each in self.turns[:turn]]
        for each in self.turns[:turn + 1]:
            known += [each.question, each.expression]
        return {number for text in known if text for number in numbers(text)}


def items_of(kind: str, limit: int | None = None) -> list[Item]:
    """All of a kind, or `limit` that are spread evenly over them."""
    rows = json.loads((FOLDER / f"{kind}.json").read_text("utf-8"))
    if limit is not None and limit < len(rows):
        rows = [rows[place * len(rows) // limit] for place in range(limit)]
    return [_item(kind, row) for row in rows]


def _item(kind: str, row: dict) -> Item:
    turns = row.get("turns") or [{name: row[name] for name in ("question", "expression", "answer") if name in row}]
    return Item(kind, tuple(Turn(**turn) for turn in turns), row.get("system"), tuple(row.get("expect", ())))
