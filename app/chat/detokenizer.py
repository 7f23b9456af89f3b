"""Token ids to text, as they come: whole characters only.

A token may end in the middle of a character: an emoji can be four tokens. What is given out never ends in
half a character; the half waits for the rest. All that is given out, put together, is exactly what
`tokenizer.decode` makes of all the ids. This module must never know what a token means.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
LONGEST_UNSETTLED_IDS = 64


class Detokenizer:
    """`feed` gives the text that became certain with these ids; `flush`, at the end, what is left of it.

    Half a character at the end is one U+FFFD, as in `decode`. Uses the tokenizer's `decode_bytes` where it
    has one; else only `decode`.
    """

    def __init__(self, tokenizer):
        decode_bytes = getattr(tokenizer, "decode_bytes", None)
        self._decoder = _ByBytes(decode_bytes) if decode_bytes else _ByText(tokenizer.decode)

    def feed(self, ids: Sequence[int]) -> str:
        return self._decoder.feed(ids) if ids else ""

    def flush(self) -> str:
        return self._decoder.flush()


class _ByBytes:
    def __init__(self, decode_bytes: Callable[[Sequence[int]], bytes]):
        self._decode_bytes = decode_bytes
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, ids):
        return self._utf8.decode(self._decode_bytes(ids))

    def flush(self):
        return self._utf8.decode(b"", final=True)


class _ByText:
    """Through `decode` alone: a U+FFFD at the very end may be half a character, so it is held back.

    Decodes a window of ids, of which the first are known already. They stay in it, since some tokenizers
    treat the beginning of a text in a way of its own (a leading space that is dropped).
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]):
        self._decode = decode
        self._window: list[int] = []
        self._given = 0  # characters of the window's text that were given out

    def feed(self, ids):
        self._window.extend(ids)
        text = self._decode(self._window)
        settled = text[:-1] if text.endswith(REPLACEMENT) else text
        new = settled[self._given:]
        self._given = max(self._given, len(settled))
        if settled == text:
            self._begin_window(list(ids), text)
        elif len(self._window) > LONGEST_UNSETTLED_IDS:
            self._begin_window(self._window[-LONGEST_UNSETTLED_IDS // 2:], text)
        return new

    def flush(self):
        text = self._decode(self._window) if self._window else ""
        new = text[self._given:]
        self._window, self._given = [], 0
        return new

    def _begin_window(self, ids: list[int], text: str) -> None:
        """Go on with these last ids only, if they alone give the end of the same text."""
        tail = self._decode(ids)
        held_back = len(text) - self._given
        if text.endswith(tail) and len(tail) >= held_back:
            self._window, self._given = ids, len(tail) - held_back


def token_text(tokenizer, id: int) -> str:
    """One token for a person to read. A piece of a character is spelled as bytes, `\\xf0\\x9f`; where the
    tokenizer does not tell its bytes, as the token's number. Never U+FFFD, unless the token is just that."""
    decode_bytes = getattr(tokenizer, "decode_bytes", None)
    if decode_bytes:
        return decode_bytes([id]).decode("utf-8", errors="backslashreplace")
    text = tokenizer.decode([id])
    return f"‹{id}›" if REPLACEMENT in text else text
