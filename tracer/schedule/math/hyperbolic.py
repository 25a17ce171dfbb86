"""sinh, cosh, tanh and their inverses."""

from __future__ import annotations

import math

from tracer.schedule.math import coefficients as c
from tracer.schedule.math import exponentials, piecewise, tables
from tracer.schedule.math.double_double import fast_two_sum
from tracer.schedule.math.expand import SINGLE, Value, fma, polynomial, select
from tracer.schedule.math.exponentials import LN2, reduced_normal, without_ln2
from tracer.schedule.math.logarithms import LN2_HIGH, LN2_LOW, log1p_parts, log_of_one_plus


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent, in f32 by pieces.

    |x| = n ln(2)/2 + r and t = tanh r give ((s - 1) + (s + 1) t) / ((s + 1) + (s - 1) t) with s = 2^n; a step of
    Newton's on q, from (s - 1) - (s + 1) q and (s + 1) - (s - 1) q, corrects the errors of both.
    """
    f = x.format
    size = abs(x).at_most(f.of(9.2, 19.2))  # tanh is 1 from there on
    if f is SINGLE:
        return piecewise.piecewise(size, piecewise.growing(size, 1.63), tables.TANH_F32).copysign(x)
    n, scale = reduced_normal(size, LN2 / 2, down=0)
    r = fma(n, -exponentials.LN2_HIGH[f] / 2, size)
    z = r * r
    t = r + fma(r * z, polynomial(z, c.TANH_F64), n * (-exponentials.LN2_LOW[f] / 2))
    less, more = scale - 1.0, scale + 1.0
    inverse = 1.0 / fma(less, t, more)
    q = fma(more, t, less) * inverse
    rest = fma(t, fma(-q, less, more), fma(-q, more, less))
    return fma(rest, inverse, q).copysign(x)


def _even_and_odd(size: Value) -> tuple[Value, Value, Value, Value]:
    """Return (C, S, a, b) with size = n ln 2 + r: cosh r = 1 + C, sinh r = S, 2^n = 4 a, 2^-n = 4 b."""
    f = size.format
    size = size.at_most((f.bias + 2.4) * LN2)
    n, scale = reduced_normal(size, LN2, down=2)
    inverse = ((2 * f.bias - 4 << f.fraction) - scale.bits).as_float
    inverse = select(n > f.fraction + 3.0, 0.0, inverse)
    r = without_ln2(size, n)
    z = r * r
    odd = fma(r * z, polynomial(z, f.of(c.SINH_F32, c.SINH_F64)), r)
    even = z * fma(z, polynomial(z, f.of(c.COSH_F32, c.COSH_F64)), 0.5)
    return even, odd, scale, inverse


def sinh(x: Value) -> Value:
    """Return the hyperbolic sine, (2^n - 2^-n) cosh(r) / 2 + (2^n + 2^-n) sinh(r) / 2."""
    size = abs(x)
    even, odd, a, b = _even_and_odd(size)
    difference = a - b
    result = (fma(a + b, odd, difference * even) + difference) * 2.0
    return select(size < 2.0 ** -(x.format.fraction // 2 + 2), x, result.copysign(x))  # keeps denormals


def cosh(x: Value) -> Value:
    """Return the hyperbolic cosine, (2^n e^r + 2^-n e^-r) / 2."""
    even, odd, a, b = _even_and_odd(abs(x))
    return (fma(a, even + odd, fma(b, even - odd, b)) + a) * 2.0


def asinh(x: Value) -> Value:
    """Return the inverse hyperbolic sine, log(1 + |x| + x^2 / (1 + sqrt(1 + x^2)))."""
    size = abs(x)
    square = x * x
    return _log_of_one_plus_sum(size, size, square / (1.0 + (1.0 + square).sqrt())).copysign(x)


def acosh(x: Value) -> Value:
    """Return the inverse hyperbolic cosine, log(1 + sqrt(2 t + t^2) + t) with t = x - 1; NaN below 1."""
    t = x - 1.0
    return select(x < 1.0, math.nan, _log_of_one_plus_sum(x, fma(t, t, t + t).sqrt(), t))


def _log_of_one_plus_sum(x: Value, a: Value, b: Value) -> Value:
    """Return log(1 + a + b), or log(2 x) where x is so large that a + b = 2 x but for overflow.

    x itself where it is not finite, and where it is so small that a + b = x and the result is too.
    """
    fraction = x.format.fraction
    large = x > 2.0 ** (fraction + 3)
    y, y_lost = fast_two_sum(a, b)
    e, f, f_lost = log1p_parts(select(large, x, y), select(large, 0.0, y_lost))
    result = log_of_one_plus(select(large, e + 1.0, e), f, f_lost)
    return select((x > 2.0 ** -(fraction // 2 + 2)) & (x < math.inf), result, x)


def atanh(x: Value) -> Value:
    """Return the inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.

    (1 + a) / (1 - a) = 2^e m, s = (m - 1) / (m + 1), atanh a = e ln(2)/2 + atanh s; e is chosen by the difference of
    the encodings of 1 + a and 1 - a, a logarithm to within 0.09, so that -0.1 <= s <= 0.302: not about 0, or e ln(2)/2
    and s would cancel where e is 1.
    """
    f = x.format
    size = abs(x)
    u, u_lost = fast_two_sum(x.like(1.0), size)
    v, v_lost = fast_two_sum(x.like(1.0), -size)
    e = (u.bits - v.bits + (3 << f.fraction - 4)) >> f.fraction
    inverse = ((f.bias - e) << f.fraction).as_float
    above = fma(inverse, u, -v) + fma(inverse, u_lost, -v_lost)
    below = select(e.equals(0), 2.0, fma(inverse, u, v) + fma(inverse, u_lost, v_lost))
    s = above / below
    z = s * s
    cubic = (s * z) * polynomial(z, f.of(c.ATANH_F32, c.ATANH_F64))
    exponent = (e + f.bits(f.magic)).as_float - f.magic
    tail = fma(exponent, LN2_LOW[f] / 2, cubic)
    result = fma(exponent, LN2_HIGH[f] / 2, s + tail)
    result = select(size < 1.0, result, select(size.equals(1.0), x.like(math.inf), math.nan))
    return result.copysign(x)
