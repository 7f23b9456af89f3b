"""The innermost loops of attention, in LLVM's own terms (see `product_loops`).

Keys lie one behind the other, and a score is a sum over one of them. For the score to be taken in one order, whatever is
computed with it, a register holds the same number of eight keys: they are transposed on the way, in registers for few
queries, into a block of float32 that many queries share otherwise.

Addresses are integers, as `array.ctypes.data` gives them; nothing checks a bound. This module must never know about
threads.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from app.models.machine_code import compiled, compiled_into_others, declare
from app.models.product_loops import FEW_ROWS, FLOAT_COLUMNS, over_columns
from app.models.vector_code import (BFLOAT, FLOAT, FLOATS, HALF, INT, INTS, LANES, LINE, LONG, close_loop, in_all_lanes, load,
                                    prefetch, store_rows, sums_of)

KEYS = 16  # that are transposed at once: two registers


def _transpose_tile(element: ir.Type):
    """Eight numbers of each of KEYS keys -> float32, with the keys for columns."""

    @intrinsic
    def transpose_tile(context, keys, ahead, at, size, wide, wide_stride):
        """Addresses of keys (KEYS, size), of which the numbers from `at` on are read, and of wide (8, KEYS), which is
        written; `wide_stride` is what lies between two rows of it, in numbers. `ahead` as for `_score_tile`."""

        def generate(context, builder, signature, arguments):
            keys, ahead, at, size, wide, wide_stride = arguments
            columns = _columns_of(builder, builder.inttoptr(keys, element.as_pointer()), ahead, at, size, element)
            store_rows(builder, columns, wide, wide_stride)
            return context.get_dummy_value()

        return types.void(types.uintp, *[types.intp] * 3, types.uintp, types.intp), generate

    return transpose_tile


def _score_tile(num_rows: int, element: ir.Type):
    """The innermost loop of attention's scores: `num_rows` queries times KEYS keys as they are stored. Each score is summed
    up as `_multiply_tile` does it with transposed keys."""

    @intrinsic
    def score_tile(context, queries, keys, ahead, size, scores, scores_stride):
        """Addresses of queries (num_rows, size), keys (KEYS, size) and scores (num_rows, KEYS); `size` is a multiple of eight,
        `scores_stride` what lies between two rows of the scores, in numbers. They are written over. As much as there are keys
        is asked for from `ahead` of them on, in numbers: it will be needed soon."""

        def generate(context, builder, signature, arguments):
            queries, keys, ahead, size, scores, scores_stride = arguments
            multiply_add = declare(builder, "llvm.fma.v8f32", FLOATS, [FLOATS] * 3)
            queries, keys = builder.inttoptr(queries, FLOAT.as_pointer()), builder.inttoptr(keys, element.as_pointer())
            rows = [builder.gep(queries, [builder.mul(size, LONG(row))]) for row in range(num_rows)]
            before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
            builder.branch(loop)
            builder.position_at_end(loop)
            at = builder.phi(LONG)
            old = [[builder.phi(FLOATS) for _ in range(KEYS // LANES)] for _ in rows]
            new = old
            for number, registers in enumerate(_columns_of(builder, keys, ahead, at, size, element)):
                place = builder.add(at, LONG(number))
                values = [in_all_lanes(builder, builder.load(builder.gep(row, [place]))) for row in rows]
                new = [[builder.call(multiply_add, [value, *each]) for each in zip(registers, sums)]
                       for value, sums in zip(values, new)]
            following = builder.add(at, LONG(LANES))
            close_loop(builder, [(at, LONG(0), following), *sums_of(old, new)], (before, loop, after),
                       builder.icmp_signed("<", following, size))
            store_rows(builder, new, scores, scores_stride)
            return context.get_dummy_value()

        return types.void(types.uintp, types.uintp, types.intp, types.intp, types.uintp, types.intp), generate

    return score_tile


def _columns_of(builder, keys, ahead, at, size, element: ir.Type) -> list[list]:
    """Eight numbers of 16 bits, from `at` on, of each of KEYS keys (KEYS, size) -> eight columns, each in KEYS / 8 registers
    of float32. As many numbers are asked for from `ahead` on: a part at a time, as few can be waited for at once.

    A register takes two keys. Each of three steps puts the numbers of two registers in turn, within each half: what stood
    in the registers i and i + 4 comes together, then i and i + 2, then i and i + 1.
    """
    for number in range(0, LANES * KEYS, LINE // 2):
        prefetch(builder, builder.gep(keys, [builder.add(ahead, builder.add(builder.mul(at, LONG(KEYS)), LONG(number)))]))

    def take_in_turn(one, other, first):  # four of each half, from `first` on
        places = [place for half in (0, LANES) for each in range(first, first + 4)
                  for place in (half + each, KEYS + half + each)]
        return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(INT, KEYS), places))

    shorts = ir.VectorType(ir.IntType(16), LANES)
    rows = []
    for row in range(LANES):
        # bfloat16 is made wide by putting it in turn with 0, which changes the order of a half's halves once more
        two = (row, row + LANES) if element == HALF else (row + row // 4 * 4, row + row // 4 * 4 + 4)
        places = [builder.gep(keys, [builder.add(at, builder.mul(size, LONG(each)))]) for each in two]
        loaded = [builder.load(builder.bitcast(place, shorts.as_pointer())) for place in places]
        for each in loaded:
            each.align = 2
        rows.append(builder.shuffle_vector(*loaded, ir.Constant(ir.VectorType(INT, KEYS), list(range(KEYS)))))
    for _ in range(3):
        rows = [take_in_turn(rows[row], rows[row + 4], first) for row in range(4) for first in (0, 4)]
    if element == HALF:
        halves = ir.VectorType(HALF, KEYS)
        wide = [builder.fpext(builder.bitcast(row, halves), ir.VectorType(FLOAT, KEYS)) for row in rows]
        return [[_part(builder, row, first) for first in (0, LANES)] for row in wide]
    zeros = ir.Constant(ir.VectorType(ir.IntType(16), KEYS), [0] * KEYS)
    return [[builder.bitcast(take_in_turn(zeros, row, first), FLOATS) for first in (0, 4)] for row in rows]


def _part(builder, register, first: int):
    return builder.shuffle_vector(register, register, ir.Constant(INTS, list(range(first, first + LANES))))


def _fold_tile(nothing: float, combine):
    """The loop that makes one number of many: in eight parts, these then in one order."""

    @intrinsic
    def fold_tile(context, numbers, count):
        """The address of so many numbers of float32, a multiple of eight."""

        def generate(context, builder, signature, arguments):
            numbers, count = arguments
            before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
            builder.branch(loop)
            builder.position_at_end(loop)
            at, old = builder.phi(LONG), builder.phi(FLOATS)
            place = builder.gep(builder.inttoptr(numbers, FLOAT.as_pointer()), [at])
            new, following = combine(builder, load(builder, place, 0, FLOAT), old), builder.add(at, LONG(LANES))
            close_loop(builder, [(at, LONG(0), following), (old, ir.Constant(FLOATS, [nothing] * LANES), new)],
                       (before, loop, after), builder.icmp_signed("<", following, count))
            for half in (4, 2, 1):
                other = ir.Constant(INTS, [(each + half) % LANES for each in range(LANES)])
                new = combine(builder, builder.shuffle_vector(new, new, other), new)
            return builder.extract_element(new, INT(0))

        return types.float32(types.uintp, types.intp), generate

    return fold_tile


sum_of = _fold_tile(0.0, lambda builder, one, other: builder.fadd(one, other))
largest_of = _fold_tile(float("-inf"), lambda builder, one, other: builder.select(  # NaN is passed over, mostly
    builder.fcmp_ordered(">", one, other), one, other))


def _few(element: ir.Type):
    """The products of attention for up to FEW_ROWS queries, of keys and values as they are stored. For more, it is faster to
    make them wide first."""
    score_1, score_2, score_3 = (_score_tile(rows, element) for rows in range(1, FEW_ROWS + 1))
    float_1, float_2, float_3 = (over_columns(rows, FLOAT_COLUMNS, element) for rows in range(1, FEW_ROWS + 1))

    @compiled_into_others
    def scores(num_rows, queries, keys, ahead, num_keys, size, scores, scores_stride):
        for key in range(0, num_keys, KEYS):
            some, to = keys + 2 * key * size, scores + 4 * key
            if num_rows == 3:
                score_3(queries, some, ahead, size, to, scores_stride)
            elif num_rows == 2:
                score_2(queries, some, ahead, size, to, scores_stride)
            else:
                score_1(queries, some, ahead, size, to, scores_stride)

    @compiled_into_others
    def sums(num_rows, weights, weights_stride, values, ahead, num_values, size, sums, sums_stride):
        if num_rows == 3:
            float_3(weights, weights_stride, values, size, ahead, num_values, size, sums, sums_stride)
        elif num_rows == 2:
            float_2(weights, weights_stride, values, size, ahead, num_values, size, sums, sums_stride)
        else:
            float_1(weights, weights_stride, values, size, ahead, num_values, size, sums, sums_stride)

    return scores, sums


_scores_bfloat16, _sums_bfloat16 = _few(BFLOAT)
_scores_float16, _sums_float16 = _few(HALF)


@compiled
def few_scores(num_rows, queries, keys, ahead, num_keys, size, is_float16, scores, scores_stride):
    """queries (num_rows, size), float32, times stored keys (num_keys, size) -> scores (num_rows, num_keys), by address.
    `num_rows` is at most FEW_ROWS, `size` a multiple of LANES; keys are read up to the next multiple of KEYS. What is stored
    `ahead` of them, in numbers, is asked for."""
    if is_float16:
        _scores_float16(num_rows, queries, keys, ahead, num_keys, size, scores, scores_stride)
    else:
        _scores_bfloat16(num_rows, queries, keys, ahead, num_keys, size, scores, scores_stride)


@compiled
def few_sums(num_rows, weights, weights_stride, values, ahead, num_values, size, is_float16, sums, sums_stride):
    """weights (num_rows, num_values), float32, times stored values (num_values, size) -> sums (num_rows, size), by address.
    `num_rows` is at most FEW_ROWS, `size` a multiple of FLOAT_COLUMNS. `ahead` as for `few_scores`."""
    if is_float16:
        _sums_float16(num_rows, weights, weights_stride, values, ahead, num_values, size, sums, sums_stride)
    else:
        _sums_bfloat16(num_rows, weights, weights_stride, values, ahead, num_values, size, sums, sums_stride)


transpose_bfloat16, transpose_float16 = map(_transpose_tile, (BFLOAT, HALF))


@intrinsic
def ask_for(context, place):
    """What stands at an address will be needed soon: have the line of the processor's cache ready."""
    def generate(context, builder, signature, arguments):
        prefetch(builder, builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()))
        return context.get_dummy_value()
    return types.void(types.uintp), generate
