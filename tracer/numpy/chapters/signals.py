"""Convolution, interpolation, differences, integration and phase unwrapping of sampled functions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, floating, unified
from tracer.numpy.core.dtypes import can_cast
from tracer.numpy.core.promotion import inexact_beside, promoted_inexact
from tracer.numpy.elementwise.arithmetic import subtract
from tracer.numpy.elementwise.rounding import conjugate
from tracer.numpy.reduce.cumulative import cumsum, diff
from tracer.numpy.reduce.matmul import dot
from tracer.numpy.reduce.reductions import sum
from tracer.numpy.reduce.sorting import searchsorted
from tracer.numpy.shapes.creation import asarray
from tracer.numpy.shapes.joining import concatenate
from tracer.numpy.shapes.manipulation import atleast_1d, flip, moveaxis, ravel
from tracer.numpy.shapes.where import where
from tracer.primitives.arrays.slice_pad_concatenate import slice_in_dim
from tracer.primitives.base.broadcasting import axis_of
from tracer.primitives.linalg.convolution_layouts import conv_general_dilated
from tracer.runtime.eager.call_cache import cached
from tracer.runtime.values.fresh_handles import makes_new
from tracer.trace.array import Array
from tracer.trace.source import here


def convolve(a: Any, v: Any, mode: str = "full", *, precision: Any = None) -> Array:
    """Return the convolution of two vectors: out[k] = sum over i of a[i] v[k - i].

    a: [n]; v: [m]; mode: "full" (n + m - 1 values), "same" (the middle, as many as the longer vector has), "valid"
    (only full overlaps). Returns the promoted dtype. Raises ShapeError for other shapes and empty vectors.

    >>> tnp.convolve([1, 2, 3], [0, 1, 2])
    Array([0, 1, 4, 7, 6], i64)
    """
    return _slid_over(a, v, _turned(a, v), mode, precision)


@partial(cached, named=False)
def _turned(a: Any, v: Any) -> Array:
    """Return the shorter vector reversed. Separate from `_slid_over`, because fused code would add in another order."""
    x, y = _vectors("convolve", atleast_1d(a), atleast_1d(v))
    return flip(x if y.shape[0] > x.shape[0] else y)


@partial(cached, named=False)
def _slid_over(a: Any, v: Any, turned: Array, mode: str, precision: Any) -> Array:
    x, y = _vectors("convolve", atleast_1d(a), atleast_1d(v))
    return _slid("convolve", y if y.shape[0] > x.shape[0] else x, turned, mode, precision)


def correlate(a: Any, v: Any, mode: str = "valid", *, precision: Any = None) -> Array:
    """Return the cross-correlation of two vectors: out[k] = sum over n of a[n + k] conj(v[n]).

    a: [n]; v: [m]; mode: as in `convolve`. Returns the promoted dtype. Raises ShapeError for other shapes and empty
    vectors.

    >>> tnp.correlate([1, 2, 3], [0, 1, 2], "same")
    Array([5, 8, 3], i64)
    """
    x, y = _vectors("correlate", a, v)
    y = conjugate(y) if dtypes.is_complex(y.dtype) else y
    if y.shape[0] > x.shape[0]:
        return flip(_slid("correlate", y, x, mode, precision))
    return _slid("correlate", x, y, mode, precision)


def _vectors(name: str, a: Any, v: Any) -> list[Array]:
    arrays = unified(name, [array_of(name, a), array_of(name, v)])
    if any(x.ndim != 1 or not x.shape[0] for x in arrays):
        raise ShapeError(
            message(f"{name}{here()} takes two vectors with elements", f"got {arrays[0].type} and {arrays[1].type}")
        )
    return arrays


def _slid(name: str, x: Array, y: Array, mode: Any, precision: Any) -> Array:
    """Return the products of y, the shorter vector, with every window of x."""
    m = y.shape[0]
    widths = {"full": (m - 1, m - 1), "same": (m // 2, (m - 1) // 2), "valid": (0, 0)}
    if not isinstance(mode, str) or mode not in widths:
        raise ArgumentError(message(f'{name}{here()}: mode is "full", "same" or "valid"', f"got {mode!r}"))
    count = x.shape[0] - m + 1
    if mode == "valid" and count <= min(_FEW, m // 3) and dtypes.is_inexact(x.dtype):
        return concatenate([dot(x[k : k + m], y, precision=precision)[None] for k in range(count)], 0)
    return conv_general_dilated(x[None, None], y[None, None], (1,), [widths[mode]], precision=precision)[0, 0]


_FEW = 16  # positions up to which products are taken one by one: a convolution's derivative would mostly add zeros


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """Return the piecewise linear function through the points (xp, fp) at x; xp must ascend.

    x: real [*s]; xp: real [n]; fp: real or complex [n]. left, right: the values outside, by default the values at the
    ends. period: of x; with it xp need not ascend. Returns floats or complex numbers [*s]. Raises DTypeError for
    complex x, ShapeError if xp and fp differ in size, ArgumentError for a period of 0.

    >>> tnp.interp(2.5, [1.0, 2.0, 3.0], [3.0, 2.0, 0.0])
    Array(1., f64)
    """
    given = unified("interp", [asarray(x), asarray(xp)])
    at, points = unified("interp", [promoted_inexact("interp", v)[0] for v in given])
    values = inexact_beside("interp", asarray(fp), at, points)
    if dtypes.is_complex(at.dtype):
        raise DTypeError(
            message(f"interp{here()}: x and xp must be real", f"got {at.type}", help="interpolate in x.real")
        )
    if points.ndim != 1 or values.shape != points.shape or not points.shape[0]:
        raise ShapeError(
            message(f"interp{here()}: xp and fp must be vectors of one size", f"got {points.type} and {values.type}")
        )
    if period is not None:
        if not isinstance(period, Array) and period == 0:
            raise ArgumentError(message(f"interp{here()}: the period must not be 0", f"got {period}"))
        points, at = points % period, at % period
        order = points.argsort()
        points, values = points[order], values[order]
        points = concatenate([points[-1:] - period, points, points[:1] + period])
        values = concatenate([values[-1:], values, values[:1]])
    n = points.shape[0]
    right_one = searchsorted(points, at, side="right").clip(1, max(n - 1, 1))
    low, high = right_one - 1, (right_one if n > 1 else right_one - 1)
    width = points[high] - points[low]
    # Of equal points the last one wins.
    share = where(width == 0, 1.0, (at - points[low]) / where(width == 0, 1.0, width))
    result = _between(values[low], values[high], share, at == points[high])
    if period is None:
        result = where(at < points[0], values[0] if left is None else left, result)
        result = where(at > points[-1], values[-1] if right is None else right, result)
    return where(at != at, at, result) if n > 1 else result  # NaN


def _between(low: Array, high: Array, share: Array, at_high: Array) -> Array:
    """Interpolate from `low` to `high`: exact at both ends, and finite there even if the other end is not."""
    rise = high - low
    upward, downward = low + share * rise, high + (share - 1) * rise
    line = where(at_high | (upward != upward), downward, upward)
    missing = line != line
    return where(missing & ((share == 0) | (low == high)), low, where(missing & at_high, high, line))


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return central differences along axes, one-sided at the ends: an array for one axis, a list for several.

    f: [*s]; varargs: the spacing: a number, or the coordinates as a vector [n]; one for all axes, or one for each.
    axis: one or several, by default all; edge_order: 1 or 2, the order of the error at the ends. Returns floats or
    complex numbers [*s], for each axis. Raises ShapeError for axes shorter than edge_order + 1, ArgumentError for
    another number of spacings.

    >>> tnp.gradient(tnp.asarray([1.0, 2.0, 4.0, 7.0]))
    Array([1. , 1.5, 2.5, 3. ], f64)
    """
    points = [at if isinstance(at, int | float) else array_of("gradient", at) for at in varargs]
    values = inexact_beside("gradient", asarray(f), *points)
    axes = tuple(range(values.ndim)) if axis is None else tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    axes = tuple(axis_of("gradient", a, values.ndim) for a in axes)
    for_all = len(points) == 1 and not getattr(points[0], "shape", ())
    spacings = points * len(axes) if for_all else points or [1.0] * len(axes)
    if len(spacings) != len(axes) or edge_order not in (1, 2):
        raise ArgumentError(
            message(
                f"gradient{here()} takes one spacing, or one for each axis, and edge_order 1 or 2",
                f"got {len(varargs)}",
            )
        )
    results = [_slope(values, h, a, edge_order) for h, a in zip(spacings, axes, strict=True)]
    return results[0] if len(results) == 1 else results


def _slope(values: Array, spacing: Any, axis: int, edge_order: int) -> Array:
    n = values.shape[axis]
    if n < edge_order + 1:
        raise ShapeError(message(f"gradient{here()}: an axis needs {edge_order + 1} elements", f"got {values.type}"))
    shape = getattr(spacing, "shape", ())
    if shape not in ((), (n,)):
        raise ShapeError(
            message(f"gradient{here()}: an axis needs as many coordinates as elements", f"got {spacing.type}")
        )
    steps = diff(spacing).reshape(*[n - 1 if d == axis else 1 for d in range(values.ndim)]) if shape else spacing

    def part(x: Any, start: int, stop: int) -> Any:
        return slice_in_dim(x, start, stop, axis=axis) if getattr(x, "shape", ()) else x

    slopes = (part(values, 1, n) - part(values, 0, n - 1)) / steps
    first, last = part(slopes, 0, 1), part(slopes, n - 2, n - 1)
    if shape:
        h0, h1 = part(steps, 0, n - 2), part(steps, 1, n - 1)
        middle = (h0 * part(slopes, 1, n - 1) + h1 * part(slopes, 0, n - 2)) / (h0 + h1)
    else:
        middle = (part(values, 2, n) - part(values, 0, n - 2)) / (2 * steps)
    if edge_order == 2:
        near, far = part(steps, 0, 1), part(steps, n - 2, n - 1)
        first = first + (first - part(slopes, 1, 2)) * near / (near + part(steps, 1, 2))
        last = last + (last - part(slopes, n - 3, n - 2)) * far / (far + part(steps, n - 3, n - 2))
    return concatenate([first, middle, last], axis)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """Return the integral along an axis by the trapezoidal rule.

    y: [*s]; x: the coordinates, [n] or a shape that broadcasts with y; dx: their spacing, if x is None; axis: by
    default the last. Returns floats or complex numbers [*s minus axis].

    >>> tnp.trapezoid([1.0, 2.0, 3.0])
    Array(4., f64)
    """
    points = () if x is None else (asarray(x),)
    values = moveaxis(inexact_beside("trapezoid", asarray(y), *points), axis, -1)
    width: Any = dx if isinstance(dx, int | float) else array_of("trapezoid", dx)
    for at in points:
        width = diff(at if at.ndim == 1 else moveaxis(at, axis, -1))
    return sum(width * (values[..., 1:] + values[..., :-1]) / 2.0, -1)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """Return the differences of neighbours in the flattened array, with values prepended and appended.

    ary: any shape, n elements, not bools; to_end, to_begin: any shapes, flattened. Returns [n - 1] and the added
    values, in ary's dtype. Raises DTypeError for values that cannot be cast to it.

    >>> tnp.ediff1d([1, 2, 4, 7])
    Array([1, 2, 3], i64)
    """
    x = ravel(array_of("ediff1d", ary))
    parts = [part if part is None else ravel(array_of("ediff1d", part)) for part in (to_begin, to_end)]
    for part in parts:
        if part is not None and not can_cast(part.dtype, x.dtype, "same_kind"):
            raise DTypeError(
                message(f"ediff1d{here()}: {part.dtype} cannot be cast to the differences' dtype {x.dtype}")
            )
    joined = [part.astype(x.dtype) if part is not None else None for part in parts]
    differences = subtract(x[1:], x[:-1])
    return concatenate([p for p in (joined[0], differences, joined[1]) if p is not None])


@makes_new
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * np.pi) -> Array:
    """Return angles without jumps: multiples of the period are added where neighbours differ by more than half of it.

    p: [*s]; axis: by default the last; discont: the smallest jump to remove, by default half the period; period: by
    default 2π. Returns floats [*s]; integers give the default float, unless the period is an integer too.

    >>> tnp.unwrap([0.0, 3.0, 6.0, 0.0])
    Array([0.        , 3.        , 6.        , 6.28318531], f64)
    """
    x = array_of("unwrap", p)
    whole = dtypes.is_integer(x.dtype) and isinstance(period, int)
    if not whole:
        x = floating(x)
    steps = diff(x, axis=axis)
    half = period // 2 if whole else period / 2
    wrapped = (steps + half) % period - half
    if not whole or period % 2 == 0:  # a step of half a period keeps its direction
        wrapped = where((wrapped == -half) & (steps > 0), half, wrapped)
    correction = where(abs(steps) < (period / 2 if discont is None else discont), 0, wrapped - steps)
    first = moveaxis(x, axis, 0)[:1]
    rest = moveaxis(x, axis, 0)[1:] + moveaxis(cumsum(correction, axis), axis, 0)
    return moveaxis(concatenate([first, rest]), 0, axis)
