"""Gauss's hypergeometric function 2F1(a, b; c; x) of real numbers, always computed in float64.

Pfaff's transformation brings every x < 1 to 0 <= x < 1, and Euler's brings c - a - b to 0 or above. There the power
series is summed up to 3/4, or up to where its terms would cancel. From there Taylor series of the hypergeometric
equation are followed from place to place. They are in the distance to the singularity at 1. So nothing cancels where c
- a - b or a - b is a whole number. There the connection formulas of the singularities are limits.

NIST Digital Library of Mathematical Functions, 15.2, 15.4, 15.8 and 15.10; Pearson, Olver & Porter 2017, Numerical
Algorithms 74. Derivatives by a, b and c differentiate these series.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.lax import fori_loop, while_loop
from tracer.numpy import absolute, exp, floor, inf, isnan, maximum, minimum, nan, power, sqrt, where
from tracer.numpy import any as any_of
from tracer.primitives.elementwise import special
from tracer.scipy.gammas import gammasgn
from tracer.scipy.operands import in_double
from tracer.scipy.special_functions.partials import with_partials
from tracer.trace.array import Array

_SERIES_TO = 0.75
_SERIES_TERMS = 5000.0
_SETTLED = 2.0**-60
_TAYLOR_TERMS = 44
_REACH = 0.4  # of the distance to a singularity: 0.4^44 is 3e-18
_STEPS = 10_000.0


def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Array:
    """Return Gauss's hypergeometric function, the sum of (a)ₖ (b)ₖ xᵏ / ((c)ₖ k!), continued to all x < 1.

    1 at a = 0 and b = 0; infinite where c is 0 or a negative integer, and for x > 1. It is finite there if the sum ends
    before, or the sum of (1 - x)^(a + b - c) 2F1(c - a, c - b; c; x) does. Differentiable by all four. The relative
    error in float64 is some 1e-14 for parameters up to 10, but 1e-12 for negative c, as docs/math-accuracy.md shows.
    Beside zeros it is relative to the size nearby.

    >>> tracer.scipy.special.hyp2f1(1.0, 1.0, 2.0, tnp.asarray([-1.0, 0.5, 1.0]))
    Array([0.69314718, 1.38629436,        inf], f64)
    """
    return in_double("hyp2f1", _hyp2f1, a, b, c, x)


def _values(a: Array, b: Array, c: Array, x: Array) -> Array:
    strange = isnan(a) | isnan(b) | isnan(c) | isnan(x)
    for v in (a, b, c):
        strange = strange | (absolute(v) == inf)
    one = (a == 0) | (b == 0) | (x == 0)
    pole = _is_end(c)
    a, b = _ordered(where(strange, 1.0, a), where(strange, 1.0, b), c)
    ends = _is_end(a)  # or b is not, either
    plain = ends & pole & (a >= c)
    known = ~strange & ~one & (~pole | plain)
    s = _excess(a, b, c)
    turned = ~ends & (_is_end(c - a) | _is_end(c - b)) & ~pole
    above = (x > 1) & (ends | (turned & (floor(s) == s)))
    at_one = (x == 1) & ~ends & (s > 0)
    inside = known & ((x < 1) | above | ((x == 1) & ends)) & (x > -inf)
    found = _beyond(
        where(inside, a, 1.0), where(inside, b, 1.0), where(inside, c, 2.0), where(inside, x, 0.5), plain & inside
    )
    gauss = _gauss_sum(where(at_one & known, a, 1.0), where(at_one & known, b, 1.0), where(at_one & known, c, 3.0))
    far = where(a > 0, 0.0, nan)  # at -inf
    found = where(inside, found, where(at_one, gauss, where(x == -inf, far, inf)))
    cancelled = pole & (a == c) & known  # (a)ₖ / (c)ₖ is 1
    found = where(cancelled, where(x < 1, power(where(cancelled & (x < 1), 1.0 - x, 1.0), -b), inf), found)
    return where(strange, nan, where(one & known, 1.0, where(known, found, where(one & ~strange, 1.0, inf))))


def _is_end(x: Array) -> Array:
    """Return whether x is 0 or a negative integer, after which (x)ₖ is 0."""
    return (x <= 0) & (floor(x) == x)


def _ordered(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Return a and b, first the one whose series ends first, else the lesser one."""
    first, second = _is_end(a), _is_end(b)
    lesser = minimum(a, b)
    swapped = where(first & second, b > a, where(first | second, second, lesser != a))
    return where(swapped, b, a), where(swapped, a, b)


def _excess(a: Array, b: Array, c: Array) -> Array:
    """Return c - a - b, the larger two first."""
    return where(absolute(a) > absolute(b), (c - a) - b, (c - b) - a)


def _by_x(a: Array, b: Array, c: Array, x: Array) -> Array:
    flat = (a == 0) | (b == 0)  # where 0 meets infinite derivatives
    inner = where(flat & ~isnan(c), 0.0, x)
    return where(flat, 0.0 * inner, a * b / where(flat, 1.0, c) * _hyp2f1(a + 1.0, b + 1.0, c + 1.0, inner))


_hyp2f1 = with_partials(_values, [None, None, None, _by_x])


def _gauss_sum(a: Array, b: Array, c: Array) -> Array:
    """Return Γ(c) Γ(c - a - b) / (Γ(c - a) Γ(c - b)), the value at 1."""
    s = _excess(a, b, c)
    first, second = c - a, c - b
    ends = _is_end(first) | _is_end(second)
    first, second = where(ends, 1.0, first), where(ends, 1.0, second)
    size = special.lgamma(c) + special.lgamma(s) - special.lgamma(first) - special.lgamma(second)
    sign = gammasgn(c) * gammasgn(s) * gammasgn(first) * gammasgn(second)
    return where(ends, 0.0, sign * exp(size))


def _beyond(a: Array, b: Array, c: Array, x: Array, plain: Array) -> Array:
    """Return the function; above 1, a sum that ends by recurrence over its degree: DLMF 15.5.11."""
    above = (x > 1) & _is_end(a) & ~plain
    found = _inside(where(above, 1.0, a), b, where(above, 2.0, c), where(above, 0.5, x), plain)
    z = where(above, x, 1.0)

    def step(carry: Any) -> Any:
        k, before, value = carry
        new = ((2.0 * k + c - (b + k) * z) * value + k * (z - 1.0) * before) / (c + k)
        active = above & (k < -a)
        return k + 1.0, where(active, value, before), where(active, new, value)

    one = 0.0 * x + 1.0
    _, _, polynomial = while_loop(lambda carry: any_of(above & (carry[0] < -a)), step, (0.0, one, one))
    return where(above, polynomial, found)


def _inside(a: Array, b: Array, c: Array, x: Array, plain: Array) -> Array:
    """Return the function by its transforms: x / (x - 1) below 0, and the smaller exponent at 1."""
    ends = _is_end(a)
    left = (x < 0) & ~plain
    y = where(left, x / where(left, x - 1.0, 1.0), x)
    rest = where(left, 1.0 / where(left, 1.0 - x, 1.0), 1.0 - x)
    second = where(left, c - b, b)
    s = where(left, b - a, _excess(a, b, c))
    euler = ~ends & ((s < 0) | _is_end(c - a) | _is_end(c - second)) & ~plain & (rest != 0)
    p, q = where(euler, c - a, a), where(euler, c - second, second)
    exponent = where(left, a, 0.0) + where(euler, s, 0.0)
    base = where(rest == 0, 1.0, rest)
    # above 1 the exponent is a whole number
    factor = where(exponent == 0, 1.0, power(absolute(base), exponent) * where((base < 0) & (exponent % 2 != 0), -1, 1))
    return factor * _core(p, q, c, where(euler, -s, s), y, rest, plain)


def _core(a: Array, b: Array, c: Array, s: Array, y: Array, rest: Array, plain: Array) -> Array:
    """Return the function for 0 <= y < 1, given 1 - y as `rest`; for other y only where the sum ends."""
    ends = _is_end(a) | _is_end(b)
    within = (y > 0) & (rest > 0) & ~plain
    cancels = within & (a * b * y < -absolute(c)) & ~plain
    slow = within & (y > _SERIES_TO) & ~(ends & ~cancels)
    longest = where(cancels, absolute(c) / where(cancels, -a * b, 1.0), _SERIES_TO)
    start = where(cancels | slow, minimum(minimum(y, _SERIES_TO), longest), y)
    value, slope = _power_series(a, b, c, start, plain)
    return _continued(a, b, c, s, start, y, rest, value, slope)


def _power_series(a: Array, b: Array, c: Array, x: Array, plain: Array) -> tuple[Array, Array]:
    """Return the sum of the series and its derivative. Ends by a majorant without zeros."""
    ends = _is_end(a) | _is_end(b)
    outside = ends & (absolute(x) >= 0.9)  # where only the sum that ends converges

    def goes_on(carry: Any) -> Any:
        return any_of(carry[-1]) & (carry[0] < _SERIES_TERMS)

    def step(carry: Any) -> Any:
        k, term, total, slope, bound, peak, active = carry
        lower = c + k
        scale = x / (where(lower == 0, 1.0, lower) * (k + 1.0))
        ended = ((a + k) * (b + k) == 0) & (plain | outside)
        new = where(ended, 0.0, term * (a + k) * (b + k) * scale)
        ratio = maximum(absolute(a + k), 1.0) * maximum(absolute(b + k), 1.0) * absolute(scale)
        bound = where(active, bound * ratio, bound)
        total, slope = where(active, total + new, total), where(active, slope + (k + 1.0) * new, slope)
        peak = maximum(peak, absolute(new))
        still = active & ~ended & ((bound * (k + 1.0) > _SETTLED * peak) | (ratio > 0.95)) & (peak < inf)
        return k + 1.0, where(active, new, term), total, slope, bound, peak, still

    first = 0.0 * x + 1.0
    start = (0.0, first, first, 0.0 * first, first, first, x != 0)
    _, _, total, slope, _, _, _ = while_loop(goes_on, step, start)
    return total, slope / where(x == 0, 1.0, x)


def _continued(
    a: Array, b: Array, c: Array, s: Array, start: Array, end: Array, rest: Array, value: Array, slope: Array
) -> Array:  # fmt: skip
    """Return the solution at the end, by Taylor series from place to place: x and 1 - x are carried along."""

    def goes_on(carry: Any) -> Any:
        return any_of(carry[-1]) & (carry[0] < _STEPS)

    def step(carry: Any) -> Any:
        count, x, left, value, slope, active = carry
        x0, left0 = where(active, x, 0.5), where(active, left, 0.5)
        weight = x0 * left0
        drift = where(x0 < 0.5, c - (a + b + 1.0) * x0, s - 1.0 + (a + b + 1.0) * left0)
        rate = absolute(drift) / weight + sqrt(absolute(a * b) / weight)
        longest = minimum(_REACH * minimum(x0, left0), 2.5 / rate)
        ahead = where(end < 0.5, end - x0, left0 - rest)
        last = ahead <= longest
        h = where(active, where(last, ahead, longest), 0.0)
        new, new_slope = _taylor(a, b, drift, x0, left0, h, value, slope)
        return (
            count + 1.0, where(active, x + h, x), where(active, left - h, left), where(active, new, value),
            where(active, new_slope, slope), active & ~last,
        )  # fmt: skip

    begin = (0.0, start, 1.0 - start, value, slope, start != end)
    return while_loop(goes_on, step, begin)[3]


def _taylor(
    a: Array, b: Array, drift: Array, x: Array, left: Array, h: Array, value: Array, slope: Array
) -> tuple[Array, Array]:  # fmt: skip
    """Return the value and slope at x + h, of x (1 - x) w'' + (drift + ...) w' - a b w = 0."""
    weight, tilt = x * left, left - x
    ratio, square = h / weight, h * (h / weight)

    def add(k: Any, carry: Any) -> Any:
        before, term, total, slopes = carry
        n = k.astype("float64")
        new = ((n + a) * (n + b) * square * before / (n + 1.0) - (tilt * n + drift) * ratio * term) / (n + 2.0)
        return term, new, total + new, slopes + (n + 2.0) * new

    first = slope * h
    _, _, total, slopes = fori_loop(0, _TAYLOR_TERMS, add, (value, first, value + first, first))
    return total, slopes / where(h == 0, 1.0, h)
