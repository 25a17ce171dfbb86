"""Canonical form of dot_general, as BLAS takes it: [batch, m, k] x [batch, k, n], at most transposed per matrix.

Operands keep a dtype that the target multiplies natively; other operands are converted to the accumulator's dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.program import Equation
from tracer.ir.target import Dot, Target
from tracer.ir.types import ArrayType, Type
from tracer.primitives.arrays.reductions.reductions import reduce_or, reduce_sum
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.shapes import broadcast_in_dim, reshape, transpose
from tracer.primitives.elementwise.arithmetic import mul
from tracer.primitives.elementwise.bits import and_
from tracer.primitives.linalg.dot_general import accumulation_dtype, dot_general, in_dtype
from tracer.primitives.linalg.matvec_strategies import free_axes

_REAL = (dtypes.F32, dtypes.F64)
_FEW_ROWS, _FEW_COLUMNS = 4, 8
_LONG = 16
_MIN_SKINNY_WORK = 1 << 9  # multiplications: fewer are written as loops in any form
_MIN_STREAMED = 1 << 16  # elements of a large matrix
_MIN_DOT, _MIN_ROW = 48, 32  # elements of it that follow each other, along k and beside it


class _Side(NamedTuple):
    """Axes of one operand, by role."""

    type: ArrayType
    batch: tuple[int, ...]
    free: tuple[int, ...]
    contracted: tuple[int, ...]

    def sizes(self, axes: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.type.shape[axis] for axis in axes)

    def lies(self, order: Sequence[int]) -> bool:
        """Whether the elements lie in this order of axes; an axis of size 1 may stand anywhere."""
        several = [axis for axis in order if self.type.shape[axis] > 1]
        return several == sorted(several)


def canonical_dot(equation: Equation, target: Target) -> Callable[[Any, Any], Any] | None:
    """Return a function that writes the product in canonical form, or None where it has that form already.

    Products and sums are computed in the accumulation dtype and rounded once. Loops multiply and sum integers and
    booleans, which BLAS lacks. They also compute products of real vectors (outer products, too) and skinny matrices.
    Threads share these loops, and the loops fuse with their neighbours. Without products to sum, the result is zero.
    """
    lhs, rhs, result = (a.type for a in (*equation.inputs, *equation.outputs))
    assert isinstance(lhs, ArrayType)
    assert isinstance(rhs, ArrayType)
    assert isinstance(result, ArrayType)
    (left, right), (left_batch, right_batch) = equation.params["dimension_numbers"]
    x = _Side(lhs, left_batch, free_axes(len(lhs.shape), left, left_batch), left)
    y = _Side(rhs, right_batch, free_axes(len(rhs.shape), right, right_batch), right)
    if 0 in (*lhs.shape, *rhs.shape):
        return lambda a, b: zeros(result)
    compute = accumulation_dtype(lhs.dtype, result.dtype)
    precision = equation.params["precision"]
    loops = _is_row(x.sizes(x.free)) or _is_row(y.sizes(y.free)) or _is_row(x.sizes(x.contracted))
    native = _native(x, y, compute, target) if precision is None else None
    if target.dot(compute, compute) is None and (native is None or loops):
        return lambda a, b: _by_sums(a, b, x, y, compute, result)
    keeps_skinny = native is not None and native.skinny
    if compute in _REAL and (loops or (_is_skinny(x, y) and not keeps_skinny)):
        return lambda a, b: _by_sums(a, b, x, y, compute, result)
    if compute in _REAL and native is None and _is_better_turned(x, y):
        return lambda a, b: _turned(_by_blas(b, a, y, x, (None, None), compute, compute, result, precision), x, y)
    in_pairs = native is not None and native.pairs
    forms = (False, None if _is_even(prod(x.sizes(x.contracted))) else True) if in_pairs else (None, None)
    operands = compute if native is None else native.operands
    as_they_are = all(_is_canonical(side, form) for side, form in zip((x, y), forms, strict=True))
    if as_they_are and lhs.dtype == rhs.dtype == operands and result.dtype == compute:
        return None
    return lambda a, b: _by_blas(a, b, x, y, forms, operands, compute, result, precision)


def _is_row(sizes: Sequence[int]) -> bool:
    """Whether there is one element along the axes in each batch: then the product is bound by memory."""
    return prod(sizes) == 1


def _lies_contracted_first(side: _Side) -> bool:
    return side.lies(side.batch + side.contracted + side.free)


def _sizes(x: _Side, y: _Side) -> tuple[int, int, int]:
    """Return m, n and k."""
    return prod(x.sizes(x.free)), prod(y.sizes(y.free)), prod(x.sizes(x.contracted))


def _is_skinny(x: _Side, y: _Side) -> bool:
    """Whether loops read the matrices better than BLAS, to which our kernels leave matrices of few rows or columns.

    Measured on one thread in f32: (3, 1024) @ (1024, 1024) 139 µs for 549, (1000, 1000) @ (5, 1000).T 139 for 300,
    (3, 100000).T @ (3, 3) 140 for 519.
    """
    m, n, k = _sizes(x, y)
    if m * n * k <= _MIN_SKINNY_WORK or _is_streamed(x, y):
        return False
    turned = _lies_contracted_first(x), not _lies_contracted_first(y)
    if m < _FEW_ROWS:
        return not all(turned)
    if k <= _FEW_ROWS:
        return (turned[0] and n <= _FEW_ROWS) or (turned[1] and m <= _FEW_ROWS)
    return turned == (False, True) and n < _FEW_COLUMNS and k >= _LONG


def _is_streamed(x: _Side, y: _Side) -> bool:
    """Whether one matrix is large beside a few rows or columns, in a layout that kernels read once."""
    m, n, k = _sizes(x, y)
    few, many, large = (m, n, y) if m < n else (n, m, x)
    first = _lies_contracted_first(large)
    follow = many >= _MIN_ROW and k >= _LONG if first else k >= _MIN_DOT and many >= _LONG
    return (
        1 < few < _FEW_COLUMNS
        and follow
        and many * k >= _MIN_STREAMED
        and x.type.dtype == y.type.dtype
        and x.type.dtype in _REAL
    )


def _is_better_turned(x: _Side, y: _Side) -> bool:
    """Whether b.T @ a.T reads memory in order where a @ b does not: a turned operand beside few rows or columns.

    Measured on one thread in f32: (2048, 2048).T @ (2048, 2) 2.2 ms for 30, (8, 2048) @ (2048, 2048).T 0.8 for 3.6.
    """
    m, n, k = _sizes(x, y)
    turned = _lies_contracted_first(x), not _lies_contracted_first(y)
    if m * n * k <= _MIN_SKINNY_WORK or (turned[1] and m < n and _is_streamed(x, y)):
        return False
    return (turned[0] and n <= _FEW_COLUMNS < m) or (turned[1] and m <= _FEW_COLUMNS < n and (turned[0] or k >= _LONG))


def _turned(product: Any, x: _Side, y: _Side) -> Any:
    """Transpose [batch, y's free axes, x's free axes] to x's first."""
    batch, rows, columns = len(x.batch), len(x.free), len(y.free)
    at = batch + columns
    return transpose(product, (*range(batch), *range(at, at + rows), *range(batch, at)))


def _native(x: _Side, y: _Side, compute: DType, target: Target) -> Dot | None:
    """Return the target's product of operands narrower than the accumulator, or None where they are converted."""
    dot = target.dot(x.type.dtype, compute) if x.type.dtype == y.type.dtype != compute else None
    m, n, k = _sizes(x, y)
    return dot if dot is not None and n >= dot.least_columns and m * n * k > dot.least_work else None


def _is_even(size: int) -> bool:
    return size % 2 == 0


def _is_canonical(side: _Side, swapped: bool | None) -> bool:
    """Whether the operand has canonical form.

    swapped: whether the contracted axis must come first, None if either order is allowed.
    """
    rank = len(side.batch)
    if rank > 1 or side.batch != tuple(range(rank)) or not len(side.free) == len(side.contracted) == 1:
        return False
    return swapped is None or swapped == (side.contracted < side.free)


def _by_blas(
    a: Any,
    b: Any,
    x: _Side,
    y: _Side,
    forms: tuple[bool | None, bool | None],
    operands: DType,
    compute: DType,
    result: Type,
    precision: Any,
) -> Any:
    a, a_swapped = _arranged(a, x, operands, forms[0])
    b, b_swapped = _arranged(b, y, operands, forms[1])
    rank = 1 if x.batch else 0
    contracted = ((rank if a_swapped else rank + 1,), (rank if b_swapped else rank + 1,))
    axes = tuple(range(rank))
    product = dot_general(a, b, (contracted, (axes, axes)), precision=precision, preferred_element_type=compute)
    return _finished(product, x, y, result)


def _by_sums(a: Any, b: Any, x: _Side, y: _Side, compute: DType, result: Type) -> Any:
    """Compute products of vectors, integers (which wrap) or booleans, over [batch, m, n, k] without axes of size 1."""
    lead, rows, inner = _lead(x), _several(x.sizes(x.free)), _several(x.sizes(x.contracted))
    columns = _several(y.sizes(y.free))
    shape = (*lead, *rows, *columns, *inner)
    batch, last = tuple(range(len(lead))), tuple(range(len(shape) - len(inner), len(shape)))
    column = len(lead) + len(rows)
    a = _spread(a, x, compute, shape, (*batch, *range(len(lead), column), *last))
    b = _spread(b, y, compute, shape, (*batch, *range(column, column + len(columns)), *last))
    if dtypes.is_bool(compute):
        product = and_(a, b)
        return _finished(reduce_or(product, last) if inner else product, x, y, result)
    product = mul(a, b)
    return _finished(reduce_sum(product, last) if inner else product, x, y, result)


def _several(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes as one, or none if that has size 1."""
    count = prod(sizes)
    return (count,) if count > 1 else ()


def _lead(side: _Side) -> tuple[int, ...]:
    """Return the batch axes as one, if there are any."""
    return (prod(side.sizes(side.batch)),) if side.batch else ()


def _spread(a: Any, side: _Side, dtype: DType, shape: Sequence[int], axes: tuple[int, ...]) -> Any:
    """Return the operand as [batch, free, contracted], without axes of size 1, broadcast to all indices."""
    order = side.batch + side.free + side.contracted
    moved = a if side.lies(order) else transpose(a, order)
    free, inner = _several(side.sizes(side.free)), _several(side.sizes(side.contracted))
    return broadcast_in_dim(in_dtype(reshape(moved, (*_lead(side), *free, *inner)), dtype), shape, axes)


def _finished(product: Any, x: _Side, y: _Side, result: Type) -> Any:
    """Return [batch, m, n] in the shape and dtype of the result."""
    assert isinstance(result, ArrayType)
    shaped = reshape(product, (*x.sizes(x.batch), *x.sizes(x.free), *y.sizes(y.free)))
    return in_dtype(shaped, result.dtype)


def _arranged(a: Any, side: _Side, dtype: DType, form: bool | None) -> tuple[Any, bool]:
    """Return the operand as [batch, free, contracted], or [batch, contracted, free], and whether it is the latter.

    form: which of the two; None keeps the operand's layout.
    """
    swapped = _lies_contracted_first(side) and not side.lies(side.batch + side.free + side.contracted)
    swapped = swapped if form is None else form
    order = side.batch + (side.contracted + side.free if swapped else side.free + side.contracted)
    sizes = [prod(side.sizes(side.free)), prod(side.sizes(side.contracted))]
    moved = a if side.lies(order) else transpose(a, order)
    shaped = reshape(moved, (*_lead(side), *(reversed(sizes) if swapped else sizes)))
    return in_dtype(shaped, dtype), swapped
