"""Bessel functions of whole orders, always computed in float64.

J: below a bound Miller's backward recurrence, normalised by 1 = J₀ + 2 J₂ + 2 J₄ + ..., near 0 the power series; above,
Hankel's asymptotic series of orders 0 and 1 and the forward recurrence, which is stable up to order x. Y: by series of
J, or as J. K: near 0 the power series. Beyond, with cosh t = 1 + u² / x, the integral of e^(-u²) / sqrt(2x + u²), times
cosh t for order 1, by the trapezoidal rule. NIST Digital Library of Mathematical Functions, 10.8, 10.12, 10.17,
10.23.16, 10.31 and 10.32.9.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.lax import scan
from tracer.numpy import (
    absolute,
    arange,
    asarray,
    concatenate,
    cos,
    cumprod,
    exp,
    inf,
    log,
    maximum,
    nan,
    sin,
    sqrt,
    where,
)
from tracer.numpy import sum as sum_of
from tracer.numpy.core.conversion import cast
from tracer.scipy.operands import in_double, operands
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.transforms.custom.derivatives import custom_jvp

_HANKEL_FROM = 25.0  # from here on its series has an error of e^(-2x)
_HANKEL_TERMS = 30
_POWERS_TO = 0.1
_HUGE, _TINY = 1e150, 1e-150
_EULER = 0.5772156649015329


def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Array:
    """Return the Bessel functions of the first kind of orders 0, 1, ..., v.

    z: real numbers [*s]; v: a Python integer, at least 0. Returns floats [v + 1, *s]; integers are cast. NaN at both
    infinities. Beside zeros in z the error is relative to the size nearby, sqrt(2 / (π z)). n_iter: the least number of
    the recurrence's steps in JAX; results do not depend on it, as steps always suffice. Raises ArgumentError for
    negative v.

    >>> tracer.scipy.special.bessel_jn(tnp.asarray([0.0, 1.0]), v=2)
    Array([[1.        , 0.76519769],
           [0.        , 0.44005059],
           [0.        , 0.11490348]], f64)
    """
    v, n_iter = integer("bessel_jn", "v", v), integer("bessel_jn", "n_iter", n_iter)
    if v < 0:
        raise ArgumentError(message(f"bessel_jn{here()}: v is at least 0", f"got {v}"))
    (given,) = operands("bessel_jn", z)
    return cast(_orders(cast(given, dtypes.F64), v, n_iter), given.dtype)


def j0(x: Any) -> Array:
    """Return the Bessel function of the first kind and order 0; NaN at both infinities.

    >>> tracer.scipy.special.j0(tnp.asarray([0.0, 1.0]))
    Array([1.        , 0.76519769], f64)
    """
    return in_double("j0", lambda value: _orders(value, 0, 0)[0], x)


def j1(x: Any) -> Array:
    """Return the Bessel function of the first kind and order 1; NaN at both infinities.

    >>> tracer.scipy.special.j1(tnp.asarray([0.0, 1.0]))
    Array([0.        , 0.44005059], f64)
    """
    return in_double("j1", lambda value: _orders(value, 1, 0)[1], x)


def y0(x: Any) -> Array:
    """Return the Bessel function of the second kind and order 0: -inf at 0, NaN below and at infinity.

    >>> tracer.scipy.special.y0(tnp.asarray([0.0, 1.0]))
    Array([      -inf, 0.08825696], f64)
    """
    return in_double("y0", _y0, x)


def y1(x: Any) -> Array:
    """Return the Bessel function of the second kind and order 1: -inf at 0, NaN below and at infinity.

    >>> tracer.scipy.special.y1(tnp.asarray([0.0, 1.0]))
    Array([       -inf, -0.78121282], f64)
    """
    return in_double("y1", _y1, x)


def k0(x: Any) -> Array:
    """Return the modified Bessel function of the second kind and order 0: infinite at 0, NaN below.

    >>> tracer.scipy.special.k0(tnp.asarray([0.0, 1.0]))
    Array([       inf, 0.42102444], f64)
    """
    return in_double("k0", lambda value: _modified(0, value, scaled=False), x)


def k0e(x: Any) -> Array:
    """Return `k0` times e^x, which does not underflow.

    >>> tracer.scipy.special.k0e(tnp.asarray([1.0, 1e10]))
    Array([1.14446308e+00, 1.25331414e-05], f64)
    """
    return in_double("k0e", lambda value: _modified(0, value, scaled=True), x)


def k1(x: Any) -> Array:
    """Return the modified Bessel function of the second kind and order 1: infinite at 0, NaN below.

    >>> tracer.scipy.special.k1(tnp.asarray([0.0, 1.0]))
    Array([       inf, 0.60190723], f64)
    """
    return in_double("k1", lambda value: _modified(1, value, scaled=False), x)


def k1e(x: Any) -> Array:
    """Return `k1` times e^x, which does not underflow.

    >>> tracer.scipy.special.k1e(tnp.asarray([1.0, 1e10]))
    Array([1.63615349e+00, 1.25331414e-05], f64)
    """
    return in_double("k1e", lambda value: _modified(1, value, scaled=True), x)


# The first kind


def _orders(x: Array, v: int, steps: int) -> Array:
    """Return J of orders 0 to v, [v + 1, *s]. Its derivative is (J of the order below - J of the order above) / 2."""

    @custom_jvp
    def values(x: Array) -> Array:
        size = absolute(x)
        bound = max(_HANKEL_FROM, float(v))
        far, tiny = size >= bound, size <= _POWERS_TO
        middle = _backward(where(far | tiny | (x != x), 1.0, size), v, _start(bound, v, steps))
        found = where(
            far, _forward(where(far, size, bound), v), where(tiny, _powers(where(tiny, size, 0.0), v), middle)
        )
        odd = (arange(v + 1) % 2 == 1).reshape((-1,) + (1,) * x.ndim)
        return where(x == x, where(odd & (x < 0), -found, where(odd & (x == 0), x, found)), nan)

    def slope(dx: Array, _: Array, x: Array) -> Array:
        more = _orders(x, v + 1, steps)
        below = concatenate([-more[1:2], more[:v]])
        return 0.5 * dx * (below - more[1:])

    values.defjvps(slope)
    return values(x)


def _start(bound: float, v: int, steps: int) -> int:
    """Return an even order beyond reach at the bound: its J is below 1e-20 of J of order v."""
    top = max(bound, v)
    return 2 * ((max(int(top + 15 + math.sqrt(40 * top)), steps) + 1) // 2)


def _backward(x: Array, v: int, start: int) -> Array:
    """Return orders 0 to v by recurrence from two arbitrary values, scaled down whenever they are huge."""

    def step(carry: Any, order: Array) -> Any:
        upper, value, total, scalings = carry
        total = total + where(order == 0, 1.0, where(order % 2 == 0, 2.0, 0.0)) * value
        below = 2.0 * order / x * value - upper
        grown = absolute(below) > _HUGE
        scale = where(grown, _TINY, 1.0)
        scaled = (value * scale, below * scale, total * scale, scalings + where(grown, 1.0, 0.0))
        return scaled, (value, scalings)

    zero = 0.0 * x
    carry = (zero, zero + _TINY, zero, zero)
    carry, _ = scan(lambda c, k: (step(c, k)[0], None), carry, arange(start, v, -1).astype("float64"))
    (_, _, total, final), (values, scalings) = scan(step, carry, arange(v, -1, -1).astype("float64"))
    gap = final - scalings
    shrunk = where(gap == 0, 1.0, where(gap == 1, _TINY, where(gap == 2, _TINY * _TINY, 0.0)))
    return (values / total * shrunk)[::-1]


def _powers(x: Array, v: int) -> Array:
    """Return orders 0 to v for x <= 0.1: (x/2)^k / k! times a sum of powers of -x²/4."""
    order = arange(v + 1).astype("float64").reshape((-1,) + (1,) * x.ndim)
    factor = cumprod(where(order == 0, 1.0, 0.5 * x / maximum(order, 1.0)), axis=0)
    total, quarter = 0.0 * factor + 1.0, -0.25 * x * x
    for j in range(6, 0, -1):
        total = 1.0 + total * quarter / (j * (j + order))
    return factor * total


def _forward(x: Array, v: int) -> Array:
    """Return orders 0 to v for x >= max(25, v), from Hankel's series."""
    phase_0, phase_1 = _hankel(0, x), _hankel(1, x)
    root = sqrt(1.0 / (math.pi * x))
    first, second = root * phase_0[0], root * phase_1[0]
    if v == 0:
        return first[None]

    def step(carry: Any, order: Array) -> Any:
        below, value = carry
        return (value, 2.0 * order / x * value - below), value

    _, rest = scan(step, (first, second), arange(1, v + 1).astype("float64"))
    return concatenate([first[None], rest])


def _hankel(order: int, x: Array) -> tuple[Array, Array]:
    """Return J and Y over sqrt(1 / (π x)): P cos w - Q sin w, P sin w + Q cos w, with w = x - (2 order + 1) π / 4."""
    inverse = 1.0 / x
    terms = [1.0]
    for k in range(1, _HANKEL_TERMS):
        terms.append(terms[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    even, odd, square = 0.0 * x, 0.0 * x, -inverse * inverse
    for k in reversed(range(_HANKEL_TERMS // 2)):
        even, odd = even * square + terms[2 * k], odd * square + terms[2 * k + 1]
    odd = odd * inverse
    sine, cosine = sin(x), cos(x)
    # sqrt(2) times the cosine and the sine of w
    c, s = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -sine - cosine)
    return even * c - odd * s, even * s + odd * c


# The second kind


@custom_jvp
def _y0(x: Array) -> Array:
    return _second(0, x)


@custom_jvp
def _y1(x: Array) -> Array:
    return _second(1, x)


_y0.defjvps(lambda dx, _, x: -dx * _y1(x))
_y1.defjvps(lambda dx, y, x: dx * (_y0(x) - y / x))


def _second(order: int, x: Array) -> Array:
    far, near = x >= _HANKEL_FROM, x <= 1.0
    value = where(far | ~(x > 0), 1.0, x)
    distant = where(far, x, _HANKEL_FROM)
    beyond = sqrt(1.0 / (math.pi * distant)) * _hankel(order, distant)[1]
    inside = where(near, _second_by_powers(order, where(near, value, 1.0)), _second_by_orders(order, value))
    return where(x > 0, where(far, beyond, inside), where(x == 0, -inf, nan))


def _second_by_powers(order: int, x: Array) -> Array:
    """Return Y for 0 < x <= 1 by DLMF 10.8.1: the power series of J and one of its terms times digamma's sums."""
    quarter = -0.25 * x * x
    plain, summed = 0.0 * x, 0.0 * x
    for k in range(12, -1, -1):
        plain, summed = _next_terms(order, k, quarter, plain, summed)
    scale = (0.5 * x) ** order
    found = (2.0 * log(0.5 * x) * plain * scale - summed * scale) / math.pi
    return found - 2.0 / (math.pi * x) if order else found


def _next_terms(order: int, k: int, ratio: Array, plain: Array, summed: Array) -> tuple[Array, Array]:
    """Add ratio^k / (k! (k + order)!), and that times ψ(k + 1) + ψ(k + order + 1), by Horner's rule."""
    weight = 1.0 / (math.factorial(k) * math.factorial(k + order))
    digammas = sum(1 / j for j in range(1, k + 1)) + sum(1 / j for j in range(1, k + order + 1)) - 2 * _EULER
    return plain * ratio + weight, summed * ratio + weight * digammas


def _second_by_orders(order: int, x: Array) -> Array:
    """Return Y for 1 <= x <= 25 by Neumann's series of J, of even orders, and its derivative."""
    values = _backward(x, _NEUMANN, _start(_HANKEL_FROM, 0, 0))
    weights = [0.0] * (_NEUMANN + 1)
    for k in range(1, (_NEUMANN - order) // 2 + 1):
        weights[2 * k + order] = (-1) ** k * ((2 * k + 1) / (k * (k + 1)) if order else 1 / k)
    total = 0.0 * x
    for k, weight in enumerate(weights):
        if weight:
            total = total + weight * values[k]
    logarithm = log(0.5 * x) + (_EULER - order)
    if order == 0:
        return 2.0 / math.pi * (logarithm * values[0] - 2.0 * total)
    return 2.0 / math.pi * (logarithm * values[1] - values[0] / x - total)


_NEUMANN = 60  # J of this order is 1e-19 at 25


# The modified second kind


def _modified(order: int, x: Array, *, scaled: bool) -> Array:
    near = x <= 1.0
    inside, outside = where(near & (x > 0), x, 1.0), where(near | ~(x < inf), 1.0, x)
    low, high = _modified_by_powers(order, inside), _modified_by_integral(order, outside)
    if scaled:
        low = low * exp(inside)
    else:
        half = exp(-0.5 * outside)
        high = half * high * half
    return where(x > 0, where(x == inf, 0.0, where(near, low, high)), where(x == 0, inf, nan))


def _modified_by_powers(order: int, x: Array) -> Array:
    quarter = 0.25 * x * x
    plain, summed = 0.0 * x, 0.0 * x
    for k in range(12, -1, -1):
        plain, summed = _next_terms(order, k, quarter, plain, summed)
    if order == 0:
        return 0.5 * summed - log(0.5 * x) * plain
    return 1.0 / x + 0.5 * x * (log(0.5 * x) * plain - 0.5 * summed)


def _modified_by_integral(order: int, x: Array) -> Array:
    """Return e^x K for x >= 1; all terms are positive."""
    wide = 2.0 * x[..., None]
    terms = asarray(_WEIGHTS) / sqrt(wide + asarray(_SQUARES))
    return sum_of(terms * (1.0 + 2.0 * asarray(_SQUARES) / wide) if order else terms, -1)


_SQUARES = np.arange(0.0, 6.3, 0.2) ** 2
_WEIGHTS = 0.2 * np.exp(-_SQUARES) * np.where(_SQUARES == 0, 1.0, 2.0)
