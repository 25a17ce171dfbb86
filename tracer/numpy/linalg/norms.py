"""Norms of vectors and matrices, and condition numbers, for `tracer.numpy.linalg`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import cast
from tracer.numpy.core.docstrings import PHRASES
from tracer.numpy.core.promotion import promoted_inexact
from tracer.numpy.elementwise.arithmetic import absolute
from tracer.numpy.elementwise.powers import power
from tracer.numpy.linalg.decompositions import singular_values
from tracer.numpy.linalg.solving import inverse, matrices
from tracer.numpy.reduce.reductions import any as any_of
from tracer.numpy.reduce.reductions import max, min, sum
from tracer.numpy.shapes.manipulation import expand_dims, moveaxis, ravel
from tracer.primitives.base.broadcasting import axis_of
from tracer.primitives.elementwise import comparison, powers
from tracer.primitives.elementwise import complex as parts
from tracer.primitives.linalg import spectral
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array
from tracer.trace.docstrings import say
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries


def norm(x: Any, ord: Any = None, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """Return the norm of vectors along one axis, or of matrices along two; without an axis and `ord`, of all elements.

    x: [*s]; axis: one, two, or None for all elements; ord: for vectors None or 2 (Euclidean), 1, inf, -inf, 0 (the
    number of nonzeros), or any power; for matrices as in `matrix_norm`, None being "fro"; keepdims: keep the axes with
    size 1. Returns floats [*s minus axes], of x's precision; integers are cast. The derivative at 0 is 0. Raises
    ArgumentError for another ord.

    >>> tnp.linalg.norm(tnp.asarray([3.0, 4.0]))
    Array(5., f64)
    """
    (value,) = promoted_inexact("norm", x)
    if axis is None and ord is None:
        flat = ravel(value)
        result = _euclidean(flat, 0)
        return result.reshape((1,) * value.ndim) if keepdims else result
    axes = tuple(range(value.ndim)) if axis is None else tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    axes = tuple(axis_of("norm", a, value.ndim) for a in axes)  # type: ignore[arg-type]
    if len(axes) == 1:
        return vector_norm(value, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) == 2:
        return _matrix_norm(value, "fro" if ord is None else ord, axes, keepdims)
    raise ShapeError(
        message(f"norm{here()} takes vectors or matrices", f"got {value.type}, axis={axis}", help="give axis=")
    )


def vector_norm(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Return the norm of vectors along one or more axes, taken together.

    x: [*s]; axis: one or several, by default all; keepdims: keep them with size 1; ord: as in `norm`. Returns floats
    [*s minus axes].

    >>> tnp.linalg.vector_norm(tnp.asarray([3.0, -4.0]), ord=1)
    Array(7., f64)
    """
    (value,) = promoted_inexact("vector_norm", x)
    if ord == 2:
        return _euclidean(value, axis, keepdims)
    size = absolute(value)
    if ord == np.inf:
        return max(size, axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return min(size, axis, keepdims=keepdims)
    if ord == 0:
        return sum(cast(comparison.ne(value, 0), size.dtype), axis, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ArgumentError(message(f"norm{here()}: no vector norm {ord!r}", help="2, 1, inf, -inf, 0, or any power"))
    return power(sum(power(size, ord), axis, keepdims=keepdims), 1.0 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return the norm of matrices in the last two axes.

    x: [*s, m, n]; keepdims: keep both axes with size 1; ord: "fro", 1, -1, inf, -inf, 2 (the largest singular value),
    -2 (the smallest) or "nuc" (their sum). Returns floats [*s], of x's precision; integers are cast. Raises
    ArgumentError for another ord.

    >>> tnp.linalg.matrix_norm(tnp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., f64)
    """
    (value,) = promoted_inexact("matrix_norm", x)
    return _matrix_norm(value, ord, (value.ndim - 2, value.ndim - 1), keepdims)


def _matrix_norm(x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    rows, columns = axes
    if ord == "fro":
        return _euclidean(x, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        summed, kept = (rows, columns) if ord in (1, -1) else (columns, rows)
        totals = sum(absolute(x), summed, keepdims=True)
        is_max = ord in (1, np.inf)
        extreme = max(totals, kept, keepdims=True, initial=0) if is_max else min(totals, kept, keepdims=True)
        return extreme if keepdims else extreme.squeeze(axes)
    if ord in (2, -2, "nuc"):
        values: Array = spectral.svdvals(moveaxis(x, axes, (-2, -1)))
        found: Array = max(values, -1, initial=0) if ord == 2 else (min if ord == -2 else sum)(values, -1)
        return expand_dims(found, axes) if keepdims else found
    raise ArgumentError(
        message(f"norm{here()}: no matrix norm {ord!r}", help='ord is "fro", "nuc", 1, -1, 2, -2, inf or -inf')
    )


def _euclidean(x: Array, axis: Any, keepdims: bool = False) -> Array:
    squares = sum(
        parts.real(x * parts.conj(x)) if dtypes.is_complex(x.dtype) else powers.square(x), axis, keepdims=keepdims
    )
    zero = comparison.eq(squares, 0)
    root = powers.sqrt(comparison.select(zero, 1, squares))
    return comparison.select(zero, 0, root)


def cond(x: Any, p: Any = None) -> Array:
    """Return the condition number: the ratio of the extreme singular values, or of other norms.

    x: [*s, m, n]; p: None or 2 for matrices of any shape; 1, -1, inf, -inf, -2, "fro" or "nuc". Returns [*s]: infinity
    for singular matrices. Raises ShapeError for matrices without elements, LinAlgError if concrete ones are not finite.

    >>> tnp.linalg.cond(tnp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array(2., f64)
    """
    value = matrices("cond", x, square=p not in (None, 2, -2))
    if not value.shape[-1] * value.shape[-2]:
        raise ShapeError(message(f"cond{here()} takes matrices with elements", f"got {value.type}"))
    if p in (None, 2, -2):
        values = singular_values("cond", value)
        ratio = values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    else:
        ratio = matrix_norm(value, ord=p) * matrix_norm(inverse(value), ord=p)
    given = any_of(comparison.ne(value, value), (-2, -1))
    return comparison.select(~given & comparison.ne(ratio, ratio), np.inf, ratio)


_CACHED = ("matrix_norm", "norm", "vector_norm")  # by types alone
set_boundaries(globals(), _CACHED, cached)
set_boundaries(globals(), ["cond"])
say([cond, matrix_norm, norm, vector_norm], PHRASES)
