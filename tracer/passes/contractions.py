"""dot_general in the form that BLAS takes: [batch, m, k] x [batch, k, n], at most transposed within a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.program import Equation
from tracer.ir.types import ArrayType, Type
from tracer.primitives.arithmetic import mul
from tracer.primitives.bits import and_
from tracer.primitives.contractions import accumulation_dtype, dot_general, free_axes, in_dtype
from tracer.primitives.reductions import reduce_or, reduce_sum
from tracer.primitives.shapes import broadcast_in_dim, reshape, transpose
from tracer.primitives.zeros import zeros

_REAL = (dtypes.F32, dtypes.F64)
_BLAS = (*_REAL, dtypes.C64, dtypes.C128)


class _Side(NamedTuple):
    """One operand's axes by role."""

    type: ArrayType
    batch: tuple[int, ...]
    free: tuple[int, ...]
    contracted: tuple[int, ...]

    def sizes(self, axes: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.type.shape[axis] for axis in axes)


def canonical_dot(equation: Equation) -> Callable[[Any, Any], Any] | None:
    """The product as a function that writes its canonical form; None where it has that form already.

    Products and sums are computed in the accumulation dtype and rounded once; integers and booleans, for which there
    is no BLAS, and real vectors, which threads share and which fuse with what is around them, are multiplied and summed
    by loops of our own. Without products to sum, the result is zero.
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
    if compute not in _BLAS or (compute in _REAL and (_is_vector(x) or _is_vector(y))):
        return lambda a, b: _by_sums(a, b, x, y, compute, result)
    if _is_canonical(x) and _is_canonical(y) and lhs.dtype == rhs.dtype == result.dtype == compute:
        return None
    return lambda a, b: _by_blas(a, b, x, y, compute, result, precision)


def _is_vector(side: _Side) -> bool:
    """Whether there is one row to multiply in each batch: then the other operand's memory is what takes the time."""
    return prod(side.sizes(side.free)) == 1


def _is_canonical(side: _Side) -> bool:
    rank = len(side.batch)
    return rank <= 1 and side.batch == tuple(range(rank)) and len(side.free) == len(side.contracted) == 1


def _by_blas(a: Any, b: Any, x: _Side, y: _Side, compute: DType, result: Type, precision: Any) -> Any:
    a, a_swapped = _arranged(a, x, compute)
    b, b_swapped = _arranged(b, y, compute)
    rank = 1 if x.batch else 0
    contracted = ((rank if a_swapped else rank + 1,), (rank if b_swapped else rank + 1,))
    axes = tuple(range(rank))
    product = dot_general(a, b, (contracted, (axes, axes)), precision=precision, preferred_element_type=compute)
    return _finished(product, x, y, result)


def _by_sums(a: Any, b: Any, x: _Side, y: _Side, compute: DType, result: Type) -> Any:
    """Products of vectors, of integers, which wrap, or of booleans, over [batch, m, n, k]."""
    a, a_swapped = _arranged(a, x, compute)
    b, b_swapped = _arranged(b, y, compute)
    lead = (prod(x.sizes(x.batch)),) if x.batch else ()
    m, k, n = prod(x.sizes(x.free)), prod(x.sizes(x.contracted)), prod(y.sizes(y.free))
    rank = len(lead)
    axes, row, column, inner = tuple(range(rank)), rank, rank + 1, rank + 2
    a = _spread(a, a_swapped, (*lead, m, n, k), axes, row, inner)
    b = _spread(b, b_swapped, (*lead, m, n, k), axes, column, inner)
    if dtypes.is_bool(compute):
        return _finished(reduce_or(and_(a, b), (inner,)), x, y, result)
    return _finished(reduce_sum(mul(a, b), (inner,)), x, y, result)


def _spread(x: Any, swapped: bool, shape: Sequence[int], axes: tuple[int, ...], free: int, inner: int) -> Any:
    """[batch, free, contracted] broadcast to all indices."""
    if swapped:
        rank = len(axes)
        x = transpose(x, (*axes, rank + 1, rank))
    return broadcast_in_dim(x, shape, (*axes, free, inner))


def _finished(product: Any, x: _Side, y: _Side, result: Type) -> Any:
    """[batch, m, n] in the shape and dtype of the result."""
    assert isinstance(result, ArrayType)
    shaped = reshape(product, (*x.sizes(x.batch), *x.sizes(x.free), *y.sizes(y.free)))
    return in_dtype(shaped, result.dtype)


def _arranged(a: Any, side: _Side, dtype: DType) -> tuple[Any, bool]:
    """The operand as [batch, free, contracted], or [batch, contracted, free] where it lies so; and which it is."""
    natural = tuple(range(len(side.type.shape)))
    swapped = side.batch + side.contracted + side.free == natural and bool(side.contracted) and bool(side.free)
    order = side.batch + (side.contracted + side.free if swapped else side.free + side.contracted)
    sizes = [prod(side.sizes(side.free)), prod(side.sizes(side.contracted))]
    lead = (prod(side.sizes(side.batch)),) if side.batch else ()
    moved = a if order == natural else transpose(a, order)
    shaped = reshape(moved, (*lead, *(reversed(sizes) if swapped else sizes)))
    return in_dtype(shaped, dtype), swapped
