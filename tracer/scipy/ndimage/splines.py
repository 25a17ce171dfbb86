"""Splines through the elements of an array: their coefficients, and the weights of coefficients at positions.

A spline of degree n is a sum of B-splines, one centred at each element (Unser, Aldroubi, Eden: B-Spline Signal
Processing, IEEE Transactions on Signal Processing 41, 1993). Its coefficients are the elements convolved by the inverse
of the B-spline's samples. SciPy computes this filter by recursion, this module by a sum of few terms: the inverse falls
below the rounding error of floats within some 20 (degree 2) to 45 elements (degree 5).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir.shape import axis_index
from tracer.numpy import asarray, floor
from tracer.numpy.core.conversion import array_of
from tracer.scipy.ndimage.filters import correlate1d
from tracer.trace.array import Array
from tracer.trace.source import here

DEGREES = range(2, 6)  # that need coefficients: of degrees 0 and 1 they are the elements
_BOUNDARIES = {  # extensions of the elements that extend the coefficients alike, with names of `correlate1d`
    "mirror": "mirror", "constant": "mirror", "grid-constant": "mirror", "wrap": "mirror",
    "grid-wrap": "wrap", "nearest": "reflect", "reflect": "reflect", "grid-mirror": "reflect",
}  # fmt: skip


def spline_filter1d(input: Any, order: int = 3, axis: int = -1, mode: str = "mirror") -> Array:
    """Return the coefficients of the splines through an array's elements along one axis.

    input: numbers [*s]; order: the splines' degree, 0 to 5; axis: one axis; mode: how elements go on beyond the ends,
    as of `map_coordinates`: "mirror", "reflect" or "grid-wrap"; other modes take the nearest of these, as in SciPy.
    Returns [*s] in input's dtype, float64 for integers. Raises ArgumentError for another order or mode.

    >>> tracer.scipy.ndimage.spline_filter1d(tnp.asarray([1.0, 2.0, 4.0]), order=2).round(4)
    Array([0.75, 1.75, 4.75], f64)
    """
    x = array_of("spline_filter1d", input)
    return _coefficients("spline_filter1d", x, order, axis_index(axis, x.ndim, f"spline_filter1d{here()}"), mode)


def spline_filter(input: Any, order: int = 3, mode: str = "mirror") -> Array:
    """Return the coefficients of the splines through an array's elements.

    input: numbers [*s]; order, mode: as of `spline_filter1d`. Returns [*s] in input's dtype, float64 for integers.

    >>> c = tracer.scipy.ndimage.spline_filter(tnp.asarray([1.0, 2.0, 4.0]))
    >>> tracer.scipy.ndimage.map_coordinates(c, [tnp.asarray([1.0])], 3, "mirror", prefilter=False).round(4)
    Array([2.], f64)
    """
    return coefficients("spline_filter", array_of("spline_filter", input), order, mode)


def coefficients(name: str, x: Array, order: int, mode: str, axes: int | None = None) -> Array:
    """Return the coefficients of splines along the first axes of an array, by default along all."""
    for axis in range(x.ndim if axes is None else axes):
        x = _coefficients(name, x, order, axis, mode)
    return x


def _coefficients(name: str, x: Array, order: int, axis: int, mode: str) -> Array:
    check_order(name, order)
    if mode not in _BOUNDARIES:
        known = ", ".join(_BOUNDARIES)
        raise ArgumentError(message(f"{name}{here()}: no such mode", f"got {mode!r}", help=f"there are {known}"))
    x = x if dtypes.is_inexact(x.dtype) else x.astype("float64")
    if order not in DEGREES or x.shape[axis] < 2:
        return x
    taps = _inverse(order, np.finfo(np.dtype(str(x.real.dtype))).eps)
    return correlate1d(x, asarray(taps).astype(x.real.dtype), axis, _BOUNDARIES[mode])


def check_order(name: str, order: int) -> None:
    """Raise ArgumentError for a degree of splines that is not 0 to 5."""
    if order not in (0, 1, *DEGREES):
        raise ArgumentError(message(f"{name}{here()}: order is an integer from 0 to 5", f"got {order!r}"))


@cache
def _inverse(order: int, precision: float) -> np.ndarray[Any, Any]:
    """Return the inverse filter of the B-spline's samples, symmetric, cut where it is below a relative precision."""
    period = np.zeros(256)
    period[: order + 1] = basis(0.0 if order % 2 else 0.5, order)
    taps = np.fft.ifft(1 / np.fft.fft(np.roll(period, -(order // 2))).real).real
    decay = abs(taps[9] / taps[8])
    count = int(np.log(precision / 16) / np.log(decay))
    return np.roll(taps, count)[: 2 * count + 1]


def weights(position: Array, order: int) -> list[tuple[Array, Any]]:
    """Return the indices of the order + 1 coefficients that make up a spline at a position, and their weights."""
    at = position if order % 2 else position + 0.5
    below = floor(at)
    first = below.astype(dtypes.I64) - order // 2
    return [(first + k, weight) for k, weight in enumerate(basis(at - below, order))]


def basis(u: Any, order: int) -> list[Any]:
    """Return the B-splines of a degree that are not zero at a fraction u of an interval (Cox, de Boor)."""
    found: list[Any] = [1.0]
    for d in range(1, order + 1):
        raised = [(u + d - j) / d * found[j - 1] if j else 0.0 for j in range(d + 1)]
        lowered = [(j + 1 - u) / d * found[j] if j < d else 0.0 for j in range(d + 1)]
        found = [lowered[0], *(raised[j] + lowered[j] for j in range(1, d)), raised[d]]
    return found
