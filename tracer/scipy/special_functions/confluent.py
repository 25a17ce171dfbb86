"""Kummer's confluent hypergeometric function 1F1(a; b; x) of real numbers, always computed in float64.

Negative x are mirrored by Kummer's transformation, e^x 1F1(b - a; b; -x). With p for a or b - a, and x > 0:

    large x:       both asymptotic series, where their terms become small enough
    p x > -b:      the power series, whose terms do not cancel
    otherwise:     the power series up to where its terms would cancel, then Taylor series of Kummer's equation
                   from place to place, through the region where the function oscillates

NIST Digital Library of Mathematical Functions, 13.2, 13.3 and 13.7; Pearson, Olver & Porter 2017, Numerical Algorithms
74. Derivatives by a and b differentiate these series.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.lax import cond, fori_loop, while_loop
from tracer.numpy import absolute, cos, exp, floor, inf, isnan, log, maximum, minimum, nan, power, round, sqrt, where
from tracer.numpy import any as any_of
from tracer.primitives.elementwise import special
from tracer.scipy.gammas import gammasgn
from tracer.scipy.operands import in_double
from tracer.scipy.special_functions.partials import with_partials
from tracer.trace.array import Array

_SERIES_TERMS = 4000.0  # enough for x up to 1400
_SETTLED = 2.0**-60
_ASYMPTOTIC_FROM = 30.0
_ASYMPTOTIC_TERMS = 120.0
_TAYLOR_TERMS = 32
_OVERFLOWS = 1400.0  # x from which the power series is neither exact nor finite
_STEPS = 10_000.0


def hyp1f1(a: Any, b: Any, x: Any) -> Array:
    """Return Kummer's confluent hypergeometric function, the sum of (a)ₖ xᵏ / ((b)ₖ k!).

    1 at a = 0; infinite where b is 0 or a negative integer, unless the sum ends before. Differentiable by all three.
    The relative error in float64 is some 1e-14 for parameters up to 10, as docs/math-accuracy.md shows. Beside zeros it
    is relative to the size nearby.

    >>> tracer.scipy.special.hyp1f1(1.0, tnp.asarray([1.0, 2.0]), 1.0)
    Array([2.71828183, 1.71828183], f64)
    """
    return in_double("hyp1f1", _hyp1f1, a, b, x)


def _values(a: Array, b: Array, x: Array) -> Array:
    ends, pole = _is_end(a), _is_end(b)
    # with b = -m, a sum that ends in time is summed as it stands
    plain = ends & pole & (a >= b)
    strange = isnan(a) | isnan(b) | isnan(x) | (absolute(a) == inf) | (absolute(b) == inf)
    usual = (~pole | plain) & ~strange & (a != 0) & (x != 0)
    p, q, value = where(usual, a, 1.0), where(usual, b, 1.0), where(usual, _clipped(x), 0.0)
    mirrored = (value < 0) & ~_is_end(p)
    p = where(mirrored, q - p, p)
    value = where(mirrored, -value, value)
    found = _unmirrored(p, q, value, mirrored, plain & usual)
    found = where(absolute(x) == inf, where((x < 0) & (a > 0), 0.0, where(found < 0, -inf, inf)), found)
    found = where(usual, found, where(pole & ~plain & (a != 0), inf, 1.0))
    flat = (absolute(b) == inf) & (absolute(a) < inf) & (absolute(x) < inf)
    return where(strange, where(flat, 1.0, nan), found)


_LARGEST = 1e300


def _clipped(x: Array) -> Array:
    return where(x > _LARGEST, _LARGEST, where(x < -_LARGEST, -_LARGEST, x))


def _is_end(x: Array) -> Array:
    """Return whether x is 0 or a negative integer, after which (x)ₖ is 0."""
    return (x <= 0) & (floor(x) == x)


def _by_x(a: Array, b: Array, x: Array) -> Array:
    flat = (a == 0) & _is_end(b)  # 1F1 is 1 there, by `_values`
    lower = where(flat, 1.0, b)
    return where(flat, 0.0, a / lower * _hyp1f1(a + 1.0, lower + 1.0, x))


_hyp1f1 = with_partials(_values, [None, None, _by_x])


def _unmirrored(p: Array, b: Array, x: Array, scaled: Array, plain: Array) -> Array:
    """Return 1F1(p; b; x), times e^-x where scaled; x < 0 only where the sum ends."""
    distant = (x > _ASYMPTOTIC_FROM) & ~_is_end(p) & ~_is_end(b - p)
    far, settled = cond(any_of(distant), _asymptotic, _nowhere, p, b, x, scaled, distant)
    distant = distant & settled
    p, b, x = where(distant, 1.0, p), where(distant, 1.0, b), where(distant, 1.0, x)
    turning = -4.0 * p + 2.0 * absolute(b)
    changing = p < minimum(b, 0.0)  # for b < 0 signs alternate after the first -b terms
    longest = where(b > 0, b, 2.0 - b) / where(changing, where(b > 0, -p, b - p), 1.0)
    cancels = changing & (x > longest) & ~(_is_end(p) & (x > 1.05 * turning)) & ~plain
    start = where(cancels, longest, x)
    half = where(scaled, exp(-0.5 * minimum(x, _OVERFLOWS)), 1.0)
    value, slope = _power_series(p, b, start, half, plain)
    value = _continued(p, b, start, x, value, slope)
    lost = scaled & (x > _OVERFLOWS) & ~_is_end(p)
    return where(distant, far, where(lost, nan, value * half))


def _power_series(p: Array, b: Array, x: Array, first: Array, plain: Array) -> tuple[Array, Array]:
    """Return the sum of the series from a first term, and its derivative. Ends by a majorant without zeros."""

    def goes_on(carry: Any) -> Any:
        return any_of(carry[-1]) & (carry[0] < _SERIES_TERMS)

    def step(carry: Any) -> Any:
        k, term, total, slope, bound, peak, active = carry
        lower = b + k
        share = x / (where(lower == 0, 1.0, lower) * (k + 1.0))
        ended = plain & (p + k == 0)
        new = where(ended, 0.0, term * ((p + k) * share))
        ratio = maximum(absolute(p + k), 1.0) * absolute(share)
        bound = where(active, bound * ratio, bound)
        total, slope = where(active, total + new, total), where(active, slope + (k + 1.0) * new, slope)
        peak = maximum(peak, absolute(new))
        still = active & ~ended & ((bound * (k + 1.0) > _SETTLED * peak) | (ratio > 0.75)) & (peak < inf)
        return k + 1.0, where(active, new, term), total, slope, bound, peak, still

    start = (0.0, first, first, 0.0 * first, absolute(first), absolute(first), x != 0)
    _, _, total, slope, _, _, _ = while_loop(goes_on, step, start)
    return total, slope / where(x == 0, 1.0, x)


def _continued(p: Array, b: Array, start: Array, end: Array, value: Array, slope: Array) -> Array:
    """Return the solution at the end, by Taylor series from place to place."""

    def goes_on(carry: Any) -> Any:
        return any_of(carry[1] < end) & (carry[0] < _STEPS)

    def step(carry: Any) -> Any:
        count, x, value, slope = carry
        active = x < end
        x0 = where(active, x, 1.0)
        rate = absolute(b - x0) / x0 + sqrt(absolute(p) / x0)
        longest = minimum(0.3 * x0, 2.5 / rate)
        last = x0 + longest >= end
        h = where(last, end - x0, longest)
        new, new_slope = _taylor(p, b, x0, where(active, h, 0.0), value, slope)
        arrived = where(last, end, x0 + h)
        return (
            count + 1.0, where(active, arrived, x), where(active, new, value), where(active, new_slope, slope)
        )  # fmt: skip

    return while_loop(goes_on, step, (0.0, start, value, slope))[2]


def _taylor(p: Array, b: Array, x: Array, h: Array, value: Array, slope: Array) -> tuple[Array, Array]:
    """Return the value and slope at x + h: x (k + 1) (k + 2) c'' = (k + p) c - (k + 1) (k + b - x) c'."""
    ratio, square = h / x, h * h / x

    def add(k: Any, carry: Any) -> Any:
        before, term, total, slopes = carry
        n = k.astype("float64")
        new = ((n + p) * square * before / (n + 1.0) - (n + b - x) * ratio * term) / (n + 2.0)
        return term, new, total + new, slopes + (n + 2.0) * new

    first = slope * h
    _, _, total, slopes = fori_loop(0, _TAYLOR_TERMS, add, (value, first, value + first, first))
    return total, slopes / where(h == 0, 1.0, h)


def _nowhere(p: Array, b: Array, x: Array, scaled: Array, wanted: Array) -> tuple[Array, Array]:
    """Return zeros in place of `_asymptotic`, where no x is large."""
    return 0.0 * x, wanted


def _asymptotic(p: Array, b: Array, x: Array, scaled: Array, wanted: Array) -> tuple[Array, Array]:
    """Return DLMF 13.7.2 for large x where wanted, times e^-x where scaled, and whether it has settled."""
    p, b, x = where(wanted, p, 0.5), where(wanted, b, 1.5), where(wanted, x, 100.0)
    first, one = _falling(b - p, 1.0 - p, x, wanted)
    second, other = _falling(p, p - b + 1.0, -x, wanted)
    turn = p - 2.0 * round(0.5 * p)
    found = first * _large(b, p, x, p - b, where(scaled, 0.0, x))
    found = found + cos(math.pi * turn) * second * _large(b, b - p, x, -p, where(scaled, -x, 0.0))
    beyond = x > maximum(200.0, 4.0 * maximum(absolute(b), absolute(p)))  # where the second series is rounded away
    return found, one & (other | beyond)


def _large(b: Array, p: Array, x: Array, power_of_x: Array, growth: Array) -> Array:
    """Return Γ(b) / Γ(p) x^power e^growth: factor by factor where these are floats, else by logarithms."""
    size = special.lgamma(b) - special.lgamma(p)
    rise = power_of_x * log(x)
    fits = (absolute(special.lgamma(b)) < 300.0) & (absolute(size) < 300.0) & (absolute(rise) < 300.0)
    half = 0.5 * where(fits, maximum(minimum(growth, 1500.0), -1500.0), 0.0)
    factors = exp(half) * (exp(where(fits, size, 0.0)) * power(x, where(fits, power_of_x, 0.0))) * exp(half)
    return gammasgn(b) * gammasgn(p) * where(fits, factors, exp(where(fits, 0.0, size + rise + growth)))


def _falling(a: Array, b: Array, x: Array, wanted: Array) -> tuple[Array, Array]:
    """Return the sum of (a)ₖ (b)ₖ / (k! xᵏ) where wanted, up to its least term, and whether that is small enough.

    Terms may rise first, and cancel to a hundredth of the largest. For x above 1400, where the power series would
    overflow, they may cancel to 1e-10.
    """

    def goes_on(carry: Any) -> Any:
        return any_of(carry[-1]) & (carry[0] < _ASYMPTOTIC_TERMS)

    def add(carry: Any) -> Any:
        k, term, total, peak, active = carry
        ratio = (a + k) * (b + k) / ((k + 1.0) * x)
        later = (a + k + 1.0) * (b + k + 1.0) / ((k + 2.0) * x)
        falls = active & ((absolute(ratio) < 1.0) | (absolute(later) < absolute(ratio)))
        term = where(falls, term * ratio, term)
        total = where(falls, total + term, total)
        peak = maximum(peak, absolute(term))
        rising = absolute(ratio) >= 1.0
        return k + 1.0, term, total, peak, falls & (rising | (absolute(term) >= _SETTLED * absolute(total)))

    one = 0.0 * x + 1.0
    _, term, total, peak, _ = while_loop(goes_on, add, (0.0, one, one, one, wanted))
    size = absolute(total)
    return total, (absolute(term) < 2.0**-54 * size) & (peak < where(absolute(x) > _OVERFLOWS, 1e10, 100.0) * size)
