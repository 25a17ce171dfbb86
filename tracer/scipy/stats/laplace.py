"""The Laplace distribution around `loc`, with mean distance `scale` from it."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.numpy import absolute, exp, inf, log, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.stats.standard import standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, e^-|y| / (2 scale) of y = (x - loc) / scale.

    >>> tracer.scipy.stats.laplace.logpdf(tnp.asarray([0.0, -2.0]))
    Array([-0.69314718, -2.69314718], f64)
    """
    return at_elements(_log_density, "laplace.logpdf", x, loc, scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.laplace.pdf(tnp.asarray([0.0, -2.0]))
    Array([0.5       , 0.06766764], f64)
    """
    return exp(at_elements(_log_density, "laplace.pdf", x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.laplace.cdf(tnp.asarray([0.0, -2.0]))
    Array([0.5       , 0.06766764], f64)
    """
    return at_elements(_below, "laplace.cdf", x, loc, scale)


def _log_density(x: Array, loc: Array, scale: Array) -> Array:
    y = standard(x, loc, scale)
    return within(y, -inf, inf, lambda y: -absolute(y) - log(2.0 * scale), below=-inf, above=-inf, safe=0.0)


def _below(x: Array, loc: Array, scale: Array) -> Array:
    def formula(y: Array) -> Array:
        tail = 0.5 * exp(-absolute(y))
        return where(y < 0, tail, 1.0 - tail)

    return within(standard(x, loc, scale), -inf, inf, formula, below=0.0, above=1.0, safe=0.0)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, logpdf, pdf))
