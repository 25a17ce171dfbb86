"""The Bernoulli distribution: `loc + 1` with probability `p`, else `loc`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.numpy import exp, nan, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.entropies import xlog1py, xlogy
from tracer.scipy.operands import at_elements
from tracer.scipy.stats.standard import at_counts
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k; -inf of other numbers than loc and loc + 1.

    >>> tracer.scipy.stats.bernoulli.logpmf(tnp.asarray([0, 1, 2]), 0.25)
    Array([-0.28768207, -1.38629436,        -inf], f64)
    """
    return at_elements(_log_mass, "bernoulli.logpmf", k, p, loc)


def pmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of k.

    >>> tracer.scipy.stats.bernoulli.pmf(tnp.asarray([0, 1, 2]), 0.25)
    Array([0.75, 0.25, 0.  ], f64)
    """
    return exp(at_elements(_log_mass, "bernoulli.pmf", k, p, loc))


def cdf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of at most k.

    >>> tracer.scipy.stats.bernoulli.cdf(tnp.asarray([-1, 0, 1]), 0.25)
    Array([0.  , 0.75, 1.  ], f64)
    """
    return at_elements(_below, "bernoulli.cdf", k, p, loc)


def ppf(q: Any, p: Any, loc: Any = 0) -> Array:
    """The least number whose `cdf` is at least q: loc - 1 where q is 0.

    >>> tracer.scipy.stats.bernoulli.ppf(tnp.asarray([0.5, 0.8]), 0.25)
    Array([0., 1.], f64)
    """
    return at_elements(_quantile, "bernoulli.ppf", q, p, loc)


def _log_mass(k: Array, p: Array, loc: Array) -> Array:
    valid = (p >= 0) & (p <= 1)
    chance = where(valid, p, 0.5)
    return at_counts(k, loc, 0.0, 1.0, lambda y: xlogy(y, chance) + xlog1py(1.0 - y, -chance), valid, safe=0.0)


def _below(k: Array, p: Array, loc: Array) -> Array:
    y = k - loc
    valid = (p >= 0) & (p <= 1) & (y == y)
    return where(valid, where(y < 0, 0.0, where(y < 1, 1.0 - p, 1.0)), nan)


def _quantile(q: Array, p: Array, loc: Array) -> Array:
    valid = (p >= 0) & (p <= 1) & (q >= 0) & (q <= 1)
    return where(valid, loc + where(q == 0, -1.0, where(q <= 1.0 - p, 0.0, 1.0)), nan)


set_boundaries(globals(), make=replayed)
say_of_elements((cdf, logpmf, pmf, ppf))
