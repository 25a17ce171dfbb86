"""The logistic distribution around `loc`, in units of `scale`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.numpy import absolute, exp, inf, log, log1p
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.special import expit
from tracer.scipy.stats.standard import fraction, standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, e^-y / (scale (1 + e^-y)²) of y = (x - loc) / scale.

    >>> tracer.scipy.stats.logistic.logpdf(tnp.asarray([0.0, -2.0]))
    Array([-1.38629436, -2.25385602], f64)
    """
    return at_elements(_log_density, "logistic.logpdf", x, loc, scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.logistic.pdf(tnp.asarray([0.0, -2.0]))
    Array([0.25      , 0.10499359], f64)
    """
    return exp(at_elements(_log_density, "logistic.pdf", x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.logistic.cdf(tnp.asarray([0.0, -2.0]))
    Array([0.5       , 0.11920292], f64)
    """
    return at_elements(_below, "logistic.cdf", x, loc, scale)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of more than x.

    >>> tracer.scipy.stats.logistic.sf(tnp.asarray([0.0, 50.0]))
    Array([5.00000000e-01, 1.92874985e-22], f64)
    """
    return at_elements(_above, "logistic.sf", x, loc, scale)


def ppf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The value below which a fraction x lies.

    >>> tracer.scipy.stats.logistic.ppf(tnp.asarray([0.5, 0.75]))
    Array([0.        , 1.09861229], f64)
    """
    return at_elements(_quantile, "logistic.ppf", x, loc, scale)


def isf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The value above which a fraction x lies.

    >>> tracer.scipy.stats.logistic.isf(tnp.asarray([0.5, 0.75]))
    Array([ 0.        , -1.09861229], f64)
    """
    return at_elements(_upper_quantile, "logistic.isf", x, loc, scale)


def _log_density(x: Array, loc: Array, scale: Array) -> Array:
    def formula(y: Array) -> Array:
        size = absolute(y)
        return -size - 2.0 * log1p(exp(-size)) - log(scale)

    return within(standard(x, loc, scale), -inf, inf, formula, below=-inf, above=-inf, safe=0.0)


def _below(x: Array, loc: Array, scale: Array) -> Array:
    return within(standard(x, loc, scale), -inf, inf, expit, below=0.0, above=1.0, safe=0.0)


def _above(x: Array, loc: Array, scale: Array) -> Array:
    return _below(-x, -loc, scale)


def _quantile(q: Array, loc: Array, scale: Array) -> Array:
    return fraction(q, lambda q: log(q) - log1p(-q), loc, scale)


def _upper_quantile(q: Array, loc: Array, scale: Array) -> Array:
    return fraction(q, lambda q: log1p(-q) - log(q), loc, scale)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, isf, logpdf, pdf, ppf, sf))
