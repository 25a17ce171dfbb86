"""The gamma distribution of shape `a`, from `loc` on, in units of `scale`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.numpy import exp
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.stats import formulas
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, y^(a - 1) e^-y / (Γ(a) scale) of y = (x - loc) / scale; -inf below loc.

    >>> tracer.scipy.stats.gamma.logpdf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([-2.57944154, -1.30685282], f64)
    """
    return at_elements(formulas.gamma_log_density, "gamma.logpdf", x, a, loc, scale)


def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.gamma.pdf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([0.07581633, 0.27067057], f64)
    """
    return exp(at_elements(formulas.gamma_log_density, "gamma.pdf", x, a, loc, scale))


def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.gamma.cdf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([0.01438768, 0.32332358], f64)
    """
    return at_elements(formulas.gamma_below, "gamma.cdf", x, a, loc, scale)


def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `cdf`.

    >>> tracer.scipy.stats.gamma.logcdf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([-4.24138314, -1.12910165], f64)
    """
    return at_elements(formulas.gamma_log_below, "gamma.logcdf", x, a, loc, scale)


def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of more than x.

    >>> tracer.scipy.stats.gamma.sf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([0.98561232, 0.67667642], f64)
    """
    return at_elements(formulas.gamma_above, "gamma.sf", x, a, loc, scale)


def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `sf`.

    >>> tracer.scipy.stats.gamma.logsf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([-0.01449218, -0.39056209], f64)
    """
    return at_elements(formulas.gamma_log_above, "gamma.logsf", x, a, loc, scale)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, logcdf, logpdf, logsf, pdf, sf))
