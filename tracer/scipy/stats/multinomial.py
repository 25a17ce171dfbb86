"""The multinomial distribution: counts of k results in `n` trials, where the results have probabilities `p`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.absent import absent
from tracer.numpy import broadcast_arrays, exp, floor, inf, sum, where
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.promotion import promoted_real
from tracer.runtime.eager.call_cache import cached
from tracer.scipy.saddle_points import log_poisson
from tracer.trace.array import Array
from tracer.trace.tracebacks import set_boundaries


def logpmf(x: Any, n: Any, p: Any) -> Array:
    """Return the logarithm of the probability of x, n! Π p^x / x!; -inf unless x are whole, not negative, and sum to n.

    x: [..., k]; n: [...]; p: [..., k], not negative. Returns floats [...], of the dtype to which all are promoted.

    >>> tracer.scipy.stats.multinomial.logpmf(tnp.asarray([1, 2]), 3, tnp.asarray([0.25, 0.75]))
    Array(-0.86304622, f64)
    """
    return _log_mass("multinomial.logpmf", x, n, p)


def pmf(x: Any, n: Any, p: Any) -> Array:
    """Return the probability of x, n! Π p^x / x!; 0 unless x are whole, not negative, and sum to n.

    x: [..., k]; n: [...]; p: [..., k], not negative. Returns floats [...], of the dtype to which all are promoted.

    >>> tracer.scipy.stats.multinomial.pmf(tnp.asarray([1, 2]), 3, tnp.asarray([0.25, 0.75]))
    Array(0.421875, f64)
    """
    return exp(_log_mass("multinomial.pmf", x, n, p))


def _log_mass(name: str, x: Any, n: Any, p: Any) -> Array:
    """Return the logarithm of the probability, by Poisson distributions of means n p, conditioned on their sum n."""
    counts, chances, all = _operands(name, x, n, p)
    possible = (counts >= 0) & (floor(counts) == counts)
    whole = where(possible, counts, 0.0)
    total = all[..., 0]
    each = sum(log_poisson(whole, all * chances), -1) + total * (sum(chances, -1) - 1.0)
    fits = possible.all(-1) & (sum(whole, -1) == total)
    return where(fits, each - log_poisson(where(total >= 0, total, 0.0), where(total >= 0, total, 0.0)), -inf)


def _operands(name: str, x: Any, n: Any, p: Any) -> list[Array]:
    """Return counts, probabilities and n in one dtype and shape [..., k]; n is repeated along the last axis."""
    many = array_of(name, n)
    return list(broadcast_arrays(*promoted_real(name, array_of(name, x), array_of(name, p), many[..., None])))


set_boundaries(globals(), make=cached)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
