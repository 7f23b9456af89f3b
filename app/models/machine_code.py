"""Python compiled to machine code for this processor, and the few instructions that it has no words for.

PyTorch hands each multiplication to a library and waits for it, a thousand times a token. What the time of a token
depends on is written out in this project instead (`half_projection`, `llama_steps`) and compiled by Numba, once a
machine: the result is kept in the user's cache folder. Here are the pieces that are not Python: numbers of 16 bits, and
the atomic operations by which threads divide work (`work_sharing`); the innermost loops are in `product_loops`
and `attention_loops`.

Addresses are integers, as `array.ctypes.data` gives them. Nothing here checks a bound.

This module must never know what is computed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import carray, njit, types
from numba.core.caching import NullCache
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from platformdirs import user_cache_path

COMPILED = ("machine_code", "vector_code", "product_loops", "attention_loops", "work_sharing", "half_projection",
            "row_arithmetic", "llama_steps")  # the modules that machine code is made of
KEPT_S = 90 * 24 * 3600  # for so long compiled code is kept that nobody uses

logger = logging.getLogger(__name__)

_FLOAT, _HALF, _INT, _LONG = ir.FloatType(), ir.HalfType(), ir.IntType(32), ir.IntType(64)


def is_fast_here() -> bool:
    """Whether the processor that is compiled for has what the loops are written for: 16-bit numbers, and products that are
    added at once."""
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()
    if triple.startswith("x86"):
        return {"+f16c", "+fma", "+avx2"} <= set(features.split(","))
    return triple.startswith(("aarch64", "arm64"))


def _cache_folder() -> Path | None:
    """Where the compiled code is kept: a folder for each version of what is compiled. None where none can be made."""
    sources = hashlib.sha256(numba.__version__.encode())
    for name in COMPILED:
        sources.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    try:
        folder = user_cache_path("glasschat") / "machine_code" / sources.hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        for other in folder.parent.iterdir():  # those of earlier versions, which nobody has used for long
            if time.time() - other.stat().st_mtime > KEPT_S:
                shutil.rmtree(other, ignore_errors=True)
        os.utime(folder)
    except (OSError, RuntimeError):  # there may be no home to have a cache in
        return None
    return folder


_folder = _cache_folder()
if _folder is not None:
    numba.config.CACHE_DIR = str(_folder)


class _KeptCode:
    """Numba's cache of one function, which may fail: then the code is made anew, and the damaged file given up."""

    def __init__(self, cache):
        self._cache = cache

    def __getattr__(self, name: str):
        return getattr(self._cache, name)

    def load_overload(self, signature, target_context):
        try:
            found = self._cache.load_overload(signature, target_context)
            if found is None or tuple(found.signature.args) == tuple(signature):
                return found
        except Exception as error:
            logger.info("compiled code that was kept cannot be used: %s", error)
        with suppress(Exception):
            self._cache.flush()
        return None

    def save_overload(self, signature, compiled_result) -> None:
        try:
            self._cache.save_overload(signature, compiled_result)
        except Exception as error:  # a full disk, for example
            logger.info("compiled code cannot be kept: %s", error)


def _keep(dispatcher):
    """The same, kept where this version's code is kept, or nowhere: Numba would fall back on folders that outlive it."""
    if _folder is not None:
        with suppress(RuntimeError):
            dispatcher.enable_caching()
            if Path(dispatcher._cache.cache_path).is_relative_to(_folder):
                dispatcher._cache = _KeptCode(dispatcher._cache)
            else:
                dispatcher._cache = NullCache()
    return dispatcher


_OPTIONS = {"nogil": True, "error_model": "numpy"}


def compiled(function):
    """Decorator: machine code, made at the first call, that runs without holding the interpreter."""
    return _keep(njit(**_OPTIONS)(function))


def compiled_into_others(function):
    """`compiled` as a part of what calls it, with which it is kept. For functions that are made by functions: these would
    never be found again."""
    return njit(**_OPTIONS)(function)


def compiled_fused(function):
    """`compiled`, and a product may be added without being rounded first."""
    return _keep(njit(fastmath={"contract"}, **_OPTIONS)(function))


def compiled_sums(function):
    """`compiled`, and a sum may be taken in another order than written, so that it can be taken eight numbers at a time:
    always in the same one."""
    return _keep(njit(fastmath={"reassoc", "contract", "nsz"}, **_OPTIONS)(function))


def declare(builder, name: str, gives: ir.Type, takes: list[ir.Type]):
    """An instruction of LLVM's, by its name."""
    return builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(gives, takes), name)


# --- numbers of 16 bits and their patterns

def _convert(from_type, to_type, generate):
    @intrinsic
    def convert(context, value):
        return to_type(from_type), lambda context, builder, signature, arguments: generate(builder, arguments[0])
    return convert


bits_of_float = _convert(types.float32, types.uint32, lambda builder, value: builder.bitcast(value, _INT))
float_of_bits = _convert(types.uint32, types.float32, lambda builder, bits: builder.bitcast(bits, _FLOAT))
float_of_half = _convert(types.uint16, types.float32,
                         lambda builder, bits: builder.fpext(builder.bitcast(bits, _HALF), _FLOAT))
half_of_float = _convert(types.float32, types.uint16,
                         lambda builder, value: builder.bitcast(builder.fptrunc(value, _HALF), ir.IntType(16)))


# --- arrays that nobody counts

def _pointer(to_type):
    @intrinsic
    def pointer(context, address):
        return types.CPointer(to_type)(types.uintp), lambda context, builder, signature, arguments: builder.inttoptr(
            arguments[0], context.get_value_type(types.CPointer(to_type)))
    return pointer


_float_pointer, _pattern_pointer = _pointer(types.float32), _pointer(types.uint16)


@compiled
def uncounted_floats(array):
    """The same float32 array without its count of references: each slice of an array is counted, and threads that cut
    slices from one array would wait for one another at that count."""
    return carray(_float_pointer(array.ctypes.data), array.shape)


@compiled
def uncounted_patterns(array):
    """The same for an array of uint16."""
    return carray(_pattern_pointer(array.ctypes.data), array.shape)


# --- what threads agree by; `place` is the address of an int64

@intrinsic
def atomic_load(context, place):
    def generate(context, builder, signature, arguments):
        return builder.load_atomic(builder.inttoptr(arguments[0], _LONG.as_pointer()), "acquire", 8)
    return types.int64(types.uintp), generate


@intrinsic
def atomic_store(context, place, value):
    def generate(context, builder, signature, arguments):
        builder.store_atomic(arguments[1], builder.inttoptr(arguments[0], _LONG.as_pointer()), "release", 8)
        return context.get_dummy_value()
    return types.void(types.uintp, types.int64), generate


@intrinsic
def atomic_add(context, place, value):
    """Add, and give what stood there before."""
    def generate(context, builder, signature, arguments):
        return builder.atomic_rmw("add", builder.inttoptr(arguments[0], _LONG.as_pointer()), arguments[1], "acq_rel")
    return types.int64(types.uintp, types.int64), generate


@intrinsic
def atomic_replace(context, place, expected, value):
    """Put `value` where `expected` stands -> whether it stood there."""
    def generate(context, builder, signature, arguments):
        place = builder.inttoptr(arguments[0], _LONG.as_pointer())
        return builder.extract_value(builder.cmpxchg(place, arguments[1], arguments[2], "acq_rel", "acquire"), 1)
    return types.boolean(types.uintp, types.int64, types.int64), generate


@intrinsic
def pause(context):
    """Tell the processor that this thread waits."""
    def generate(context, builder, signature, arguments):
        if llvm.get_process_triple().startswith("x86"):
            builder.call(declare(builder, "llvm.x86.sse2.pause", ir.VoidType(), []), [])
        return context.get_dummy_value()
    return types.void(), generate
