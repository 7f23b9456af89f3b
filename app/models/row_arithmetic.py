"""What a row of numbers goes through between two products of `llama_steps`: norm, rotation, attention, gate.

All of it is float32 but what the cache holds: patterns of 16 bits, bfloat16 or float16. NaN stays NaN.

This module must never know about threads. A row is computed by itself, whatever rows are given with it. Shape letters as in
app/engine/kv_cache.py; C is the model's width.
"""

from __future__ import annotations

import math

import numpy as np

from app.models.machine_code import (bits_of_float, compiled, compiled_fused, compiled_sums, float_of_bits, float_of_half,
                                     half_of_float, times_power_of_two)
from app.models.product_loops import FLOAT_COLUMNS, multiply_floats, multiply_with_keys

KEYS_A_BLOCK = 64  # positions whose keys, then values, are widened at once


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
def exponential(x):
    """e^x in float32, right to 1e-7 of it between e^-87 and e^88, beyond which it stays: 2^n times a polynomial of the
    rest (the coefficients are those of expf in Moshier's Cephes library)."""
    x = np.float32(-87) if x < np.float32(-87) else x
    x = np.float32(88) if x > np.float32(88) else x
    shifted = x * np.float32(1.44269504) + np.float32(12582912)  # 1.5 · 2^23: what is added to it is rounded to a whole n
    n = shifted - np.float32(12582912)
    rest = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)  # ln 2 in two parts
    p = np.float32(1.9875691500e-4)
    p = p * rest + np.float32(1.3981999507e-3)
    p = p * rest + np.float32(8.3334519073e-3)
    p = p * rest + np.float32(4.1665795894e-2)
    p = p * rest + np.float32(1.6666665459e-1)
    p = p * rest + np.float32(5.0000001201e-1)
    p = p * rest * rest + rest + np.float32(1)
    return times_power_of_two(p, shifted) if x == x else x


@compiled
def gate_up(up, gate):
    """up · silu(gate), into up."""
    for row in range(up.shape[0]):
        for each in range(up.shape[1]):
            g = gate[row, each]
            up[row, each] *= g / (np.float32(1) + exponential(-g))


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
def widen(stored, count, head_dim, is_float16, block):
    """`count` positions of a KV head in the cache -> the first D columns of block (KEYS_A_BLOCK, at least D)."""
    for key in range(count):
        first = key * head_dim
        if is_float16:
            for each in range(head_dim):
                block[key, each] = float_of_half(stored[first + each])
        else:
            for each in range(head_dim):
                block[key, each] = float_of_bits(np.uint32(stored[first + each]) << np.uint32(16))


@compiled
def padded(head_dim):
    """How many columns the buffers of `attend` have."""
    return -(-head_dim // FLOAT_COLUMNS) * FLOAT_COLUMNS


@compiled_sums
def total_of(numbers, row):  # no slice: each would be counted
    total = np.float32(0)
    for each in range(numbers.shape[1]):
        total += numbers[row, each]
    return total


@compiled
def attend(q, ends, keys, values, head_dim, is_float16, block, seen, sums, largest, total, y):
    """Queries of one KV head, q (Q, padded D), already multiplied by 1/sqrt(D), to the positions that `keys` and `values`
    store: query i to the first ends[i], no fewer than the one before -> y (Q, padded D).

    A block of positions at a time: what was summed up before is scaled to the largest score yet, so that one pass is
    enough (Milakov and Gimelshein, 2018). A query's numbers do not depend on the others, as long as all values that these
    see are finite. Buffers: block (KEYS_A_BLOCK, padded D), 0 beyond D; seen (Q, KEYS_A_BLOCK); sums as y; largest and
    total (Q,).
    """
    num_queries, columns = ends.shape[0], block.shape[1]
    longest = ends[num_queries - 1]
    y[:num_queries], largest[:num_queries], total[:num_queries] = 0, -np.inf, 0
    for first in range(0, longest, KEYS_A_BLOCK):
        count = min(KEYS_A_BLOCK, longest - first)
        widen(keys[first * head_dim:], count, head_dim, is_float16, block)
        multiply_with_keys(num_queries, q.ctypes.data, block.ctypes.data, count, columns, seen.ctypes.data, KEYS_A_BLOCK)
        for each in range(num_queries):
            num_seen = max(0, min(count, ends[each] - first))
            before = now = largest[each]
            for key in range(num_seen):
                now = max(now, seen[each, key])
            for key in range(num_seen):
                seen[each, key] = exponential(seen[each, key] - now)
            for key in range(num_seen, KEYS_A_BLOCK):
                seen[each, key] = 0
            if num_seen > 0:
                shrink = exponential(before - now)
                total[each] = total[each] * shrink + total_of(seen, each)
                largest[each] = now
                for column in range(columns):
                    y[each, column] *= shrink
        widen(values[first * head_dim:], count, head_dim, is_float16, block)
        for column in range(0, columns, FLOAT_COLUMNS):
            multiply_floats(num_queries, seen.ctypes.data, KEYS_A_BLOCK, block.ctypes.data + 4 * column, columns, count,
                            sums.ctypes.data + 4 * column, columns)
        for each in range(num_queries):
            for column in range(columns):
                y[each, column] += sums[each, column]
    for each in range(num_queries):
        for column in range(columns):
            y[each, column] /= total[each]
