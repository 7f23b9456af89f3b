"""What people and programs send: JSON and text without half characters, limits, and a title made from a question."""

from __future__ import annotations

import json
from unicodedata import category

from app.chat.errors import ChatError

MAX_TEXT_BYTES = 2 * 2**20  # longer texts are refused uncounted
MAX_TITLE_CHARACTERS = 200
# drawn as nothing, though Unicode counts them as letters, marks or symbols: fillers, joiners, variation selectors
BLANK_CHARACTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0"
                             + "".join(map(chr, range(0xFE00, 0xFE10))))
TITLE_CHARACTERS = 60       # of a title made from a question


def clean(text: str) -> str:
    """Half a surrogate pair, which JavaScript can send, is no character: it becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_json(text: str | bytes) -> object:
    """What the JSON says, with every text in it clean. Raises ValueError for what is none, or too deep to be read."""
    try:
        return _clean_all(json.loads(text))
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _clean_all(value: object) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_all(each) for each in value]
    if isinstance(value, dict):
        return {clean(name): _clean_all(each) for name, each in value.items()}
    return value


def is_blank(text: str) -> bool:
    """Whether nothing of it can be seen. The page has the same rule, in static/js/blank.js."""
    return all(character.isspace() or character in BLANK_CHARACTERS or category(character) in ("Cc", "Cf", "Zl", "Zp")
               for character in text)


def check_text(text: str) -> str:
    """A question as it may be stored. Raises ChatError for one with nothing in it or far too much."""
    text = clean(text)
    if is_blank(text):
        raise ChatError("empty", "There is nothing to answer: the message is empty.")
    size_bytes = len(text.encode())
    if size_bytes > MAX_TEXT_BYTES:
        raise ChatError("too_long", "This is too long: {bytes} bytes, and a message may have {limit_bytes} at most.",
                        bytes=size_bytes, limit_bytes=MAX_TEXT_BYTES)
    return text


def title_of(question: str) -> str:
    """The beginning of the question, cut between words."""
    words = " ".join(question[:20 * TITLE_CHARACTERS].split())
    if len(words) <= TITLE_CHARACTERS:
        return words
    cut = words[:TITLE_CHARACTERS]
    return (cut.rpartition(" ")[0] if " " in cut[TITLE_CHARACTERS // 2:] else cut).rstrip(" ,.;:-") + "…"
