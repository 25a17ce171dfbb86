"""The binomial distribution: how many of `n` events happen, each with probability `p`, plus `loc`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.numpy import exp, floor, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.saddle_points import log_binomial
from tracer.scipy.stats.standard import at_counts
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k; -inf unless k - loc is whole, and from 0 to n.

    >>> tracer.scipy.stats.binom.logpmf(tnp.asarray([0, 1, 2]), 4, 0.25)
    Array([-1.15072829, -0.86304622, -1.5561934 ], f64)
    """
    return at_elements(_log_mass, "binom.logpmf", k, n, p, loc)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of k.

    >>> tracer.scipy.stats.binom.pmf(tnp.asarray([0, 1, 2]), 4, 0.25)
    Array([0.31640625, 0.421875  , 0.2109375 ], f64)
    """
    return exp(at_elements(_log_mass, "binom.pmf", k, n, p, loc))


def _log_mass(k: Array, n: Array, p: Array, loc: Array) -> Array:
    valid = (n >= 0) & (floor(n) == n) & (p >= 0) & (p <= 1)
    many, chance = where(valid, n, 1.0), where(valid, p, 0.5)
    return at_counts(k, loc, 0.0, many, lambda y: log_binomial(y, many, chance), valid, safe=0.0)


set_boundaries(globals(), make=replayed)
say_of_elements((logpmf, pmf))
