"""Strategy of contractions in NumPy: matrix products, and summed products for small vectors.

BLAS sums in an order of its own, which differs between machines. Small products are summed in NumPy's order instead,
which compiled code can follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tracer.ir import dtypes, shape
from tracer.ir.types import Shape
from tracer.primitives.elementwise.complex_reference import product

Axes = tuple[int, ...]
DimensionNumbers = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]

_ADDED = (dtypes.F32, dtypes.F64, dtypes.C64, dtypes.C128)
_MAX_PRODUCTS = 1 << 10  # where BLAS takes as long
_MAX_ALONG = 64  # elements that NumPy sums in one block, also complex ones
_MAX_ROWS = 32


def free_axes(rank: int, *taken: Sequence[int]) -> Axes:
    """Return the axes that are neither contracted nor batched."""
    gone = {axis for axes in taken for axis in axes}
    return tuple(axis for axis in range(rank) if axis not in gone)


class Way(NamedTuple):
    """Contraction as a matrix product: the order and shape of each operand, None to leave it as it is.

    summed: the axis of the products [m, k] or [k, n] to sum, if one operand is a short vector.
    """

    left: tuple[Axes, Shape] | None
    right: tuple[Axes, Shape] | None
    result: Shape
    summed: int | None


@lru_cache(maxsize=1024)
def way_of(lhs: Shape, rhs: Shape, dimension_numbers: DimensionNumbers) -> Way:
    """Return the way to contract operands of these shapes."""
    (left, right), (left_batch, right_batch) = dimension_numbers
    left_free = free_axes(len(lhs), left, left_batch)
    right_free = free_axes(len(rhs), right, right_batch)
    batch, rows, inner, columns = (
        tuple(sizes[axis] for axis in axes)
        for sizes, axes in ((lhs, left_batch), (lhs, left_free), (lhs, left), (rhs, right_free))
    )
    lead = (shape.size(batch),) if batch else ()  # without batch axes, two-dimensional products go to BLAS as they lie
    m, k, n = shape.size(rows), shape.size(inner), shape.size(columns)
    x = left_batch + left_free + left, (*lead, m, k)
    y = right_batch + right + right_free, (*lead, k, n)
    summed = None if batch else _summed(m, k, n)
    return Way(_unless_same(lhs, *x), _unless_same(rhs, *y), batch + rows + columns, summed)


def _unless_same(sizes: Shape, order: Axes, target: Shape) -> tuple[Axes, Shape] | None:
    return None if order == tuple(range(len(sizes))) and target == sizes else (order, target)


def _summed(m: int, k: int, n: int) -> int | None:
    if not 0 < m * k * n <= _MAX_PRODUCTS:
        return None
    if n == 1 and k <= _MAX_ALONG:
        return 1
    return 0 if m == 1 and k <= _MAX_ROWS else None


def summed_axis(way: Way, dtype: Any) -> int | None:
    """Return `way.summed` if the dtype's products are rounded and summed in NumPy's order, else None."""
    return way.summed if dtype in _ADDED else None


def added_up(x: Any, y: Any, axis: int) -> Any:
    """Multiply [m, k] by [k, n], m or n being 1, as products summed in NumPy's order. Returns [m] or [n]."""
    factors = (x, y.T) if axis == 1 else (x.T, y)
    multiply = product if x.dtype.kind == "c" else np.multiply
    return np.add.reduce(np.ascontiguousarray(multiply(*factors)), axis=axis)
