"""Reductions over axes: sums, products, maxima, minima, all, any and counts.

`axis` is None (all axes), an axis or several; `keepdims` keeps them with size 1; `where` selects elements, and
`initial` is combined with the result. Small integers are summed and multiplied in 64 bits; float16 and bfloat16
accumulate in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.ir import dtypes, shape
from tracer.numpy.core.conversion import array_of, broadcast, cast, common_pair, dtype_of_argument, no_out, strong
from tracer.numpy.core.promotion import literal, operand, same_dtype
from tracer.numpy.elementwise.logic import truth
from tracer.numpy.shapes.manipulation import ravel
from tracer.numpy.shapes.matrices import sum_dtype
from tracer.primitives.arrays.reductions import reductions as primitives
from tracer.primitives.base.broadcasting import axis_of, reduce_sum
from tracer.primitives.base.shapes import expand_dims, reshape
from tracer.primitives.elementwise import arithmetic, bits, comparison
from tracer.trace.array import Array
from tracer.trace.source import here

Axis = int | Sequence[int] | None


def axes_argument(name: str, x: Array, axis: Axis) -> tuple[int, ...]:
    """Return the axes to reduce, sorted. Raises AxisError for axes out of range or repeated."""
    if axis is None:  # skips `here()`, which is slow
        return tuple(range(x.ndim))
    return shape.axes_tuple(axis, x.ndim, f"{name}{here()}")


def finished(result: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Return a reduction's result with its axes restored if `keepdims`, and never weak."""
    result = strong(result)
    return expand_dims(result, axes) if keepdims and axes else result


def _masked(name: str, x: Array, where: Any, neutral: Any) -> Array:
    """Return the array with `neutral` wherever `where` is False."""
    if where is None:
        return x
    mask = truth(name, where)
    if mask.ndim > x.ndim:
        raise ShapeError(
            message(f"{name}{here()}: where= has more axes than the array", f"got {mask.shape} for {x.shape}")
        )
    sizes = shape.broadcast(x.shape, mask.shape, operation=f"{name}{here()}")
    return comparison.select(broadcast(mask, sizes), broadcast(x, sizes), literal(name, neutral, x.dtype))


def _reduced(
    name: str, x: Array, axis: Axis, keepdims: bool, where: Any, initial: Any, neutral: Any, reduce: Any, combine: Any
) -> Array:
    x = _masked(name, x, where, neutral)
    axes = axes_argument(name, x, axis)
    result = finished(reduce(x, axes), axes, keepdims)
    if initial is None:
        return result
    return combine(result, broadcast_operand(same_dtype(name, x, initial), result.shape))


def broadcast_operand(x: Any, sizes: tuple[int, ...]) -> Any:
    """Broadcast an array to a shape; return a literal, which stands for any shape, as it is."""
    return broadcast(x, sizes) if isinstance(x, Array) else x


def sum(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None, promote_integers: bool = True,
) -> Array:  # fmt: skip
    """Return the sum over axes; an empty sum is 0.

    a: [*s]; axis: one or several, by default all; keepdims: keep them with size 1; initial: a further term;
    promote_integers: whether small integers are summed in 64 bits; dtype: of the sum and the result, by default a's;
    bool computes `any`. Returns [*s minus axes]. Raises AxisError for axes out of range or repeated.

    >>> tnp.sum(tnp.asarray([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], i64)
    """
    no_out("sum", out)
    x = _for_sums("sum", a, dtype, promote_integers)
    if x.dtype == dtypes.BOOL:
        return _reduced("sum", x, axis, keepdims, where, initial, False, primitives.reduce_or, bits.or_)
    return _reduced("sum", x, axis, keepdims, where, initial, 0, reduce_sum, arithmetic.add)


def prod(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None, promote_integers: bool = True,
) -> Array:  # fmt: skip
    """Return the product over axes; an empty product is 1.

    a: [*s]; axis: one or several, by default all; keepdims: keep them with size 1; initial: a further factor;
    promote_integers: whether small integers are multiplied in 64 bits; dtype: of the product and the result, by default
    a's; bool computes `all`. Returns [*s minus axes]. Raises AxisError for axes out of range or repeated.

    >>> tnp.prod(tnp.asarray([[1, 2], [3, 4]]), axis=1)
    Array([ 2, 12], i64)
    """
    no_out("prod", out)
    x = _for_sums("prod", a, dtype, promote_integers)
    if x.dtype == dtypes.BOOL:
        return _reduced("prod", x, axis, keepdims, where, initial, True, primitives.reduce_and, bits.and_)
    return _reduced("prod", x, axis, keepdims, where, initial, 1, primitives.reduce_prod, arithmetic.mul)


def _for_sums(name: str, a: Any, dtype: Any, promote: bool) -> Array:
    x = operand(name, a)
    if dtype is not None:
        return cast(x, dtype_of_argument(name, dtype))
    return cast(x, sum_dtype(x)) if promote or x.dtype == dtypes.BOOL else x


# Maxima and minima


def max(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Return the maximum over axes; NaN if an element is NaN.

    a: [*s]; axis: one or several, by default all; initial: a lower bound of the result, required with `where`. Returns
    [*s minus axes], in a's dtype. Complex numbers are ordered by real, then by imaginary part. Elements that tie share
    the derivative. Raises ShapeError for no elements without `initial`.

    >>> tnp.max(tnp.asarray([[1, 5], [3, 4]]), axis=0)
    Array([3, 5], i64)
    """
    return _extreme("max", a, axis, out, keepdims, initial, where)


def min(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Return the minimum over axes; NaN if an element is NaN.

    a: [*s]; axis: one or several, by default all; initial: an upper bound of the result, required with `where`. Returns
    [*s minus axes], in a's dtype. Complex numbers are ordered by real, then by imaginary part. Elements that tie share
    the derivative. Raises ShapeError for no elements without `initial`.

    >>> tnp.min(tnp.asarray([[1, 5], [3, 4]]), axis=0)
    Array([1, 4], i64)
    """
    return _extreme("min", a, axis, out, keepdims, initial, where)


amax, amin = max, min


def _extreme(name: str, a: Any, axis: Axis, out: object, keepdims: bool, initial: Any, where: Any) -> Array:
    no_out(name, out)
    x = operand(name, a)
    where = None if where is True else where
    if where is not None and initial is None:
        raise ShapeError(message(f"{name}{here()}: where= needs initial=, the result for no elements"))
    is_max = name == "max"
    reduce, combine = (primitives.reduce_max, arithmetic.max) if is_max else (primitives.reduce_min, arithmetic.min)
    as_bits = x.dtype == dtypes.BOOL
    if as_bits:
        x = cast(x, dtypes.U8)
        initial = None if initial is None else cast(truth(name, initial), dtypes.U8)
    axes = axes_argument(name, x, axis)
    if initial is not None and shape.size([x.shape[d] for d in axes]) == 0:
        if where is not None:
            shape.broadcast(x.shape, truth(name, where).shape, operation=f"{name}{here()}")  # raises on a mismatch
        sizes = shape.drop(x.shape, axes)
        start = same_dtype(name, x, initial)
        filled = broadcast(start, sizes) if isinstance(start, Array) else np.full(sizes, start.value)
        result = finished(array_of(name, filled), axes, keepdims)
    else:
        common_pair(name, [(x.dtype, False)])  # random keys have no order
        lowest = extreme_value(x.dtype, lowest=is_max)
        result = _reduced(name, x, axis, keepdims, where, initial, lowest, reduce, combine)
    return cast(result, dtypes.BOOL) if as_bits else result


def extreme_value(dtype: Any, *, lowest: bool) -> Any:
    """Return the lowest (or highest) value of a dtype: an infinity, or the finite limit if it has none."""
    if dtypes.is_float(dtype):
        infinity = np.asarray(-np.inf if lowest else np.inf)
        if not dtypes.is_narrow(dtype) or np.isinf(float(infinity.astype(dtype))):
            return float(infinity)
        limits = dtypes.finfo(dtype)
        return float(limits.min if lowest else limits.max)
    if dtypes.is_complex(dtype):
        return complex(-np.inf, -np.inf) if lowest else complex(np.inf, np.inf)
    if dtypes.is_bool(dtype):
        return not lowest
    limits = dtypes.iinfo(dtype)
    return int(limits.min if lowest else limits.max)


def ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the maximum minus the minimum over axes.

    a: [*s]; axis: one or several, by default all; keepdims: keep them with size 1. Returns [*s minus axes], in a's
    dtype. Raises ShapeError for no elements.

    >>> tnp.ptp(tnp.asarray([1.0, 5.0, 3.0]))
    Array(4., f64)
    """
    no_out("ptp", out)
    x = operand("ptp", a)
    return arithmetic.sub(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def argmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the index of the maximum along an axis, or in the flat array: the first of ties, or of NaN.

    a: [*s]; axis: an axis, or None to flatten. Returns int64 [*s minus axis], or [] without an axis. Raises ShapeError
    for no elements.

    >>> tnp.argmax(tnp.asarray([1.0, 3.0, 3.0]))
    Array(1, i64)
    """
    return _arg("argmax", primitives.argmax, a, axis, out, keepdims)


def argmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the index of the minimum along an axis, or in the flat array: the first of ties, or of NaN.

    a: [*s]; axis: an axis, or None to flatten. Returns int64 [*s minus axis], or [] without an axis. Raises ShapeError
    for no elements.

    >>> tnp.argmin(tnp.asarray([1.0, 0.0, 0.0]))
    Array(1, i64)
    """
    return _arg("argmin", primitives.argmin, a, axis, out, keepdims)


def _arg(name: str, find: Callable[..., Any], a: Any, axis: int | None, out: object, keepdims: bool) -> Array:
    no_out(name, out)
    x = operand(name, a)
    if axis is None:
        result = find(ravel(x), 0)
        return reshape(result, (1,) * x.ndim) if keepdims else result
    along = axis_of(name, axis, x.ndim)
    return finished(find(x, along), (along,), keepdims)


# All, any and counts


def all(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """Return whether all elements are true, that is, not 0; True for no elements.

    a: [*s]; axis: one or several, by default all; keepdims: keep them with size 1. Returns bool [*s minus axes].

    >>> tnp.all(tnp.asarray([True, False]))
    Array(False, bool)
    """
    no_out("all", out)
    return _reduced("all", truth("all", a), axis, keepdims, where, None, True, primitives.reduce_and, bits.and_)


def any(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """Return whether any element is true, that is, not 0; False for no elements.

    a: [*s]; axis: one or several, by default all; keepdims: keep them with size 1. Returns bool [*s minus axes].

    >>> tnp.any(tnp.asarray([True, False]))
    Array(True, bool)
    """
    no_out("any", out)
    return _reduced("any", truth("any", a), axis, keepdims, where, None, False, primitives.reduce_or, bits.or_)


def count_nonzero(a: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the number of elements that are not 0.

    a: [*s]; axis: one or several, by default all; keepdims: keep them with size 1. Returns int64 [*s minus axes].

    >>> tnp.count_nonzero(tnp.asarray([0, 3, 0, 4]))
    Array(2, i64)
    """
    return sum(truth("count_nonzero", a), axis, keepdims=keepdims)
