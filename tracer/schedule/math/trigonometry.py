"""sin, cos and tan."""

from __future__ import annotations

from tracer.schedule.math import coefficients as c
from tracer.schedule.math.double_double import fast_two_sum
from tracer.schedule.math.expand import Value, fma, horner, polynomial, select
from tracer.schedule.math.trigonometric_reduction import Unit, reduced


def _sin_of_reduced(r: Value, bits: Value) -> Value:
    """Return (-1)^bits sin(r) for |r| <= pi/2, never beyond 1."""
    f = r.format
    r = (r.bits ^ (bits << (8 * f.dtype.itemsize - 1))).as_float
    z = r * r
    z_lost = fma(r, r, -z)
    p = horner(z, f.of(c.SIN_F32, c.SIN_F64))
    return fma(r, fma(z, p, z_lost * p), r)


def sin(x: Value) -> Value:
    """Return the sine: x = k pi + r, sin x = (-1)^k sin r."""
    r, _, bits = reduced(x, Unit())
    return select(x.equals(0.0), x, _sin_of_reduced(r, bits))  # keeps -0


def cos(x: Value) -> Value:
    """Return the cosine: x = (k - 1/2) pi + r, cos x = (-1)^k sin r."""
    r, _, bits = reduced(x, Unit(shifted=True))
    return _sin_of_reduced(r, bits)


def tan(x: Value) -> Value:
    """Return the tangent: x = k pi/2 + r; tan r, or -1 over it where k is odd."""
    f = x.format
    r, rest, bits = reduced(x, Unit(halves=2))
    z = r * r
    q = z * polynomial(z, f.of(c.TAN_F32, c.TAN_F64))
    t, t_lost = fast_two_sum(r, fma(r, q, fma(rest, z, rest)))
    odd = (bits & 1).differs(0)
    y = select(odd, t.like(-1.0), t) / select(odd, t, 1.0)
    y = fma(select(odd, y * y, 0.0), t_lost, y)  # -1 / (t + t_lost)
    return select(x.equals(0.0), x, y)  # keeps -0
