"""The uniform distribution from `loc` to `loc + scale`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.numpy import exp, inf, log
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.stats.standard import fraction, standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density: -log(scale) within, -inf elsewhere.

    >>> tracer.scipy.stats.uniform.logpdf(tnp.asarray([0.5, 2.0]), 0.0, 4.0)
    Array([-1.38629436, -1.38629436], f64)
    """
    return at_elements(_log_density, "uniform.logpdf", x, loc, scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density: 1 / scale within, 0 elsewhere.

    >>> tracer.scipy.stats.uniform.pdf(tnp.asarray([0.5, 9.0]), 0.0, 4.0)
    Array([0.25, 0.  ], f64)
    """
    return exp(at_elements(_log_density, "uniform.pdf", x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.uniform.cdf(tnp.asarray([0.25, 2.0]))
    Array([0.25, 1.  ], f64)
    """
    return at_elements(_below, "uniform.cdf", x, loc, scale)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The x below which a fraction q lies.

    >>> tracer.scipy.stats.uniform.ppf(tnp.asarray([0.25, 1.0]), 1.0, 2.0)
    Array([1.5, 3. ], f64)
    """
    return at_elements(_quantile, "uniform.ppf", q, loc, scale)


def _log_density(x: Array, loc: Array, scale: Array) -> Array:
    y = standard(x, loc, scale)
    return within(y, 0.0, 1.0, lambda y: 0.0 * y - log(scale), below=-inf, above=-inf, safe=0.5)


def _below(x: Array, loc: Array, scale: Array) -> Array:
    return within(standard(x, loc, scale), 0.0, 1.0, lambda y: y, below=0.0, above=1.0, safe=0.5)


def _quantile(q: Array, loc: Array, scale: Array) -> Array:
    return fraction(q, lambda q: q, loc, scale)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, logpdf, pdf, ppf))
