"""exp, exp2, expm1 and logistic.

e^x = 2^n e^r with n = round(x / ln 2), r = x - n ln 2 in two parts (Cody & Waite 1980, chapter 6), |r| <= ln(2)/2.
Multiplying by 2^n comes last, so that results below the normal range round once.
"""

from __future__ import annotations

import math

from tracer.schedule.math import coefficients as c
from tracer.schedule.math.expand import DOUBLE, SINGLE, Format, Value, fma, horner, polynomial, select

LN2_HIGH = {SINGLE: 0.693147182464599609375, DOUBLE: 0.6931471805599453}  # nearest, so that x - n high is exact
LN2_LOW = {SINGLE: -1.904654299957768e-09, DOUBLE: 2.3190468138462996e-17}
LN2 = math.log(2)


def clamped(x: Value, unit: float) -> Value:
    """Return x within the range where 2^(x / unit) changes; NaN stays."""
    f = x.format
    return x.at_most((f.bias + 1.5) * unit).at_least(-(f.bias + f.fraction + 1.5) * unit)


def rounded(x: Value, unit: float) -> Value:
    """Return round(x / unit), for x as `clamped` leaves it."""
    magic = x.format.magic
    return (x + magic if unit == 1 else fma(x, 1 / unit, magic)) - magic


def reduced_normal(x: Value, unit: float, down: int = 1) -> tuple[Value, Value]:
    """Return n = round(x / unit) and 2^(n - down), which must be a normal number: it is written into exponent bits."""
    f = x.format
    magic = x.like(f.magic + f.bias - down)
    shifted = x + magic if unit == 1 else fma(x, 1 / unit, magic)
    return shifted - magic, (shifted.bits << f.fraction).as_float


def without_ln2(x: Value, n: Value) -> Value:
    """Return x - n ln 2."""
    f = x.format
    return fma(n, -LN2_LOW[f], fma(n, -LN2_HIGH[f], x))


def exp(x: Value) -> Value:
    """Return e^x."""
    x = clamped(x, LN2)
    n = rounded(x, LN2)
    return exp_of_reduced(without_ln2(x, n)).scale(n)


def exp_of_reduced(r: Value) -> Value:
    """Return e^r for |r| <= ln(2)/2."""
    if r.format is SINGLE:  # one operation less than 1 + q
        return horner(r, (1.0, 1.0, *c.EXP_F32))
    return 1.0 + fma(r * r, polynomial(r, c.EXP_F64), r)


def exp_tail(f: Format) -> tuple[float, ...]:
    """Return coefficients of (e^r - 1 - r) / r^2 for |r| <= ln(2)/2."""
    return f.of(c.EXP_F32, c.EXP_F64)


def exp2(x: Value) -> Value:
    """Return 2^x; exact at integers."""
    f = x.format
    x = clamped(x, 1.0)
    n = rounded(x, 1.0)
    r = x - n
    if f is SINGLE:
        significand = polynomial(r, (1.0, *c.EXP2_F32))
    else:
        first, *tail = c.EXP2_F64
        significand = 1.0 + fma(r * r, polynomial(r, tuple(tail)), r * first)
    return significand.scale(n)


def expm1_reduced(x: Value, n: Value) -> Value:
    """Return q, accurate relative to itself, with e^x = (1 + q) 2^n."""
    f = x.format
    near = fma(n, -LN2_HIGH[f], x)
    r = fma(n, -LN2_LOW[f], near)
    lost = fma(n, -LN2_LOW[f], near - r)
    return r + fma(r * r, polynomial(r, exp_tail(f)), lost)


def expm1(x: Value) -> Value:
    """Return e^x - 1 = 2 (q 2^(n-1) + (2^(n-1) - 1/2))."""
    f = x.format
    inside = x.at_most((f.bias + 1.5) * LN2).at_least(-(f.fraction + 3) * LN2)
    n, scale = reduced_normal(inside, LN2)
    result = fma(scale, expm1_reduced(inside, n), scale - 0.5) * 2.0
    return select(abs(x) < 2.0 ** -(f.fraction + 2), x, result)  # keeps -0 and denormals


def logistic(x: Value) -> Value:
    """Return 1 / (1 + e^-x), as e / (1 + e) with e = e^x where x is negative, so that nothing overflows.

    e / (1 + e) lies just below a power of two where e lies just above it. The rounding errors of e and 1 + e would
    count twice there, so they are corrected.
    """
    e, e_lost = exp_of_negative(-abs(x))
    d = 1.0 + e
    d_lost = (1.0 - d) + e
    negative = x < 0.0
    y = select(negative, e, 1.0) / d
    rest = 1.0 - y  # 1 / d where x is negative
    correction = rest * fma(e_lost, rest, -(y * d_lost))
    return select(negative, y + correction, y)


def exp_of_negative(x: Value) -> tuple[Value, Value]:
    """Return e^x for x <= 0 and its rounding error."""
    f = x.format
    x = x.at_least(-(f.bias + f.fraction + 1.5) * LN2)
    n = rounded(x, LN2)
    r = without_ln2(x, n)
    q = fma(r * r, polynomial(r, exp_tail(f)), r)
    p = 1.0 + q
    return p.scale(n), (q - (p - 1.0)) * x.like(1.0).scale(n)
