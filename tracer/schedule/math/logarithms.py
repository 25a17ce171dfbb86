"""log, log2 and log1p.

x = 2^e m with m in [3/4, 3/2), f = m - 1 exactly; log m = f + f^2 Q(f) without a division. At zeros, inf, negative
numbers and NaN the operations for e and m give -inf, inf and NaN. So do the logarithms.
"""

from __future__ import annotations

import math

from tracer.schedule.math import coefficients as c
from tracer.schedule.math.expand import DOUBLE, SINGLE, Value, fma, polynomial, select

# ln 2 in two parts, the first short enough that its products with exponents are exact
LN2_HIGH = {SINGLE: 0.693145751953125, DOUBLE: 0.6931471803691238}
LN2_LOW = {SINGLE: 1.42860677e-06, DOUBLE: 1.9082149292705877e-10}
LOG2_E_HIGH = {SINGLE: 1.44269502162933349609375, DOUBLE: 1.4426950408889634}
LOG2_E_LOW = {SINGLE: 1.925963033500011e-08, DOUBLE: 2.0355273740931033e-17}


def log_of_one_plus(e: Value, f: Value, f_lost: Value | None = None) -> Value:
    """Return e ln 2 + log(1 + f + f_lost)."""
    layout = f.format
    q = polynomial(f, layout.of(c.LOG_F32, c.LOG_F64))
    tail = fma(e, LN2_LOW[layout], (f * f) * q)
    if f_lost is not None:
        tail = tail + fma(f_lost, -f, f_lost)
    return fma(e, LN2_HIGH[layout], f + tail)


def log(x: Value) -> Value:
    """Return the natural logarithm."""
    return log_of_one_plus(x.exponent, x.significand - 1.0)


def log2(x: Value) -> Value:
    """Return the logarithm to base 2, (e + f) + (log2(m) - f); exact at powers of two."""
    layout = x.format
    f = x.significand - 1.0
    q = polynomial(f, layout.of(c.LOG2_F32, c.LOG2_F64))
    tail = fma(f, LOG2_E_LOW[layout], (f * f) * q)
    return (x.exponent + f) + fma(f, LOG2_E_HIGH[layout] - 1.0, tail)


def log1p_parts(x: Value, x_lost: Value | None = None) -> tuple[Value, Value, Value]:
    """Return (e, f, f_lost) with 1 + x + x_lost = 2^e (1 + f + f_lost) for finite x > -1; f is x itself where e = 0."""
    layout = x.format
    u = 1.0 + x
    e = u.exponent
    half_lost = (x - (u - 1.0)) * 0.5
    twice_inverse = (((layout.magic + layout.bias + 1) - e).bits << layout.fraction).as_float  # 2^(1-e), 0 at the top
    above = u.significand - 1.0
    f = fma(half_lost, twice_inverse, above)
    f_lost = fma(half_lost, twice_inverse, above - f)
    if x_lost is not None:
        f_lost = fma(x_lost * 0.5, twice_inverse, f_lost)
    return e, f, f_lost


def log1p(x: Value) -> Value:
    """Return log(1 + x), accurate relative to itself for small x."""
    result = log_of_one_plus(*log1p_parts(x))
    itself = (abs(x) < 2.0 ** -(x.format.fraction + 2)) | x.equals(math.inf)
    return select(itself, x, result)  # keeps -0 and denormals
