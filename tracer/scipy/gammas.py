"""The gamma and beta functions and functions derived from them. Integers are cast to float."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.numpy import copysign, exp, floor, where
from tracer.numpy import sum as total
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.promotion import promoted_inexact, promoted_real
from tracer.primitives.elementwise import special
from tracer.runtime.eager.elementwise_dispatch import elementwise
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
    pole = (value <= 0) & (floor(value) == value)
    inside = where(pole, 1.0, value)
    return where(pole, where(value == 0, value, 0.0), gammasgn(inside) * exp(-special.lgamma(inside)))


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
    x, y = array_of("betaln", a), array_of("betaln", b)
    return gammaln(x) + gammaln(y) - gammaln(x + y)


def poch(z: Any, m: Any) -> Array:
    """Return the rising factorial Γ(z + m) / Γ(z), for z and z + m off the poles of Γ; 1 where m is 0.

    >>> tracer.scipy.special.poch(2.0, tnp.asarray([0.0, 1.0, 3.0]))
    Array([ 1.,  2., 24.], f64)
    """
    x, more = (_array(v) for v in promoted_real("poch", z, m))
    ratio = gammasgn(x + more) * gammasgn(x) * exp(gammaln(x + more) - gammaln(x))
    return where(array_of("poch", more) == 0, 1.0, ratio)


def binom(n: Any, k: Any) -> Array:
    """Return the binomial coefficient of real n and k, for n not a negative integer, with relative error log(n!) eps.

    >>> tracer.scipy.special.binom(5.0, tnp.asarray([0.0, 2.0, 5.0, 6.0]))
    Array([ 1., 10.,  1.,  0.], f64)
    """
    x, y = (_array(v) for v in promoted_real("binom", n, k))
    return exp(gammaln(x + 1.0)) * gammasgn(x + 1.0) * rgamma(y + 1.0) * rgamma(x - y + 1.0)


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
