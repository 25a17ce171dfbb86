"""Gumbel's distribution of the smallest of many, with its mode at `loc`: `gumbel_r` of -x around -loc."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.numpy import exp, log, log1p
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.stats import formulas
from tracer.scipy.stats.standard import fraction
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, e^(y - e^y) / scale of y = (x - loc) / scale.

    >>> tracer.scipy.stats.gumbel_l.logpdf(tnp.asarray([0.0, -40.0]))
    Array([ -1., -40.], f64)
    """
    return _mirrored(formulas.gumbel_r_log_density, "gumbel_l.logpdf", x, loc, scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.gumbel_l.pdf(tnp.asarray([0.0, -40.0]))
    Array([3.67879441e-01, 4.24835426e-18], f64)
    """
    return exp(_mirrored(formulas.gumbel_r_log_density, "gumbel_l.pdf", x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.gumbel_l.cdf(tnp.asarray([0.0, -40.0]))
    Array([6.32120559e-01, 4.24835426e-18], f64)
    """
    return _mirrored(formulas.gumbel_r_above, "gumbel_l.cdf", x, loc, scale)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `cdf`.

    >>> tracer.scipy.stats.gumbel_l.logcdf(tnp.asarray([0.0, -40.0]))
    Array([ -0.45867515, -40.        ], f64)
    """
    return _mirrored(formulas.gumbel_r_log_above, "gumbel_l.logcdf", x, loc, scale)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of more than x.

    >>> tracer.scipy.stats.gumbel_l.sf(tnp.asarray([0.0, -40.0]))
    Array([0.36787944, 1.        ], f64)
    """
    return _mirrored(formulas.gumbel_r_below, "gumbel_l.sf", x, loc, scale)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `sf`.

    >>> tracer.scipy.stats.gumbel_l.logsf(tnp.asarray([0.0, -40.0]))
    Array([-1.00000000e+00, -4.24835426e-18], f64)
    """
    return _mirrored(formulas.gumbel_r_log_below, "gumbel_l.logsf", x, loc, scale)


def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The x below which a fraction p lies.

    >>> tracer.scipy.stats.gumbel_l.ppf(tnp.asarray([0.5, 0.75]))
    Array([-0.36651292,  0.32663426], f64)
    """
    return at_elements(_quantile, "gumbel_l.ppf", p, loc, scale)


def _mirrored(formula: Callable[..., Array], name: str, x: Any, loc: Any, scale: Any) -> Array:
    return at_elements(lambda x, loc, scale: formula(-x, -loc, scale), name, x, loc, scale)


def _quantile(p: Array, loc: Array, scale: Array) -> Array:
    return fraction(p, lambda p: log(-log1p(-p)), loc, scale)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, logcdf, logpdf, logsf, pdf, ppf, sf))
