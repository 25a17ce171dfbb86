"""Spherical harmonics, by associated Legendre functions that are normalised on the sphere.

From order m the recurrence goes up to degree n: DLMF 14.10.3 for normalised functions. Powers of sin θ that would
underflow are kept scaled. Derivatives by θ are differences of neighbouring orders, so derivatives of every order exist.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.lax import complex as joined
from tracer.lax import while_loop
from tracer.numpy import absolute, broadcast_arrays, cos, floor, maximum, sin, sqrt, where
from tracer.numpy import any as any_of
from tracer.numpy.core.conversion import array_of, cast
from tracer.scipy.operands import operands
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.transforms.custom.derivatives import custom_jvp

_SMALL, _LARGE = 2.0**-600, 2.0**600


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, diff_n: None = None, n_max: int | None = None) -> Array:
    """Return the spherical harmonic of degree n and order m, with the phase of Condon and Shortley.

    n, m: whole numbers, at least 0 and of any sign; 0 where |m| > n, or where n is negative. theta: the polar angle,
    phi: the azimuth, in radians. Their shapes broadcast to [*s]. Returns complex128 [*s] where an angle is float64,
    else complex64. Differentiable by both angles.
    diff_n: None alone, as `grad` and `jvp` have the derivatives. n_max: no effect; JAX needs the maximal degree.
    Raises ArgumentError for another diff_n.

    >>> tracer.scipy.special.sph_harm_y(1, tnp.asarray([0, 1]), 0.5, 0.0)
    Array([ 0.42878904+0.j, -0.16563872-0.j], c128)
    """
    if diff_n is not None:
        raise ArgumentError(
            message(f"sph_harm_y{here()}: diff_n is None", f"got {diff_n}", help="call tracer.jvp for derivatives")
        )
    if n_max is not None:
        integer("sph_harm_y", "n_max", n_max)
    angles = operands("sph_harm_y", theta, phi)
    double = angles[0].dtype == dtypes.F64
    degree, order = (cast(array_of("sph_harm_y", v), dtypes.F64) for v in operands("sph_harm_y", n, m))
    degree, order, polar, azimuth = broadcast_arrays(degree, order, *(cast(v, dtypes.F64) for v in angles))
    size, turn = _polar(degree, order, polar), order * azimuth
    return cast(joined(size * cos(turn), size * sin(turn)), dtypes.C128 if double else dtypes.C64)


@custom_jvp
def _polar(n: Array, m: Array, theta: Array) -> Array:
    """Return the factor of θ, for every sign of m."""
    order = absolute(m)
    valid = (order <= n) & (floor(n) == n) & (floor(m) == m)
    degree, order = where(valid, n, 0.0), where(valid, order, 0.0)
    x, sine = cos(theta), absolute(sin(theta))
    value, scalings = _diagonal(order, sine)
    found = _upward(degree, order, x, value, scalings)
    negative = (m < 0) & (order % 2 == 1)
    return where(valid, where(negative, -found, found), 0.0 * theta)


def _slope(dtheta: Array, _: Array, n: Array, m: Array, theta: Array) -> Array:
    """Return half the weighted difference of the neighbouring orders. |sin θ| has a kink at multiples of π."""
    below = sqrt(maximum((n + m) * (n - m + 1.0), 0.0)) * _polar(n, m - 1.0, theta)
    above = sqrt(maximum((n - m) * (n + m + 1.0), 0.0)) * _polar(n, m + 1.0, theta)
    return 0.5 * dtheta * where(sin(theta) < 0, below - above, above - below)


_polar.defjvps(None, None, _slope)


def _diagonal(m: Array, sine: Array) -> tuple[Array, Array]:
    """Return the function of degree and order m, and how often it was scaled up."""

    def goes_on(carry: Any) -> Any:
        return any_of(carry[0] <= m)

    def step(carry: Any) -> Any:
        k, value, scalings = carry
        new = -sqrt((2.0 * k + 1.0) / (2.0 * k)) * sine * value
        faint = absolute(new) < _SMALL
        active = k <= m
        new = where(faint, new * _LARGE, new)
        return k + 1.0, where(active, new, value), scalings + where(active & faint, 1.0, 0.0)

    start = (1.0, 0.0 * sine + math.sqrt(0.25 / math.pi), 0.0 * sine)
    _, value, scalings = while_loop(goes_on, step, start)
    return value, scalings


def _upward(n: Array, m: Array, x: Array, value: Array, scalings: Array) -> Array:
    def goes_on(carry: Any) -> Any:
        return any_of(m + carry[0] <= n)

    def step(carry: Any) -> Any:
        i, below, value, scalings = carry
        k = m + i
        first = (2.0 * k - 1.0) * (2.0 * k + 1.0) / ((k - m) * (k + m))
        last = (2.0 * k + 1.0) * (k - 1.0 - m) * (k - 1.0 + m) / ((2.0 * k - 3.0) * (k - m) * (k + m))
        new = sqrt(first) * x * value - sqrt(maximum(last, 0.0)) * below
        grown = (scalings > 0) & (absolute(new) > 1.0)
        scale = where(grown, _SMALL, 1.0)
        active = k <= n
        return (
            i + 1.0, where(active, value * scale, below), where(active, new * scale, value),
            scalings - where(active & grown, 1.0, 0.0),
        )  # fmt: skip

    _, _, value, scalings = while_loop(goes_on, step, (1.0, 0.0 * value, value, scalings))
    return where(scalings == 0, value, where(scalings == 1, value * _SMALL, 0.0))
