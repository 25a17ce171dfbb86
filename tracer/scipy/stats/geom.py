"""The geometric distribution: which event is the first success, each of probability `p`, plus `loc`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.numpy import exp, inf, log, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.entropies import xlog1py
from tracer.scipy.operands import at_elements
from tracer.scipy.stats.standard import at_counts
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k; -inf unless k - loc is whole, and at least 1.

    >>> tracer.scipy.stats.geom.logpmf(tnp.asarray([0, 1, 2]), 0.25)
    Array([       -inf, -1.38629436, -1.67397643], f64)
    """
    return at_elements(_log_mass, "geom.logpmf", k, p, loc)


def pmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of k.

    >>> tracer.scipy.stats.geom.pmf(tnp.asarray([0, 1, 2]), 0.25)
    Array([0.    , 0.25  , 0.1875], f64)
    """
    return exp(at_elements(_log_mass, "geom.pmf", k, p, loc))


def _log_mass(k: Array, p: Array, loc: Array) -> Array:
    valid = (p > 0) & (p <= 1)
    chance = where(valid, p, 0.5)
    return at_counts(k, loc, 1.0, inf, lambda y: xlog1py(y - 1.0, -chance) + log(chance), valid, safe=1.0)


set_boundaries(globals(), make=replayed)
say_of_elements((logpmf, pmf))
