"""The gamma and beta functions and functions derived from them. Integers are cast to float."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.numpy import copysign, exp, finfo, floor, log, log1p, minimum, sin, where
from tracer.numpy import sum as total
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.promotion import promoted_inexact, promoted_real
from tracer.primitives.elementwise import special
from tracer.runtime.eager.elementwise_dispatch import elementwise
from tracer.scipy.saddle_points import log_beta, remainder
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here


@elementwise
def gammaln(x: Any) -> Array:
    """Return the logarithm of |Γ(x)|.

    >>> tracer.scipy.special.gammaln(tnp.asarray([1.0, 5.0]))
    Array([0.        , 3.17805383], f64)
    """
    return special.lgamma(*promoted_inexact("gammaln", x))


def gammasgn(x: Any) -> Array:
    """Return the sign of Γ(x): at zeros the sign of zero, NaN at negative integers.

    >>> tracer.scipy.special.gammasgn(tnp.asarray([0.5, -0.5, -1.5]))
    Array([ 1., -1.,  1.], f64)
    """
    (value,) = promoted_real("gammasgn", x)
    whole = floor(value)
    sign = where(value > 0, 1.0, where(whole == value, math.nan, where(whole % 2 != 0, -1.0, 1.0)))
    return where(value == 0, copysign(1.0, value), where(value != value, math.nan, sign))


def gamma(x: Any) -> Array:
    """Return Γ(x): infinite at zeros, with the sign of zero; NaN at negative integers.

    >>> tracer.scipy.special.gamma(tnp.asarray([5.0, 0.5]))
    Array([24.        ,  1.77245385], f64)
    """
    (value,) = promoted_real("gamma", x)
    return gammasgn(value) * exp(special.lgamma(value))


def rgamma(x: Any) -> Array:
    """Return 1 / Γ(x), with value 0 at the poles of Γ.

    >>> tracer.scipy.special.rgamma(tnp.asarray([5.0, 0.0]))
    Array([0.04166667, 0.        ], f64)
    """
    (value,) = promoted_real("rgamma", x)
    return _over_gamma(0.0, value)


def _over_gamma(size: Any, x: Any) -> Array:
    """Return e^size / Γ(x): at the poles of Γ it is 0, with the slope of Γ(1 - x) sin(πx) / π."""
    pole = _is_pole(x)
    off, at = where(pole, 1.0, x), where(pole & (x > -math.inf), x, 0.0)
    largest = math.log(float(finfo(off.dtype).max)) - 1.0
    slope = where(at % 2 != 0, -1.0, 1.0) * exp(minimum(size + special.lgamma(1.0 - at), largest))
    zero = slope * sin(math.pi * where(at == 0, at, at - floor(at))) / math.pi
    return where(pole, zero, gammasgn(off) * exp(size - special.lgamma(off)))


def _is_pole(x: Any) -> Array:
    return (x <= 0) & (floor(x) == x)


def _log_ratio(x: Any, more: Any) -> Array:
    """Return log |Γ(x + more) / Γ(x)|: by Stirling's formula where both logarithms are large."""
    top = x + more
    far = (x >= 16) & (top >= 16) & (x < math.inf) & (top < math.inf)
    large, step = where(far, x, 1.0), where(far, more, 0.0)
    near = special.lgamma(where(far, 1.0, top)) - special.lgamma(where(far, 1.0, x))
    last = large + step
    rise = (large - 0.5) * log1p(step / large) + step * (log(last) - 1.0)
    return where(far, rise + remainder(last) - remainder(large), near)


def factorial(n: Any, exact: bool = False) -> Array:
    """Return n! = Γ(n + 1), and 0 for negative n.

    n: real numbers [*s]. Returns floats [*s]; integers are cast to float32 up to 32 bits, else to the default float.
    exact: False alone, else raises ArgumentError.

    >>> tracer.scipy.special.factorial(tnp.asarray([0, 3, 5]))
    Array([  1.,   6., 120.], f64)
    """
    if exact:
        raise ArgumentError(
            message(
                f"factorial{here()}: exact=True is for integers of any size",
                help="call math.factorial, or leave exact= out",
            )
        )
    (value,) = promoted_real("factorial", n)
    return where(value < 0, 0.0, exp(special.lgamma(where(value < 0, 0.0, value) + 1.0)))


def beta(a: Any, b: Any) -> Array:
    """Return the beta function Γ(a) Γ(b) / Γ(a + b); NaN at the poles of both.

    >>> tracer.scipy.special.beta(2.0, tnp.asarray([3.0, 0.5]))
    Array([0.08333333, 1.33333333], f64)
    """
    x, y = (_array(v) for v in promoted_real("beta", a, b))
    return gammasgn(x) * gammasgn(y) * gammasgn(x + y) * exp(betaln(x, y))


def betaln(a: Any, b: Any) -> Array:
    """Return the logarithm of |beta|.

    >>> tracer.scipy.special.betaln(1.0, 2.0)
    Array(-0.69314718, f64*)
    """
    x, y = promoted_real("betaln", array_of("betaln", a), array_of("betaln", b))
    inside = (x > 0) & (y > 0) & (x + y < math.inf)
    p, q = where(inside, 1.0, x), where(inside, 1.0, y)
    direct = special.lgamma(p) + special.lgamma(q) - special.lgamma(p + q)
    return where(inside, log_beta(where(inside, x, 1.0), where(inside, y, 1.0)), direct)


def poch(z: Any, m: Any) -> Array:
    """Return the rising factorial Γ(z + m) / Γ(z): 1 where m is 0, infinite where z + m alone is a pole of Γ.

    >>> tracer.scipy.special.poch(2.0, tnp.asarray([0.0, 1.0, 3.0]))
    Array([ 1.,  2., 24.], f64)
    """
    x, more = (array_of("poch", _array(v)) for v in promoted_real("poch", z, m))
    top = x + more
    low, high = _is_pole(x), _is_pole(top)
    both, neither, zero = low & high, ~low & ~high, low & ~high  # both: (-1)^m Γ(1 - z) / Γ(1 - z - m)
    size = _log_ratio(where(neither, x, where(both, 1.0 - top, 1.0)), where(zero | (high & ~low), 0.0, more))
    sign = gammasgn(where(neither, x, 1.0)) * gammasgn(where(high, 1.0, top))
    ratio = where(both & (more % 2 != 0), -1.0, sign) * exp(size)
    none = 0.0 + sign * _over_gamma(special.lgamma(where(zero, top, 1.0)), where(low, x, 1.0))
    return where(more != more, math.nan, where(zero, none, where(high & ~low, math.inf, ratio)))


def binom(n: Any, k: Any) -> Array:
    """Return the binomial coefficient of real n and k, for n not a negative integer.

    >>> tracer.scipy.special.binom(5.0, tnp.asarray([0.0, 2.0, 5.0, 6.0]))
    Array([ 1., 10.,  1.,  0.], f64)
    """
    x, y = (array_of("binom", _array(v)) for v in promoted_real("binom", n, k))
    few = where(x - y < y, x - y, y)  # of k and n - k the lesser, which alone may be a pole
    inside = (few > -1) & (x < math.inf)
    counts = where(inside, few, 0.0), where(inside, x - few, 0.0)
    ways = exp(-log_beta(counts[0] + 1.0, counts[1] + 1.0)) / (where(inside, x, 0.0) + 1.0)
    rest, part = where(inside, 1.0, x - few + 1.0), where(inside, 1.0, few + 1.0)
    beyond = gammasgn(rest + part - 1.0) * gammasgn(rest) * _over_gamma(_log_ratio(rest, part - 1.0), part)
    return where(inside, ways, beyond)


def comb(N: Any, k: Any, exact: bool = False, repetition: bool = False) -> Array:
    """Return the number of ways to choose k of N things; 0 where k or N is negative, or k exceeds N.

    N, k: real numbers, whose shapes broadcast to [*s]; repetition: whether a thing may be chosen more than once.
    Returns floats [*s], of the promoted dtype; integers are cast. exact: False alone, else raises ArgumentError.

    >>> tracer.scipy.special.comb(5, tnp.asarray([0, 2, 5, 6]))
    Array([ 1., 10.,  1.,  0.], f64)
    """
    if exact:
        raise ArgumentError(
            message(
                f"comb{here()}: exact=True is for integers of any size",
                help="call math.comb, or leave exact= out",
            )
        )
    n, chosen = (_array(v) for v in promoted_real("comb", array_of("comb", N), k))
    things = n + chosen - 1.0 if repetition else n
    valid = (n >= 0) & (chosen >= 0) & (chosen <= things)
    found = where(valid, binom(where(valid, things, 1.0), where(valid, chosen, 0.0)), 0.0)
    return where((n >= 0) & (things < 0) & (chosen == 0), 1.0, found)  # no things chosen from none


def multigammaln(a: Any, d: int) -> Array:
    """Return the logarithm of the multivariate gamma function of dimension d.

    a: real numbers [*s], above (d - 1) / 2; d: a concrete integer. Returns floats [*s]; integers are cast.

    >>> tracer.scipy.special.multigammaln(tnp.asarray(2.0), 1)
    Array(0., f64)
    """
    (value,), d = promoted_real("multigammaln", a), integer("multigammaln", "d", d)
    shifts = array_of("multigammaln", (np.arange(d) / 2).astype(value.dtype))
    return total(gammaln(value[..., None] - shifts), -1) + d * (d - 1) / 4 * math.log(math.pi)


def _array(x: Any) -> Any:
    return x if isinstance(x, Array) else x.value
