"""Poisson's distribution of mean `mu`, plus `loc`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.lax import fori_loop, igammac
from tracer.numpy import exp, floor, inf, log, nan, where, zeros_like
from tracer.primitives.elementwise import special
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.entropies import xlogy
from tracer.scipy.operands import at_elements
from tracer.scipy.saddle_points import log_poisson
from tracer.scipy.stats.standard import at_counts, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries

_LARGE = 100.0
_COUNTS = 230  # beyond which there is 1e-25 at a mean of 100
_EXPANSION = (-1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520)  # by powers of 1 / mu


def logpmf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k; -inf unless k - loc is whole, and not negative.

    >>> tracer.scipy.stats.poisson.logpmf(tnp.asarray([0, 1, 2]), 1.5)
    Array([-1.5       , -1.09453489, -1.38221696], f64)
    """
    return at_elements(_log_mass, "poisson.logpmf", k, mu, loc)


def pmf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """The probability of k.

    >>> tracer.scipy.stats.poisson.pmf(tnp.asarray([0, 1, 2]), 1.5)
    Array([0.22313016, 0.33469524, 0.25102143], f64)
    """
    return exp(at_elements(_log_mass, "poisson.pmf", k, mu, loc))


def cdf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """The probability of at most k.

    >>> tracer.scipy.stats.poisson.cdf(tnp.asarray([0, 1, 2]), 1.5)
    Array([0.22313016, 0.5578254 , 0.80884683], f64)
    """
    return at_elements(_below, "poisson.cdf", k, mu, loc)


def entropy(mu: Any, loc: Any = 0) -> Array:
    """The entropy, in nats, which loc does not change.

    >>> tracer.scipy.stats.poisson.entropy(tnp.asarray([0.0, 1.0, 1000.0]))
    Array([0.        , 1.30484224, 4.8727328 ], f64)
    """
    return at_elements(_entropy, "poisson.entropy", mu, loc)


def _log_mass(k: Array, mu: Array, loc: Array) -> Array:
    mean = where(mu >= 0, mu, 1.0)
    return at_counts(k, loc, 0.0, inf, lambda y: log_poisson(y, mean), mu >= 0, safe=0.0)


def _below(k: Array, mu: Array, loc: Array) -> Array:
    y = where(mu >= 0, k - loc, nan)
    return within(
        y, 0.0, inf, lambda y: igammac(floor(y) + 1.0, where(mu >= 0, mu, 1.0)), below=0.0, above=1.0, safe=0.0
    )


def _entropy(mu: Array, loc: Array) -> Array:
    """mu - mu log(mu) + E log(k!) by its terms; for large mu by its expansion in 1 / mu, whose next term is 2e-12."""
    large = mu > _LARGE
    few, many = where(large | ~(mu >= 0), 1.0, mu), where(large, mu, _LARGE)

    def term(k: Any, total: Array) -> Array:
        count = k.astype(few.dtype)
        return total + exp(log_poisson(count, few)) * special.lgamma(count + 1.0)

    series = zeros_like(many)
    for coefficient in _EXPANSION[::-1]:
        series = (series + coefficient) / many
    wide = 0.5 * log(2 * math.pi * math.e * many) + series
    summed = few - xlogy(few, few) + fori_loop(2, _COUNTS, term, zeros_like(few))
    return where(mu >= 0, where(large, wide, summed) + 0.0 * loc, nan)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, entropy, logpmf, pmf))
