"""Modified Bessel functions of the first kind, of orders 0 and 1, plain or scaled by e^-|x|.

Near 0 the power series is summed, whose terms have one sign; beyond, the asymptotic series, whose error there is below
e^-36 (Abramowitz & Stegun 9.6.10, 9.7.1). Narrow floats are computed in f32.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tracer.numpy.core.promotion import promoted_real
from tracer.numpy.elementwise.arithmetic import absolute, minimum, sign
from tracer.numpy.elementwise.powers import sqrt
from tracer.numpy.elementwise.transcendental import exp
from tracer.numpy.shapes.creation import full_like
from tracer.numpy.shapes.where import where
from tracer.trace.array import Array

_FAR = 18.0
_INFINITE = 4000.0  # e^|x| / sqrt(|x|) overflows from here on, even in float64
_POWERS, _ASYMPTOTIC = 46, 34


def bessel_i(name: str, order: int, x: Any, *, scaled: bool) -> Array:
    """Return I_order(x), times e^-|x| if scaled. name: for errors. Raises DTypeError for complex x."""
    (given,) = promoted_real(name, x)
    value = given.astype("float32") if given.dtype.itemsize < 4 else given
    far = absolute(value) > _FAR
    inside = where(far, 0, value)
    size = where(far, absolute(value) if scaled else minimum(absolute(value), _INFINITE), _FAR)
    near = _power_series(order, inside)
    beyond = _asymptotic_series(order, size) * (sign(value) if order else 1)
    if scaled:
        near = near * exp(-absolute(inside))
    else:
        root = exp(size / 2)  # applied twice to avoid overflow
        beyond = root * (root * beyond)
    result: Array = where(far, beyond, near)
    return result.astype(given.dtype)


def _power_series(order: int, x: Array) -> Array:
    """Return the power series by the share of x^2 in the farthest point's square, so that no coefficient overflows."""
    share = (x / _FAR) ** 2
    coefficients = [
        float(Fraction(_FAR * _FAR / 4) ** k / (math.factorial(k) * math.factorial(k + order)))
        for k in range(_POWERS + 1)
    ]
    total = _polynomial(coefficients, share)
    return total * (x / 2) if order else total


def _asymptotic_series(order: int, size: Array) -> Array:
    """Return the asymptotic series without the factor e^size."""
    term, coefficients = Fraction(1), [1.0]
    for k in range(1, _ASYMPTOTIC + 1):
        term *= Fraction((2 * k - 1) ** 2 - 4 * order**2) / (8 * k * Fraction(_FAR))
        coefficients.append(float(term))
    return _polynomial(coefficients, _FAR / size) / sqrt(2 * np.pi * size)


def _polynomial(coefficients: list[float], x: Array) -> Array:
    """Return the polynomial as four polynomials of x^4, side by side.

    In a single chain each product would wait for the one before.
    """
    square = x * x
    fourth = square * square
    parts = []
    for k in range(4):
        last, *before = coefficients[k::4][::-1]
        part: Array = full_like(x, last)
        for coefficient in before:
            part = part * fourth + coefficient
        parts.append(part)
    return parts[0] + parts[1] * x + (parts[2] + parts[3] * x) * square
