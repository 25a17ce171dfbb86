"""The standard normal distribution function, its logarithm and its inverse. Narrow floats are computed in f32.

Wichura 1988, Algorithm AS 241, Applied Statistics 37(3); for the tail, Abramowitz & Stegun 26.2.14.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tracer.numpy import absolute, exp, inf, log, log1p, minimum, nan, sqrt, where
from tracer.numpy.core.promotion import promoted_real
from tracer.primitives.elementwise import special
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.transforms.custom.derivatives import custom_jvp

# Numerators and denominators of AS 241, from the highest power down: around the median, in the tails, and far out
_MEDIAN = (
    (
        2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
        1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
    ),
    (
        5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
        5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
    ),
)  # fmt: skip
_TAILS = (
    (
        7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
        3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0,
    ),
    (
        1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
        6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0,
    ),
)  # fmt: skip
_FAR_OUT = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
        2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0,
    ),
    (
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
        1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
    ),
)  # fmt: skip

# phi(t) / (t Phi(-t)) by powers of 1/t^2 from the highest down: the continued fraction of the tail, of 20 terms. Its
# relative error is 8e-13 at t = 4 and 3e-15 at 5. At 4, the logarithm that it becomes part of is -10.
_MILLS = (
    (
        13749310575.0, 45831035250.0, 41247931725.0, 15713497800.0, 3055402350.0, 333316620.0, 21366450.0, 813960.0,
        17955.0, 210.0, 1.0,
    ),
    (
        3715891200.0, 27125492625.0, 31335467625.0, 13408094700.0, 2775672900.0, 314143830.0, 20603310.0, 796620.0,
        17748.0, 209.0, 1.0,
    ),
)  # fmt: skip
_FAR = -5.0


def ndtr(x: Any) -> Array:
    """Return the normal distribution function.

    >>> tracer.scipy.special.ndtr(tnp.asarray([0.0, 1.0]))
    Array([0.5       , 0.84134475], f64)
    """
    (value,) = promoted_real("ndtr", x)
    return 0.5 * special.erfc(-value * math.sqrt(0.5))


def log_ndtr(x: Any, series_order: int = 3) -> Array:
    """Return the logarithm of `ndtr`, of small relative error in both tails.

    x: real numbers [*s]; series_order: no effect. Returns floats [*s]; integers are cast.

    >>> tracer.scipy.special.log_ndtr(tnp.asarray([-40.0, 30.0]))
    Array([-8.04608442e+002, -4.90671393e-198], f64)
    """
    integer("log_ndtr", "series_order", series_order)
    (given,) = promoted_real("log_ndtr", x)
    value = _wide(given)
    far, above = value < _FAR, value > 0.0
    size = -where(far, value, _FAR)
    inverse = 1.0 / size
    below = -0.5 * size * size - 0.5 * math.log(2 * math.pi) - log(size) - log(quotient(_MILLS, inverse * inverse))
    inside = where(far, _FAR, value)
    near = log(ndtr(where(above, 0.0, inside)))
    result = where(far, below, where(above, log1p(-ndtr(-where(above, inside, 0.0))), near))
    return _narrow(result, given)


def mills_ratio(t: Array) -> Array:
    """Return the probability beyond t over the density at t, of relative error 3e-15 from t = 5 on."""
    inverse = 1.0 / t
    return inverse / quotient(_MILLS, inverse * inverse)


def ndtri(p: Any) -> Array:
    """Return the inverse of `ndtr`, of small relative error: infinite at 0 and 1, NaN outside.

    >>> tracer.scipy.special.ndtri(tnp.asarray([0.5, 0.84134475, 1e-300]))
    Array([  0.        ,   1.00000002, -37.0470963 ], f64)
    """
    (given,) = promoted_real("ndtri", p)
    return _narrow(_quantile(_wide(given)), given)


@custom_jvp
def _quantile(p: Array) -> Array:
    centred = p - 0.5
    central = absolute(centred) <= 0.425
    q = where(central, centred, 0.0)
    near = q * quotient(_MEDIAN, 0.180625 - q * q)
    tail = minimum(p, 1.0 - p)
    outside = ~central & (tail > 0.0)
    r = sqrt(-log(where(outside, tail, 0.05)))
    far = where(r <= 5.0, quotient(_TAILS, r - 1.6), quotient(_FAR_OUT, r - 5.0))
    size = where(outside, far, where(tail == 0.0, inf, nan))
    return where(central, near, where(centred < 0.0, -size, size))


_quantile.defjvps(lambda dp, x, p: dp * (math.sqrt(2 * math.pi) * exp(0.5 * x * x)))


def quotient(polynomials: tuple[Sequence[float], Sequence[float]], x: Array) -> Array:
    """Return the quotient of two polynomials, given by coefficients from the highest power down, by Horner's rule."""
    upper, lower = (_polynomial(coefficients, x) for coefficients in polynomials)
    return upper / lower


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    total = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def _wide(x: Array) -> Array:
    return x.astype("float32") if x.dtype.itemsize < 4 else x


def _narrow(x: Array, given: Array) -> Array:
    return x.astype(given.dtype) if x.dtype != given.dtype else x
