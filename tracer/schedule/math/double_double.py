"""Unevaluated sums of two floats: error-free sums and products, and the logarithm to the bits that powers need.

Sums and products are from Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed. 2018, chapter 4. The logarithm
has some 65 bits (f32: 33).
"""

from __future__ import annotations

import math
from typing import Final

from tracer.schedule.math import coefficients as c
from tracer.schedule.math.expand import DOUBLE, SINGLE, Value, fma, polynomial, select
from tracer.schedule.math.logarithms import LN2_HIGH, LN2_LOW

TWO_THIRDS: Final = {
    SINGLE: (0.666666686534881591796875, -1.9868215517249155e-08),
    DOUBLE: (2 / 3, 3.700743415417188e-17),
}
Pair = tuple[Value, Value]


def fast_two_sum(a: Value, b: Value) -> Pair:
    """Return a + b exactly where a is 0 or its exponent is not below the exponent of b."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Value, b: Value | float) -> Pair:
    """Return a * b exactly, but for underflow."""
    product = a * b
    return product, fma(a, b, -product)


def log_pair(x: Value) -> Pair:
    """Return log x for positive finite x, its relative error some 2^-11 of the format's own.

    s = (m - 1) / (m + 1) for m in [sqrt(1/2), sqrt(2)), log m = 2 atanh s = 2s + 2/3 s^3 + s^5 P(s^2), the first two
    terms in two parts each.
    """
    layout = x.format
    e, m = x.exponent, x.significand
    upper = m > math.sqrt(2)
    e, m = select(upper, e + 1.0, e), select(upper, m * 0.5, m)
    f = m - 1.0
    d = m + 1.0
    inverse = 1.0 / d
    s = f * inverse
    s_low = inverse * fma(-s, m - (d - 1.0), fma(-s, d, f))
    z = s * s
    total, lost = fast_two_sum(e * LN2_HIGH[layout], s + s)
    tail = fma(e, LN2_LOW[layout], lost)
    cube = s * z
    z_low = fma(s + s, s_low, fma(s, s, -z))
    cube_low = fma(s_low, z, fma(s, z_low, fma(s, z, -cube)))
    third, third_low = TWO_THIRDS[layout]
    cubic, cubic_low = two_product(cube, third)
    cubic_low = fma(cube_low, third, fma(cube, third_low, cubic_low))
    total, lost_too = fast_two_sum(total, cubic)
    fifth = (cube * z) * 2.0 * polynomial(z, layout.of(c.ATANH5_F32, c.ATANH5_F64))
    return fast_two_sum(total, fma(s_low, 2.0, fifth) + ((tail + lost_too) + cubic_low))
