"""erf, erfc and erf_inv."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tracer.schedule.math import coefficients as c
from tracer.schedule.math import piecewise
from tracer.schedule.math import tables as t
from tracer.schedule.math.double_double import fast_two_sum
from tracer.schedule.math.expand import DOUBLE, SINGLE, Value, fma, horner, polynomial, select
from tracer.schedule.math.exponentials import LN2, exp_tail, rounded, without_ln2
from tracer.schedule.math.logarithms import LN2_HIGH, LN2_LOW


def erf(x: Value) -> Value:
    """Return the error function."""
    f = x.format
    size = abs(x).at_most(f.of(4.0, 5.93))  # 1 from there on
    entry = piecewise.evenly(size, f.of(3.87, 2.6125))
    lost = f.of(2 / math.sqrt(math.pi) - float(np.float32(2 / math.sqrt(math.pi))), 0.0)  # in the slope at 0
    return piecewise.piecewise(size, entry, f.of(t.ERF_F32, t.ERF_F64), lost).copysign(x)


def erfc(x: Value) -> Value:
    """Return 1 - erf(x), accurate relative to itself down to the least denormal.

    e^(-a^2) g(a) for a = |x|, g tabulated, with a^2 and g in two parts each and the product rounded once; 2 less that
    where x is negative.
    """
    f = x.format
    size = abs(x).at_most(f.of(10.25, 27.25))  # 0 from there on
    entry = piecewise.growing(size, f.of(1.46, 0.55))
    d, slope, value = piecewise.parts(size, entry, f.of(t.SCALED_ERFC_F32, t.SCALED_ERFC_F64))
    p, p_lost = fast_two_sum(value, d * slope)
    square = size * size
    square_lost = fma(size, size, -square)
    n = rounded(-square, LN2)
    r = without_ln2(-square, n) - square_lost
    q = fma(r * r, polynomial(r, exp_tail(f)), r)
    tail = (p + fma(p, q, p_lost)).scale(n)
    return select(x < 0.0, 2.0 - tail, tail)


def erf_inv(x: Value) -> Value:
    """Return the inverse of erf; infinite at -1 and 1, NaN beyond.

    x (sqrt(pi) / 2 + w R(w)) with w = -log(1 - x^2) up to 6.25, in f32 up to 4 (after Giles 2011, in GPU Computing
    Gems, chapter 10); a branch computes larger w.
    """
    f = x.format
    rest = fma(-x, x, 1.0)
    m = rest.significand - 1.0
    q = polynomial(m, f.of(c.LOG_F32, c.LOG_F64))
    w = fma(rest.exponent, -LN2, -fma(m * m, q, m))
    high, low = SLOPE[f]
    slope = fma(w, polynomial(w - CENTRE, f.of(c.ERF_INV_F32, c.ERF_INV_F64)), low)
    central = fma(x, slope, x * high)
    near_one = ~(w < LAST[f])
    return x.code.rarely(near_one, (central,), lambda code: (_erf_inv_near_one(code.adopt(x)),))[0]


LAST: Final = {SINGLE: 4.0, DOUBLE: 6.25}  # w is rounded too coarsely beyond 4 in f32
CENTRE: Final = 4.25  # where the error of R counts most
SLOPE: Final = {  # sqrt(pi) / 2 in two parts, both positive, so that -0 stays
    SINGLE: (0.8862268924713135, 3.2981444537086584e-08),
    DOUBLE: (0.8862269254527579, 7.268936996338665e-17),
}


def _erf_inv_near_one(x: Value) -> Value:
    """Return t - 5/16 - g(1/t) with t = sqrt(-log(1 - |x|)) in two parts, for |x| > 3/5."""
    f = x.format
    size = abs(x)
    square, square_lost = _minus_log(select(size < 1.0, 1.0 - size, 0.25))  # exact; beyond anything in range
    t = square.sqrt()
    inverse = 1.0 / t
    t_lost = (fma(-t, t, square) + square_lost) * (inverse * 0.5)
    v = inverse - f.of(0.2434, 0.165)
    above = horner(v, f.of(c.ERF_INV_TAIL_F32, c.ERF_INV_TAIL_F64))
    below = horner(v, f.of(c.ERF_INV_TAIL_F32_BELOW, c.ERF_INV_TAIL_F64_BELOW))
    tail = (t - 5 / 16) + (t_lost - above / below)
    result = select(size < 1.0, tail, select(size.equals(1.0), x.like(math.inf), math.nan))
    return result.copysign(x)


def _minus_log(x: Value) -> tuple[Value, Value]:
    """Return -log(x) in two parts, for normal x <= 1/2."""
    layout = x.format
    exponent, f = x.exponent, x.significand - 1.0
    total, lost = fast_two_sum(exponent * -LN2_HIGH[layout], -f)
    q = polynomial(f, layout.of(c.LOG_F32, c.LOG_F64))
    return fast_two_sum(total, lost - fma(exponent, LN2_LOW[layout], (f * f) * q))
