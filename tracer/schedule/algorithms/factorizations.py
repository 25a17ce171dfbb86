"""cholesky, lu and triangular_solve: in lanes where matrices are small, else by LAPACK and BLAS.

LAPACK is column-major and arrays here are row-major. So the lower triangle of a Hermitian matrix is its upper one. A
triangular system from the left is one from the right. Only lu of complex matrices is transposed before and after.
Factorisations of large real matrices are kernels of tracer's own.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Final

import numpy as np

from tracer.ir import dtypes
from tracer.ir.layout import components
from tracer.ir.loop import LoopKind, Operand
from tracer.ir.loop.build import Builder, constant
from tracer.ir.primitive import Library
from tracer.ir.program import Atom, Equation
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, array_type, size
from tracer.primitives.linalg.matrix_stacks import SMALL
from tracer.schedule.algorithms.batched_small_matrices import Cells, Lanes, Stack, write_lanes
from tracer.schedule.terms.affine import (
    ZERO,
    Affine,
    flatten,
    of_operand,
    of_register,
    operand_of,
    plus,
    scaled,
    shifted,
)
from tracer.schedule.terms.cost import matrix_cost
from tracer.schedule.terms.schedules import Schedule
from tracer.schedule.terms.value_locations import Element, Memory
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter

_PANEL = 64  # columns of a panel of `lu`, whose scratch holds two panels with 128 extra rows
_MAX = SMALL * SMALL  # elements of right-hand sides that are kept in lanes


def _dtype(atom: Atom) -> dtypes.DType:
    assert isinstance(atom.type, ArrayType)
    return atom.type.dtype


# -- cholesky ----------------------------------------------------------------------------------------------------


def write_cholesky(writer: BlockWriter, equation: Equation) -> None:
    """Write the factor of each matrix."""
    (x,), (y,) = equation.inputs, equation.outputs
    n, count = x.type.shape[-1], prod(x.type.shape[:-2])
    target = writer.target_of(y)
    if not size(x.type):
        return
    source = writer.memory_of(x)
    if n <= SMALL:
        write_lanes(writer, [Stack(source, target, n, n)], count, n, partial(_cholesky, n))
        return
    work = writer.allocate(x.type)
    writer.copy(work, source)
    writer.builder.library(f"potrf_{dtypes.short_name(_dtype(x))}", work.view, count, n)
    shape = (count, n, n)
    f = FunctionWriter(writer)
    factor, result = f.memory(work), f.memory(target, written=True)
    with f.loops((count,), LoopKind.PARALLEL) as (matrix,):
        last = flatten((matrix, Affine(n - 1), Affine(n - 1)), shape)
        known = _is_not_nan(f.builder, load_at(f, factor, last)[0])
        with f.loops((n, n), LoopKind.PARALLEL) as (i, j):
            at = flatten((matrix, i, j), shape)
            element = load_at(f, factor, at)
            inside = f.builder.compute(ScalarOp.GE, operand_of(f.builder, i), operand_of(f.builder, j))
            found = f.builder.choose(known, element, _filled(element, np.nan))
            f.store_at(result, at, f.builder.choose(inside, found, _filled(element, 0)))
    f.invoke()


def _cholesky(n: int, lanes: Lanes, a: Cells) -> None:
    """Write the factor column by column.

    A non-positive pivot makes its root NaN, which reaches the last diagonal element.
    """
    b, end = lanes.b, Affine(n)

    def column(j: Affine) -> None:
        rest = lanes.fold(ZERO, j, a.get(j, j)[:1], lambda k, total: _less_square(b, total, a.get(j, k)))[0]
        positive = b.compute(ScalarOp.GT, rest, 0)
        root = b.select(positive, b.apply(ScalarOp.SQRT, rest), constant(np.nan, rest.dtype))
        inverse = b.apply(ScalarOp.DIV, constant(1, rest.dtype), root)
        a.put((root, constant(0, rest.dtype))[: a.parts], j, j)

        def below(i: Affine) -> None:
            total = lanes.fold(
                ZERO, j, a.get(i, j),
                lambda k, total: lanes.less_product(total, a.get(i, k), lanes.conjugate(a.get(j, k))),
            )  # fmt: skip
            a.put(lanes.by(total, inverse), i, j)

        lanes.each(shifted(j, 1), end, below)

    lanes.each(ZERO, end, column)
    last = a.get(Affine(n - 1), Affine(n - 1))
    known, lost, zero = _is_not_nan(b, last[0]), _filled(last, np.nan), _filled(last, 0)

    def row(i: Affine) -> None:
        lanes.each(ZERO, shifted(i, 1), lambda j: a.put(lanes.choose(known, a.get(i, j), lost), i, j))
        lanes.each(shifted(i, 1), end, lambda j: a.put(zero, i, j))

    lanes.each(ZERO, end, row)


def _less_square(b: Builder, total: Element, x: Element) -> Element:
    """Return total - |x|^2."""
    (left,) = total
    for part in x:
        left = b.apply(ScalarOp.FMA, b.apply(ScalarOp.NEG, part), part, left)
    return (left,)


def _is_not_nan(b: Builder, x: Operand) -> Operand:
    return b.apply(ScalarOp.EQ, x, x)


def _filled(like: Element, value: float) -> Element:
    return tuple(constant(value, part.dtype) for part in like)


# -- lu ----------------------------------------------------------------------------------------------------------


def write_lu(writer: BlockWriter, equation: Equation) -> None:
    """Write the factors of each matrix, the pivots and their permutation."""
    (x,), variables = equation.inputs, equation.outputs
    *stack, m, n = x.type.shape
    count, k = prod(stack), min(m, n)
    targets = [writer.target_of(variable) for variable in variables]
    source = writer.memory_of(x)
    if not size(x.type):
        f = FunctionWriter(writer)
        permutation = f.memory(targets[2], written=True)
        with f.loops((count, m), LoopKind.PARALLEL) as index:
            f.store_at(permutation, flatten(index, (count, m)), (_as_i32(f.builder, index[1]),))
        f.invoke()
        return
    if max(m, n) <= SMALL:
        sizes = ((m, n), (k, 1), (m, 1))
        stacks = [Stack(None, target, *of) for target, of in zip(targets, sizes, strict=True)]
        stacks[0] = Stack(source, targets[0], m, n)
        write_lanes(writer, stacks, count, max(m, n), partial(_lu, m, n))
        return
    dtype, chosen = _dtype(x), writer.allocate(array_type(dtypes.I32, (count, k)))
    if dtypes.is_complex(dtype):
        work = writer.allocate(x.type)
        write_turned(writer, source, work, (count, m, n))
        writer.builder.library(f"getrf_{dtypes.short_name(dtype)}", work.view, chosen.view, count, m, n)
        write_turned(writer, work, targets[0], (count, n, m))
    else:
        panels = writer.allocate(array_type(dtype, (2 * -(-min(k, _PANEL) // 8) * 8, m + 128)))
        writer.copy(targets[0], source)
        name = f"lu_{dtypes.short_name(dtype)}"
        writer.builder.library(name, targets[0].view, chosen.view, panels.view, count, m, n)
    _write_permutation(writer, chosen, targets[1], targets[2], (count, m, k))


def _lu(m: int, n: int, lanes: Lanes, a: Cells, pivots: Cells, permutation: Cells) -> None:
    """Write the factors column by column: the row of the largest element is swapped up and eliminated below."""
    b, rows, columns = lanes.b, Affine(m), Affine(n)
    lanes.each(ZERO, rows, lambda i: permutation.put((_as_i32(b, i),), i))

    def step(k: Affine) -> None:
        first = lanes.size(a.get(k, k))
        first = b.select(_is_not_nan(b, first), first, constant(-1, first.dtype))

        def compare(i: Affine, best: Element) -> Element:
            size = lanes.size(a.get(i, k))
            larger = b.apply(ScalarOp.GT, size, best[0])
            return b.select(larger, size, best[0]), b.select(larger, operand_of(b, i), best[1])

        _, place = lanes.fold(shifted(k, 1), rows, (first, operand_of(b, k)), compare)
        pivots.put((b.convert(place, dtypes.I32),), k)
        lanes.exchange(permutation, k, place, rows, Affine(1))
        lanes.exchange(a, k, place, rows, columns)
        pivot = a.get(k, k)
        is_zero = b.apply(ScalarOp.EQ, lanes.size(pivot), constant(0, pivot[0].dtype))
        one = (constant(1, pivot[0].dtype), constant(0, pivot[0].dtype))[: a.parts]
        divided = lanes.divider(lanes.choose(is_zero, one, pivot))

        def below(i: Affine) -> None:
            factor = divided(a.get(i, k))
            a.put(factor, i, k)
            lanes.each(
                shifted(k, 1), columns, lambda j: a.put(lanes.less_product(a.get(i, j), factor, a.get(k, j)), i, j)
            )

        lanes.each(shifted(k, 1), rows, below)

    lanes.each(ZERO, Affine(min(m, n)), step)


def _as_i32(b: Builder, index: Affine) -> Operand:
    if not index.terms:
        return constant(index.constant, dtypes.I32)
    return b.convert(operand_of(b, index), dtypes.I32)


def write_turned(writer: BlockWriter, source: Memory, target: Memory, sizes: tuple[int, int, int]) -> None:
    """Write target[c, j, i] = source[c, i, j]."""
    f = FunctionWriter(writer)
    read, written = f.memory(source), f.memory(target, written=True)
    turned = (sizes[0], sizes[2], sizes[1])
    with f.loops(turned, LoopKind.PARALLEL) as (matrix, j, i):
        element = load_at(f, read, flatten((matrix, i, j), sizes))
        f.store_at(written, flatten((matrix, j, i), turned), element)
    f.invoke()


def _write_permutation(
    writer: BlockWriter, chosen: Memory, pivots: Memory, permutation: Memory, sizes: tuple[int, int, int]
) -> None:
    """Write LAPACK's pivots, counted from 1, as indices and as the permutation of rows."""
    count, m, k = sizes
    f = FunctionWriter(writer)
    read = f.memory(chosen)
    steps, order = (f.memory(memory, written=True) for memory in (pivots, permutation))
    b = f.builder
    with f.loops((count,), LoopKind.PARALLEL) as (matrix,):
        with b.for_("i", 0, m) as loop:
            f.store_at(
                order, flatten((matrix, of_register(loop.index)), (count, m)), (b.convert(loop.index, dtypes.I32),)
            )
        with b.for_("k", 0, k) as loop:
            at = flatten((matrix, of_register(loop.index)), (count, k))
            place = b.compute(ScalarOp.SUB, load_at(f, read, at)[0], 1)
            f.store_at(steps, at, (place,))
            here = flatten((matrix, of_register(loop.index)), (count, m))
            there = flatten((matrix, of_operand(b.convert(place, dtypes.I64))), (count, m))
            x, y = load_at(f, order, here), load_at(f, order, there)
            f.store_at(order, there, x)
            f.store_at(order, here, y)
    f.invoke()


# -- triangular_solve --------------------------------------------------------------------------------------------


def write_triangular_solve(writer: BlockWriter, equation: Equation) -> None:
    """Write the solution of each system."""
    (a, b), (y,), params = equation.inputs, equation.outputs, equation.params
    left = params["left_side"]
    n, count = a.type.shape[-1], prod(a.type.shape[:-2])
    rows, columns = b.type.shape[-2:]
    target = writer.target_of(y)
    if not size(b.type):
        return
    matrix, given = writer.memory_of(a), writer.memory_of(b)
    if n <= SMALL and rows * columns <= _MAX:
        stacks = [Stack(matrix, None, n, n), Stack(given, target, rows, columns)]
        others = columns if left else rows
        write_lanes(writer, stacks, count, max(n, others), partial(_triangular, equation, n, others))
        return
    others = columns if left else rows
    is_conjugate = dtypes.is_complex(_dtype(a)) and params["conjugate_a"]
    through_side = is_conjugate and others == 1  # conj(a) y = x where a conj(y) = conj(x)
    if is_conjugate and not through_side and not params["transpose_a"]:
        work = writer.allocate(a.type)
        _write_conjugate(writer, matrix, work)
        matrix = work
    if through_side:
        _write_conjugate(writer, given, target)
    else:
        writer.copy(target, given)
    form = params["transpose_a"] * (1 + (is_conjugate and not through_side))
    writer.builder.library(
        f"trsm_{dtypes.short_name(_dtype(a))}", matrix.view, target.view, count, n, others,
        int(left), int(params["lower"]), int(form), int(params["unit_diagonal"]),
    )  # fmt: skip
    if through_side:
        _write_conjugate(writer, target, target)


def _triangular(equation: Equation, n: int, others: int, lanes: Lanes, a: Cells, x: Cells) -> None:
    """Write the solution row by row from the corner of the triangle, transposed for systems from the right."""
    params = equation.params
    left, unit = params["left_side"], params["unit_diagonal"]
    turned = params["transpose_a"] == left
    lower = params["lower"] != turned

    def matrix(i: Affine, j: Affine) -> Element:
        element = a.get(j, i) if turned else a.get(i, j)
        return lanes.conjugate(element) if params["conjugate_a"] else element

    def place(i: Affine, c: Affine) -> tuple[Affine, Affine]:
        return (i, c) if left else (c, i)

    def row(i: Affine) -> None:
        divided = None if unit else lanes.divider(matrix(i, i))
        start, stop = (ZERO, i) if lower else (shifted(i, 1), Affine(n))

        def column(c: Affine) -> None:
            at = place(i, c)
            total = lanes.fold(
                start, stop, x.get(*at), lambda j, total: lanes.less_product(total, matrix(i, j), x.get(*place(j, c)))
            )
            x.put(total if divided is None else divided(total), *at)

        lanes.each(ZERO, Affine(others), column)

    if lower:
        lanes.each(ZERO, Affine(n), row)
    else:
        lanes.each_down(n, row)


def _write_conjugate(writer: BlockWriter, source: Memory, target: Memory) -> None:
    f = FunctionWriter(writer)
    written = f.memory(target, written=True)
    read = written if source is target else f.memory(source)
    with f.loops((size(source.type),), LoopKind.PARALLEL) as (at,):
        real, imag = load_at(f, read, at)
        f.store_at(written, at, (real, f.builder.apply(ScalarOp.NEG, imag)))
    f.invoke()


# -- elements ----------------------------------------------------------------------------------------------------


def load_at(f: FunctionWriter, memory: Memory, position: Affine) -> Element:
    """Return the element at a row-major position."""
    _, parts = components(memory.type)
    place = plus(memory.start, scaled(position, parts))
    return tuple(f.builder.load(memory.buffer, shifted(place, part)) for part in range(parts))


CHOLESKY: Final = Schedule(Library, "cholesky", matrix_cost, write_cholesky)
LU: Final = Schedule(Library, "lu", matrix_cost, write_lu)
TRIANGULAR_SOLVE: Final = Schedule(Library, "triangular_solve", matrix_cost, write_triangular_solve)
