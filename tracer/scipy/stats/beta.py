"""The beta distribution of shapes `a` and `b`, from `loc` to `loc + scale`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.numpy import exp, inf, log, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.incomplete_beta import incomplete_beta, incomplete_beta_rest
from tracer.scipy.operands import at_elements
from tracer.scipy.saddle_points import log_beta_density
from tracer.scipy.stats.standard import log_probability, standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, y^(a - 1) (1 - y)^(b - 1) / (B(a, b) scale) of y = (x - loc) / scale.

    >>> tracer.scipy.stats.beta.logpdf(tnp.asarray([0.25, 0.5]), 2.0, 3.0)
    Array([0.52324814, 0.40546511], f64)
    """
    return at_elements(_log_density, "beta.logpdf", x, a, b, loc, scale)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.beta.pdf(tnp.asarray([0.25, 0.5]), 2.0, 3.0)
    Array([1.6875, 1.5   ], f64)
    """
    return exp(at_elements(_log_density, "beta.pdf", x, a, b, loc, scale))


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.beta.cdf(tnp.asarray([0.25, 0.5]), 2.0, 3.0)
    Array([0.26171875, 0.6875    ], f64)
    """
    return at_elements(_below, "beta.cdf", x, a, b, loc, scale)


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `cdf`.

    >>> tracer.scipy.stats.beta.logcdf(tnp.asarray([0.25, 0.5]), 2.0, 3.0)
    Array([-1.34048483, -0.37469345], f64)
    """
    return at_elements(_log_below, "beta.logcdf", x, a, b, loc, scale)


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of more than x.

    >>> tracer.scipy.stats.beta.sf(tnp.asarray([0.25, 0.5]), 2.0, 3.0)
    Array([0.73828125, 0.3125    ], f64)
    """
    return at_elements(_above, "beta.sf", x, a, b, loc, scale)


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `sf`.

    >>> tracer.scipy.stats.beta.logsf(tnp.asarray([0.25, 0.5]), 2.0, 3.0)
    Array([-0.30343043, -1.16315081], f64)
    """
    return at_elements(_log_above, "beta.logsf", x, a, b, loc, scale)


def _log_density(x: Array, a: Array, b: Array, loc: Array, scale: Array) -> Array:
    y, first, second = _shapes(x, a, b, loc, scale)
    return within(
        y, 0.0, 1.0, lambda y: log_beta_density(first, second, y) - log(scale), below=-inf, above=-inf, safe=0.5
    )


def _below(x: Array, a: Array, b: Array, loc: Array, scale: Array) -> Array:
    y, first, second = _shapes(x, a, b, loc, scale)
    return within(y, 0.0, 1.0, lambda y: incomplete_beta(first, second, y), below=0.0, above=1.0, safe=0.5)


def _above(x: Array, a: Array, b: Array, loc: Array, scale: Array) -> Array:
    y, first, second = _shapes(x, a, b, loc, scale)
    return within(y, 0.0, 1.0, lambda y: incomplete_beta_rest(first, second, y), below=1.0, above=0.0, safe=0.5)


def _log_below(x: Array, a: Array, b: Array, loc: Array, scale: Array) -> Array:
    return log_probability(_below(x, a, b, loc, scale), _above(x, a, b, loc, scale))


def _log_above(x: Array, a: Array, b: Array, loc: Array, scale: Array) -> Array:
    return log_probability(_above(x, a, b, loc, scale), _below(x, a, b, loc, scale))


def _shapes(x: Array, a: Array, b: Array, loc: Array, scale: Array) -> tuple[Array, Array, Array]:
    return standard(x, loc, scale, a > 0, b > 0), where(a > 0, a, 1.0), where(b > 0, b, 1.0)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, logcdf, logpdf, logsf, pdf, sf))
