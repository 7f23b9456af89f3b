"""The sentences that questions are made of, a file a kind, a form a line. `{slots}` are filled in by whoever asks.

    stories.txt        QUESTION|EXPRESSION|WORD FOR WHAT COMES OUT   of [one/another] one is taken; slots in word_problems.py
    follow_ups.txt     QUESTION|EXPRESSION   {r} is the result so far
    percents.txt       QUESTION|EXPRESSION
    openings.txt       ways to ask for {sum}
    letter_counts.txt  ways to ask how many {l} are in {w}
    prompts.txt        what people say to a chat where a calculator has no place

Nothing of tests/bench/calculator_set may stand here. This module must never fill a slot.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def lines_of(name: str) -> tuple[str, ...]:
    return tuple((Path(__file__).parent / f"{name}.txt").read_text("utf-8").splitlines())


@cache
def forms_of(name: str) -> tuple[tuple[str, ...], ...]:
    """The lines, each split at its bars."""
    return tuple(tuple(line.split("|")) for line in lines_of(name))
