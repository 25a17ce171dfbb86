"""The Dirichlet distribution of k shares with sum 1, of concentrations `alpha`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.absent import absent
from tracer.errors import ShapeError, message
from tracer.numpy import absolute, concatenate, exp, inf, nan, reshape, sum, where
from tracer.numpy.core.conversion import array_of, unified
from tracer.numpy.core.promotion import promoted_inexact, require_real
from tracer.primitives.elementwise import special
from tracer.runtime.eager.call_cache import cached
from tracer.scipy.entropies import xlogy
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

_CLOSE = 1e-6  # tolerance of the sum of shares


def logpdf(x: Any, alpha: Any) -> Array:
    """Return the logarithm of the density, Γ(Σ alpha) Π x^(alpha - 1) / Γ(alpha); -inf where x are not shares of 1.

    x: [k, *s], or without the last share [k - 1, *s]; alpha: positive [k]. Returns floats [*s], of the dtype to which
    both are promoted. Raises ShapeError for other shapes.

    >>> tracer.scipy.stats.dirichlet.logpdf(tnp.asarray([0.25, 0.75]), tnp.asarray([2.0, 3.0]))
    Array(0.52324814, f64)
    """
    return _log_density("dirichlet.logpdf", x, alpha)


def pdf(x: Any, alpha: Any) -> Array:
    """Return the density, exp of `logpdf`.

    x: [k, *s], or without the last share [k - 1, *s]; alpha: positive [k]. Returns floats [*s], of the dtype to which
    both are promoted. Raises ShapeError for other shapes.

    >>> tracer.scipy.stats.dirichlet.pdf(tnp.asarray([0.25, 0.75]), tnp.asarray([2.0, 3.0]))
    Array(1.6875, f64)
    """
    return exp(_log_density("dirichlet.pdf", x, alpha))


def _log_density(name: str, x: Any, alpha: Any) -> Array:
    shares, weights = unified(name, [promoted_inexact(name, array_of(name, v))[0] for v in (x, alpha)])
    require_real(name, shares.dtype, shares, weights)
    if weights.ndim != 1 or not shares.ndim or shares.shape[0] not in (weights.size, weights.size - 1):
        raise ShapeError(
            message(f"{name}{here()}: x is [k, *s] or [k - 1, *s], alpha [k]", f"got {shares.type} and {weights.type}")
        )
    if shares.shape[0] < weights.size:
        shares = concatenate([shares, 1.0 - sum(shares, 0, keepdims=True)])
    positive = where(weights > 0, weights, nan)
    constant = special.lgamma(sum(positive)) - sum(special.lgamma(positive))
    possible = (shares >= 0).all(0) & (absolute(sum(shares, 0) - 1.0) < _CLOSE)
    powers = reshape(positive - 1.0, (-1, *[1] * (shares.ndim - 1)))
    density = sum(xlogy(powers, where(possible, shares, 0.5)), 0) + constant
    return where(possible | (density != density), density, -inf)


set_boundaries(globals(), make=cached)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
