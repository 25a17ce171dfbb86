"""Integrals without a closed form: exponential, sine and cosine integrals, Fresnel's, Spence's and Dawson's, and erfcx.

Always computed in float64. NIST Digital Library of Mathematical Functions, 6, 7 and 25.12; for Eₙ Abramowitz & Stegun
5.1.12 and 5.1.22; quotients of polynomials by Moshier's Cephes.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.lax import fori_loop
from tracer.numpy import absolute, asarray, cos, exp, floor, inf, log, nan, ones_like, round, sin, sinc, where
from tracer.primitives.elementwise import special
from tracer.scipy.normal import mills_ratio, quotient
from tracer.scipy.operands import in_double
from tracer.scipy.rationals import (
    AUXILIARY,
    DAWSON,
    EXPONENTIAL,
    FRESNEL,
    FRESNEL_AUXILIARY,
    SINE_COSINE,
    SPENCE,
)
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.transforms.custom.derivatives import custom_jvp

_FRACTIONS = 120  # terms of the continued fraction of Eₙ, with error 1e-17 at 1
_POWERS = 20  # terms of its series; the last is 1e-20 there


def expi(x: Any) -> Array:
    """Return the exponential integral Ei: the integral of e^t / t from -inf to x, across its pole; -inf at 0.

    >>> tracer.scipy.special.expi(tnp.asarray([-1.0, 1.0]))
    Array([-0.21938393,  1.89511782], f64)
    """
    return in_double("expi", _ei, x)


def exp1(x: Any) -> Array:
    """Return the exponential integral E₁: the integral of e^-t / t from x to inf; NaN for negative x.

    >>> tracer.scipy.special.exp1(tnp.asarray([0.0, 1.0]))
    Array([       inf, 0.21938393], f64)
    """
    return in_double("exp1", lambda value: _en(ones_like(value), value), x)


def expn(n: Any, x: Any) -> Array:
    """Return the exponential integral Eₙ, of e^(-x t) / tⁿ from 1 to inf, for whole n from 0 on.

    NaN for other n, and for negative x. It has no derivative by n.

    >>> tracer.scipy.special.expn(tnp.asarray([0, 1, 2]), 1.0)
    Array([0.36787944, 0.21938393, 0.14849551], f64)
    """
    return in_double("expn", _en, n, x)


def sici(x: Any) -> tuple[Array, Array]:
    """Return the sine integral and the cosine integral.

    The first is the integral of sin(t) / t from 0 to x. The second is γ + log(x) plus the integral of (cos(t) - 1) / t.

    The cosine integral takes |x|, as in SciPy, but is NaN at -inf.

    >>> tracer.scipy.special.sici(1.0)
    (Array(0.94608307, f64), Array(0.33740392, f64))
    """
    return in_double("sici", _si, x), in_double("sici", _ci, x)


def fresnel(x: Any) -> tuple[Array, Array]:
    """Return Fresnel's integrals S and C, of the sine and the cosine of π t² / 2 from 0 to x.

    >>> tracer.scipy.special.fresnel(1.0)
    (Array(0.43825915, f64), Array(0.7798934, f64))
    """
    return in_double("fresnel", _fresnel_s, x), in_double("fresnel", _fresnel_c, x)


def spence(x: Any) -> Array:
    """Return Spence's function, the integral of log(t) / (1 - t) from 1 to x.

    It is the dilogarithm of 1 - x, and NaN for negative x.

    >>> tracer.scipy.special.spence(tnp.asarray([0.0, 1.0, 2.0]))
    Array([ 1.64493407,  0.        , -0.82246703], f64)
    """
    return in_double("spence", _spence, x)


def dawsn(x: Any) -> Array:
    """Return Dawson's integral: e^(-x²) times the integral of e^(t²) from 0 to x.

    >>> tracer.scipy.special.dawsn(tnp.asarray([0.0, 1.0, 1e10]))
    Array([0.00000000e+00, 5.38079507e-01, 5.00000000e-11], f64)
    """
    return in_double("dawsn", _dawson, x)


def erfcx(x: Any) -> Array:
    """Return erfc(x) times e^(x²), which neither vanishes nor overflows for large x.

    >>> tracer.scipy.special.erfcx(tnp.asarray([0.0, 1.0, 1e10]))
    Array([1.00000000e+00, 4.27583576e-01, 5.64189584e-11], f64)
    """
    return in_double("erfcx", _erfcx, x)


def bernoulli(n: int) -> Array:
    """Return Bernoulli's numbers B₀ to Bₙ, with B₁ = -1/2.

    n: a Python integer, at least 0. Returns floats [n + 1], of the default dtype: infinite from B₂₆₀ on. Raises
    ArgumentError for negative n.

    >>> tracer.scipy.special.bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333333], f64)
    """
    n = integer("bernoulli", "n", n)
    if n < 0:
        raise ArgumentError(message(f"bernoulli{here()}: n is at least 0", f"got {n}"))
    found = np.zeros(n + 1)
    found[:2] = (1.0, -0.5)[: n + 1]
    found[2::4], found[4::4] = np.inf, -np.inf
    sizes = _even_bernoulli(min(n // 2, _FINITE))
    found[2 : 2 * len(sizes) + 1 : 2] = [(-1) ** k * -size for k, size in enumerate(sizes, 1)]
    return asarray(found, config.default_float)


def _even_bernoulli(count: int) -> list[float]:
    """Return |B₂|, |B₄|, ... by integers, the tangent numbers: Brent & Harvey 2011, arXiv:1108.0286."""
    tangents = [math.factorial(k) for k in range(count)]
    for k in range(1, count):
        for j in range(k, count):
            tangents[j] = (j - k) * tangents[j - 1] + (j - k + 2) * tangents[j]
    return [2 * k * t / (4**k * (4**k - 1)) for k, t in enumerate(tangents, 1)]


_FINITE = 129  # B₂₆₀ is beyond the largest float


@custom_jvp
def _ei(x: Array) -> Array:
    positive = where(x > 0, x, 1.0)
    first = positive <= 2.0
    low = where(first, positive, 1.0)
    found = low * quotient(EXPONENTIAL[0], low) + _EULER + log(low)
    high = where(first, 4.0, positive)
    inverse = 1.0 / high
    ratio = quotient(EXPONENTIAL[1], inverse)
    for pair, start in zip(EXPONENTIAL[2:], (4.0, 8.0, 16.0, 32.0, 64.0), strict=True):
        ratio = where(high > start, quotient(pair, inverse), ratio)
    half = exp(0.5 * high)  # half² may overflow where the product does not
    above = where(high == inf, inf, half * (inverse * (1.0 + inverse * ratio)) * half)
    below = -_en_values(where(x < 0, 1.0, 1.0), where(x < 0, -x, 1.0))
    return where(x > 0, where(first, found, above), where(x < 0, below, where(x == 0, -inf, nan)))


_EULER = 0.5772156649015329
_ei.defjvps(lambda dx, _, x: dx * _ei_slope(x))


def _ei_slope(x: Array) -> Array:
    finite = where(x == inf, 1.0, x)
    half = exp(0.5 * finite)
    return where(x == inf, inf, half / finite * half)


@custom_jvp
def _en(n: Array, x: Array) -> Array:
    return _en_values(n, x)


_en.defjvps(None, lambda dx, _, n, x: -dx * where(n > 0, _en_values(where(n > 0, n - 1.0, 1.0), x), _slope_of_first(x)))


def _slope_of_first(x: Array) -> Array:
    return exp(-x) / x * (1.0 + 1.0 / x)


def _en_values(n: Array, x: Array) -> Array:
    whole = (n >= 0) & (floor(n) == n)
    usual = whole & (n > 0) & (n < inf) & (x > 0) & (x < inf)
    order, value = where(usual, n, 1.0), where(usual, x, 2.0)
    small = value <= 1.0
    inside = where(small, _by_series(order, where(small, value, 0.5)), _by_fraction(order, where(small, 2.0, value)))
    at_zero = where(n > 1, 1.0 / where(n > 1, n - 1.0, 1.0), inf)
    power = where(n == 0, exp(-x) / where(x > 0, x, 1.0), inside)
    found = where(x == 0, at_zero, where((x == inf) | (n == inf), 0.0, power))
    return where(whole & (x >= 0), found, nan)


def _by_series(n: Array, x: Array) -> Array:
    """Return Eₙ by its series, with the logarithm in the term of power n - 1, which the sum leaves out."""

    def add(m: Any, state: Any) -> Any:
        total, term = state
        k = m.astype(x.dtype)
        gap = k - n + 1.0
        total = total - where(gap == 0, 0.0, term / where(gap == 0, 1.0, gap))
        return total, -term * x / (k + 1.0)

    total, _ = fori_loop(0, _POWERS, add, (0.0 * x, 0.0 * x + 1.0))
    power = exp((n - 1.0) * log(x) - special.lgamma(n))
    sign = where((n - 1.0) % 2 == 0, 1.0, -1.0)
    return total + sign * power * (special.digamma(n) - log(x))


def _by_fraction(n: Array, x: Array) -> Array:
    """Return e^-x / (x + n - 1 n / (x + n + 2 - 2 (n + 1) / (x + n + 4 - ...))), from its end."""

    def step(i: Any, rest: Array) -> Array:
        k = (_FRACTIONS - i).astype(x.dtype)
        return k * (n + k - 1.0) / (x + n + 2.0 * k - rest)

    return exp(-x) / (x + n - fori_loop(0, _FRACTIONS, step, 0.0 * x))


@custom_jvp
def _si(x: Array) -> Array:
    size = absolute(x)
    found = where(size <= 4.0, _near(0, where(size <= 4.0, size, 1.0)), _far(size)[0])
    return where(size == inf, math.pi / 2, where(x == x, found, nan)) * where(x < 0, -1.0, 1.0)


@custom_jvp
def _ci(x: Array) -> Array:
    size = absolute(x)
    inside = (size <= 4.0) & (size > 0)
    near = where(inside, size, 1.0)
    found = where(inside, _near(1, near) + _EULER + log(near), _far(size)[1])
    known = (x == x) & (x != -inf)
    return where(known, where(x == inf, 0.0, where(x == 0, -inf, found)), nan)


_si.defjvps(lambda dx, _, x: dx * where(absolute(x) == inf, 0.0, sinc(where(absolute(x) == inf, 0.0, x) / math.pi)))
_ci.defjvps(lambda dx, _, x: dx * where(x == inf, 0.0, cos(where(x == inf, 0.0, x)) / x))


def _near(which: int, x: Array) -> Array:
    square = x * x
    return (square if which else x) * quotient(SINE_COSINE[which], square)


def _far(size: Array) -> tuple[Array, Array]:
    """Return both by f, the integral of sin(t) / (t + x) from 0 on, and g, the integral of cos(t) / (t + x)."""
    x = where((size > 4.0) & (size < inf), size, 8.0)
    inverse = 1.0 / x
    square = inverse * inverse
    f_near, g_near, f_far, g_far = (quotient(pair, square) for pair in AUXILIARY)
    f, g = where(x < 8.0, f_near, f_far) * inverse, where(x < 8.0, g_near, g_far) * square
    return math.pi / 2 - f * cos(x) - g * sin(x), f * sin(x) - g * cos(x)


@custom_jvp
def _fresnel_s(x: Array) -> Array:
    return _fresnel(x)[0]


@custom_jvp
def _fresnel_c(x: Array) -> Array:
    return _fresnel(x)[1]


_fresnel_s.defjvps(lambda dx, _, x: dx * _wave(absolute(x))[0])
_fresnel_c.defjvps(lambda dx, _, x: dx * _wave(absolute(x))[1])


def _wave(x: Array) -> tuple[Array, Array]:
    """Return the sine and the cosine of π x² / 2. With x = n + f, x² = n² + 2 n f + f², where n f is exact."""
    finite = where(x < inf, x, 0.0)
    whole = round(finite)
    rest = finite - whole
    phase = 0.5 * math.pi * (whole % 2 + (2.0 * whole * rest) % 4 + rest * rest)
    return where(x < inf, sin(phase), 0.0), where(x < inf, cos(phase), 0.0)


def _fresnel(x: Array) -> tuple[Array, Array]:
    size = absolute(x)
    near = size * size < 2.5625
    low = where(near, size, 1.0)
    fourth = low**4
    high = where(near | (size == inf), 2.0, size)
    inverse = 1.0 / (math.pi * high * high)
    square = inverse * inverse
    f = 1.0 - square * quotient(FRESNEL_AUXILIARY[0], square)
    g = inverse * quotient(FRESNEL_AUXILIARY[1], square)
    sine, cosine = _wave(high)
    s = where(near, low**3 * quotient(FRESNEL[0], fourth), 0.5 - (f * cosine + g * sine) / (math.pi * high))
    c = where(near, low * quotient(FRESNEL[1], fourth), 0.5 + (f * sine - g * cosine) / (math.pi * high))
    sign = where(x < 0, -1.0, 1.0)
    return where(size == inf, 0.5, s) * sign, where(size == inf, 0.5, c) * sign


@custom_jvp
def _spence(x: Array) -> Array:
    """Return Spence's function, by the reflections of DLMF 25.12.4 and 25.12.6 from x near 1."""
    large = x > 2.0
    y = where(large, 1.0 / where(large, x, 1.0), where(x > 0, x, 1.0))
    high, low = y > 1.5, y < 0.5
    w = where(high, 1.0 / y - 1.0, where(low, -y, y - 1.0))
    found = 0.0 - w * quotient(SPENCE[0], w)
    logarithm = log(y)
    found = where(low, math.pi**2 / 6 - logarithm * log(where(low, 1.0 - y, 1.0)) - found, found)
    found = where(high | large, -0.5 * logarithm * logarithm - found, found)
    return where(x > 0, where(x == inf, -inf, found), where(x == 0, math.pi**2 / 6, nan))


_spence.defjvps(lambda dx, _, x: dx * _spence_slope(x))


def _spence_slope(x: Array) -> Array:
    """Return log(x) / (1 - x); by powers of x - 1 near 1, so that its slopes keep their digits."""
    near = absolute(x - 1.0) < 1e-3
    w = where(near, x - 1.0, 0.0)
    series = -1.0 + w * (1 / 2 - w * (1 / 3 - w * (1 / 4 - w * (1 / 5 - w / 6))))
    far = where(near | (x == inf), 2.0, x)
    return where(near, series, where(x == inf, 0.0, log(far) / (1.0 - far)))


@custom_jvp
def _dawson(x: Array) -> Array:
    size = absolute(x)
    near, middle = size < 3.25, size < 6.25
    low, high = where(near, size, 1.0), where(near, 4.0, size)
    inverse = 1.0 / high
    square = inverse * inverse
    series = where(middle, quotient(DAWSON[1], square), quotient(DAWSON[2], square))
    far = 0.5 * inverse * (1.0 + square * series)
    return where(x < 0, -1.0, 1.0) * where(near, low * quotient(DAWSON[0], low * low), far)


_dawson.defjvps(lambda dx, y, x: dx * _dawson_slope(x, y))


def _dawson_slope(x: Array, y: Array) -> Array:
    """Return 1 - 2 x y; for large x, where the terms cancel, by the expansion in 1 / x²."""
    far = absolute(x) > 50.0
    square = 1.0 / where(far, x, 1.0) ** 2
    series = -0.5 * square * (1.0 + square * (1.5 + square * (3.75 + square * (13.125 + square * 59.0625))))
    return where(far, series, 1.0 - 2.0 * where(far, 0.0, x) * where(far, 0.0, y))


@custom_jvp
def _erfcx(x: Array) -> Array:
    far = x > 3.6
    near = where(far, 0.0, x)
    direct = exp(near * near) * special.erfc(near)
    return where(far, math.sqrt(2 / math.pi) * mills_ratio(math.sqrt(2) * where(far, x, 4.0)), direct)


_erfcx.defjvps(lambda dx, y, x: dx * _erfcx_slope(x, y))


def _erfcx_slope(x: Array, y: Array) -> Array:
    far = x > 50.0
    inverse = 1.0 / where(far, x, 1.0)
    square = inverse * inverse
    series = -square * (1.0 - square * (1.5 - square * (3.75 - square * (13.125 - square * 59.0625))))
    return where(far, series / math.sqrt(math.pi), 2.0 * where(far, 0.0, x) * y - 2 / math.sqrt(math.pi))
