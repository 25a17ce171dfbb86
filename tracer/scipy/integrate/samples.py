"""Integrals of samples along an axis: Simpson's rule, and running trapezoids."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir.shape import axis_index
from tracer.numpy import broadcast_to, concatenate, cumsum, diff, full, moveaxis, sum, where
from tracer.numpy.core.conversion import array_of, floating
from tracer.trace.array import Array
from tracer.trace.source import here


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Array:
    """Integrate samples along an axis by Simpson's rule.

    y: numbers [*s], with at least one along the axis; x: real numbers [n] or [*s], their places; dx: the distance of
    places where x is None. axis: one axis. An even number of samples takes Cartwright's correction for the last
    interval, as SciPy. Returns floats or complex numbers [*s minus the axis]. Raises ShapeError where x does not fit.

    >>> tracer.scipy.integrate.simpson(tnp.asarray([0.0, 1.0, 4.0, 9.0]), dx=1.0)
    Array(9., f64)
    """
    values, steps = _samples("simpson", y, x, dx, axis)
    n = values.shape[-1]
    if n < 3:
        return sum((values[..., :-1] + values[..., 1:]) / 2 * steps, -1)
    odd = n - 1 + n % 2  # samples in pairs of intervals
    f0, f1, f2 = values[..., 0 : odd - 2 : 2], values[..., 1 : odd - 1 : 2], values[..., 2:odd:2]
    a, b = steps[..., 0 : odd - 1 : 2], steps[..., 1 : odd - 1 : 2]
    safe_a, safe_b = where(a == 0, 1, a), where(b == 0, 1, b)
    ratio, inverse = where(b == 0, 0, a / safe_b), where(a == 0, 0, b / safe_a)
    total = sum((a + b) / 6 * (f0 * (2 - inverse) + f1 * (2 + ratio + inverse) + f2 * (2 - ratio)), -1)
    if n % 2:
        return total
    a, b = steps[..., -2], steps[..., -1]
    safe, both = where(a == 0, 1, a), where(a + b == 0, 1, a + b)
    last = (2 * b * b + 3 * a * b) / (6 * both) * values[..., -1]
    middle = where(a == 0, 0, (b * b + 3 * a * b) / (6 * safe)) * values[..., -2]
    return total + last + middle - where(a == 0, 0, b**3 / (6 * safe * both)) * values[..., -3]


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Array:
    """Integrate samples from the first to each next one by trapezoids.

    y: numbers [*s], n along the axis; x: real numbers [n] or [*s], their places; dx: the distance of places where x is
    None; axis: one axis. initial: 0 or None, the value before the results. Returns floats or complex numbers: n - 1
    along the axis, or n with `initial`. Raises ShapeError where x does not fit, ArgumentError for another `initial`.

    >>> tracer.scipy.integrate.cumulative_trapezoid(tnp.asarray([1.0, 2.0, 3.0]), initial=0)
    Array([0. , 1.5, 4. ], f64)
    """
    if initial is not None and not (isinstance(initial, int | float) and initial == 0):
        raise ArgumentError(
            message(f"cumulative_trapezoid{here()}: initial is 0 or None", f"got {initial!r}", help="add it afterwards")
        )
    values, steps = _samples("cumulative_trapezoid", y, x, dx, axis)
    total = cumsum((values[..., :-1] + values[..., 1:]) / 2 * steps, -1)
    if initial is not None:
        total = concatenate([full((*total.shape[:-1], 1), 0, total.dtype), total], -1)
    return moveaxis(total, -1, axis_index(axis, total.ndim, f"cumulative_trapezoid{here()}"))


def _samples(name: str, y: Any, x: Any, dx: Any, axis: int) -> tuple[Array, Array]:
    """Return samples along the last axis, and the distances between their places."""
    values = floating(array_of(name, y))
    if not values.ndim:
        raise ShapeError(message(f"{name}{here()}: samples have an axis", f"got {values.type}"))
    along = axis_index(axis, values.ndim, f"{name}{here()}")
    values = moveaxis(values, along, -1)
    if not values.shape[-1]:
        raise ShapeError(message(f"{name}{here()}: there is at least one sample", f"got {values.type}"))
    if x is None:
        distance = array_of(name, dx)
        return values, broadcast_to(distance, (values.shape[-1] - 1,)).astype(values.real.dtype)
    places = floating(array_of(name, x))
    if places.ndim > 1:
        places = moveaxis(places, along, -1)
    if places.shape[-1:] != values.shape[-1:] or places.ndim not in (1, values.ndim):
        text = f"{name}{here()}: x has one place for each sample along the axis"
        raise ShapeError(message(text, f"got {places.type} for {values.type} along the last axis"))
    return values, diff(places, axis=-1)
