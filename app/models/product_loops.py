"""The innermost loops of products, in LLVM's own terms: which registers hold what decides how fast they are.

A loop keeps all its sums in registers and reads each number of the matrix once for up to four rows, which Python cannot
say, compiled or not. Addresses are integers, as `array.ctypes.data` gives them; nothing checks a bound.

This module must never know what is multiplied.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from app.models.machine_code import compiled, compiled_into_others, declare

COLUMNS = 24        # outputs that one run of the innermost loop computes for a row: three registers of eight numbers
MOST_TILE_ROWS = 4  # and for how many rows at most: 12 sums, 3 registers of weights and one of x are the 16 of AVX2
FLOAT_COLUMNS = 16  # the same for a matrix of float32
KEYS = 4            # that are multiplied with queries at once, and
MOST_QUERIES = 3    # with how many: 12 sums
AHEAD = 64          # steps that a weight is asked for before it is needed

_LANES = 8
_FLOAT, _HALF, _INT, _LONG = ir.FloatType(), ir.HalfType(), ir.IntType(32), ir.IntType(64)
_FLOATS = ir.VectorType(_FLOAT, _LANES)


def _multiply_tile(num_rows: int, num_columns: int, element: ir.Type):
    """The innermost loop of a product: `num_rows` rows of x times `num_columns` columns of a matrix of float16 or float32.
    Each sum is taken in float32 from the first of `size` to the last, whatever `num_rows` is."""
    registers = num_columns // _LANES

    @intrinsic
    def multiply_tile(context, x, x_stride, matrix, stride, size, sums, sums_stride):
        """Addresses of x (num_rows, size) and sums (num_rows, num_columns), float32, and of the matrix's (size, num_columns);
        the strides are what lies between two rows of each, in numbers. `sums` is written over."""

        def generate(context, builder, signature, arguments):
            x, x_stride, matrix, stride, size, sums, sums_stride = arguments
            multiply_add = declare(builder, "llvm.fma.v8f32", _FLOATS, [_FLOATS] * 3)
            x = builder.inttoptr(x, _FLOAT.as_pointer())
            rows = [builder.gep(x, [builder.mul(x_stride, _LONG(row))]) for row in range(num_rows)]
            matrix = builder.inttoptr(matrix, element.as_pointer())
            before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
            builder.branch(loop)
            builder.position_at_end(loop)
            step = builder.phi(_LONG)
            old = [[builder.phi(_FLOATS) for _ in range(registers)] for _ in range(num_rows)]
            here = builder.gep(matrix, [builder.mul(step, stride)])
            if element == _HALF:
                _prefetch(builder, builder.gep(here, [builder.mul(stride, _LONG(AHEAD))]))
            weights = [_load(builder, here, register, element) for register in range(registers)]
            new = []
            for row, sums_before in zip(rows, old):
                value = _in_all_lanes(builder, builder.load(builder.gep(row, [step])))
                new.append([builder.call(multiply_add, [value, *each]) for each in zip(weights, sums_before)])
            following = builder.add(step, _LONG(1))
            _close_loop(builder, [(step, _LONG(0), following), *_sums_of(old, new)], (before, loop, after),
                        builder.icmp_signed("<", following, size))
            sums = builder.inttoptr(sums, _FLOAT.as_pointer())
            for row in range(num_rows):
                for register in range(registers):
                    place = builder.gep(sums, [builder.add(builder.mul(sums_stride, _LONG(row)), _LONG(register * _LANES))])
                    builder.store(new[row][register], builder.bitcast(place, _FLOATS.as_pointer())).align = 4
            return context.get_dummy_value()

        return types.void(types.uintp, types.intp, types.uintp, types.intp, types.intp, types.uintp, types.intp), generate

    return multiply_tile


def _score_tile(num_rows: int):
    """The innermost loop of attention's scores: `num_rows` queries times KEYS keys, over `size` numbers, a multiple of eight.
    Each score is summed up in eight parts, these then in one order, whatever `num_rows` is."""

    @intrinsic
    def score_tile(context, queries, keys, size, scores, scores_stride):
        """Addresses of queries (num_rows, size), keys (KEYS, size) and scores (num_rows, KEYS), float32; `scores_stride` is
        what lies between two rows of the scores, in numbers. They are written over."""

        def generate(context, builder, signature, arguments):
            queries, keys, size, scores, scores_stride = arguments
            multiply_add = declare(builder, "llvm.fma.v8f32", _FLOATS, [_FLOATS] * 3)
            queries, keys, scores = (builder.inttoptr(each, _FLOAT.as_pointer()) for each in (queries, keys, scores))
            rows, places = ([builder.gep(base, [builder.mul(size, _LONG(row))]) for row in range(count)]
                            for base, count in ((queries, num_rows), (keys, KEYS)))
            before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
            builder.branch(loop)
            builder.position_at_end(loop)
            at = builder.phi(_LONG)
            old = [[builder.phi(_FLOATS) for _ in places] for _ in rows]
            ours, new = [_load(builder, builder.gep(row, [at]), 0, _FLOAT) for row in rows], [[] for _ in rows]
            for column, place in enumerate(places):  # one key at a time: all that is held at once fits into the registers
                key = _load(builder, builder.gep(place, [at]), 0, _FLOAT)
                for row, query in enumerate(ours):
                    new[row].append(builder.call(multiply_add, [query, key, old[row][column]]))
            following = builder.add(at, _LONG(_LANES))
            _close_loop(builder, [(at, _LONG(0), following), *_sums_of(old, new)], (before, loop, after),
                        builder.icmp_signed("<", following, size))
            for row in range(num_rows):
                place = builder.gep(scores, [builder.mul(scores_stride, _LONG(row))])
                total = _sum_each(builder, new[row])
                builder.store(total, builder.bitcast(place, total.type.as_pointer())).align = 4
            return context.get_dummy_value()

        return types.void(types.uintp, types.uintp, types.intp, types.uintp, types.intp), generate

    return score_tile


def _sum_each(builder, registers: list):
    """Four registers of eight numbers -> the sums of each, four numbers: of two registers, what stands two apart is added
    into one register, twice, and then its halves."""

    def pick(one, other, places):
        return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_INT, len(places)), places))

    def fold(one, other):  # (a0 a1 a2 a3 ..), (b0 b1 b2 b3 ..) -> (a0+a2, b0+b2, a1+a3, b1+b3, ..)
        return builder.fadd(pick(one, other, [0, 8, 1, 9, 4, 12, 5, 13]), pick(one, other, [2, 10, 3, 11, 6, 14, 7, 15]))

    one, two = fold(registers[0], registers[1]), fold(registers[2], registers[3])  # (a, b, a, b, ..), (c, d, c, d, ..)
    both = builder.fadd(pick(one, two, [0, 1, 8, 9, 4, 5, 12, 13]), pick(one, two, [2, 3, 10, 11, 6, 7, 14, 15]))
    return builder.fadd(pick(both, both, [0, 1, 2, 3]), pick(both, both, [4, 5, 6, 7]))


def _sums_of(old, new) -> list[tuple]:
    """What a loop's sums begin with and go on with."""
    zeros = ir.Constant(_FLOATS, [0.0] * _LANES)
    return [(phi, zeros, again) for phis, agains in zip(old, new) for phi, again in zip(phis, agains)]


def _close_loop(builder, phis: list[tuple], blocks: tuple, goes_on) -> None:
    before, loop, after = blocks
    for phi, first, again in phis:
        phi.add_incoming(first, before)
        phi.add_incoming(again, loop)
    builder.cbranch(goes_on, loop, after)
    builder.position_at_end(after)


def _load(builder, place, register: int, element: ir.Type):
    """Eight numbers, as float32."""
    lanes = ir.VectorType(element, _LANES)
    loaded = builder.load(builder.bitcast(builder.gep(place, [_LONG(register * _LANES)]), lanes.as_pointer()))
    loaded.align = 2 if element == _HALF else 4
    return builder.fpext(loaded, _FLOATS) if element == _HALF else loaded


def _in_all_lanes(builder, number):
    undefined = ir.Constant(_FLOATS, ir.Undefined)
    lanes = builder.insert_element(undefined, number, _INT(0))
    return builder.shuffle_vector(lanes, undefined, ir.Constant(ir.VectorType(_INT, _LANES), [0] * _LANES))


def _prefetch(builder, place) -> None:
    byte = ir.IntType(8).as_pointer()
    prefetch = declare(builder, "llvm.prefetch.p0", ir.VoidType(), [byte, _INT, _INT, _INT])
    builder.call(prefetch, [builder.bitcast(place, byte), _INT(0), _INT(3), _INT(1)])  # to read, and keep close


def _multiply(num_columns: int, element: ir.Type):
    """The loop for any number of rows: as many as fit at a time."""
    tile_1, tile_2, tile_3, tile_4 = (_multiply_tile(rows, num_columns, element) for rows in range(1, MOST_TILE_ROWS + 1))

    @compiled_into_others
    def multiply(num_rows, x, x_stride, matrix, stride, size, sums, sums_stride):
        for row in range(0, num_rows, MOST_TILE_ROWS):
            from_x, to, left = x + 4 * row * x_stride, sums + 4 * row * sums_stride, num_rows - row
            if left >= 4:
                tile_4(from_x, x_stride, matrix, stride, size, to, sums_stride)
            elif left == 3:
                tile_3(from_x, x_stride, matrix, stride, size, to, sums_stride)
            elif left == 2:
                tile_2(from_x, x_stride, matrix, stride, size, to, sums_stride)
            else:
                tile_1(from_x, x_stride, matrix, stride, size, to, sums_stride)

    return multiply


_score_1, _score_2, _score_3 = map(_score_tile, range(1, MOST_QUERIES + 1))


@compiled
def multiply_with_keys(num_rows, queries, keys, num_keys, size, scores, scores_stride):
    """queries (num_rows, size) times keys (num_keys, size) -> scores (num_rows, num_keys), all float32, by address. Keys
    are read, and scores written, up to the next multiple of KEYS."""
    for key in range(0, num_keys, KEYS):
        some, to = keys + 4 * key * size, scores + 4 * key
        for row in range(0, num_rows, MOST_QUERIES):
            from_row, to_row, left = queries + 4 * row * size, to + 4 * row * scores_stride, num_rows - row
            if left >= 3:
                _score_3(from_row, some, size, to_row, scores_stride)
            elif left == 2:
                _score_2(from_row, some, size, to_row, scores_stride)
            else:
                _score_1(from_row, some, size, to_row, scores_stride)


multiply_halves = _multiply(COLUMNS, _HALF)
multiply_floats = _multiply(FLOAT_COLUMNS, _FLOAT)
