"""asin, acos, atan and atan2."""

from __future__ import annotations

import math
from typing import Final

from tracer.schedule.math import coefficients as c
from tracer.schedule.math.expand import DOUBLE, SINGLE, Value, fma, polynomial, select

# pi/4 in two parts; products of the first with 0 ... 4 enter FMAs exactly
QUARTER_PI: Final = {
    SINGLE: (0.785398185253143310546875, -2.185569414336896e-08),
    DOUBLE: (0.7853981633974483, 3.061616997868383e-17),
}


def _plus_quarters(quarters: Value, angle: Value, cubic: Value) -> Value:
    """Return quarters * pi/4 + angle + cubic."""
    high, low = QUARTER_PI[angle.format]
    return fma(quarters, high, fma(quarters, low, cubic) + angle)


def _atan_cubic(t: Value) -> Value:
    """Return atan(t) - t for |t| <= 1/2."""
    z = t * t
    return (t * z) * polynomial(z, t.format.of(c.ATAN_F32, c.ATAN_F64))


def atan(x: Value) -> Value:
    """Return the arc tangent: of x, of (x-1)/(x+1) beyond 1/2 with pi/4 added, of -1/x beyond 3 with pi/2."""
    size = abs(x)
    middle, large = size > 0.5, size > 3.0
    above = select(large, size.like(-1.0), select(middle, size - 1.0, size))
    below = select(large, size, select(middle, size + 1.0, 1.0))
    quarters = select(large, size.like(2.0), select(middle, size.like(1.0), 0.0))
    t = above / below
    return _plus_quarters(quarters, t, _atan_cubic(t)).copysign(x)


def atan2(y: Value, x: Value) -> Value:
    """Return the angle of (x, y), with C99 F.9.1.4's values at zeros and infinities."""
    f = x.format
    swap = abs(y) > abs(x)
    a, b = select(swap, abs(x), abs(y)), select(swap, abs(y), abs(x))  # b is the larger, or NaN beside it
    both_infinite = a.equals(math.inf) & b.equals(math.inf)
    scale = select(b > 2.0 ** (f.bias - 1), b.like(0.25), 1.0)
    a = select(both_infinite, 1.0, a * scale)
    b = select(both_infinite, 1.0, b * scale).at_least(2.0 ** (1 - f.bias - f.fraction))
    middle = a > b * 0.5  # then a - b is exact
    t = select(middle, a - b, a) / select(middle, a + b, b)
    quarters = select(middle, a.like(1.0), 0.0)
    quarters = select(swap, 2.0 - quarters, quarters)
    left = x.bits < 0
    quarters = select(left, 4.0 - quarters, quarters)
    t = select(swap ^ left, -t, t)
    return _plus_quarters(quarters, t, _atan_cubic(t)).copysign(y)


def _asin_parts(x: Value) -> tuple[Value, Value, Value, Value]:
    """Return (large, s, cubic, tail): asin|x| = s + cubic * tail where |x| <= 1/2, else pi/2 - 2 times that.

    s = sqrt((1 - |x|) / 2) where x is large. The rounding error of the root is at most half an ulp of the results.
    These have a factor of 2 and, for asin, pi/2 added.
    """
    f = x.format
    size = abs(x)
    large = size > 0.5
    z = select(large, fma(size, -0.5, 0.5), size * size)
    s = select(large, z.sqrt(), size)
    return large, s, s * z, polynomial(z, f.of(c.ASIN_F32, c.ASIN_F64))


def asin(x: Value) -> Value:
    """Return the arc sine; NaN outside [-1, 1]."""
    high, low = QUARTER_PI[x.format]
    large, s, cubic, tail = _asin_parts(x)
    angle = s + fma(cubic, tail, select(large, x.like(-low), 0.0))  # so that pi/2 is added last, where |x| is large
    return select(large, fma(angle, -2.0, 2 * high), angle).copysign(x)


def acos(x: Value) -> Value:
    """Return the arc cosine; NaN outside [-1, 1]."""
    high, low = QUARTER_PI[x.format]
    large, s, cubic, tail = _asin_parts(x)
    s, rest = s.copysign(x), (cubic * tail).copysign(x)
    # pi/2 - (s + rest), or 2 (s + rest), from pi where x is negative
    whole = select(large, select(x < 0.0, x.like(4 * high), 0.0), 2 * high)
    factor = select(large, x.like(2.0), -1.0)
    return fma(factor, s, whole) + fma(whole, low / high, factor * rest)
