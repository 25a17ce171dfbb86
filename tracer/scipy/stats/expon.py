"""The exponential distribution from `loc` on, with mean `scale` beyond it."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.nn import log1mexp
from tracer.numpy import exp, expm1, inf, log, log1p
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.stats.standard import fraction, standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, e^-y / scale of y = (x - loc) / scale; -inf below loc.

    >>> tracer.scipy.stats.expon.logpdf(tnp.asarray([0.0, 2.0]))
    Array([-0., -2.], f64)
    """
    return at_elements(_log_density, "expon.logpdf", x, loc, scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.expon.pdf(tnp.asarray([0.0, 2.0]))
    Array([1.        , 0.13533528], f64)
    """
    return exp(at_elements(_log_density, "expon.pdf", x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.expon.cdf(tnp.asarray([1e-9, 2.0]))
    Array([9.99999999e-10, 8.64664717e-01], f64)
    """
    return at_elements(_below, "expon.cdf", x, loc, scale)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `cdf`.

    >>> tracer.scipy.stats.expon.logcdf(tnp.asarray([1e-9, 2.0]))
    Array([-20.72326584,  -0.14541346], f64)
    """
    return at_elements(_log_below, "expon.logcdf", x, loc, scale)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of more than x.

    >>> tracer.scipy.stats.expon.sf(tnp.asarray([1.0, 50.0]))
    Array([3.67879441e-01, 1.92874985e-22], f64)
    """
    return exp(at_elements(_log_above, "expon.sf", x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `sf`.

    >>> tracer.scipy.stats.expon.logsf(tnp.asarray([1.0, 50.0]))
    Array([ -1., -50.], f64)
    """
    return at_elements(_log_above, "expon.logsf", x, loc, scale)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The x below which a fraction q lies.

    >>> tracer.scipy.stats.expon.ppf(tnp.asarray([0.0, 0.5]))
    Array([0.        , 0.69314718], f64)
    """
    return at_elements(_quantile, "expon.ppf", q, loc, scale)


def _log_density(x: Array, loc: Array, scale: Array) -> Array:
    y = standard(x, loc, scale)
    return within(y, 0.0, inf, lambda y: -y - log(scale), below=-inf, above=-inf, safe=1.0)


def _below(x: Array, loc: Array, scale: Array) -> Array:
    return within(standard(x, loc, scale), 0.0, inf, lambda y: -expm1(-y), below=0.0, above=1.0, safe=1.0)


def _log_below(x: Array, loc: Array, scale: Array) -> Array:
    return within(standard(x, loc, scale), 0.0, inf, log1mexp, below=-inf, above=0.0, safe=1.0)


def _log_above(x: Array, loc: Array, scale: Array) -> Array:
    return within(standard(x, loc, scale), 0.0, inf, lambda y: -y, below=0.0, above=-inf, safe=1.0)


def _quantile(q: Array, loc: Array, scale: Array) -> Array:
    return fraction(q, lambda q: -log1p(-q), loc, scale)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, logcdf, logpdf, logsf, pdf, ppf, sf))
