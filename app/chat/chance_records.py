"""How likely each token of a reply was, as it is stored: 28 bytes a token, in the order of the reply's ids.

    float32 chance | 3 x float32 chance | 3 x uint32 id        of the token, then of its runners-up

A token that was not sampled has no chance (not a number), and a runner-up that there is none of no id. This module
must never know what is done with them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

_RECORD = struct.Struct("<4f3I")
_NO_ID = 2**32 - 1
EMPTY = _RECORD.pack(math.nan, 0, 0, 0, _NO_ID, _NO_ID, _NO_ID)


def pack(chance: float | None, runners_up: Sequence[tuple[int, float]]) -> bytes:
    if chance is None:
        return EMPTY
    padded = [*runners_up, (_NO_ID, 0.0), (_NO_ID, 0.0), (_NO_ID, 0.0)][:3]
    return _RECORD.pack(chance, *(share for _, share in padded), *(id for id, _ in padded))


def fit(records: bytes, count: int) -> bytes:
    """Those of the first `count` tokens; none is known of tokens behind the last."""
    return bytes(records[:count * _RECORD.size]) + EMPTY * (count - len(records) // _RECORD.size)


def unpack(records: bytes, index: int) -> tuple[float | None, list[tuple[int, float]]]:
    """`chance` and `runners_up` of one token of the reply; None and [] where they are not known."""
    if (index + 1) * _RECORD.size > len(records):
        return None, []
    chance, *others = _RECORD.unpack_from(records, index * _RECORD.size)
    if not 0 <= chance <= 1:  # nor is what a file may hold besides: it could not be told as a number
        return None, []
    return chance, [(id, share) for share, id in zip(others[:3], others[3:], strict=True) if id != _NO_ID and 0 <= share <= 1]
