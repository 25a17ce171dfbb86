"""Distribution functions by the incomplete gamma and beta functions: chi-squared, F, Student's t, Poisson, gamma.

NIST Digital Library of Mathematical Functions, 8.2 and 8.17; Abramowitz & Stegun 26.4, 26.6, 26.7.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.lax import igamma, igammac
from tracer.numpy import absolute, exp, full_like, inf, log, log1p, minimum, nan, sqrt, where
from tracer.scipy.incomplete_beta import incomplete_beta, incomplete_beta_rest
from tracer.scipy.normal import ndtr
from tracer.scipy.operands import in_double, operands
from tracer.scipy.saddle_points import log_beta
from tracer.trace.array import Array
from tracer.transforms.custom.derivatives import custom_jvp
from tracer.transforms.jacobian_products import jvp


def gammainc(a: Any, x: Any) -> Array:
    """Return the regularised lower incomplete gamma function: the gamma distribution's probability of at most x.

    >>> tracer.scipy.special.gammainc(1.0, tnp.asarray([1.0, 2.0]))
    Array([0.63212056, 0.86466472], f64)
    """
    return igamma(*operands("gammainc", a, x))


def gammaincc(a: Any, x: Any) -> Array:
    """Return 1 - gammainc(a, x), without cancellation for large x.

    >>> tracer.scipy.special.gammaincc(1.0, tnp.asarray([1.0, 50.0]))
    Array([3.67879441e-01, 1.92874985e-22], f64)
    """
    return igammac(*operands("gammaincc", a, x))


def betainc(a: Any, b: Any, x: Any) -> Array:
    """Return the regularised incomplete beta function: the beta distribution's probability of at most x.

    a, b: not negative; x: between 0 and 1, NaN elsewhere; shapes broadcast to [*s]. Returns floats [*s], of the dtype
    to which all are promoted. A jump at x = 0 where a = 0 or b is infinite, at x = 1 where b = 0 or a is infinite. The
    relative error in float64 is 1e-13 for a and b up to 1e3, 1e-11 up to 1e5. Differentiable in all three.

    >>> tracer.scipy.special.betainc(2.0, 3.0, tnp.asarray([0.0, 0.5, 1.0]))
    Array([0.    , 0.6875, 1.    ], f64)
    """
    first, second, third = operands("betainc", a, b, x)
    return incomplete_beta(first, second, third)


def betaincc(a: Any, b: Any, x: Any) -> Array:
    """Return 1 - betainc(a, b, x), without cancellation where betainc is near 1.

    >>> tracer.scipy.special.betaincc(2.0, 3.0, tnp.asarray([0.0, 0.5, 1.0]))
    Array([1.    , 0.3125, 0.    ], f64)
    """
    first, second, third = operands("betaincc", a, b, x)
    return incomplete_beta_rest(first, second, third)


def chdtr(v: Any, x: Any) -> Array:
    """Return the probability that chi-squared of v degrees of freedom is at most x; NaN where x is negative.

    >>> tracer.scipy.special.chdtr(2.0, tnp.asarray([0.0, 2.0]))
    Array([0.        , 0.63212056], f64)
    """
    freedom, value = operands("chdtr", v, x)
    return where(value < 0, nan, igamma(0.5 * freedom, 0.5 * where(value < 0, 0.0, value)))


def chdtrc(v: Any, x: Any) -> Array:
    """Return 1 - chdtr(v, x), without cancellation for large x; NaN where x is negative.

    >>> tracer.scipy.special.chdtrc(2.0, tnp.asarray([0.0, 2.0]))
    Array([1.        , 0.36787944], f64)
    """
    freedom, value = operands("chdtrc", v, x)
    return where(value < 0, nan, igammac(0.5 * freedom, 0.5 * where(value < 0, 0.0, value)))


def fdtr(dfn: Any, dfd: Any, x: Any) -> Array:
    """Return the probability that F of dfn and dfd degrees of freedom is at most x; NaN where x is negative.

    >>> tracer.scipy.special.fdtr(2.0, 4.0, tnp.asarray([0.0, 2.0]))
    Array([0.  , 0.75], f64)
    """
    return in_double("fdtr", _f_below, dfn, dfd, x)


def _f_below(upper: Array, lower: Array, value: Array) -> Array:
    return incomplete_beta(0.5 * upper, 0.5 * lower, _share(upper * value, lower))


def fdtrc(dfn: Any, dfd: Any, x: Any) -> Array:
    """Return 1 - fdtr(dfn, dfd, x), without cancellation for large x; NaN where x is negative.

    >>> tracer.scipy.special.fdtrc(2.0, 4.0, tnp.asarray([0.0, 2.0]))
    Array([1.  , 0.25], f64)
    """
    return in_double("fdtrc", _f_above, dfn, dfd, x)


def _f_above(upper: Array, lower: Array, value: Array) -> Array:
    part, rest = upper * value, lower
    small = value < 1.0  # where the complement's share would be rounded beside 1
    p, q = where(small, upper, lower), where(small, lower, upper)
    found = incomplete_beta(0.5 * p, 0.5 * q, where(small, _share(part, rest), rest / (rest + part)))
    return where(small, 1.0 - found, found)


def stdtr(df: Any, t: Any) -> Array:
    """Return the probability that Student's t of df degrees of freedom is at most t.

    >>> tracer.scipy.special.stdtr(1.0, tnp.asarray([0.0, 1.0]))
    Array([0.5 , 0.75], f64)
    """
    return in_double("stdtr", _student, df, t)


_ALMOST_NORMAL = 1e7


@custom_jvp
def _student(freedom: Array, t: Array) -> Array:
    """Return Student's distribution function.

    Half of I(v/2, 1/2, v/(v + t^2)) is beyond |t|. Near the median its complement is exact.

    For many degrees of freedom it is normal (A&S 26.7.8), with an error of 1 / v^2.
    """
    many, endless = freedom > _ALMOST_NORMAL, absolute(t) == inf
    v, x = where(many, 1.0, where(freedom > 0, freedom, nan)), where(endless, 0.0, t)
    square = x * x
    central = square < minimum(v, 1.0)
    inside, outer = where(central, square, 0.0), where(central, 1.0, square)
    half, half_freedom = full_like(v, 0.5), 0.5 * v
    middle = 0.5 - 0.5 * incomplete_beta(half, half_freedom, inside / (v + inside))
    tail = 0.5 * incomplete_beta(half_freedom, half, v / (v + outer))
    w = where(many, freedom, 1.0)
    normal = ndtr(-absolute(x) * (1.0 - 0.25 / w) / sqrt(1.0 + 0.5 * x / w * x))
    below = where(endless, where(freedom > 0, 0.0, nan), where(many, normal, where(central, middle, tail)))
    return where(t < 0, below, 1.0 - below)


def _student_density(freedom: Array, t: Array) -> Array:
    many = freedom > _ALMOST_NORMAL
    v = where(many, 1.0, freedom)
    ratio = -log_beta(0.5 * v, full_like(v, 0.5)) - 0.5 * log(v)
    normal = -0.5 * t * t - 0.5 * math.log(2 * math.pi)
    return exp(where(many, normal, ratio - 0.5 * (v + 1.0) * log1p(t * t / v)))


_student.defjvps(
    lambda dv, _, v, t: jvp(lambda w: _student.fun(w, t), (v,), (dv,))[1],
    lambda dt, _, v, t: _student_density(v, t) * dt,
)


def _share(part: Array, rest: Array) -> Array:
    """Return part / (part + rest), and 1 where the part is infinite."""
    endless = part == inf
    return where(endless, 1.0, where(endless, 1.0, part) / (where(endless, 1.0, part) + rest))
