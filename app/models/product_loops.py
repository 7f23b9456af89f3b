"""The innermost loops of products, in LLVM's own terms: which registers hold what decides how fast they are.

A loop keeps all its sums in registers and reads each number of the matrix once for some rows, which Python cannot say,
compiled or not. Addresses are integers, as `array.ctypes.data` gives them; nothing checks a bound.

This module must never know what is multiplied.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from app.models.machine_code import compiled, compiled_into_others, declare
from app.models.vector_code import (FLOAT, FLOATS, HALF, LANES, LONG, REGISTERS, close_loop, in_all_lanes, load, prefetch,
                                    store_rows, sums_of)

COLUMNS = 24         # of float16 that one run of the innermost loop computes for a row: three registers of eight numbers
MOST_TILE_ROWS = 4   # and for how many rows at most: 12 sums, 3 registers of weights and one of x are the 16 of AVX2
FEW_ROWS = 3         # so many rows of a matrix of float32 take
FLOAT_COLUMNS = 32   # columns at once: 12 sums, 3 registers of x and one of the matrix
MOST_FLOAT_ROWS = 6  # more rows, half as many columns: 12 sums, 2 registers of the matrix and one of x
AHEAD = 64           # steps that a weight is asked for before it is needed


def _multiply_tile(num_rows: int, num_columns: int, element: ir.Type):
    """The innermost loop of a product: `num_rows` rows of x times `num_columns` columns of a matrix of some type.
    Each sum is taken in float32 from the first of `size` to the last, whatever `num_rows` is."""
    registers = num_columns // LANES

    @intrinsic
    def multiply_tile(context, x, x_stride, matrix, stride, ahead, size, sums, sums_stride):
        """Addresses of x (num_rows, size) and sums (num_rows, num_columns), float32, and of the matrix's (size, num_columns);
        the strides are what lies between two rows of each, in numbers. `sums` is written over. What lies `ahead` of each row
        of the matrix, in numbers, is asked for, if these are of 16 bits: it will be needed soon."""

        def generate(context, builder, signature, arguments):
            x, x_stride, matrix, stride, ahead, size, sums, sums_stride = arguments
            multiply_add = declare(builder, "llvm.fma.v8f32", FLOATS, [FLOATS] * 3)
            x = builder.inttoptr(x, FLOAT.as_pointer())
            rows = [builder.gep(x, [builder.mul(x_stride, LONG(row))]) for row in range(num_rows)]
            matrix = builder.inttoptr(matrix, element.as_pointer())
            before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
            builder.branch(loop)
            builder.position_at_end(loop)
            step = builder.phi(LONG)
            old = [[builder.phi(FLOATS) for _ in range(registers)] for _ in range(num_rows)]
            here = builder.gep(matrix, [builder.mul(step, stride)])
            if element != FLOAT:
                prefetch(builder, builder.gep(here, [ahead]))
            new: list[list] = [[] for _ in rows]
            if (num_rows + 1) * registers >= REGISTERS:  # the sums, the weights and one of x do not fit
                values = [in_all_lanes(builder, builder.load(builder.gep(row, [step]))) for row in rows]
                for register in range(registers):
                    weight = load(builder, here, register, element)
                    for row, value in enumerate(values):
                        new[row].append(builder.call(multiply_add, [value, weight, old[row][register]]))
            else:
                weights = [load(builder, here, register, element) for register in range(registers)]
                for row, place in enumerate(rows):
                    value = in_all_lanes(builder, builder.load(builder.gep(place, [step])))
                    new[row] = [builder.call(multiply_add, [value, *each]) for each in zip(weights, old[row])]
            following = builder.add(step, LONG(1))
            close_loop(builder, [(step, LONG(0), following), *sums_of(old, new)], (before, loop, after),
                       builder.icmp_signed("<", following, size))
            store_rows(builder, new, sums, sums_stride)
            return context.get_dummy_value()

        return types.void(types.uintp, types.intp, types.uintp, *[types.intp] * 3, types.uintp, types.intp), generate

    return multiply_tile


_half_1, _half_2, _half_3, _half_4 = (_multiply_tile(rows, COLUMNS, HALF) for rows in range(1, MOST_TILE_ROWS + 1))


@compiled
def multiply_halves(num_rows, x, x_stride, matrix, size, sums):
    """x (num_rows, size), float32, times a matrix (size, COLUMNS) of float16 -> sums (num_rows, COLUMNS), by address."""
    row, num_tiles = 0, -(-num_rows // MOST_TILE_ROWS)  # as equal as can be: a tile of few rows takes nearly as long
    for tile in range(num_tiles):
        from_x, to, count = x + 4 * row * x_stride, sums + 4 * row * COLUMNS, -(-(num_rows - row) // (num_tiles - tile))
        if count == 4:
            _half_4(from_x, x_stride, matrix, COLUMNS, AHEAD * COLUMNS, size, to, COLUMNS)
        elif count == 3:
            _half_3(from_x, x_stride, matrix, COLUMNS, AHEAD * COLUMNS, size, to, COLUMNS)
        elif count == 2:
            _half_2(from_x, x_stride, matrix, COLUMNS, AHEAD * COLUMNS, size, to, COLUMNS)
        else:
            _half_1(from_x, x_stride, matrix, COLUMNS, AHEAD * COLUMNS, size, to, COLUMNS)
        row += count


def over_columns(rows: int, num_columns: int, element: ir.Type = FLOAT):
    """The loop over the columns of a matrix for so many rows."""
    tile, size_of = _multiply_tile(rows, num_columns, element), 4 if element == FLOAT else 2

    @compiled_into_others
    def multiply(x, x_stride, matrix, stride, ahead, size, columns, sums, sums_stride):
        for column in range(0, columns, num_columns):
            tile(x, x_stride, matrix + size_of * column, stride, ahead, size, sums + 4 * column, sums_stride)

    return multiply


_float_1, _float_2, _float_3 = (over_columns(rows, FLOAT_COLUMNS) for rows in range(1, FEW_ROWS + 1))
_float_4, _float_5, _float_6 = (over_columns(rows, FLOAT_COLUMNS // 2) for rows in range(FEW_ROWS + 1, MOST_FLOAT_ROWS + 1))


@compiled
def multiply_floats(num_rows, x, x_stride, matrix, stride, size, columns, sums, sums_stride):
    """x (num_rows, size) times a matrix (size, columns) -> sums (num_rows, columns), all float32, by address. `columns` is a
    multiple of FLOAT_COLUMNS; the strides are what lies between two rows of each, in numbers."""
    for row in range(0, num_rows, MOST_FLOAT_ROWS):
        from_x, to, left = x + 4 * row * x_stride, sums + 4 * row * sums_stride, num_rows - row
        if left >= 6:
            _float_6(from_x, x_stride, matrix, stride, 0, size, columns, to, sums_stride)
        elif left == 5:
            _float_5(from_x, x_stride, matrix, stride, 0, size, columns, to, sums_stride)
        elif left == 4:
            _float_4(from_x, x_stride, matrix, stride, 0, size, columns, to, sums_stride)
        elif left == 3:
            _float_3(from_x, x_stride, matrix, stride, 0, size, columns, to, sums_stride)
        elif left == 2:
            _float_2(from_x, x_stride, matrix, stride, 0, size, columns, to, sums_stride)
        else:
            _float_1(from_x, x_stride, matrix, stride, 0, size, columns, to, sums_stride)
