"""What a row of numbers goes through between two products of `llama_steps`: norm, rotation, attention, gate.

All of it is float32 but what the cache holds: patterns of 16 bits, bfloat16 or float16. NaN stays NaN.

This module must never know about threads. A row is computed by itself, whatever rows are given with it. Shape letters as in
app/engine/kv_cache.py; C is the model's width.
"""

from __future__ import annotations

import math

import numpy as np

from app.models.attention_loops import (KEYS, ask_for, few_scores, few_sums, largest_of, sum_of, transpose_bfloat16,
                                        transpose_float16)
from app.models.machine_code import (bits_of_float, compiled, compiled_fused, compiled_sums, float_of_bits, float_of_half,
                                     half_of_float)
from app.models.product_loops import FEW_ROWS, FLOAT_COLUMNS, multiply_floats
from app.models.vector_code import LANES, LINE

LOG2_E = np.float32(math.log2(math.e))
KEYS_A_BLOCK = 64  # positions whose keys, then values, are widened at once: a multiple of FLOAT_COLUMNS


@compiled_sums
def sum_of_squares(x, row):
    total = np.float32(0)
    for each in range(x.shape[1]):
        total += x[row, each] * x[row, each]
    return total


@compiled
def norm(x, weight, eps, normed):
    """RMS norm of each row of x (N, C): x / sqrt(mean(x²) + eps) · weight. `weight` is multiplied by sqrt(C), `eps` by C."""
    for row in range(x.shape[0]):
        factor = np.float32(1) / np.float32(math.sqrt(sum_of_squares(x, row) + eps))
        for each in range(x.shape[1]):
            normed[row, each] = x[row, each] * factor * weight[each]


@compiled_fused
def power_of_two(x):
    """2^x in float32, for x <= 0 and right to 2e-7 of it down to 2^-126, where it stays: 2^n, n being x rounded, times a
    polynomial of the rest. Its coefficients make the largest relative error between -1/2 and 1/2 the least, 9e-8."""
    x = np.float32(-126) if x < np.float32(-126) else x
    shifted = x + np.float32(12583039)  # 1.5 · 2^23 + 127: what is added to it is rounded to a whole number, and
    rest = x - (shifted - np.float32(12583039))
    p = np.float32(1.3264720e-3)
    p = p * rest + np.float32(9.6715139e-3)
    p = p * rest + np.float32(5.5507340e-2)
    p = p * rest + np.float32(2.4022242e-1)
    p = p * rest + np.float32(6.9314700e-1)
    p = p * rest + np.float32(1)
    return p * float_of_bits(bits_of_float(shifted) << np.uint32(23))  # n + 127 stands in its last bits: 2^n's exponent


@compiled
def gate_up(up, gate):
    """up · silu(gate), into up."""
    for row in range(up.shape[0]):
        for each in range(up.shape[1]):
            g = gate[row, each]
            e = power_of_two(-abs(g) * LOG2_E)
            up[row, each] *= (g if g > 0 else g * e) / (np.float32(1) + e)


@compiled
def rotate(x, cos, sin, y):
    """Each pair of the two halves of a head by its position's angle (RoPE), cos and sin (D/2,)."""
    half = cos.shape[0]
    for each in range(half):
        one, two = x[each], x[half + each]
        y[each] = one * cos[each] - two * sin[each]
        y[half + each] = two * cos[each] + one * sin[each]


@compiled
def store(numbers, stored, is_float16):
    """Round to the cache's type, to even where two are as near."""
    if is_float16:
        for each in range(numbers.shape[0]):
            stored[each] = half_of_float(numbers[each])
    else:
        for each in range(numbers.shape[0]):
            number = numbers[each]
            bits = bits_of_float(number)
            rounded = (bits + np.uint32(0x7fff) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
            stored[each] = np.uint16(rounded) if number == number else np.uint16(0x7fc0)


@compiled
def wide(stored, place, is_float16):
    """A number of the cache."""
    return float_of_half(stored[place]) if is_float16 else float_of_bits(np.uint32(stored[place]) << np.uint32(16))


@compiled
def widen(stored, ahead, count, head_dim, is_float16, block):
    """`count` positions of a KV head in the cache -> the first rows and D columns of block (KEYS_A_BLOCK, at least D). What is
    stored `ahead` of them, in numbers, will be needed next, and is asked for."""
    for key in range(count):
        for line in range(0, 2 * head_dim, LINE):
            ask_for(stored.ctypes.data + 2 * (key * head_dim + ahead) + line)
        if is_float16:
            for each in range(head_dim):
                block[key, each] = wide(stored, key * head_dim + each, True)
        else:
            for each in range(head_dim):
                block[key, each] = wide(stored, key * head_dim + each, False)


@compiled
def widen_across(stored, ahead, count, head_dim, is_float16, block):
    """The same -> the first columns of block (D, KEYS_A_BLOCK). What is stored behind them, up to the next multiple of KEYS,
    is read with them, if there is anything."""
    there = stored.shape[0] // head_dim
    whole_keys, whole_numbers = min(-(-count // KEYS), there // KEYS) * KEYS, head_dim // LANES * LANES
    for key in range(0, whole_keys, KEYS):
        for each in range(0, whole_numbers, LANES):
            place = stored.ctypes.data + 2 * key * head_dim
            to = block.ctypes.data + 4 * (each * KEYS_A_BLOCK + key)
            if is_float16:
                transpose_float16(place, ahead, each, head_dim, to, KEYS_A_BLOCK)
            else:
                transpose_bfloat16(place, ahead, each, head_dim, to, KEYS_A_BLOCK)
    for key in range(count):
        for each in range(whole_numbers if key < whole_keys else 0, head_dim):
            block[each, key] = wide(stored, key * head_dim + each, is_float16)


@compiled
def padded(head_dim):
    """How many columns the buffers of `attend` have for the numbers of a head."""
    return -(-head_dim // FLOAT_COLUMNS) * FLOAT_COLUMNS


@compiled
def weigh(seen, query, num_seen, before):
    """A query's scores for the positions of a block, the first `num_seen` of which it sees -> 2^(score - largest), or 0;
    the largest score yet, if it was `before`; and the sum. All of the block, always: the fastest loops are those whose
    length is known when they are compiled."""
    scores = seen.ctypes.data + 4 * query * KEYS_A_BLOCK
    for key in range(num_seen, KEYS_A_BLOCK):
        seen[query, key] = -np.inf
    largest = max(before, largest_of(scores, KEYS_A_BLOCK))
    for key in range(KEYS_A_BLOCK):
        seen[query, key] = power_of_two(seen[query, key] - largest)
    for key in range(num_seen, KEYS_A_BLOCK):
        seen[query, key] = 0
    return largest, sum_of(scores, KEYS_A_BLOCK)


@compiled
def attend(q, ends, keys, values, head_dim, is_float16, keys_across, block, seen, sums, largest, total, y):
    """Queries of one KV head, q (Q, D), already multiplied by log2(e)/sqrt(D), to the positions that `keys` and `values`
    store: query i to the first ends[i], no fewer than the one before -> y (Q, padded D).

    A block of positions at a time: what was summed up before is scaled to the largest score yet, so that one pass is
    enough (Milakov and Gimelshein, 2018). A query's numbers do not depend on the others, as long as all values that these
    see are finite. Buffers: keys_across (D, KEYS_A_BLOCK); block (KEYS_A_BLOCK, padded D), 0 beyond D; seen (Q,
    KEYS_A_BLOCK); sums as y; largest and total (Q,).
    """
    num_queries, columns = ends.shape[0], block.shape[1]
    longest = ends[num_queries - 1]
    y[:num_queries], largest[:num_queries], total[:num_queries] = 0, -np.inf, 0
    for first in range(0, longest, KEYS_A_BLOCK):
        count, at = min(KEYS_A_BLOCK, longest - first), first * head_dim
        # As they are stored, which reads beyond `count`, there must be as many behind them.
        is_few = num_queries <= FEW_ROWS and head_dim % FLOAT_COLUMNS == 0 and at + KEYS_A_BLOCK * head_dim <= keys.shape[0]
        to_values = (values.ctypes.data - keys.ctypes.data) // 2
        to_next_keys = KEYS_A_BLOCK * head_dim - to_values if first + count < longest else 0
        if is_few:
            few_scores(num_queries, q.ctypes.data, keys.ctypes.data + 2 * at, to_values, count, head_dim, is_float16,
                       seen.ctypes.data, KEYS_A_BLOCK)
        else:
            widen_across(keys[at:], to_values, count, head_dim, is_float16, keys_across)
            multiply_floats(num_queries, q.ctypes.data, head_dim, keys_across.ctypes.data, KEYS_A_BLOCK, head_dim,
                            -(-count // FLOAT_COLUMNS) * FLOAT_COLUMNS, seen.ctypes.data, KEYS_A_BLOCK)
        for each in range(num_queries):
            if ends[each] <= first:
                for key in range(KEYS_A_BLOCK):
                    seen[each, key] = 0
                continue
            now, sum_now = weigh(seen, each, ends[each] - first, largest[each])
            shrink = power_of_two(largest[each] - now)
            largest[each], total[each] = now, total[each] * shrink + sum_now
            for column in range(columns):
                y[each, column] *= shrink
        if is_few:
            few_sums(num_queries, seen.ctypes.data, KEYS_A_BLOCK, values.ctypes.data + 2 * at, to_next_keys, count, head_dim,
                     is_float16, sums.ctypes.data, columns)
        else:
            widen(values[at:], to_next_keys, count, head_dim, is_float16, block)
            multiply_floats(num_queries, seen.ctypes.data, KEYS_A_BLOCK, block.ctypes.data, columns, count, columns,
                            sums.ctypes.data, columns)
        for each in range(num_queries):
            for column in range(columns):
                y[each, column] += sums[each, column]
    for each in range(num_queries):
        for column in range(columns):
            y[each, column] /= total[each]
