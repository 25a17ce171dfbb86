"""The negative binomial distribution: the failures before the `n`-th success, each of probability `p`, plus `loc`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.numpy import exp, inf, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.saddle_points import log_negative_binomial
from tracer.scipy.stats.standard import at_counts
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k, for any positive n; -inf unless k - loc is whole, and not negative.

    >>> tracer.scipy.stats.nbinom.logpmf(tnp.asarray([0, 1, 2]), 4, 0.25)
    Array([-5.54517744, -4.44656516, -3.8179565 ], f64)
    """
    return at_elements(_log_mass, "nbinom.logpmf", k, n, p, loc)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of k.

    >>> tracer.scipy.stats.nbinom.pmf(tnp.asarray([0, 1, 2]), 4, 0.25)
    Array([0.00390625, 0.01171875, 0.02197266], f64)
    """
    return exp(at_elements(_log_mass, "nbinom.pmf", k, n, p, loc))


def _log_mass(k: Array, n: Array, p: Array, loc: Array) -> Array:
    valid = (n > 0) & (p > 0) & (p <= 1)
    wanted, chance = where(valid, n, 1.0), where(valid, p, 0.5)
    return at_counts(k, loc, 0.0, inf, lambda y: log_negative_binomial(y, wanted, chance), valid, safe=0.0)


set_boundaries(globals(), make=replayed)
say_of_elements((logpmf, pmf))
