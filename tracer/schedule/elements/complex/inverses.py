"""Inverse sines, cosines and tangents of complex numbers, and their hyperbolic twins.

asin and acos by the roots of 1 - z and 1 + z, after Kahan 1987, Branch cuts for complex elementary functions. It is a
chapter of Iserles & Powell, The State of the Art in Numerical Analysis. Every sum in them adds positive terms. So no
range needs its own formula, as it does with Hull, Fairgrieve & Tang 1997, ACM TOMS 23(3). Special values: C99, Annex
G.6.
"""

from __future__ import annotations

import math

from tracer.ir.scalar import ScalarOp
from tracer.schedule.elements.complex.functions import INFINITY, Pair, is_infinite, larger, real_function, root
from tracer.schedule.math.expand import Value, select


def _finite_stand_in(x: Value, y: Value) -> tuple[Value, Value, Value]:
    """Return finite parts in the direction of infinite ones, finite parts unchanged, and whether a part is infinite."""
    far = is_infinite(x) | is_infinite(y)
    big = x.format.of(2.0**100, 2.0**900)
    u, v = (select(far, select(is_infinite(part), x.like(big).copysign(part), part * 0.0), part) for part in (x, y))
    return u, v, far


def _roots(x: Value, y: Value) -> tuple[Pair, Pair, Value]:
    """Return the parts of sqrt(1 - z) and sqrt(1 + z) in the upper half plane, and a correction of the logarithm.

    z is scaled down where 1 is negligible beside it. The correction is the logarithm of that scale.
    """
    f = x.format
    large = larger(x, y) > 2.0 ** f.of(90, 890)
    down = f.of(50, 500)
    scale = select(large, x.like(2.0**-down), 1.0)
    x, y = x * scale, abs(y) * scale
    return root(1.0 - x, y), root(1.0 + x, y), select(large, x.like(down * math.log(2)), 0.0)


def _height(p: Pair, q: Pair, lacking: Value, far: Value, sign: Value) -> Value:
    """Return the imaginary part of asin: asinh(Im(conj(sqrt(1 - z)) sqrt(1 + z)))."""
    size = real_function(ScalarOp.ASINH, p[0] * q[1] + p[1] * q[0]) + lacking
    return select(far, INFINITY, size).copysign(sign)


def asin(z: Pair) -> Pair:
    """Return atan(x / Re(sqrt(1 - z) sqrt(1 + z))), and its height."""
    x, y, far = _finite_stand_in(*z)
    p, q, lacking = _roots(x, y)
    scale = select(lacking > 0.0, x.like(2.0 ** -x.format.of(50, 500)), 1.0)
    real = real_function(ScalarOp.ATAN2, x * scale, p[0] * q[0] + p[1] * q[1])
    return select(x.equals(0.0) & ~far, z[0], real), _height(p, q, lacking, far, z[1])


def acos(z: Pair) -> Pair:
    """Return 2 atan(Re sqrt(1 - z) / Re sqrt(1 + z)), and the height of asin with the other sign."""
    x, y, far = _finite_stand_in(*z)
    p, q, lacking = _roots(x, y)
    real = 2.0 * real_function(ScalarOp.ATAN2, p[0], q[0])
    level = x.equals(0.0) & y.differs(y) & ~far
    return select(level, math.pi / 2, real), _height(p, q, lacking, far, -z[1])


def acosh(z: Pair) -> Pair:
    """Return acos turned by a right angle, into the right half plane."""
    real, imag = acos(z)
    return abs(imag), real.copysign(z[1])


def atanh(z: Pair) -> Pair:
    """Return (log(1 + 4x / ((1 - x)^2 + y^2)) / 4, the angle of ((1 - x)(1 + x) - y^2) + 2iy, halved), for x from 0 on.

    Scaled where |z| is large; beside the pole at 1, where y^2 is lost, the real part is log(2 / |y|) / 2.
    """
    f, (x, y) = z[0].format, z
    far = is_infinite(x) | is_infinite(y)
    a = abs(x)
    large = larger(x, y) > 2.0 ** f.of(50, 400)
    scale = select(large, x.like(2.0 ** -f.of(70, 600)), 1.0)
    less, more, height = (1.0 - a) * scale, (1.0 + a) * scale, y * scale
    ratio = 4.0 * (a * scale) / (less * less + height * height) * scale
    angle = real_function(ScalarOp.ATAN2, 2.0 * (height * scale), less * more - height * height)
    beside = a.equals(1.0) & (abs(y) < 2.0 ** -f.of(60, 500)) & y.differs(0.0)
    lift = f.of(30, 300)
    logarithm = real_function(ScalarOp.LOG1P, select(beside, 2.0 / (abs(y) * 2.0**lift), ratio))
    real = select(beside, 0.5 * (logarithm + lift * math.log(2)), 0.25 * logarithm)
    real = select(far, 0.0, select(a.equals(0.0), a, real)).copysign(x)
    upright = far & y.equals(y)
    return real, select(upright, x.like(math.pi / 2).copysign(y), 0.5 * angle)
