"""The generalised normal distribution of exponent `beta`: Laplace's of 1, the normal one of 2."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.lax import igammac
from tracer.numpy import absolute, exp, inf, log, power, where
from tracer.primitives.elementwise import special
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.stats.standard import standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, beta: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, beta e^(-|y|^beta) / (2 Γ(1/beta) scale) of y = (x - loc) / scale.

    >>> tracer.scipy.stats.gennorm.logpdf(tnp.asarray([0.0, 2.0]), 1.0)
    Array([-0.69314718, -2.69314718], f64)
    """
    return at_elements(_log_density, "gennorm.logpdf", x, beta, loc, scale)


def pdf(x: Any, beta: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.gennorm.pdf(tnp.asarray([0.0, 2.0]), 1.0)
    Array([0.5       , 0.06766764], f64)
    """
    return exp(at_elements(_log_density, "gennorm.pdf", x, beta, loc, scale))


def cdf(x: Any, beta: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.gennorm.cdf(tnp.asarray([0.0, -2.0]), 1.0)
    Array([0.5       , 0.06766764], f64)
    """
    return at_elements(_below, "gennorm.cdf", x, beta, loc, scale)


def _log_density(x: Array, beta: Array, loc: Array, scale: Array) -> Array:
    exponent = where(beta > 0, beta, 1.0)

    def formula(y: Array) -> Array:
        return -special.lgamma(1.0 + 1.0 / exponent) - power(absolute(y), exponent) - log(2.0 * scale)

    return within(standard(x, loc, scale, beta > 0), -inf, inf, formula, below=-inf, above=-inf, safe=1.0)


def _below(x: Array, beta: Array, loc: Array, scale: Array) -> Array:
    exponent = where(beta > 0, beta, 1.0)

    def formula(y: Array) -> Array:
        centre = y == 0
        tail = 0.5 * igammac(1.0 / exponent, power(absolute(where(centre, 1.0, y)), exponent))
        rise = 0.5 * y * exp(-special.lgamma(1.0 + 1.0 / exponent))  # where igammac's slope is infinite, by |y|'s, 0
        return where(centre, 0.5 + rise, where(y < 0, tail, 1.0 - tail))

    return within(standard(x, loc, scale, beta > 0), -inf, inf, formula, below=0.0, above=1.0, safe=1.0)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, logpdf, pdf))
