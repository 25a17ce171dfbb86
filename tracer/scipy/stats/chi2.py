"""The chi-squared distribution of `df` degrees of freedom: the gamma distribution of df / 2, in units of 2 scale."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.numpy import exp
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.stats import formulas
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, that of y = (x - loc) / scale being y^(df/2 - 1) e^(-y/2) / (2^(df/2) Γ(df/2)).

    >>> tracer.scipy.stats.chi2.logpdf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([-1.51551212, -1.57236494], f64)
    """
    return _halved(formulas.gamma_log_density, "chi2.logpdf", x, df, loc, scale)


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.chi2.pdf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([0.21969564, 0.20755375], f64)
    """
    return exp(_halved(formulas.gamma_log_density, "chi2.pdf", x, df, loc, scale))


def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.chi2.cdf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([0.08110859, 0.4275933 ], f64)
    """
    return _halved(formulas.gamma_below, "chi2.cdf", x, df, loc, scale)


def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `cdf`.

    >>> tracer.scipy.stats.chi2.logcdf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([-2.51196643, -0.84958278], f64)
    """
    return _halved(formulas.gamma_log_below, "chi2.logcdf", x, df, loc, scale)


def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of more than x.

    >>> tracer.scipy.stats.chi2.sf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([0.91889141, 0.5724067 ], f64)
    """
    return _halved(formulas.gamma_above, "chi2.sf", x, df, loc, scale)


def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `sf`.

    >>> tracer.scipy.stats.chi2.logsf(tnp.asarray([0.5, 2.0]), 3.0)
    Array([-0.08458732, -0.55790552], f64)
    """
    return _halved(formulas.gamma_log_above, "chi2.logsf", x, df, loc, scale)


def _halved(formula: Callable[..., Array], name: str, x: Any, df: Any, loc: Any, scale: Any) -> Array:
    return at_elements(lambda x, df, loc, scale: formula(x, 0.5 * df, loc, 2.0 * scale), name, x, df, loc, scale)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, logcdf, logpdf, logsf, pdf, sf))
