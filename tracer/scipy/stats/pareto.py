"""The Pareto distribution of exponent `b`, from `loc + scale` on."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.nn import log1mexp
from tracer.numpy import exp, expm1, inf, log, log1p, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.stats.standard import fraction, standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, b / (y^(b + 1) scale) of y = (x - loc) / scale; -inf below y = 1.

    >>> tracer.scipy.stats.pareto.logpdf(tnp.asarray([1.0, 2.0]), 3.0)
    Array([ 1.09861229, -1.67397643], f64)
    """
    return at_elements(_log_density, "pareto.logpdf", x, b, loc, scale)


def pdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.pareto.pdf(tnp.asarray([1.0, 2.0]), 3.0)
    Array([3.    , 0.1875], f64)
    """
    return exp(at_elements(_log_density, "pareto.pdf", x, b, loc, scale))


def cdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.pareto.cdf(tnp.asarray([1.0, 2.0]), 3.0)
    Array([0.   , 0.875], f64)
    """
    return at_elements(_below, "pareto.cdf", x, b, loc, scale)


def logcdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `cdf`.

    >>> tracer.scipy.stats.pareto.logcdf(tnp.asarray([1.0, 2.0]), 3.0)
    Array([       -inf, -0.13353139], f64)
    """
    return at_elements(_log_below, "pareto.logcdf", x, b, loc, scale)


def sf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of more than x.

    >>> tracer.scipy.stats.pareto.sf(tnp.asarray([1.0, 2.0]), 3.0)
    Array([1.   , 0.125], f64)
    """
    return exp(at_elements(_log_above, "pareto.sf", x, b, loc, scale))


def logsf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `sf`.

    >>> tracer.scipy.stats.pareto.logsf(tnp.asarray([1.0, 2.0]), 3.0)
    Array([-0.        , -2.07944154], f64)
    """
    return at_elements(_log_above, "pareto.logsf", x, b, loc, scale)


def ppf(q: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The x below which a fraction q lies.

    >>> tracer.scipy.stats.pareto.ppf(tnp.asarray([0.0, 0.875]), 3.0)
    Array([1., 2.], f64)
    """
    return at_elements(_quantile, "pareto.ppf", q, b, loc, scale)


def _log_density(x: Array, b: Array, loc: Array, scale: Array) -> Array:
    y, power = _shape(x, b, loc, scale)
    formula = lambda y: log(power) - (power + 1.0) * log(y) - log(scale)  # noqa: E731
    return within(y, 1.0, inf, formula, below=-inf, above=-inf, safe=2.0)


def _below(x: Array, b: Array, loc: Array, scale: Array) -> Array:
    y, power = _shape(x, b, loc, scale)
    return within(y, 1.0, inf, lambda y: -expm1(-power * log(y)), below=0.0, above=1.0, safe=2.0)


def _log_below(x: Array, b: Array, loc: Array, scale: Array) -> Array:
    y, power = _shape(x, b, loc, scale)
    return within(y, 1.0, inf, lambda y: log1mexp(power * log(y)), below=-inf, above=0.0, safe=2.0)


def _log_above(x: Array, b: Array, loc: Array, scale: Array) -> Array:
    y, power = _shape(x, b, loc, scale)
    return within(y, 1.0, inf, lambda y: -power * log(y), below=0.0, above=-inf, safe=2.0)


def _quantile(q: Array, b: Array, loc: Array, scale: Array) -> Array:
    return fraction(q, lambda q: exp(-log1p(-q) / where(b > 0, b, 1.0)), loc, scale, b > 0)


def _shape(x: Array, b: Array, loc: Array, scale: Array) -> tuple[Array, Array]:
    return standard(x, loc, scale, b > 0), where(b > 0, b, 1.0)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, logcdf, logpdf, logsf, pdf, ppf, sf))
