"""The normal distribution around `loc`, in units of `scale`, kept between `a` and `b` of these units from loc."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.nn import log1mexp
from tracer.numpy import exp, inf, log, log1p, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.normal import log_ndtr, ndtr
from tracer.scipy.operands import at_elements
from tracer.scipy.stats.standard import standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density: that of the normal one over its probability between a and b.

    >>> tracer.scipy.stats.truncnorm.logpdf(tnp.asarray([0.5, 2.0]), 0.0, 1.0)
    Array([0.03092379,       -inf], f64)
    """
    return at_elements(_log_density, "truncnorm.logpdf", x, a, b, loc, scale)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.truncnorm.pdf(tnp.asarray([0.5, 2.0]), 0.0, 1.0)
    Array([1.0314069, 0.       ], f64)
    """
    return exp(at_elements(_log_density, "truncnorm.pdf", x, a, b, loc, scale))


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of at most x.

    >>> tracer.scipy.stats.truncnorm.cdf(tnp.asarray([0.5, 2.0]), 0.0, 1.0)
    Array([0.56090643, 1.        ], f64)
    """
    return exp(at_elements(_log_below, "truncnorm.cdf", x, a, b, loc, scale))


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `cdf`.

    >>> tracer.scipy.stats.truncnorm.logcdf(tnp.asarray([0.5, 2.0]), 0.0, 1.0)
    Array([-0.57820119,  0.        ], f64)
    """
    return at_elements(_log_below, "truncnorm.logcdf", x, a, b, loc, scale)


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of more than x.

    >>> tracer.scipy.stats.truncnorm.sf(tnp.asarray([0.5, 2.0]), 0.0, 1.0)
    Array([0.43909357, 0.        ], f64)
    """
    return exp(at_elements(_log_above, "truncnorm.sf", x, a, b, loc, scale))


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `sf`.

    >>> tracer.scipy.stats.truncnorm.logsf(tnp.asarray([0.5, 2.0]), 0.0, 1.0)
    Array([-0.82304273,        -inf], f64)
    """
    return at_elements(_log_above, "truncnorm.logsf", x, a, b, loc, scale)


def _log_density(x: Array, a: Array, b: Array, loc: Array, scale: Array) -> Array:
    y, low, high = _ends(x, a, b, loc, scale)
    whole = _log_mass(low, high)
    constant = 0.5 * math.log(2 * math.pi)
    formula = lambda y: -0.5 * y * y - constant - whole - log(scale)  # noqa: E731
    return within(y, low, high, formula, below=-inf, above=-inf, safe=_middle(low, high))


def _log_below(x: Array, a: Array, b: Array, loc: Array, scale: Array) -> Array:
    y, low, high = _ends(x, a, b, loc, scale)
    whole = _log_mass(low, high)

    def formula(y: Array) -> Array:
        log_rest = _log_mass(y, high) - whole
        log_part = _log_mass(low, y) - whole
        likely = (log_part > -0.1) & (log_rest < 0.0)
        return where(likely, log1p(-exp(where(likely, log_rest, -1.0))), log_part)

    return within(y, low, high, formula, below=-inf, above=0.0, safe=_middle(low, high))


def _log_above(x: Array, a: Array, b: Array, loc: Array, scale: Array) -> Array:
    return _log_below(-x, -b, -a, -loc, scale)


def _ends(x: Array, a: Array, b: Array, loc: Array, scale: Array) -> tuple[Array, Array, Array]:
    return standard(x, loc, scale, a < b), where(a < b, a, -1.0), where(a < b, b, 1.0)


def _middle(low: Array, high: Array) -> Array:
    """A place between the ends, of which either may be infinite."""
    endless = (low == -inf) & (high == inf)
    left, right = where(low == -inf, high - 1.0, low), where(high == inf, low + 1.0, high)
    return where(endless, 0.0, 0.5 * (where(endless, 0.0, left) + where(endless, 0.0, right)))


def _log_mass(low: Array, high: Array) -> Array:
    """The logarithm of the normal probability from low to high, by the nearer tail."""
    right = low > 0
    far, near = where(right, -high, low), where(right, -low, high)  # both below 0, or on both sides of it
    central = near > 0
    one, other = where(central, -1.0, far), where(central, -0.5, near)
    upper = log_ndtr(other)
    empty = one == -inf
    tail = upper + where(empty, 0.0, log1mexp(upper - log_ndtr(where(empty, other - 1.0, one))))
    between = log1p(-(ndtr(where(central, far, -1.0)) + ndtr(-where(central, near, 1.0))))
    return where(central, between, tail)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, logcdf, logpdf, logsf, pdf, sf))
