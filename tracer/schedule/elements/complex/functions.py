"""Functions of complex numbers by functions of their parts: roots, exponentials, logarithms, hyperbolic functions.

Written on pairs of `Value`s, one formula for both widths. Nothing branches: where formulas differ by range, both are
computed and one is selected. Operands that would overflow or lose denormals on the way are scaled by powers of two.
Special values follow C99, Annex G.6. sin, cos and tan are hyperbolic functions of iz, which swaps the parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tracer.ir.dtypes import F64
from tracer.ir.scalar import ScalarOp
from tracer.schedule.math.expand import Value, fma, select

Pair = tuple[Value, Value]
INFINITY = math.inf


def real_function(op: ScalarOp, *values: Value) -> Value:
    """Return a scalar operation on floats."""
    first = values[0]
    return first.code.apply(op, first.dtype, *(v.operand for v in values))


def swapped(function: Callable[[Pair], Pair], z: Pair) -> Pair:
    """Return the function of y + ix, its parts swapped: sin by sinh, asinh by asin, and so on."""
    real, imag = function((z[1], z[0]))
    return imag, real


def is_finite(x: Value) -> Value:
    return abs(x) < INFINITY


def is_infinite(x: Value) -> Value:
    return abs(x).equals(INFINITY)


def larger(x: Value, y: Value) -> Value:
    """Return the larger of |x| and |y|; NaN where either is."""
    return real_function(ScalarOp.MAX, abs(x), abs(y))


# -- roots -------------------------------------------------------------------------------------------------------


def _scale_of(x: Value, y: Value) -> tuple[Value, Value]:
    """Return powers of two (s, 1/s), s^2 bringing the pair to where neither |z| overflows nor denormals lose bits."""
    f, size = x.format, larger(x, y)
    large, small = size > 2.0 ** (f.bias - 4), size < f.tiny * 2.0 ** (f.fraction + 2)
    up = f.fraction + 1
    scale = select(large, x.like(0.25), select(small, x.like(2.0**up), 1.0))
    back = select(large, x.like(4.0), select(small, x.like(2.0**-up), 1.0))
    return scale, back


def root_of_parts(x: Value, y: Value) -> tuple[Value, Value, Value, Value]:
    """Return (a, b, h, s): sqrt(x + i|y|) = (a + ib) / s and |z| = h / s^2, for finite parts.

    a^2 - b^2 = x and 2ab = |y|: the larger of a and b by a sum of positives, the other by division.
    """
    scale, _ = _scale_of(x, y)
    x, y = x * scale * scale, abs(y) * scale * scale
    size = real_function(ScalarOp.HYPOT, x, y)
    major = ((abs(x) + size) * 0.5).sqrt()
    minor = select(major.equals(0.0), major, y / (major + major))
    right = x >= 0.0
    return select(right, major, minor), select(right, minor, major), size, scale


def root(x: Value, y: Value) -> Pair:
    """Return the parts of sqrt(x + i|y|), finite: neither is negative."""
    a, b, _, _ = root_of_parts(x, y)
    _, back = _scale_of(x, y)
    return a * back, b * back


def sqrt(z: Pair) -> Pair:
    """Return the root with a real part that is not negative; infinite where the imaginary part is, even beside NaN."""
    x, y = z
    a, b = root(x, y)
    tall = is_infinite(y)
    return select(tall, INFINITY, a), select(tall, y, b.copysign(y))


def rsqrt(z: Pair) -> Pair:
    """Return 1 / sqrt(z): the conjugate of sqrt(z) over |z|. At zero infinity and NaN, as 1 / 0 is."""
    x, y = z
    a, b, size, scale = root_of_parts(x, y)
    real, imag = (a / size) * scale, -((b.copysign(y) / size) * scale)
    far, zero = is_infinite(x) | is_infinite(y), size.equals(0.0)
    real, imag = select(zero, INFINITY, real), select(zero, math.nan, imag)
    return select(far, 0.0, real), select(far, x.like(0.0).copysign(-y), imag)


# -- logarithms --------------------------------------------------------------------------------------------------


def _two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """Return the rounded sum and its error: Knuth 1997, The Art of Computer Programming 2, 4.2.2."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _square(a: Value) -> tuple[Value, Value]:
    """Return the rounded square and its error."""
    high = a * a
    return high, fma(a, a, -high)


def log_magnitude(x: Value, y: Value) -> Value:
    """Return log |z|. Where |z| is near 1, by the logarithm of 1 + (x^2 + y^2 - 1), the sum carried in two words."""
    a, b = larger(x, y), real_function(ScalarOp.MIN, abs(x), abs(y))
    (ah, al), (bh, bl) = _square(a), _square(b)
    total, error = _two_sum(ah, bh)
    excess = (total - 1.0) + (error + (al + bl))
    near = (total > 0.5) & (total < 3.0)
    scale, back = _scale_of(x, y)
    far = real_function(ScalarOp.LOG, real_function(ScalarOp.HYPOT, x * scale * scale, y * scale * scale))
    up = x.format.fraction + 1
    shift = select(back < 1.0, x.like(-2 * up * math.log(2)), select(back > 1.0, x.like(4 * math.log(2)), 0.0))
    return select(near, 0.5 * real_function(ScalarOp.LOG1P, excess), far + shift)


def log(z: Pair) -> Pair:
    """Return (log |z|, the angle), the angle in [-pi, pi]."""
    x, y = z
    return log_magnitude(x, y), real_function(ScalarOp.ATAN2, y, x)


def log2(z: Pair) -> Pair:
    """Return the logarithm's parts over log 2."""
    size, angle = log(z)
    return size * (1 / math.log(2)), angle * (1 / math.log(2))


def log1p(z: Pair) -> Pair:
    """Return log(1 + z). Near |1 + z| = 1 by 2x + x^2 + y^2 in two words: x may cancel y^2 / 2."""
    x, y = z
    (xh, xl), (yh, yl) = _square(x), _square(y)
    first, error = _two_sum(x + x, yh)
    second, more = _two_sum(first, xh)
    excess = second + (error + more + (xl + yl))
    near = (excess > -0.5) & (excess < 2.0) & (abs(x) < 4.0)
    one_plus = 1.0 + x
    real = select(near, 0.5 * real_function(ScalarOp.LOG1P, excess), log_magnitude(one_plus, y))
    return real, real_function(ScalarOp.ATAN2, y, one_plus)


# -- exponentials ------------------------------------------------------------------------------------------------


def _turned(size: Value, again: Value, cosine: Value, sine: Value, y: Value) -> Pair:
    """Return size * again * (cosine + i sine), where `again` is 1 or a second factor.

    The imaginary part is y where y is 0.
    """
    return size * cosine * again, select(y.equals(0.0), y, size * sine * again)


def _at_infinity(x: Value, y: Value, pair: Pair, low: float) -> Pair:
    """Return where x is infinite and y is not finite: (inf, NaN) or (low, 0)."""
    lost = ~is_finite(y)
    above, below = lost & x.equals(INFINITY), lost & x.equals(-INFINITY)
    real, imag = pair
    return select(above, INFINITY, select(below, low, real)), select(below, 0.0, imag)


def exp(z: Pair) -> Pair:
    """Return e^x (cos y + i sin y), e^x in two factors where it would overflow."""
    x, y = z
    big = x > x.format.of(88.0, 709.0)
    size = real_function(ScalarOp.EXP, select(big, 0.5 * x, x))
    cosine, sine = real_function(ScalarOp.COS, y), real_function(ScalarOp.SIN, y)
    return _at_infinity(x, y, _turned(size, select(big, size, 1.0), cosine, sine, y), 0.0)


def exp2(z: Pair) -> Pair:
    """Return 2^x (cos(y ln 2) + i sin(y ln 2)), y ln 2 in two words."""
    x, y = z
    big = x > x.format.of(127.0, 1023.0)
    size = real_function(ScalarOp.EXP2, select(big, 0.5 * x, x))
    high = float(x.dtype.type(math.log(2)))
    low = x.format.of(math.log(2) - high, 2.3190468138462996e-17)
    angle = y * high
    rest = fma(y, high, -angle) + y * low
    (c, s), (dc, ds) = ([real_function(op, v) for op in (ScalarOp.COS, ScalarOp.SIN)] for v in (angle, rest))
    turned = _turned(size, select(big, size, 1.0), c * dc - s * ds, s * dc + c * ds, y)
    return _at_infinity(x, y, turned, 0.0)


def expm1(z: Pair) -> Pair:
    """Return exp(z) - 1: the real part is expm1(x) cos y - 2 sin(y/2)^2."""
    x, y = z
    big = x > x.format.of(88.0, 709.0)
    size = real_function(ScalarOp.EXP, select(big, 0.5 * x, x))
    cosine, sine = real_function(ScalarOp.COS, y), real_function(ScalarOp.SIN, y)
    half = real_function(ScalarOp.SIN, 0.5 * y)
    real, imag = _turned(size, select(big, size, 1.0), cosine, sine, y)
    near = real_function(ScalarOp.EXPM1, x) * cosine - 2.0 * (half * half)
    return _at_infinity(x, y, (select(big, real, near), imag), -1.0)


def logistic(z: Pair) -> Pair:
    """Return 1 / (1 + e^-z), by e = e^-|x| and |1 + e^-z|^2 = (1 - e)^2 + 4 e cos(y/2)^2, a sum of positives."""
    x, y = z
    y = select(is_infinite(x) & ~is_finite(y), 0.0, y)
    less_one = real_function(ScalarOp.EXPM1, -abs(x))
    e = real_function(ScalarOp.EXP, -abs(x))
    cosine, sine = real_function(ScalarOp.COS, 0.5 * y), real_function(ScalarOp.SIN, 0.5 * y)
    square = cosine * cosine
    size = less_one * less_one + 4.0 * (e * square)
    right = (2.0 * (e * square) - less_one) / size
    left = e * ((2.0 * square + less_one) / size)
    return select(x >= 0.0, right, left), 2.0 * (e * (sine * cosine)) / size


def power(z: Pair, w: Pair) -> Pair:
    """Return exp(w log z), single precision by way of double; z^0 = 1 and 0^w = 0 where w has a positive real part."""
    dtype = z[0].dtype
    (x, y), (u, v) = ((p.convert(F64), q.convert(F64)) for p, q in (z, w))
    size, angle = log((x, y))
    real, imag = exp((u * size - v * angle, u * angle + v * size))
    nothing, one = x.equals(0.0) & y.equals(0.0), u.equals(0.0) & v.equals(0.0)
    real = select(one, 1.0, select(nothing, select(u > 0.0, x.like(0.0), math.nan), real))
    imag = select(one, 0.0, select(nothing, select(u > 0.0, x.like(0.0), math.nan), imag))
    return real.convert(dtype), imag.convert(dtype)


# -- hyperbolic functions ----------------------------------------------------------------------------------------


def _hyperbolic(x: Value) -> tuple[Value, Value, Value]:
    """Return (s, c, again): sinh x = s * again and cosh x = c * again, again being 1 unless they overflow."""
    big = abs(x) > x.format.of(88.0, 709.0)
    half = real_function(ScalarOp.EXP, 0.5 * abs(x))
    s = select(big, (0.5 * half).copysign(x), real_function(ScalarOp.SINH, x))
    c = select(big, 0.5 * half, real_function(ScalarOp.COSH, x))
    return s, c, select(big, half, 1.0)


def sinh(z: Pair) -> Pair:
    """Return (sinh x cos y, cosh x sin y)."""
    x, y = z
    s, c, again = _hyperbolic(x)
    real = s * real_function(ScalarOp.COS, y) * again
    imag = c * real_function(ScalarOp.SIN, y) * again
    real = select((x.equals(0.0) | is_infinite(x)) & ~is_finite(y), x, real)
    return real, select(y.equals(0.0), y, imag)


def cosh(z: Pair) -> Pair:
    """Return (cosh x cos y, sinh x sin y)."""
    x, y = z
    s, c, again = _hyperbolic(x)
    real = c * real_function(ScalarOp.COS, y) * again
    imag = s * real_function(ScalarOp.SIN, y) * again
    on_axis = y.equals(0.0) | (x.equals(0.0) & ~is_finite(y))
    zero = x.like(0.0).copysign(x) * x.like(1.0).copysign(y)
    return select(is_infinite(x) & ~is_finite(y), INFINITY, real), select(on_axis, zero, imag)


def cos(z: Pair) -> Pair:
    """Return cosh of y + ix, conjugated."""
    real, imag = cosh((z[1], z[0]))
    return real, -imag


def tanh(z: Pair) -> Pair:
    """Return (sinh x cosh x, sin y cos y) / (sinh^2 x + cos^2 y), a sum of positive terms.

    The real part is +-1 where sinh^2 x is all of the sum.
    """
    x, y = z
    s, c = real_function(ScalarOp.SINH, x), real_function(ScalarOp.COSH, x)
    sine, cosine = real_function(ScalarOp.SIN, y), real_function(ScalarOp.COS, y)
    flat = abs(x) > x.format.of(10.0, 22.0)
    size = s * s + cosine * cosine
    one = select(is_finite(y) | is_infinite(x), x.like(1.0).copysign(x), sine)  # sine is NaN there
    real = select(flat, one, s * c / size)
    imag = select(flat, (sine / s) * (cosine / s), sine * cosine / size)
    imag = select(is_infinite(x) & ~is_finite(y), x.like(0.0).copysign(y), imag)
    return select(x.equals(0.0), x, real), select(y.equals(0.0), y, imag)
