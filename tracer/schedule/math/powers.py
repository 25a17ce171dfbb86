"""pow, cbrt, rsqrt and hypot."""

from __future__ import annotations

import math

from tracer.schedule.math import coefficients as c
from tracer.schedule.math.double_double import log_pair
from tracer.schedule.math.expand import Code, Value, fma, horner, polynomial, select
from tracer.schedule.math.exponentials import LN2, clamped, exp_tail, rounded, without_ln2


def exp_pair(high: Value, low: Value) -> Value:
    """Return e^(high + low), low being small beside 1 wherever high is in range."""
    f = high.format
    limit = (f.bias + f.fraction + 2) * LN2
    low = select(abs(high) < limit, low, 0.0)
    high = clamped(high, LN2)
    n = rounded(high, LN2)
    r = without_ln2(high, n) + low
    q = fma(r * r, polynomial(r, exp_tail(f)), r)
    return (1.0 + q).scale(n)


def pow_(x: Value, y: Value) -> Value:
    """Return x^y = e^(y log |x|), with the special values of C99 F.9.4.4: 1 wherever y = 0 or x = 1, NaN or not.

    All but a finite power of a positive finite number stands in a branch.
    """
    log_high, log_low = log_pair(abs(x))
    high = y * log_high
    magnitude = exp_pair(high, fma(y, log_low, fma(y, log_high, -high)))
    ordinary = (x > 0.0) & (x < math.inf) & (abs(y) < math.inf)

    def special(code: Code) -> tuple[Value, ...]:
        return (_special_power(code.adopt(x), code.adopt(y), code.adopt(magnitude)),)

    return x.code.rarely(~ordinary, (magnitude,), special)[0]


def _special_power(x: Value, y: Value, magnitude: Value) -> Value:
    """Return x^y wherever it is not the magnitude alone."""
    size = abs(x)
    zero, infinite = size.equals(0.0), size.equals(math.inf)
    magnitude = select(size.equals(1.0), 1.0, magnitude)
    magnitude = select(zero | infinite, select(zero ^ (y > 0.0), x.like(math.inf), 0.0), magnitude)
    magnitude = select(x.differs(x) | y.differs(y), math.nan, magnitude)
    whole = y.floor().equals(y)
    half = y * 0.5
    odd = whole & half.floor().differs(half)
    sign = select(odd, x.bits & x.format.sign_bit, 0)
    result = (magnitude.bits ^ sign).as_float
    result = select((x < 0.0) & ~(infinite | whole), math.nan, result)
    return select(y.equals(0.0) | x.equals(1.0), 1.0, result)


def rsqrt(x: Value) -> Value:
    """Return 1 / sqrt(x)."""
    return 1.0 / x.sqrt()


def cbrt(x: Value) -> Value:
    """Return the cube root, y = |x|^(-1/3) first.

    The encoding of a float is nearly linear in its logarithm. So minus a third of it starts y, to 10 % of y^3; the
    series of (1 - h)^(-1/3) in h = 1 - |x| y^3 continues; |x| y^2 takes one of Newton's steps with its residual in two
    parts.
    """
    f = x.format
    size = abs(x)
    up = f.fraction // 3 + 1
    small = size < f.tiny
    a = select(small, size * 2.0 ** (3 * up), size)
    drop = f.of(9, 32)
    base = 2.0**f.fraction
    start = (4 / 3 * f.bias - CBRT_START) * 2.0 ** (f.fraction - drop)
    encoding = (a.bits.logical_shift(drop) | f.bits(base)).as_float  # base + the encoding's leading bits
    y = (fma(encoding, -1 / 3, base / 3 + base + start).bits << drop).as_float
    h = fma(-(a * y), y * y, 1.0)
    y = fma(y * h, horner(h, f.of(c.CBRT_F32, c.CBRT_F64)), y)
    square = y * y
    root = a * square
    residual = fma(root, root, -(root * root)) * root + fma(root * root, root, -a)
    root = fma(residual, square * (-1 / 3), root)
    root = root * select(small, x.like(2.0**-up), 1.0)
    return select(size.equals(0.0) | ~(size < math.inf), x, root.copysign(x))


CBRT_START = 0.068  # makes the error of the start symmetric: |h| < 0.1025


def hypot(x: Value, y: Value) -> Value:
    """Return sqrt(x^2 + y^2) without overflow; infinite where either is, even beside NaN."""
    f = x.format
    swap = abs(y) > abs(x)
    a, b = select(swap, abs(y), abs(x)), select(swap, abs(x), abs(y))
    large, small = a > 2.0 ** f.of(60, 500), a < 2.0 ** -f.of(50, 500)
    down, up = f.of(70, 600), f.of(100, 700)
    scale = select(large, a.like(2.0**-down), select(small, a.like(2.0**up), 1.0))
    back = select(large, a.like(2.0**down), select(small, a.like(2.0**-up), 1.0))
    a, b = a * scale, b * scale
    root = fma(a, a, b * b).sqrt() * back
    return select(abs(x).equals(math.inf) | abs(y).equals(math.inf), math.inf, root)
