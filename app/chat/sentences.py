"""Sentences of the server: English, with `{slots}` for their figures.

A sentence and its figures are kept apart until it is told, so that the web's edge can tell it in the reader's
language: `app/translations` has each of them. What is stored is English, and is told as it is where it has no
translation.

    {tokens}          1,234
    {tokens:tokens}   1,234 tokens, and 1 token    (English alone: a translation writes its own word)
    {bytes:size}      7.19 MB
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

SLOT = re.compile(r"\{(\w+)(?::(size|tokens))?\}")


def sentence(text: str) -> str:
    """Marks an English sentence that is told from elsewhere, so that it is found and translated."""
    return text


Number = Callable[[float, int], str]  # a value, and how many digits stand behind the point


def english_number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def fill(text: str, figures: Mapping[str, object], number: Number = english_number) -> str:
    """With its figures in its slots, written by `number`. A slot without a figure stays as it is."""
    return SLOT.sub(lambda slot: _shown(figures[slot[1]], slot[2], number) if slot[1] in figures else slot[0], text)


def _shown(value: object, form: str | None, number: Number) -> str:
    if isinstance(value, str):
        return value
    if form == "size":
        return _size(value, number)
    written = number(value, 0 if value >= 10 else len(f"{value:.2g}".partition(".")[2]))  # two digits that count
    return written if form is None else f"{written} token" if value == 1 else f"{written} tokens"


def _size(count: float, number: Number) -> str:
    """Bytes in three digits that count: 7188480 is 7.19 MB, as on the page."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            break
        count /= 1000
    return f"{number(count, 0 if unit == 'B' or count >= 99.95 else 1 if count >= 9.995 else 2)} {unit}"
