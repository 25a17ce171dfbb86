"""The beta-binomial distribution: `binom` whose probability has the beta distribution of `a` and `b`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.numpy import exp, floor, log1p, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.saddle_points import log_beta
from tracer.scipy.stats.standard import at_counts
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k; -inf unless k - loc is whole, and from 0 to n.

    >>> tracer.scipy.stats.betabinom.logpmf(tnp.asarray([0, 1, 2]), 4, 2.0, 3.0)
    Array([-1.54044504, -1.25276297, -1.35812348], f64)
    """
    return at_elements(_log_mass, "betabinom.logpmf", k, n, a, b, loc)


def pmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Array:
    """The probability of k.

    >>> tracer.scipy.stats.betabinom.pmf(tnp.asarray([0, 1, 2]), 4, 2.0, 3.0)
    Array([0.21428571, 0.28571429, 0.25714286], f64)
    """
    return exp(at_elements(_log_mass, "betabinom.pmf", k, n, a, b, loc))


def _log_mass(k: Array, n: Array, a: Array, b: Array, loc: Array) -> Array:
    valid = (n >= 0) & (floor(n) == n) & (a > 0) & (b > 0)
    many, first, second = where(valid, n, 1.0), where(valid, a, 1.0), where(valid, b, 1.0)

    def formula(y: Array) -> Array:
        ways = -log1p(many) - log_beta(many - y + 1.0, y + 1.0)
        return ways + log_beta(y + first, many - y + second) - log_beta(first, second)

    return at_counts(k, loc, 0.0, many, formula, valid, safe=0.0)


set_boundaries(globals(), make=replayed)
say_of_elements((logpmf, pmf))
