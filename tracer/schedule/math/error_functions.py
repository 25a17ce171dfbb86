"""erf, erfc and erf_inv."""

from __future__ import annotations

import math
from typing import Final

from tracer.schedule.math import coefficients as c
from tracer.schedule.math.double_double import fast_two_sum
from tracer.schedule.math.expand import Value, fma, horner, polynomial, select
from tracer.schedule.math.exponentials import (
    LN2,
    exp_of_reduced,
    exp_tail,
    reduced,
    reduced_normal,
    without_ln2,
)
from tracer.schedule.math.logarithms import LN2_HIGH, LN2_LOW, split_normal

SQRT_PI_HALF: Final = math.sqrt(math.pi) / 2


def erf(x: Value) -> Value:
    """The error function: a polynomial up to 1, 1 - e^p(|x|) with a polynomial for log(erfc) beyond."""
    f = x.format
    size = abs(x)
    z = x * x
    small = fma(size, polynomial(z, f.of(c.ERF_F32, c.ERF_F64)), size)
    logarithm = polynomial(size.at_most(f.of(3.99, 5.99)), f.of(c.LOG_ERFC_F32, c.LOG_ERFC_F64))
    n, scale = reduced_normal(logarithm, LN2)
    rest = exp_of_reduced(without_ln2(logarithm, n)) * scale  # half of erfc
    return select(size < 1.0, small, fma(rest, -2.0, 1.0)).copysign(x)


def erfc(x: Value) -> Value:
    """1 - erf(x), accurate relative to itself down to the least denormal.

    1 - erf up to 1/2. For a = |x| beyond: e^(-a^2) p(t) / (1 + 2 a), t = (a - k) / (a + k) (Shepherd & Laframboise
    1981, Math. Comp. 36(153)), with a^2 in two parts and p e^r rounded once; 2 less that where x is negative.
    """
    f = x.format
    square = x * x
    near = 1.0 - fma(x, polynomial(square, f.of(c.ERF_F32, c.ERF_F64)), x)
    size = abs(x).at_most(f.of(10.25, 27.25))  # 0 from there on
    k = f.of(2.0, 4.0)
    inverse = 1.0 / (size + k)
    t = (size - k) * inverse
    t = fma(inverse, fma(-t, size, fma(t + 1.0, -k, size)), t)
    first, *others = f.of(c.ERFCX_F32, c.ERFCX_F64)
    p, p_lost = fast_two_sum(x.like(first), t * polynomial(t, tuple(others)))
    square = size * size
    square_lost = fma(size, size, -square)
    n, power = reduced(-square, LN2)
    r = without_ln2(-square, n) - square_lost
    q = fma(r * r, polynomial(r, exp_tail(f)), r)
    above, above_lost = fast_two_sum(p, fma(p, q, p_lost))
    below = fma(size, 2.0, 1.0)
    below_lost = fma(size, 2.0, 1.0 - below)
    inverse = 1.0 / below
    y = above * inverse
    y = fma(inverse, fma(-y, below, above) + fma(-y, below_lost, above_lost), y)
    tail = y * power.scale * power.rest
    far = select(x < 0.0, 2.0 - tail, tail)
    return select(abs(x) < 0.5, near, far)


def erf_inv(x: Value) -> Value:
    """The inverse of erf; infinite at -1 and 1, NaN beyond.

    A polynomial up to 3/5; beyond, t - 5/16 - g(1/t) with t = sqrt(-log(1 - |x|)) in two parts.
    """
    f = x.format
    size = abs(x)
    z = x * x
    small = fma(size, polynomial(z, f.of(c.ERF_INV_F32, c.ERF_INV_F64)), size)
    rest = select(size > 0.6, 1.0 - size, 0.25)  # exact; where the other case is chosen anything in range
    square, square_lost = _minus_log(rest)
    t = square.sqrt()
    inverse = 1.0 / t
    t_lost = (fma(-t, t, square) + square_lost) * (inverse * 0.5)
    v = inverse - f.of(0.2434, 0.165)
    above = horner(v, f.of(c.ERF_INV_TAIL_F32, c.ERF_INV_TAIL_F64))
    below = horner(v, f.of(c.ERF_INV_TAIL_F32_BELOW, c.ERF_INV_TAIL_F64_BELOW))
    tail = (t - 5 / 16) + (t_lost - above / below)
    result = select(size > 0.6, tail, small)
    result = select(size < 1.0, result, select(size.equals(1.0), x.like(math.inf), math.nan))
    return result.copysign(x)


def _minus_log(x: Value) -> tuple[Value, Value]:
    """-log(x) in two parts, for normal x <= 1/2."""
    layout = x.format
    e, m = split_normal(x)
    exponent = (e + layout.bits(layout.magic)).as_float - layout.magic
    f = m - 1.0
    total, lost = fast_two_sum(exponent * -LN2_HIGH[layout], -f)
    q = polynomial(f, layout.of(c.LOG_F32, c.LOG_F64))
    return fast_two_sum(total, lost - fma(exponent, LN2_LOW[layout], (f * f) * q))
