"""Library routines in NumPy, by the names that `Library` statements use.

A routine takes a statement's arguments in order: a `Span` for a view, a NumPy scalar for an operand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tracer.codegen.reference.memory import Region, Violation
from tracer.codegen.reference.races import Array, Clock
from tracer.ir.dtypes import (
    BF16,
    C64,
    C128,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    DType,
    complex_dtype,
    real_dtype,
    short_name,
)
from tracer.primitives.control.shared_words import words
from tracer.primitives.linalg.fourier import transformed
from tracer.primitives.linalg.lapack_calls import ROUTINES, call_stack, item_of
from tracer.primitives.linalg.matrix_stacks import LETTERS, scipy_linalg


@dataclass(frozen=True, slots=True)
class Span:
    """Checked memory from an element on."""

    region: Region
    start: int
    clock: Clock

    def read(self, count: int, dtype: DType) -> Array:
        """Return `count` values of `dtype`; complex ones may lie as pairs of floats."""
        return self.region.read_span(self.start, count * self._cells(dtype), self.clock).view(dtype)

    def write(self, values: Array) -> None:
        """Store all the values, in row-major order."""
        self._cells(values.dtype)
        self.region.write_span(self.start, values.ravel().view(self.region.dtype), self.clock)

    def _cells(self, dtype: DType) -> int:
        """Return how many elements of the buffer a value takes."""
        held = self.region.dtype
        is_bits = dtype == BF16 and held.kind in "iu" and held.itemsize == dtype.itemsize
        if held == dtype or is_bits:
            return 1
        if held == real_dtype(dtype):
            return 2
        takes = short_name(dtype)
        raise Violation(f"hands '{self.region.name}' of {short_name(held)} to a routine of {takes}")


def _gemm(dtype: DType, operands: DType | None = None) -> Callable[..., None]:
    """Return out[i] = op(a[i]) @ op(b[i]) for each i of the batch, all row-major, [m, k] @ [k, n] -> [m, n].

    transpose_a, transpose_b: 0 or 1; a is then stored [k, m], b [n, k]. stride_a, stride_b: values of `dtype` from one
    matrix to the next, 0 for one that all products share. operands: their dtype, where it is another.
    """
    given = operands or dtype

    def run(a: Span, b: Span, out: Span, *numbers: Any) -> None:
        batch, m, n, k, transpose_a, transpose_b, stride_a, stride_b = (int(x) for x in numbers)
        if not (batch and m and n):
            return
        if not k:
            out.write(np.zeros(batch * m * n, dtype))
            return
        left = _matrices(a.read((batch - 1) * stride_a + m * k, given), batch, m, k, transpose_a, stride_a)
        right = _matrices(b.read((batch - 1) * stride_b + k * n, given), batch, k, n, transpose_b, stride_b)
        out.write(np.matmul(left.astype(dtype, copy=False), right.astype(dtype, copy=False)))

    return run


def _matrices(flat: Array, batch: int, rows: int, columns: int, transposed: int, stride: int) -> Array:
    starts = np.arange(batch)[:, None] * stride
    shape = (batch, columns, rows) if transposed else (batch, rows, columns)
    stack = flat[starts + np.arange(rows * columns)].reshape(shape)
    return np.asarray(stack.transpose(0, 2, 1) if transposed else stack)


def _potrf(dtype: DType) -> Callable[..., None]:
    """Return the Cholesky factorization: lower triangles in place, NaN as the last element of a failed one."""

    def run(a: Span, *numbers: Any) -> None:
        batch, n = (int(x) for x in numbers)
        matrices = a.read(batch * n * n, dtype).reshape(batch, n, n).copy()
        for matrix in matrices:
            try:
                matrix[...] = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                matrix[-1, -1] = np.nan
        a.write(matrices)

    return run


def _getrf(dtype: DType) -> Callable[..., None]:
    """Return the LU factorization in place of matrices [m, n] by columns; chosen rows count from 1."""

    def run(a: Span, pivots: Span, *numbers: Any) -> None:
        batch, m, n = (int(x) for x in numbers)
        matrices = a.read(batch * m * n, dtype).reshape(batch, n, m).copy()
        chosen = np.empty((batch, min(m, n)), np.int32)
        factor = scipy_linalg("lapack", f"{LETTERS[dtype]}getrf")
        for i, matrix in enumerate(matrices):
            factors, chosen[i], _ = factor(matrix.T)
            matrix[...] = factors.T
        a.write(matrices)
        pivots.write(chosen + np.int32(1))

    return run


def _lu(dtype: DType) -> Callable[..., None]:
    """Return the LU factorization in place of matrices [m, n]; chosen rows count from 1."""

    def run(a: Span, pivots: Span, work: Span, *numbers: Any) -> None:
        batch, m, n = (int(x) for x in numbers)
        matrices = a.read(batch * m * n, dtype).reshape(batch, m, n).copy()
        chosen = np.empty((batch, min(m, n)), np.int32)
        factor = scipy_linalg("lapack", f"{LETTERS[dtype]}getrf")
        for i, matrix in enumerate(matrices):
            matrix[...], chosen[i], _ = factor(matrix)
        a.write(matrices)
        pivots.write(chosen + np.int32(1))

    return run


def _trsm(dtype: DType) -> Callable[..., None]:
    """Return the triangular solve in place: op(a) X = x, or X op(a) = x. See `codegen.llvm.kernels.linalg.lapack`."""

    def run(a: Span, x: Span, *numbers: Any) -> None:
        batch, n, others, left, lower, form, unit = (int(x) for x in numbers)
        matrices = a.read(batch * n * n, dtype).reshape(batch, n, n)
        sides = x.read(batch * n * others, dtype).reshape(batch, *((n, others) if left else (others, n))).copy()
        solve = scipy_linalg("blas", f"{LETTERS[dtype]}trsm")
        for matrix, side in zip(matrices, sides, strict=True):
            side[...] = solve(1, matrix, side, side=1 - left, lower=lower, trans_a=form, diag=unit)
        x.write(sides)

    return run


def _lapack(key: str, dtype: DType) -> Callable[..., None]:
    """Return the routine on a stack of matrices. See `codegen.llvm.kernels.linalg.lapack_stacks`."""
    routine = ROUTINES[key]
    names = [name for name, _ in routine.arrays]

    def run(*arguments: Any) -> None:
        spans = dict(zip(names, arguments, strict=False))
        batch, _, *numbers = (int(x) for x in arguments[len(names) :])
        strides = dict(zip(names, numbers, strict=False))
        given: dict[str, Any] = dict(zip((*routine.sizes, *routine.letters), numbers[len(names) :], strict=True))
        given |= {name: chr(given[name]) for name in routine.letters}
        kept: dict[str, Array] = {}
        for name, item in routine.arrays:
            if name not in routine.scratch:
                kept[name] = np.zeros((batch, strides[name]), item_of(item, dtype))
            if name in routine.inputs:
                kept[name][...] = spans[name].read(kept[name].size, kept[name].dtype).reshape(kept[name].shape)
        call_stack(key, dtype, kept, given)
        for name, array in kept.items():
            spans[name].write(array)

    return run


def _sorts(dtype: DType, *, positions: bool) -> Callable[..., None]:
    """Return the stable sort of every row of `rows` by n, NaN last; or the positions of its elements in that order.

    Spare memory between target and rows is left alone.
    """

    def run(source: Span, target: Span, *others: Any) -> None:
        rows, n = others[-2:]
        keys = source.read(int(rows) * int(n), dtype).reshape(int(rows), int(n))
        order = np.argsort(keys, axis=1, kind="stable")
        target.write(order if positions else np.take_along_axis(keys, order, axis=1))

    return run


def _top_k(dtype: DType) -> Callable[..., None]:
    """Return the k largest elements of every row of `rows` by n, stably, NaN first, and their indices."""

    def run(source: Span, values: Span, places: Span, rows: Any, n: Any, k: Any) -> None:
        keys = source.read(int(rows) * int(n), dtype).reshape(int(rows), int(n))
        backwards = np.argsort(keys[:, ::-1], axis=1, kind="stable")[:, ::-1]
        order = int(n) - 1 - backwards[:, : int(k)]
        values.write(np.take_along_axis(keys, order, axis=1))
        places.write(order.astype(np.int32))

    return run


def _fft(dtype: DType) -> Callable[..., None]:
    """Return the Fourier transforms of source[o, :, i]. See `codegen.llvm.kernels.routines`."""
    whole = complex_dtype(dtype)

    def run(source: Span, target: Span, *others: Any) -> None:
        kind, outer, n, inner = (int(x) for x in others[-7:-3])
        fft_type, half = ("FFT", "IFFT", "RFFT", "IRFFT")[kind], n // 2 + 1
        given = half if fft_type == "IRFFT" else n
        x = source.read(outer * given * inner, dtype if fft_type == "RFFT" else whole).reshape(outer, given, inner)
        target.write(transformed(x, fft_type=fft_type, axis=1, length=n, scale=float(others[-1])))

    return run


_SORTED: Final = (I8, I16, I32, I64, U8, U16, U32, U64, F32, F64)


def _stream(target: Span, source: Span, count: Any, itemsize: Any) -> None:
    """Copy source[: count] to target[: count]; nothing for a count of 0, even out of bounds."""
    if count:
        values = source.region.read_span(source.start, int(count), source.clock)
        target.region.write_span(target.start, values, target.clock)


def _mark(word: Any, amount: Any) -> None:
    """Add to a shared word."""
    words()[int(word)] += int(amount)


LIBRARY_REFERENCE: Final[dict[str, Callable[..., None]]] = {
    "stream": _stream,
    "mark": _mark,
    **{f"gemm_{short_name(dtype)}": _gemm(dtype) for dtype in (F32, F64, C64, C128)},
    "gemm_bf16": _gemm(F32, BF16),
    "gemm_f16": _gemm(F32, F16),
    "gemm_i8": _gemm(I32, I8),
    **{
        f"{name}_{short_name(dtype)}": routine(dtype)
        for name, routine in (("potrf", _potrf), ("trsm", _trsm))
        for dtype in (F32, F64, C64, C128)
    },
    **{f"getrf_{short_name(dtype)}": _getrf(dtype) for dtype in (C64, C128)},
    **{f"lu_{short_name(dtype)}": _lu(dtype) for dtype in (F32, F64)},
    **{f"fft_{short_name(dtype)}": _fft(dtype) for dtype in (F32, F64)},
    **{f"{key}_{short_name(dtype)}": _lapack(key, dtype) for key in ROUTINES for dtype in (F32, F64, C64, C128)},
    **{f"topk_{short_name(dtype)}": _top_k(dtype) for dtype in _SORTED},
    **{f"sort_{short_name(dtype)}": _sorts(dtype, positions=False) for dtype in _SORTED},
    **{
        f"{name}_{short_name(dtype)}": _sorts(dtype, positions=True)
        for name in ("argsort", "radix")
        for dtype in _SORTED
    },
}
