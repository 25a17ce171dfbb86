"""Riemann's and Hurwitz's zeta functions, by the Euler-Maclaurin formula."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracer.lax import cond
from tracer.numpy import any as any_of
from tracer.numpy import ceil, floor, minimum, power, sin, where
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.promotion import promoted_real
from tracer.scipy.gammas import gamma
from tracer.trace.array import Array, concrete_value

_BERNOULLI = (  # B2, B4, ..., B24
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
    854513 / 138, -236364091 / 2730,
)  # fmt: skip
_SUMMED = 10  # terms added explicitly
_STEEPEST = 1e4  # above this exponent all other terms are negligible


def zeta(x: Any, q: Any = None) -> Array:
    """Return the sum of (q + k)^-x over k = 0, 1, 2, ...: Hurwitz's zeta function; Riemann's without q.

    x: real, above 1 where q is given: infinite at 1, NaN below. Riemann's function is continued to all other x but 1.
    q: real; infinite at 0, -1, -2, ..., and between them NaN for x that are not whole. Their shapes broadcast to [*s].
    Returns floats [*s], of the promoted dtype; integers are cast. Derivatives by both; at negative q,
    x acts on the size of each q + k alone. Johansson 2015, Numerical Algorithms 69.

    >>> tracer.scipy.special.zeta(tnp.asarray([2.0, 4.0]), 1.0)
    Array([1.64493407, 1.08232323], f64)
    >>> tracer.scipy.special.zeta(-1.0)
    Array(-0.08333333, f64*)
    """
    if q is None:
        (s,) = promoted_real("zeta", x)
        here = _continued(where(s < 0, 2.0, s), 1.0)
        left = where(s < 0, s, -1.0)
        turned = _sine(left) * power(2.0, left) * power(math.pi, left - 1) * gamma(1 - left) * _continued(1 - left, 1.0)
        return where(s < 0, turned, here)
    given = array_of("zeta", q)
    s, first = promoted_real("zeta", array_of("zeta", x), given)
    usual = first > 0
    found = _continued(s, where(usual, first, 1.0))
    known = concrete_value(given)
    left = _left(s, first) if known is None or np.any(known < 0) else math.nan
    outside = where(floor(first) == first, math.inf, left)
    return where(s == s, where(s < 1, math.nan, where(s == 1, math.inf, where(usual, found, outside))), s)


def _left(s: Any, q: Any) -> Array:
    """Return the sum at whole s and negative q, NaN elsewhere."""
    left = (floor(s) == s) & (q < 0) & (floor(q) < q) & (s > 1) & (s < math.inf)
    found = cond(any_of(left), _reflected, lambda s, q, left: 0.0 * s * q, s, q, left)
    return where(left, found, math.nan)


def _reflected(s: Any, q: Any, left: Any) -> Array:
    """Return the sum at whole s and negative q: over all whole k, less the terms of negative k."""
    power_of, first = where(left, s, 2.0), where(left, q, -0.5)
    sign = 1.0 - 2.0 * (power_of % 2)
    above = _continued(power_of, first - floor(first))
    return above + sign * (_continued(power_of, ceil(first) - first) - _continued(power_of, 1.0 - first))


def _continued(s: Any, q: Any) -> Array:
    """Return the sum where it converges, and its analytic continuation elsewhere: for s >= 0 and q > 0."""
    slow = minimum(s, _STEEPEST)
    a = q + _SUMMED
    rest = power(a, -slow)
    term, tail = rest * slow / a, power(a, 1 - slow) / (slow - 1) + 0.5 * rest
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        tail = tail + bernoulli / math.factorial(2 * k) * term
        term = term * ((slow + (2 * k - 1)) / a) * ((slow + 2 * k) / a)
    for k in reversed(range(_SUMMED)):
        tail = tail + power(q + k, -s)
    return tail


def _sine(s: Any) -> Array:
    """Return sin(π s / 2), zero at even s."""
    turn = s % 4
    return sin(math.pi / 2 * where(turn > 3, turn - 4, where(turn > 1, 2 - turn, turn)))
