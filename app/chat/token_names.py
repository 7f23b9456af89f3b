"""What a token is called where people see it one by one.

A piece of a character is spelled as its bytes, never as U+FFFD; a special token has its name. This module must never
know where a token stands.
"""

from __future__ import annotations

from functools import lru_cache

from app.chat.detokenizer import token_text
from app.chat.transcript import SPECIAL_NAMES, special_id


class TokenNames:
    """`of(id)`: {"text"}, with `mark` true for a special token and `hex` for one that is no whole characters."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._decode_bytes = getattr(tokenizer, "decode_bytes", None)
        self._is_special = getattr(tokenizer, "is_special", None)
        self._nine = {special_id(tokenizer, name): name for name in SPECIAL_NAMES}
        self._known: dict[int, dict] = {}

    def of(self, id: int) -> dict:
        name = self._known.get(id)
        if name is None:
            name = self._known[id] = self._find(id)
        return name

    def _find(self, id: int) -> dict:
        if id >= self._tokenizer.get_vocab_size():  # in a file that was taken in
            return {"text": f"‹{id}›"}
        text = token_text(self._tokenizer, id)
        if self._is_special(id) if self._is_special else id in self._nine:
            return {"text": text or self._nine.get(id) or f"‹{id}›", "mark": True}
        if self._decode_bytes:
            spelled = self._decode_bytes([id])
            try:
                spelled.decode()
            except UnicodeDecodeError:
                return {"text": text, "hex": spelled.hex()}
        return {"text": text}

    def chances(self, chance: float | None, runners_up) -> dict:
        """How likely a sampled token was and what else might have stood there, as it is told; nothing of others."""
        if chance is None:
            return {}
        others = [{"id": id, **self.of(id), "chance": _short(share)} for id, share in runners_up]
        return {"chance": _short(chance), "runners_up": others}


@lru_cache(maxsize=2)
def names_of(tokenizer) -> TokenNames:
    """One for all replies, so that each token is spelled once."""
    return TokenNames(tokenizer)


def _short(chance: float) -> float:
    """Three digits that count: more than anybody can see."""
    return float(f"{chance:.3g}")
