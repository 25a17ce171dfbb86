"""Small loop programs, compiled and run: what the tests of the LLVM backend share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.kernel_modules import outside_symbols
from tracer.codegen.llvm.kernels.routines import library_names
from tracer.codegen.llvm.toolchain.ctypes_executable import Executable
from tracer.codegen.llvm.toolchain.object_code import compile_object, load_object
from tracer.ir.dtypes import BOOL, F32, F64, I64, NARROW_INTEGERS, DType, bits, is_integer
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Carry,
    Constant,
    For,
    Function,
    Invoke,
    LoopKind,
    Module,
    Operand,
    Register,
    Space,
    Statement,
    View,
    index_constant,
)  # fmt: skip

WIDTHS = (128, 256, 512)

# values at which operations change their mind
FLOAT_EDGES = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.75, -7.25, 1e-3, 100.0, -300.7, 65519.0, 65520.0, -65536.0,
    127.5, 128.0, -128.9, 255.9, 256.0, 2147483520.0, 2147483648.0, -2147483904.0, 4294967296.0, 9.3e18, -9.3e18,
    1.9e19, 1e-40, -1e-45, 3e38, 1e-5, 6e-8, np.inf, -np.inf, np.nan,
)  # fmt: skip


def edges(dtype: DType) -> np.ndarray[Any, Any]:
    """A few dozen values of the dtype, its ends among them."""
    if dtype == BOOL:
        return np.array([False, True])
    if dtype in NARROW_INTEGERS:
        return np.arange(1 << bits(dtype), dtype=np.uint8).view(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        ends = [limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2]
        near = [v for v in (-9, -8, -7, -2, -1, 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100) if v >= limits.min]
        return np.array(sorted({*ends, *near}), dtype)
    with np.errstate(all="ignore"):
        values = np.array(FLOAT_EDGES).astype(np.float32 if dtype not in (F32, F64) else dtype).astype(dtype)
    if dtype == F64:
        values = np.concatenate([values, [5e-324, 1.7e308, 0.1, 2.0**53 + 1, 1.0 + 2.0**-11 + 2.0**-40]])
    return values


def pairs(dtype: DType) -> list[np.ndarray[Any, Any]]:
    """Every two edges together, and a third that differs: an odd count of each."""
    a, b = (x.ravel() for x in np.meshgrid(edges(dtype), edges(dtype)))
    a, b = np.concatenate([a, a[: 1 - len(a) % 2]]), np.concatenate([b, b[: 1 - len(b) % 2]])
    return [a, b, np.roll(a, 5)]


def run(
    module: Module, arrays: Sequence[np.ndarray[Any, Any]], *, vector_bits: int | None = None, **options: Any
) -> Any:
    """Compile and call; the status and the context."""
    return executable(module, vector_bits=vector_bits).run(arrays, **options)


def executable(module: Module, *, vector_bits: int | None = None) -> Executable:
    text = emit_module(module, vector_bits=vector_bits)
    symbols = outside_symbols(text, library_names(module))
    return Executable(module, load_object(compile_object(text, vector_bits=vector_bits), symbols))


def module_of(
    parameters: Sequence[tuple[str, DType, int, bool]],
    body: Callable[..., Sequence[Statement]],
    *,
    arena: int = 0,
    stacks: int = 0,
) -> Module:
    """A module of one nest: `parameters` are (name, dtype, size, written), `body` takes the nest's buffers."""
    outer, inner = [], []
    for name, dtype, size, written in parameters:
        space = Space.OUTPUT if written else Space.INPUT
        outer.append(Buffer(name, dtype, size, space, written=written))
        inner.append(Buffer(name, dtype, size, Space.ARGUMENT, written=written))
    nest = Function("nest", tuple(inner), Block(tuple(body(*inner))))
    call = Invoke("nest", tuple(View(buffer) for buffer in outer))
    entry = Function("main", tuple(outer), Block((call,)))
    return Module((nest, entry), "main", arena, stacks)


def main_of(
    parameters: Sequence[tuple[str, DType, int, bool]],
    body: Callable[..., Sequence[Statement]],
    *,
    functions: Sequence[Function] = (),
    arena: int = 0,
    stacks: int = 0,
) -> Module:
    """A module whose entry is `body` itself, of the entry's buffers."""
    buffers = [Buffer(n, d, s, Space.OUTPUT if w else Space.INPUT, written=w) for n, d, s, w in parameters]
    entry = Function("main", tuple(buffers), Block(tuple(body(*buffers))))
    return Module((*functions, entry), "main", arena, stacks)


def loop(
    count: int | Operand,
    body: Callable[[Register], Sequence[Statement]],
    *,
    lanes: int = 0,
    carries: tuple[Carry, ...] = (),
    yields: tuple[Operand, ...] = (),
    results: tuple[Register, ...] = (),
    start: int = 0,
    step: int = 1,
) -> For:
    """A loop from `start` to `count`: a vector loop where it has lanes. `yields` may name registers of the body."""
    index = Register(I64, "i")
    kind = LoopKind.VECTOR if lanes else LoopKind.SERIAL
    stop = index_constant(count) if isinstance(count, int) else count
    block = Block(tuple(body(index)), yields)
    return For(index, index_constant(start), stop, block, kind, step, lanes or 1, carries, results)


def at(*terms: tuple[Register, int], constant: int = 0) -> Address:
    return Address(constant, terms)


def constant(value: Any, dtype: DType) -> Constant:
    with np.errstate(all="ignore"):
        return Constant(np.asarray(value).astype(dtype)[()], dtype)


def integer(value: int) -> Constant:
    return constant(value, I64)


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Equal bits, all NaNs alike."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if is_integer(a.dtype) or a.dtype == BOOL:
        return bool((a == b).all())
    word = np.dtype(f"u{a.dtype.itemsize}")
    with np.errstate(all="ignore"):
        nans = np.isnan(a.astype(np.float64)), np.isnan(b.astype(np.float64))
    return bool((nans[0] == nans[1]).all() and (a.view(word) == b.view(word))[~nans[0]].all())


RNG = np.random.default_rng(7)


def values_of(dtype: DType, size: int) -> np.ndarray[Any, Any]:
    if dtype == BOOL:
        return RNG.integers(0, 2, size).astype(np.bool_)
    if dtype.kind in "iu":
        return RNG.integers(0, 100, size).astype(dtype)
    return RNG.standard_normal(size).astype(dtype)
