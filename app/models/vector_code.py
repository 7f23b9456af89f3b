"""Registers of eight numbers in LLVM's terms: what the innermost loops are made of (`product_loops`, `attention_loops`).

This module must never know what is computed.
"""

from __future__ import annotations

from llvmlite import ir

from app.models.machine_code import declare

REGISTERS = 16  # of AVX2
LANES = 8       # numbers in one
LINE = 64       # bytes in a line of the processor's cache

FLOAT, HALF, BFLOAT = ir.FloatType(), ir.HalfType(), ir.IntType(16)  # llvmlite has no bfloat16: its pattern stands for it
INT, LONG = ir.IntType(32), ir.IntType(64)
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)


def sums_of(old, new) -> list[tuple]:
    """What a loop's sums begin with and go on with."""
    zeros = ir.Constant(FLOATS, [0.0] * LANES)
    return [(phi, zeros, again) for phis, agains in zip(old, new) for phi, again in zip(phis, agains)]


def store_rows(builder, rows: list[list], to, stride) -> None:
    """Rows of registers, to an address; `stride` is what lies between two rows, in numbers."""
    to = builder.inttoptr(to, FLOAT.as_pointer())
    for row, registers in enumerate(rows):
        for register, numbers in enumerate(registers):
            place = builder.gep(to, [builder.add(builder.mul(stride, LONG(row)), LONG(register * LANES))])
            builder.store(numbers, builder.bitcast(place, FLOATS.as_pointer())).align = 4


def close_loop(builder, phis: list[tuple], blocks: tuple, goes_on) -> None:
    before, loop, after = blocks
    for phi, first, again in phis:
        phi.add_incoming(first, before)
        phi.add_incoming(again, loop)
    builder.cbranch(goes_on, loop, after)
    builder.position_at_end(after)


def load(builder, place, register: int, element: ir.Type):
    """Eight numbers, as float32."""
    lanes = ir.VectorType(element, LANES)
    loaded = builder.load(builder.bitcast(builder.gep(place, [LONG(register * LANES)]), lanes.as_pointer()))
    loaded.align = 4 if element == FLOAT else 2
    if element == BFLOAT:
        return builder.bitcast(builder.shl(builder.zext(loaded, INTS), ir.Constant(INTS, [16] * LANES)), FLOATS)
    return builder.fpext(loaded, FLOATS) if element == HALF else loaded


def in_all_lanes(builder, number):
    undefined = ir.Constant(FLOATS, ir.Undefined)
    lanes = builder.insert_element(undefined, number, INT(0))
    return builder.shuffle_vector(lanes, undefined, ir.Constant(INTS, [0] * LANES))


def prefetch(builder, place) -> None:
    byte = ir.IntType(8).as_pointer()
    instruction = declare(builder, "llvm.prefetch.p0", ir.VoidType(), [byte, INT, INT, INT])
    builder.call(instruction, [builder.bitcast(place, byte), INT(0), INT(3), INT(1)])  # to read, and keep close
