"""The normal distribution with mean `loc` and standard deviation `scale`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.numpy import exp, log, square
from tracer.numpy.core.promotion import promoted_real
from tracer.scipy.special import log_ndtr, ndtr, ndtri
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density: -((x - loc) / scale)² / 2 - log(scale √(2π)).

    >>> tracer.scipy.stats.norm.logpdf(0.0)
    Array(-0.91893853, f64)
    """
    return _log_density("norm.logpdf", x, loc, scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.norm.pdf(0.0)
    Array(0.39894228, f64)
    """
    return exp(_log_density("norm.pdf", x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.norm.cdf(0.0)
    Array(0.5, f64)
    """
    return ndtr(_standard(*promoted_real("norm.cdf", x, loc, scale)))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `cdf`, exact far below the mean.

    >>> tracer.scipy.stats.norm.logcdf(0.0)
    Array(-0.69314718, f64)
    """
    return log_ndtr(_standard(*promoted_real("norm.logcdf", x, loc, scale)))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of more than x.

    >>> tracer.scipy.stats.norm.sf(0.0)
    Array(0.5, f64)
    """
    return ndtr(-_standard(*promoted_real("norm.sf", x, loc, scale)))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `sf`.

    >>> tracer.scipy.stats.norm.logsf(0.0)
    Array(-0.69314718, f64)
    """
    return log_ndtr(-_standard(*promoted_real("norm.logsf", x, loc, scale)))


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The x below which a fraction q lies.

    >>> tracer.scipy.stats.norm.ppf(0.5)
    Array(0., f64)
    """
    fraction, mean, width = promoted_real("norm.ppf", q, loc, scale)
    return ndtri(_array(fraction)) * _array(width) + _array(mean)


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The x above which a fraction q lies.

    >>> tracer.scipy.stats.norm.isf(0.5)
    Array(0., f64)
    """
    fraction, mean, width = promoted_real("norm.isf", q, loc, scale)
    return -ndtri(_array(fraction)) * _array(width) + _array(mean)


def _log_density(name: str, x: Any, loc: Any, scale: Any) -> Array:
    value, mean, width = promoted_real(name, x, loc, scale)
    return -0.5 * square(_standard(value, mean, width)) - (0.5 * math.log(2 * math.pi) + log(_array(width)))


def _array(x: Any) -> Any:
    return x if isinstance(x, Array) else x.value


def _standard(x: Any, mean: Any, width: Any) -> Any:
    return (_array(x) - _array(mean)) / _array(width)


set_boundaries(globals())
say_of_elements((cdf, isf, logcdf, logpdf, logsf, pdf, ppf, sf))
