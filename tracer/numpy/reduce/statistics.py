"""Means, variances, medians and weighted averages over axes, variants that ignore NaN, and `bincount`."""

from __future__ import annotations

import builtins
from functools import partial
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, TracerArrayError, message
from tracer.ir import dtypes, shape
from tracer.numpy.core.conversion import broadcast, cast, dtype_of_argument, floating, inexact_dtype, no_out
from tracer.numpy.core.fast_asarray import known_value
from tracer.numpy.core.promotion import operand, promoted_inexact
from tracer.numpy.elementwise.logic import isnan, truth
from tracer.numpy.reduce.reductions import Axis, all, argmax, argmin, axes_argument, extreme_value, max, min, sum
from tracer.numpy.reduce.sorting import sort
from tracer.numpy.shapes.manipulation import moveaxis
from tracer.primitives.arrays.indexing.dimension_numbers import ScatterDimensionNumbers
from tracer.primitives.arrays.indexing.gather import scatter_add
from tracer.primitives.arrays.slice_pad_concatenate import slice_in_dim
from tracer.primitives.base.broadcasting import axis_of, full
from tracer.primitives.base.shapes import expand_dims, reshape, transpose
from tracer.primitives.elementwise import arithmetic, bits, comparison, powers
from tracer.primitives.elementwise import complex as parts
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array, concrete_value, unowned
from tracer.trace.integers import integer
from tracer.trace.source import here


def mean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Array:
    """Return the arithmetic mean over axes; integers are averaged as floats, float16 and bfloat16 in float32.

    a: [*s]; axis: one or several, by default all; keepdims: keep them with size 1. Returns [*s minus axes], in `dtype`,
    by default a's (integers give float32 up to 32 bits, else the default float). NaN for no elements.

    >>> tnp.mean(tnp.asarray([[1, 2], [3, 4]]), axis=0)
    Array([2., 3.], f64)
    """
    no_out("mean", out)
    x = operand("mean", a)
    wanted = inexact_dtype(x.dtype) if dtype is None else dtype_of_argument("mean", dtype)
    computed = dtypes.accumulator_dtype(wanted)
    total = sum(cast(x, computed), axis, keepdims=keepdims, where=where)
    if not dtypes.is_inexact(wanted):
        total = cast(total, dtypes.F64)
    return cast(arithmetic.div(total, _count(x, axis, keepdims, where, total)), wanted)


def _count(x: Array, axis: Axis, keepdims: bool, where: Any, total: Array) -> Any:
    """Return how many elements each mean includes: a scalar, or an array if `where` is given."""
    axes = axes_argument("mean", x, axis)
    if where is None:
        return total.dtype.type(shape.size([x.shape[d] for d in axes]))
    mask = broadcast(truth("mean", where), shape.broadcast(x.shape, truth("mean", where).shape))
    return broadcast(cast(sum(mask, axis, keepdims=keepdims), total.dtype), total.shape)


_mean = mean  # `var` and `std` have a parameter `mean`


def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """Return the mean over axes, weighted if `weights` are given.

    a: [*s]; weights: [*s], or the sizes of the axes; axis: one or several, by default all; keepdims: keep them with
    size 1; returned: return the sum of the weights as well. Returns floats or complex numbers [*s minus axes], or two
    such arrays. Raises ShapeError for weights of another shape.

    >>> tnp.average(tnp.asarray([1.0, 2.0]), weights=[1, 3])
    Array(1.75, f64)
    """
    x = operand("average", a)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        count = full(result.shape, x.size // builtins.max(result.size, 1), result.dtype)
        return (result, count) if returned else result
    given = spread_weights("average", x, weights, axis)
    values, factors = promoted_inexact("average", x, given)
    scale = sum(factors, axis, keepdims=keepdims)
    result = arithmetic.div(sum(arithmetic.mul(values, factors), axis, keepdims=keepdims), scale)
    return (result, scale) if returned else result


def spread_weights(name: str, x: Array, weights: Any, axis: Axis) -> Array:
    """Broadcast weights to an array's shape. They may have the shape of `axis`, in the given order."""
    given = operand(name, weights)
    if given.shape == x.shape:
        return given
    axes = [] if axis is None else [axis_of(name, d, x.ndim) for d in (axis if isinstance(axis, tuple) else (axis,))]
    if not axes or given.shape != tuple(x.shape[d] for d in axes):
        raise ShapeError(
            message(
                f"{name}{here()}: weights have the shape of the array or of its axes",
                f"got weights {given.type} for {x.type}, axis={axis}",
            )
        )
    ordered = transpose(given, [axes.index(d) for d in sorted(axes)])
    return broadcast(reshape(ordered, [n if d in axes else 1 for d, n in enumerate(x.shape)]), x.shape)


def var(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: float | None = None,
) -> Array:  # fmt: skip
    """Return the variance over axes: the sum of squared distances from the mean, over the count minus `ddof`.

    a: [*s]; axis: one or several, by default all; mean: a precomputed mean, with the axes kept at size 1; correction:
    another name of `ddof`. Returns floats [*s minus axes] of a's precision (integers give float32 up to 32 bits, else
    the default float) or of `dtype`. Complex numbers have real variances. Infinity or NaN if the count is at most
    `ddof`.

    >>> tnp.var(tnp.asarray([1.0, 2.0, 3.0]))
    Array(0.66666667, f64)
    """
    no_out("var", out)
    x = operand("var", a)
    wanted = inexact_dtype(x.dtype) if dtype is None else dtype_of_argument("var", dtype)
    values = cast(x, dtypes.accumulator_dtype(wanted) if dtypes.is_inexact(wanted) else dtypes.F64)
    centre = (
        _mean(values, axis, None, None, True, where=where) if mean is None else cast(operand("var", mean), values.dtype)
    )
    distance = arithmetic.sub(values, broadcast(centre, values.shape))
    if dtypes.is_complex(values.dtype):
        squares = parts.real(arithmetic.mul(distance, parts.conj(distance)))
    else:
        squares = powers.square(distance)
    total = sum(squares, axis, keepdims=keepdims, where=where)
    count = _count(x, axis, keepdims, where, total)
    taken_off = total.dtype.type(degrees_taken_off("var", ddof, correction))
    left: Any = arithmetic.sub(count, taken_off) if isinstance(count, Array) else builtins.max(count - taken_off, 0)
    if isinstance(left, Array):
        left = arithmetic.max(left, 0)
    return cast(arithmetic.div(total, left), dtypes.real_dtype(wanted) if dtype is None else wanted)


def std(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: float | None = None,
) -> Array:  # fmt: skip
    """Return the standard deviation over axes, the square root of `var`.

    a: [*s]; axis, ddof, keepdims, mean, correction, dtype: as in `var`. Returns floats [*s minus axes].

    >>> tnp.std(tnp.asarray([1.0, 3.0]))
    Array(1., f64)
    """
    variance = var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    return powers.sqrt(variance)


def median(a: Any, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """Return the median over axes, the mean of the middle two of an even number of elements; NaN if one is NaN.

    a: [*s]; axis: one or several, by default all. Returns floats or complex numbers [*s minus axes]; integers give
    float32 up to 32 bits, else the default float. NaN for no elements. Complex numbers are sorted by real, then by
    imaginary part.

    >>> tnp.median(tnp.asarray([3.0, 1.0, 2.0, 10.0]))
    Array(2.5, f64)
    """
    del overwrite_input
    no_out("median", out)
    (x,) = promoted_inexact("median", a)
    axes = axes_argument("median", x, axis)
    if not shape.size([x.shape[d] for d in axes]):
        return mean(x, axis, keepdims=keepdims)
    moved = moveaxis(x, axes, tuple(range(-len(axes), 0))) if axes else expand_dims(x, (-1,))
    kept = shape.drop(x.shape, axes)
    ordered = sort(reshape(moved, (*kept, shape.size([x.shape[d] for d in axes]))), axis=-1)
    n = ordered.shape[-1]
    middle = mean(slice_in_dim(ordered, (n - 1) // 2, n // 2 + 1, axis=-1), -1)
    last = reshape(slice_in_dim(ordered, n - 1, n, axis=-1), kept)
    result = comparison.select(comparison.ne(last, last), last, middle)
    return expand_dims(result, axes) if keepdims and axes else result


# Ignoring NaN


def without_nan(name: str, a: Any, value: Any) -> tuple[Array, Array]:
    """Return the array with `value` in place of NaN, and a mask of the NaN elements."""
    x = operand(name, a)
    missing = isnan(x)
    return (comparison.select(missing, x.dtype.type(value), x) if dtypes.is_inexact(x.dtype) else x), missing


def nansum(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, initial: Any = None,
    where: Any = None,
) -> Array:  # fmt: skip
    """Return `sum` with NaN as 0.

    a: [*s]; axis: one or several, by default all; keepdims, initial: as in `sum`; dtype: by default a's, 64 bits for
    bools and small integers. Returns [*s minus axes].

    >>> tnp.nansum(tnp.asarray([1.0, tnp.nan]))
    Array(1., f64)
    """
    return sum(without_nan("nansum", a, 0)[0], axis, dtype, out, keepdims, initial, where)


def inexact_stays(name: str, x: Array, dtype: Any) -> None:
    """Raise DTypeError if floats are to be averaged into an integer dtype."""
    if dtype is not None and dtypes.is_inexact(x.dtype) and not dtypes.is_inexact(dtype_of_argument(name, dtype)):
        raise DTypeError(
            message(f"{name}{here()}: averages of floats are floats", f"got dtype={dtype}", help="cast the result")
        )


def nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Array:
    """Return the mean of the elements that are not NaN; NaN if there are none.

    a: [*s]; axis: one or several, by default all; keepdims: keep them with size 1. dtype: as in `mean`. Returns [*s
    minus axes].

    >>> tnp.nanmean(tnp.asarray([1.0, tnp.nan, 3.0]))
    Array(2., f64)
    """
    x = operand("nanmean", a)
    inexact_stays("nanmean", x, dtype)
    present = bits.not_(isnan(x))
    if where is not None:
        present = bits.and_(present, broadcast(truth("nanmean", where), x.shape))
    return mean(x, axis, dtype, out, keepdims, where=present)


def nanmax(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Return the maximum of the elements that are not NaN; NaN if there are none.

    a: [*s]; axis: one or several, by default all; initial: a lower bound of the result. Returns [*s minus axes], in a's
    dtype. Raises ShapeError for no elements.

    >>> tnp.nanmax(tnp.asarray([1.0, tnp.nan]))
    Array(1., f64)
    """
    return _nan_extreme("nanmax", a, axis, out, keepdims, initial, where, is_max=True)


def nanmin(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Return the minimum of the elements that are not NaN; NaN if there are none.

    a: [*s]; axis: one or several, by default all; initial: an upper bound of the result. Returns [*s minus axes], in
    a's dtype. Raises ShapeError for no elements.

    >>> tnp.nanmin(tnp.asarray([1.0, tnp.nan]))
    Array(1., f64)
    """
    return _nan_extreme("nanmin", a, axis, out, keepdims, initial, where, is_max=False)


def _nan_extreme(
    name: str, a: Any, axis: Axis, out: object, keepdims: bool, initial: Any, where: Any, *, is_max: bool
) -> Array:
    no_out(name, out)
    x, extreme = operand(name, a), max if is_max else min
    if not dtypes.is_inexact(x.dtype):
        return extreme(x, axis, keepdims=keepdims, initial=initial, where=where)
    filled, missing = without_nan(name, x, extreme_value(x.dtype, lowest=is_max))
    result = extreme(filled, axis, keepdims=keepdims, initial=initial, where=where)
    if initial is not None:
        return result
    return comparison.select(all(missing, axis, keepdims=keepdims, where=where), x.dtype.type(np.nan), result)


def nanargmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the index of the maximum of the elements that are not NaN; -1 if there are none.

    a: [*s]; axis: an axis, or None to flatten; keepdims: keep it with size 1. Returns int64 [*s minus axis], or [].

    >>> tnp.nanargmax(tnp.asarray([1.0, tnp.nan, 3.0]))
    Array(2, i64)
    """
    return _nan_arg("nanargmax", argmax, a, axis, out, keepdims, lowest=True)


def nanargmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the index of the minimum of the elements that are not NaN; -1 if there are none.

    a: [*s]; axis: an axis, or None to flatten; keepdims: keep it with size 1. Returns int64 [*s minus axis], or [].

    >>> tnp.nanargmin(tnp.asarray([1.0, tnp.nan, 3.0]))
    Array(0, i64)
    """
    return _nan_arg("nanargmin", argmin, a, axis, out, keepdims, lowest=False)


def _nan_arg(name: str, find: Any, a: Any, axis: int | None, out: object, keepdims: bool, *, lowest: bool) -> Array:
    no_out(name, out)
    x = operand(name, a)
    if not dtypes.is_inexact(x.dtype):
        return find(x, axis, keepdims=keepdims)
    filled, missing = without_nan(name, x, extreme_value(x.dtype, lowest=lowest))
    found = find(filled, axis, keepdims=keepdims)
    return comparison.select(all(missing, axis, keepdims=keepdims), -1, found)


def degrees_taken_off(name: str, ddof: Any, correction: Any) -> Any:
    """Return the degrees of freedom that `var` subtracts, by either name. Raises ArgumentError for non-numbers."""
    parameter, given = ("ddof", ddof) if correction is None else ("correction", correction)
    if not hasattr(given, "__float__"):
        said = f"{name}{here()}: {parameter} is a number"
        raise ArgumentError(message(said, f"got {given!r}", help="0 divides by the count"))
    return given


# Counts


def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Array:
    """Count how often each of 0, 1, 2, ... occurs, or sum the weights of its occurrences.

    x: integers or bools [n]; weights: [n]. Returns int64 [length], or the weights' dtype, for bools the default float.
    By default `length` is max(x) + 1, at least `minlength`. Under `jit` it must be given: larger values are not
    counted, and negative ones count as 0. Raises ShapeError for concrete negative values.

    >>> tnp.bincount(tnp.asarray([0, 1, 1, 3]))
    Array([1, 2, 0, 1], i64)
    """
    if length is None and weights is None and type(minlength) is int and minlength >= 0:
        value = known_value(x)
        if value is not None and value.ndim == 1 and value.dtype.kind in "biu":
            try:
                found = np.bincount(value if value.dtype is dtypes.I64 else value.astype(dtypes.I64), None, minlength)
                return unowned(found, False)
            except ValueError:  # negative values, reported below
                pass
    values = operand("bincount", x)
    if isinstance(x, list | tuple) and not values.size:
        values = cast(values, dtypes.I64)  # NumPy converts an empty list to floats
    if values.ndim != 1 or not (dtypes.is_integer(values.dtype) or values.dtype == dtypes.BOOL):
        raise DTypeError(message(f"bincount{here()} takes a vector of integers", f"got {values.type}"))
    values, least = cast(values, dtypes.I64), integer("bincount", "minlength", minlength)
    if least < 0:
        raise ShapeError(message(f"bincount{here()}: minlength must not be negative", f"got {least}"))
    length = _length(values, least) if length is None else integer("bincount", "length", length)
    shares = None if weights is None else operand("bincount", weights)
    if shares is not None and shares.dtype == dtypes.BOOL:
        shares = floating(shares)
    if shares is not None and shares.shape != values.shape:
        raise ShapeError(
            message(f"bincount{here()} takes one weight for each value", f"got {shares.type} for {values.type}")
        )
    return _counted(values, shares, length)


def _length(values: Array, least: int) -> int:
    """Return the length of `bincount`. Raises TracerArrayError for traced values, ShapeError for negative ones."""
    known = concrete_value(values)
    if known is None:
        text = f"bincount{here()}: the length of the result depends on traced values"
        raise TracerArrayError(message(text, f"got {values.type}", help="give length="))
    if known.size and known.min() < 0:
        raise ShapeError(message(f"bincount{here()}: the values must not be negative", f"got {known.min()}"))
    return builtins.max(int(known.max()) + 1 if known.size else 0, least)


@partial(cached, named=False)
def _counted(values: Array, weights: Array | None, length: int) -> Array:
    count = values.shape[0]
    added = full((count,), 1, dtypes.I64) if weights is None else weights
    zeros = full((length,), 0, added.dtype)
    indices = reshape(arithmetic.max(values, 0), (count, 1))
    return scatter_add(zeros, indices, added, ScatterDimensionNumbers((), (0,), (0,)), mode="drop")
