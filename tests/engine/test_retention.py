"""Rows kept between turns: longest shared prefix, cut, evict."""

import pytest

from app.engine.kv_cache import KVCache
from app.engine.messages import Evicted
from app.engine.retention import Retention, shared_prefix_length


def retention(rows=2, seq_len=32):
    return Retention(KVCache(rows, 1, seq_len, 2, 1))


def turn(rows, conversation, prompt, reply):
    """One whole turn: what is reused, and the row kept with all but the last token."""
    lease = rows.acquire(conversation, prompt)
    ids = prompt + reply
    rows.cache.cache_seqlens[lease.row] = len(ids) - 1
    rows.release(lease.row, conversation, ids)
    rows.check()
    return lease


@pytest.mark.parametrize("a, b, length", [([], [1], 0), ([1, 2], [1, 2], 2), ([1, 2, 3], [1, 2], 2), ([1, 2], [1, 3], 1),
                                          ([5], [6], 0), ((1, 2, 3), [1, 2, 3, 4], 3)])
def test_the_shared_prefix_is_counted(a, b, length):
    assert shared_prefix_length(a, b) == shared_prefix_length(b, a) == length


def test_the_next_turn_reuses_all_stored_tokens_but_the_last():
    rows = retention()
    assert turn(rows, "a", [1, 2, 3], [4, 5]).reused == 0
    assert turn(rows, "a", [1, 2, 3, 4, 5, 6, 7], [8]).reused == 4


def test_a_prompt_that_is_wholly_stored_reads_its_last_token_again():
    rows = retention()
    turn(rows, "a", [1, 2, 3], [4, 5])
    assert turn(rows, "a", [1, 2, 3, 4], [9]).reused == 3
    assert turn(rows, "a", [1], [9]).reused == 0


def test_a_change_cuts_the_row_at_the_first_difference():
    rows = retention()
    turn(rows, "a", [1, 2, 3], [4, 5])
    lease = rows.acquire("a", [1, 2, 9, 4, 5])
    assert lease.reused == 2 and rows.cache.lengths()[lease.row] == 2


def test_no_conversation_reuses_what_another_has_read():
    rows = retention(rows=1)
    turn(rows, "a", [1, 2, 3], [4])
    lease = rows.acquire("b", [1, 2, 3])
    assert lease.reused == 0 and rows.cache.lengths() == [0]
    assert rows.events == [Evicted("a", 3)] and rows.evictions == 1


def test_the_least_recently_used_kept_row_goes_and_live_rows_never():
    rows = retention(rows=3)
    for name in "abc":
        turn(rows, name, [1, 2], [3])
    turn(rows, "a", [1, 2, 3, 4], [5])
    live = rows.acquire("c", [1, 2])
    assert rows.acquire("d", [7]) and rows.events[-1].conversation == "b"
    assert rows.acquire("e", [7]) and rows.events[-1].conversation == "a"
    assert rows.acquire("f", [7]) is None
    rows.check()
    rows.discard(live.row)
    assert rows.acquire("f", [7]).row == live.row


def test_forgetting_frees_the_row_at_once():
    rows = retention()
    turn(rows, "a", [1, 2, 3], [4])
    rows.forget("a")
    rows.forget("nobody")
    assert rows.rows_used == 0 and rows.kept_tokens() == {} and rows.cache.lengths() == [0, 0]
    rows.check()


def test_a_row_in_which_nothing_was_read_is_free_again():
    rows = retention()
    lease = rows.acquire("a", [1, 2, 3])
    rows.release(lease.row, "a", [1, 2, 3])
    assert rows.rows_used == 0
    rows.check()


def test_the_check_sees_a_row_that_is_lost_or_of_the_wrong_length():
    rows = retention()
    turn(rows, "a", [1, 2, 3], [4])
    rows.cache.cache_seqlens[0] += 1
    rows.cache.cache_seqlens[1] += 1
    with pytest.raises(AssertionError, match="holds 4 tokens, not 3"):
        rows.check()
    rows = retention()
    rows._free.pop()
    with pytest.raises(AssertionError, match="do not make 2 rows"):
        rows.check()
