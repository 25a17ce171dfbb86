"""The Cauchy distribution around `loc`, with half its width at half its height `scale`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.numpy import arctan2, exp, inf, log, ones_like, tan, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.stats.standard import fraction, log1p_square, log_probability, standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, 1 / (π scale (1 + y²)) of y = (x - loc) / scale.

    >>> tracer.scipy.stats.cauchy.logpdf(tnp.asarray([0.0, 2.0]))
    Array([-1.14472989, -2.7541678 ], f64)
    """
    return at_elements(_log_density, "cauchy.logpdf", x, loc, scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.cauchy.pdf(tnp.asarray([0.0, 2.0]))
    Array([0.31830989, 0.06366198], f64)
    """
    return exp(at_elements(_log_density, "cauchy.pdf", x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.cauchy.cdf(tnp.asarray([-1e20, 0.0]))
    Array([3.18309886e-21, 5.00000000e-01], f64)
    """
    return at_elements(_below, "cauchy.cdf", x, loc, scale)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `cdf`.

    >>> tracer.scipy.stats.cauchy.logcdf(tnp.asarray([-1e20, 0.0]))
    Array([-47.19643175,  -0.69314718], f64)
    """
    return at_elements(_log_below, "cauchy.logcdf", x, loc, scale)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of more than x.

    >>> tracer.scipy.stats.cauchy.sf(tnp.asarray([0.0, 1e20]))
    Array([5.00000000e-01, 3.18309886e-21], f64)
    """
    return at_elements(_above, "cauchy.sf", x, loc, scale)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `sf`.

    >>> tracer.scipy.stats.cauchy.logsf(tnp.asarray([0.0, 1e20]))
    Array([ -0.69314718, -47.19643175], f64)
    """
    return at_elements(_log_above, "cauchy.logsf", x, loc, scale)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The x below which a fraction q lies.

    >>> tracer.scipy.stats.cauchy.ppf(tnp.asarray([1e-20, 0.5]))
    Array([-3.18309886e+19,  0.00000000e+00], f64)
    """
    return at_elements(_quantile, "cauchy.ppf", q, loc, scale)


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The x above which a fraction q lies.

    >>> tracer.scipy.stats.cauchy.isf(tnp.asarray([1e-20, 0.5]))
    Array([3.18309886e+19, 0.00000000e+00], f64)
    """
    return at_elements(_upper_quantile, "cauchy.isf", q, loc, scale)


def _log_density(x: Array, loc: Array, scale: Array) -> Array:
    y = standard(x, loc, scale)
    formula = lambda y: -log1p_square(y, 1.0) - log(math.pi * scale)  # noqa: E731
    return within(y, -inf, inf, formula, below=-inf, above=-inf, safe=0.0)


def _below(x: Array, loc: Array, scale: Array) -> Array:
    """By the angle at which -y is seen from a line: exact for large |y|."""
    y = standard(x, loc, scale)
    return within(y, -inf, inf, lambda y: arctan2(ones_like(y), -y) / math.pi, below=0.0, above=1.0, safe=0.0)


def _above(x: Array, loc: Array, scale: Array) -> Array:
    return _below(-x, -loc, scale)


def _log_below(x: Array, loc: Array, scale: Array) -> Array:
    return log_probability(_below(x, loc, scale), _above(x, loc, scale))


def _log_above(x: Array, loc: Array, scale: Array) -> Array:
    return _log_below(-x, -loc, scale)


def _quantile(q: Array, loc: Array, scale: Array) -> Array:
    return fraction(q, _tangent, loc, scale)


def _upper_quantile(q: Array, loc: Array, scale: Array) -> Array:
    return fraction(q, lambda q: -_tangent(q), loc, scale)


def _tangent(q: Array) -> Array:
    """tan(π (q - 1/2)), exact at both ends."""
    low, high = q < 0.25, q > 0.75
    end = where(low, q, where(high, 1.0 - q, 0.5))
    steep = where(end > 0, 1.0 / tan(math.pi * where(end > 0, end, 0.5)), inf)
    middle = tan(math.pi * (where(low | high, 0.5, q) - 0.5))
    return where(low, -steep, where(high, steep, middle))


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, isf, logcdf, logpdf, logsf, pdf, ppf, sf))
