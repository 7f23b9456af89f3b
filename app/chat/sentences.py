"""Sentences of the server: English, with `{slots}` for their figures.

A sentence and its figures are kept apart until it is told, so that the web's edge can tell it in the reader's
language: `app/translations` has each of them. What is stored is English, and is told as it is where it has no
translation. Numbers are written alike in all our languages, so a slot is filled here, once for all of them.

    {tokens}          1,234
    {tokens:tokens}   1,234 tokens, and 1 token    (English alone: a translation writes its own word)
    {bytes:size}      7.19 MB
"""

from __future__ import annotations

import re
from collections.abc import Mapping

SLOT = re.compile(r"\{(\w+)(?::(size|tokens))?\}")


def sentence(text: str) -> str:
    """Marks an English sentence that is told from elsewhere, so that it is found and translated."""
    return text


def fill(text: str, figures: Mapping[str, object]) -> str:
    """With its figures in its slots. A slot without a figure stays as it is."""
    return SLOT.sub(lambda slot: _shown(figures[slot[1]], slot[2]) if slot[1] in figures else slot[0], text)


def _shown(value: object, form: str | None) -> str:
    if isinstance(value, str):
        return value
    if form == "size":
        return size(value)
    number = f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
    if form == "tokens":
        return f"{number} token" if value == 1 else f"{number} tokens"
    return number


def size(count: int) -> str:
    """Bytes in three digits that count: 7188480 is 7.19 MB, as on the page."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            break
        count /= 1000
    digits = 0 if unit == "B" or count >= 99.95 else 1 if count >= 9.995 else 2
    return f"{count:.{digits}f} {unit}"
