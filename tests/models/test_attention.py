"""Attention against its definition: one query at a time, keys repeated, nothing folded."""

import random

import pytest
import torch

from app.engine import KVCache
from app.models import attention
from app.models.attention import attend
from app.models.cache_views import cut

SIZES = [(4, 4), (6, 2), (3, 1), (9, 3)]  # query heads, KV heads


def plain(q, k, v, start, window):
    """q (T, H, D) at positions start.., k and v (S, G, D) -> (T, H, D)."""
    rows = []
    for t in range(q.shape[0]):
        position = start + t
        first = 0 if window is None else max(0, position - window)
        heads = []
        for h in range(q.shape[1]):
            g = h // (q.shape[1] // k.shape[1])
            weights = (k[first:position + 1, g] @ q[t, h] / q.shape[2]**0.5).softmax(0)
            heads.append(weights @ v[first:position + 1, g])
        rows.append(torch.stack(heads))
    return torch.stack(rows)


def random_qkv(num_rows, num_new, num_heads, num_kv_heads, head_dim=8, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return [torch.randn(num_rows, num_new, heads, head_dim, generator=rng)
            for heads in (num_heads, num_kv_heads, num_kv_heads)]


@pytest.mark.parametrize("window", [None, 1, 3, 8, 40])
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), SIZES)
def test_rows_of_any_length_see_what_their_window_says(num_heads, num_kv_heads, window):
    cache = KVCache(3, num_kv_heads, 64, 8, 2)
    stored = [[], [], []]
    steps = [([0], 7), ([1], 1), ([0, 1], 5), ([0, 1, 2], 1), ([2], 11), ([0, 1, 2], 4), ([1, 2], 1), ([0, 2], 1), ([2, 0], 3)]
    for step, (rows, num_new) in enumerate(steps):
        q, k, v = random_qkv(len(rows), num_new, num_heads, num_kv_heads, seed=step)
        chosen = cache.select(rows)
        starts = chosen.positions_for(num_new)
        y = attend(q, k, v, cut(chosen, starts, num_new), 1, window)
        chosen.advance(num_new)
        for place, row in enumerate(rows):
            stored[row].append((k[place], v[place]))
            keys, values = (torch.cat(each) for each in zip(*stored[row]))
            truth = plain(q[place], keys, values, starts[place], window)
            torch.testing.assert_close(y[place], truth, rtol=0, atol=1e-5)


@pytest.mark.parametrize("window", [None, 2, 30])
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), SIZES)
def test_without_a_cache_the_new_tokens_are_all_there_is(num_heads, num_kv_heads, window):
    q, k, v = random_qkv(2, 17, num_heads, num_kv_heads)
    y = attend(q, k, v, window=window)
    for row in range(2):
        torch.testing.assert_close(y[row], plain(q[row], k[row], v[row], 0, window), rtol=0, atol=1e-5)


def test_a_window_of_eight_sees_the_last_nine_of_thirty_four_keys():
    cache = KVCache(1, 1, 40, 4, 1)
    q, k, v = random_qkv(1, 34, 1, 1, head_dim=4)
    attend(q[:, :33], k[:, :33], v[:, :33], cut(cache, [0], 33), 0, 8)
    cache.advance(33)
    cache.k_cache[:, :, :25] = float("nan")  # positions 0 to 24 are out of sight of position 33
    cache.v_cache[:, :, :25] = float("nan")
    y = attend(q[:, 33:], k[:, 33:], v[:, 33:], cut(cache, [33], 1), 0, 8)
    torch.testing.assert_close(y[0], plain(q[0, 33:], k[0], v[0], 33, 8), rtol=0, atol=1e-5)
    cache.v_cache[:, :, 25] = float("nan")  # position 25 is in sight
    assert attend(q[:, 33:], k[:, 33:], v[:, 33:], cut(cache, [33], 1), 0, 8).isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [*SIZES, (8, 2), (10, 2)])
def test_a_single_query_is_answered_alike_in_every_type(num_heads, num_kv_heads, dtype):
    q, _, _ = (each.to(dtype) for each in random_qkv(2, 1, num_heads, num_kv_heads))
    _, k, v = (each.to(dtype) for each in random_qkv(2, 50, num_heads, num_kv_heads, seed=1))
    cache = KVCache(2, num_kv_heads, 60, q.shape[-1], 1, dtype=dtype)
    attend(k[:, :49].repeat_interleave(num_heads // num_kv_heads, 2), k[:, :49], v[:, :49], cut(cache, [0, 0], 49))
    cache.advance(49)
    y = attend(q, k[:, 49:], v[:, 49:], cut(cache, [49, 49], 1))
    for row in range(2):
        truth = plain(q[row].float(), k[row].float(), v[row].float(), 49, None)
        torch.testing.assert_close(y[row].float(), truth, rtol=0.02, atol=0.01)


@pytest.mark.parametrize("window", [None, 100, 590])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("new", [3, 24, 43])  # few of them and many are not summed up in the same way
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), SIZES)
def test_a_piece_of_a_text_sees_many_keys_as_it_sees_few(num_heads, num_kv_heads, new, dtype, window):
    stored = 600
    cache = KVCache(3, num_kv_heads, 700, 8, 1, dtype=dtype)
    q, k, v = (each.to(dtype) for each in random_qkv(3, stored + new, num_heads, num_kv_heads, head_dim=8))
    attend(q[:, :stored], k[:, :stored], v[:, :stored], cut(cache, [0, 0, 0], stored), 0, window)
    cache.advance(stored)
    y = attend(q[:, stored:], k[:, stored:], v[:, stored:], cut(cache, [stored] * 3, new), 0, window)
    for row in range(3):
        truth = plain(q[row, stored:].float(), k[row].float(), v[row].float(), stored, window)
        torch.testing.assert_close(y[row].float(), truth, rtol=0.02, atol=0.01)


@pytest.mark.parametrize("new", [5, 27])
def test_a_piece_of_a_text_comes_out_the_same_on_any_number_of_threads(new):
    q, _, _ = (each.bfloat16() for each in random_qkv(1, new, 9, 3, head_dim=64))
    _, k, v = (each.bfloat16() for each in random_qkv(1, 1500, 9, 3, head_dim=64, seed=1))
    mask = attention._mask(new, 1500, None, torch.bfloat16, q.device)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 4):
            torch.set_num_threads(threads)
            found.append(attention._attend_to_many(q, k.transpose(1, 2), v.transpose(1, 2), mask, None))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(each, found[0]) for each in found)


def test_keys_and_values_lie_where_they_were_written_and_nowhere_else():
    cache = KVCache(2, 2, 10, 4, 2)
    q, k, v = random_qkv(2, 3, 4, 2, head_dim=4)
    attend(q, k, v, cut(cache, [0, 5], 3), 1)
    for row, start in ((0, 0), (1, 5)):
        assert torch.equal(cache.k_cache[1, row, start:start + 3], k[row])
        assert torch.equal(cache.v_cache[1, row, start:start + 3], v[row])
    assert cache.k_cache.count_nonzero() == k.count_nonzero() and cache.v_cache.count_nonzero() == v.count_nonzero()


def test_rows_side_by_side_at_one_position_are_attended_to_together_and_others_alone():
    cache = KVCache(5, 1, 10, 4, 1)
    cache.cache_seqlens[:] = torch.tensor([3, 3, 0, 3, 3])

    def sizes(chosen):
        return [(group.first, group.count) for group in cut(chosen, chosen.lengths(), 2).groups]

    assert sizes(cache) == [(0, 2), (2, 1), (3, 2)]
    assert sizes(cache.select([0, 1])) == [(0, 2)]
    assert sizes(cache.select([0, 3])) == [(0, 1), (1, 1)]  # equally long, but not side by side
    assert sizes(cache.select([0, 3, 4])) == [(0, 1), (1, 2)]


# --- single tokens in 16-bit types

def test_single_tokens_are_attended_to_together_while_the_short_ones_do_not_pay_for_the_long():
    cache = KVCache(6, 1, 1000, 4, 1, dtype=torch.bfloat16)

    def sizes(lengths, rows=range(6)):
        cache.cache_seqlens[:] = torch.tensor(lengths)
        chosen = cache.select(rows)
        return [(group.first, group.count, group.keys[0].shape[2]) for group in cut(chosen, chosen.lengths(), 1).groups]

    assert sizes([200, 270, 300, 191, 128, 255]) == [(0, 6, 384)]
    assert sizes([10, 20, 700, 126, 127, 5]) == [(0, 2, 128), (2, 1, 896), (3, 3, 128)]
    assert sizes([128, 128, 128, 128, 128, 128], [0, 1, 3, 5]) == [(0, 2, 384), (2, 1, 384), (3, 1, 384)]
    assert sizes([895, 896, 512, 640, 999, 639]) == [(0, 1, 896), (1, 1, 897), (2, 2, 896), (4, 1, 1000), (5, 1, 640)]


def single_token_outputs(rows, lengths, num_heads, num_kv_heads, window=None, capacity=700):
    """What the last token of each row sees when `rows` write it together, by row; NaN lies wherever nothing was put."""
    cache = KVCache(8, num_kv_heads, capacity, 64, 1, dtype=torch.bfloat16)
    cache.k_cache.fill_(float("nan")), cache.v_cache.fill_(float("nan"))
    last = {}
    for row in rows:
        q, k, v = (each.bfloat16() for each in random_qkv(1, lengths[row] + 1, num_heads, num_kv_heads, 64, seed=row))
        cache.k_cache[0, row, :lengths[row]], cache.v_cache[0, row, :lengths[row]] = k[0, :-1], v[0, :-1]
        cache.cache_seqlens[row] = lengths[row]
        last[row] = q[:, -1:], k[:, -1:], v[:, -1:]
    chosen = cache.select(rows)
    y = attend(*(torch.cat(each) for each in zip(*last.values())), cut(chosen, chosen.lengths(), 1), 0, window)
    assert not y.isnan().any()
    return dict(zip(rows, y))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("window", [None, 100])
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), SIZES)
def test_no_bit_of_what_a_single_token_sees_depends_on_the_rows_beside_it(num_heads, num_kv_heads, window, threads):
    dice, before = random.Random(num_heads), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for _ in range(4):
            longest = dice.choice([60, 130, 330, 698])
            lengths = [dice.randrange(longest) for _ in range(8)]
            alone = {row: single_token_outputs([row], lengths, num_heads, num_kv_heads, window)[row] for row in range(8)}
            for rows in (range(8), sorted(dice.sample(range(8), 5)), [3, 4]):
                for row, y in single_token_outputs(list(rows), lengths, num_heads, num_kv_heads, window).items():
                    assert torch.equal(y, alone[row]), (lengths, row, rows)
    finally:
        torch.set_num_threads(before)


def test_what_a_row_no_longer_holds_is_cleared_before_it_lies_in_a_block_that_is_read():
    cache = KVCache(2, 1, 128, 64, 1, dtype=torch.bfloat16)
    cache.cache_seqlens[:] = 10
    q, k, v = (each.bfloat16() for each in random_qkv(2, 1, 3, 1, 64))
    for _ in range(3):
        views = cut(cache, cache.positions_for(1), 1)
        assert not attend(q, k, v, views).isnan().any()
        cache.advance(1)
    cache.k_cache[:, 0, 5:] = cache.v_cache[:, 0, 5:] = float("nan")  # what a broken reply may have left behind
    cache.cut(0, 5)
    cache.v_cache[:, 1, 5:] = float("nan")
    cache.copy_row(0, 1)
    assert not attend(q, k, v, cut(cache, cache.positions_for(1), 1)).isnan().any()
    cache.reset()
    cache.v_cache.fill_(float("nan"))
    assert not attend(q, k, v, cut(cache, cache.positions_for(1), 1)).isnan().any()
