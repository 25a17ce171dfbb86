"""Formulas that two distributions share: gamma and chi2, gumbel_r and gumbel_l."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math

from tracer.lax import igamma, igammac
from tracer.nn import log1mexp
from tracer.numpy import exp, expm1, finfo, inf, log, where
from tracer.scipy.saddle_points import log_gamma_density
from tracer.scipy.stats.standard import log_probability, standard, within
from tracer.trace.array import Array


def gamma_log_density(x: Array, a: Array, loc: Array, scale: Array) -> Array:
    """The logarithm of the gamma distribution's density, of shape a."""
    y = standard(x, loc, scale, a > 0)
    shape = where(a > 0, a, 1.0)
    return within(y, 0.0, inf, lambda y: log_gamma_density(shape, y) - log(scale), below=-inf, above=-inf, safe=1.0)


def gamma_below(x: Array, a: Array, loc: Array, scale: Array) -> Array:
    """Its probability of at most x."""
    y = standard(x, loc, scale, a > 0)
    return within(y, 0.0, inf, lambda y: igamma(where(a > 0, a, 1.0), y), below=0.0, above=1.0, safe=1.0)


def gamma_above(x: Array, a: Array, loc: Array, scale: Array) -> Array:
    """Its probability of more than x."""
    y = standard(x, loc, scale, a > 0)
    return within(y, 0.0, inf, lambda y: igammac(where(a > 0, a, 1.0), y), below=1.0, above=0.0, safe=1.0)


def gamma_log_below(x: Array, a: Array, loc: Array, scale: Array) -> Array:
    """The logarithm of its probability of at most x."""
    return log_probability(gamma_below(x, a, loc, scale), gamma_above(x, a, loc, scale))


def gamma_log_above(x: Array, a: Array, loc: Array, scale: Array) -> Array:
    """The logarithm of its probability of more than x."""
    return log_probability(gamma_above(x, a, loc, scale), gamma_below(x, a, loc, scale))


def gumbel_r_log_density(x: Array, loc: Array, scale: Array) -> Array:
    """The logarithm of the density of the largest of many."""
    y = standard(x, loc, scale)
    return within(y, _least(y), inf, lambda y: -y - exp(-y) - log(scale), below=-inf, above=-inf, safe=0.0)


def gumbel_r_below(x: Array, loc: Array, scale: Array) -> Array:
    """Its probability of at most x."""
    return exp(gumbel_r_log_below(x, loc, scale))


def gumbel_r_log_below(x: Array, loc: Array, scale: Array) -> Array:
    """The logarithm of its probability of at most x."""
    y = standard(x, loc, scale)
    return within(y, _least(y), inf, lambda y: -exp(-y), below=-inf, above=0.0, safe=0.0)


def gumbel_r_above(x: Array, loc: Array, scale: Array) -> Array:
    """Its probability of more than x."""
    y = standard(x, loc, scale)
    return within(y, _least(y), inf, lambda y: -expm1(-exp(-y)), below=1.0, above=0.0, safe=0.0)


def gumbel_r_log_above(x: Array, loc: Array, scale: Array) -> Array:
    """The logarithm of its probability of more than x."""
    y = standard(x, loc, scale)
    return within(y, _least(y), inf, _log_rest, below=0.0, above=-inf, safe=0.0)


def _log_rest(y: Array) -> Array:
    """log(1 - exp(-exp(-y))), which is -y where exp(-y) is nothing beside 1."""
    high = y > 40.0
    return where(high, -y, log1mexp(exp(-where(high, 0.0, y))))


def _least(y: Array) -> float:
    """Where exp(-y) overflows, and with it every formula of it."""
    return -math.log(float(finfo(y.dtype).max))
