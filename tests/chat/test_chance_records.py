"""How likely tokens were is stored and read back, and a file can put nothing into it that is no likelihood."""

import math
import struct

import pytest

from app.chat.chance_records import EMPTY, fit, pack, unpack

RECORD = struct.Struct("<4f3I")


def test_what_was_stored_is_read_back():
    records = pack(0.5, [(7, 0.25), (8, 0.125)]) + pack(None, [])
    assert unpack(records, 0) == (0.5, [(7, 0.25), (8, 0.125)])
    assert unpack(records, 1) == (None, [])
    assert unpack(records, 2) == (None, [])


@pytest.mark.parametrize("share", [math.inf, -math.inf, math.nan, 1.5, -0.25])
def test_what_is_no_likelihood_is_not_known(share):
    assert unpack(RECORD.pack(share, 0.5, 0.25, 0.125, 1, 2, 3), 0) == (None, [])
    assert unpack(RECORD.pack(0.5, share, 0.25, 0.125, 1, 2, 3), 0) == (0.5, [(2, 0.25), (3, 0.125)])


def test_records_are_as_many_as_the_tokens():
    records = pack(0.5, []) + pack(0.25, [])
    assert fit(records, 1) == pack(0.5, [])
    assert fit(records, 3) == records + EMPTY
