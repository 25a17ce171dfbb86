"""Elementwise special functions, with SciPy's names. Integers are cast to float.

>>> tracer.grad(tracer.scipy.special.gammaln)(5.0)
Array(1.50611767, f64*)
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.absent import absent
from tracer.nn import log_sigmoid as log_expit
from tracer.nn import log_softmax as _log_softmax
from tracer.nn import logsumexp
from tracer.nn import softmax as _softmax
from tracer.numpy import absolute, cbrt, exp2, expm1, floor, full_like, log, log1p, power, sin, sinc, square, where
from tracer.numpy.chapters.bessel import bessel_i
from tracer.numpy.core.promotion import promoted_inexact, promoted_real
from tracer.primitives.elementwise import exponential, special
from tracer.runtime.eager.call_cache import cached
from tracer.runtime.eager.elementwise_dispatch import elementwise
from tracer.scipy.distribution_functions import (
    betainc,
    betaincc,
    chdtr,
    chdtrc,
    fdtr,
    fdtrc,
    gammainc,
    gammaincc,
    stdtr,
)
from tracer.scipy.entropies import (
    boxcox,
    boxcox1p,
    entr,
    huber,
    inv_boxcox,
    inv_boxcox1p,
    kl_div,
    pseudo_huber,
    rel_entr,
    xlog1py,
    xlogy,
)
from tracer.scipy.gammas import (
    beta,
    betaln,
    binom,
    comb,
    factorial,
    gamma,
    gammaln,
    gammasgn,
    multigammaln,
    poch,
    rgamma,
)
from tracer.scipy.integrals import bernoulli, dawsn, erfcx, exp1, expi, expn, fresnel, sici, spence
from tracer.scipy.normal import log_ndtr, ndtr, ndtri
from tracer.scipy.operands import operands
from tracer.scipy.special_functions.bessel import bessel_jn, j0, j1, k0, k0e, k1, k1e, y0, y1
from tracer.scipy.special_functions.complex_gamma import loggamma
from tracer.scipy.special_functions.confluent import hyp1f1
from tracer.scipy.special_functions.faddeeva import voigt_profile, wofz
from tracer.scipy.special_functions.gauss import hyp2f1
from tracer.scipy.special_functions.owens import owens_t
from tracer.scipy.special_functions.spherical_harmonics import sph_harm_y
from tracer.scipy.zetas import zeta
from tracer.trace.array import Array, concrete_value
from tracer.trace.docstrings import say_of_elements
from tracer.trace.integers import integer
from tracer.trace.tracebacks import set_boundaries
from tracer.transforms.custom.derivatives import custom_jvp


def softmax(x: Any, axis: int | Sequence[int] | None = None) -> Array:
    """Return exp(x) over its sum along axes, by default all axes, where `tracer.nn.softmax` takes the last.

    x: numbers [*s]; axis: one or several, None for all. Returns floats or complex numbers [*s]; integers are cast.

    >>> tracer.scipy.special.softmax(tnp.zeros((2, 2)))
    Array([[0.25, 0.25],
           [0.25, 0.25]], f64)
    """
    return _softmax(x, axis)


def log_softmax(x: Any, axis: int | Sequence[int] | None = None) -> Array:
    """Return the logarithm of `softmax`, exact for small probabilities.

    x, axis: as of `softmax`. Returns floats or complex numbers [*s]; integers are cast.

    >>> tracer.scipy.special.log_softmax(tnp.asarray([0.0, 1000.0]))
    Array([-1000.,     0.], f64)
    """
    return _log_softmax(x, axis)


@elementwise
def erf(x: Any) -> Array:
    """Return the error function, 2/√π times the integral of exp(-t²) from 0 to x.

    >>> tracer.scipy.special.erf(tnp.asarray([0.0, 1.0]))
    Array([0.        , 0.84270079], f64)
    """
    return special.erf(*promoted_inexact("erf", x))


@elementwise
def erfc(x: Any) -> Array:
    """Return 1 - erf(x), exact for large x.

    >>> tracer.scipy.special.erfc(tnp.asarray([0.0, 1.0]))
    Array([1.        , 0.15729921], f64)
    """
    return special.erfc(*promoted_inexact("erfc", x))


@elementwise
def erfinv(x: Any) -> Array:
    """Return the inverse of erf on (-1, 1); infinite at both ends, NaN beyond.

    >>> tracer.scipy.special.erfinv(tnp.asarray([0.0, 0.5]))
    Array([0.        , 0.47693628], f64)
    """
    return special.erf_inv(*promoted_inexact("erfinv", x))


@elementwise
def digamma(x: Any) -> Array:
    """Return the derivative of `gammaln`: Γ'(x) / Γ(x).

    >>> tracer.scipy.special.digamma(tnp.asarray([1.0]))
    Array([-0.57721566], f64)
    """
    return special.digamma(*promoted_inexact("digamma", x))


psi = digamma


def polygamma(n: Any, x: Any) -> Array:
    """Return the n-th derivative of `digamma`.

    n: whole numbers, at least 0; x: real numbers, whose shapes broadcast to [*s]. Returns floats [*s]; integers are
    cast. Orders that jit or vmap trace take x > 0 alone; other elements are NaN.

    >>> tracer.scipy.special.polygamma(1, tnp.asarray([1.0]))
    Array([1.64493407], f64)
    >>> tracer.scipy.special.polygamma(tnp.asarray([0, 1, 2]), 1.0)
    Array([-0.57721566,  1.64493407, -2.40411381], f64)
    """
    known = concrete_value(n) if isinstance(n, Array) else n
    if known is not None and np.shape(known) == ():
        (value,) = promoted_real("polygamma", x)
        return special.polygamma(integer("polygamma", "n", _whole(known)), value)
    order, value = operands("polygamma", n, x)
    if known is not None:
        result = full_like(value, math.nan)
        for k in np.unique(known):
            if k >= 0 and k == np.floor(k):
                result = where(order == k, special.polygamma(int(k), value), result)
        return result
    usual = (order >= 0) & (floor(order) == order) & (value > 0)
    m, y = where(usual, order, 1.0) + 1.0, where(usual, value, 1.0)
    higher = where(m % 2 == 0, 1.0, -1.0) * gamma(m) * zeta(where(m == 1, 2.0, m), y)
    return where(usual, where(m == 1, special.digamma(y), higher), math.nan)


def _whole(n: Any) -> Any:
    """Return a whole float as an integer, as SciPy takes both."""
    return int(n) if isinstance(n, float | np.floating | np.ndarray) and n == np.floor(n) else n


@elementwise
def expit(x: Any) -> Array:
    """Return the logistic function 1 / (1 + exp(-x)).

    >>> tracer.scipy.special.expit(tnp.asarray([0.0]))
    Array([0.5], f64)
    """
    return exponential.logistic(*promoted_inexact("expit", x))


def logit(x: Any) -> Array:
    """Return log(x / (1 - x)), the inverse of `expit`.

    >>> tracer.scipy.special.logit(tnp.asarray([0.5]))
    Array([0.], f64)
    """
    (value,) = promoted_inexact("logit", x)
    odds: Array = _log_odds(value)
    return odds


@custom_jvp
def _log_odds(x: Array) -> Array:
    return log(x / (1 - x))


_log_odds.defjvps(lambda dx, _, x: dx / (x * (1 - x)))


def exp10(x: Any) -> Array:
    """Return 10^x.

    >>> tracer.scipy.special.exp10(tnp.asarray([-1.0, 2.0]))
    Array([  0.1, 100. ], f64)
    """
    (value,) = promoted_inexact("exp10", x)
    return power(10.0, value)


def exprel(x: Any) -> Array:
    """Return (e^x - 1) / x, and 1 at 0.

    >>> tracer.scipy.special.exprel(tnp.asarray([0.0, 1.0]))
    Array([1.        , 1.71828183], f64)
    """
    (value,) = promoted_real("exprel", x)
    small = absolute(value) < 0.5
    inside, outside = where(small, value, 0.0), where(small, 1.0, value)
    series = full_like(inside, 1.0)
    for k in range(_EXPREL_TERMS, 1, -1):
        series = 1.0 + inside / k * series
    endless = outside == math.inf  # inf / inf
    return where(small, series, where(endless, math.inf, expm1(outside) / where(endless, 1.0, outside)))


_EXPREL_TERMS = 15  # 0.5^15 / 16! is 1e-18


def cosm1(x: Any) -> Array:
    """Return cos(x) - 1, exact for small x.

    >>> tracer.scipy.special.cosm1(tnp.asarray([0.0, 1e-8]))
    Array([-0.e+00, -5.e-17], f64)
    """
    (value,) = promoted_inexact("cosm1", x)
    return -2.0 * square(sin(0.5 * value))


def i0(x: Any) -> Array:
    """Return the modified Bessel function of the first kind and order 0. Raises DTypeError for complex numbers.

    >>> tracer.scipy.special.i0(1.0)
    Array(1.26606588, f64)
    """
    return bessel_i("i0", 0, x, scaled=False)


def i0e(x: Any) -> Array:
    """Return `i0` times e^-|x|, which does not overflow. Raises DTypeError for complex numbers.

    >>> tracer.scipy.special.i0e(1000.0)
    Array(0.01261724, f64)
    """
    return bessel_i("i0e", 0, x, scaled=True)


def i1(x: Any) -> Array:
    """Return the modified Bessel function of the first kind and order 1. Raises DTypeError for complex numbers.

    >>> tracer.scipy.special.i1(1.0)
    Array(0.5651591, f64)
    """
    return bessel_i("i1", 1, x, scaled=False)


def i1e(x: Any) -> Array:
    """Return `i1` times e^-|x|, which does not overflow. Raises DTypeError for complex numbers.

    >>> tracer.scipy.special.i1e(1000.0)
    Array(0.01261093, f64)
    """
    return bessel_i("i1e", 1, x, scaled=True)


__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaincc", "betaln", "binom", "boxcox", "boxcox1p", "cbrt", "chdtr",
    "chdtrc", "comb", "cosm1", "dawsn", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp1", "exp2", "exp10",
    "expi", "expit", "expm1", "expn", "exprel", "factorial", "fdtr", "fdtrc", "fresnel", "gamma", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "huber", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "inv_boxcox",
    "inv_boxcox1p", "j0", "j1", "k0", "k0e", "k1", "k1e", "kl_div", "log1p", "log_expit", "log_ndtr", "log_softmax",
    "loggamma", "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "owens_t", "poch", "polygamma", "pseudo_huber",
    "psi", "rel_entr", "rgamma", "sici", "sinc", "softmax", "spence", "sph_harm_y", "stdtr", "voigt_profile", "wofz",
    "xlog1py", "xlogy", "y0", "y1", "zeta",
]  # fmt: skip

set_boundaries(globals(), __all__, cached)  # they look at no elements
say_of_elements(
    [globals()[name] for name in __all__], complex_too=("cosm1", "exp10", "expit", "logit", "xlog1py", "xlogy")
)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
