"""The normal distribution of vectors, of a mean and a covariance."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.absent import absent
from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import shape
from tracer.numpy import broadcast_to, exp, linalg, log, square, sum
from tracer.numpy.core.conversion import array_of, unified
from tracer.numpy.core.promotion import promoted_inexact, require_real
from tracer.scipy.linalg import solve_triangular
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, mean: Any, cov: Any, allow_singular: Any = None) -> Array:
    """Return the logarithm of the density, by Cholesky's factor of the covariance.

    x: [..., n]; mean: [..., n]; cov: the covariance [..., n, n], positive definite, or one variance for all. If n is 1,
    cov may be a number, with mean and x of shape [...]. allow_singular: None or False alone. Returns floats [...], of
    the dtype to which all are promoted. Raises ShapeError for other shapes, LinAlgError if a concrete covariance has no
    factor.

    >>> tracer.scipy.stats.multivariate_normal.logpdf(tnp.asarray([1.0, 2.0]), tnp.zeros(2), tnp.eye(2))
    Array(-4.33787707, f64)
    """
    if allow_singular:
        text = f"multivariate_normal.logpdf{here()}: singular covariances have no density"
        raise ArgumentError(message(text, f"got allow_singular={allow_singular!r}", help="leave it out"))
    return _log_density("multivariate_normal.logpdf", x, mean, cov)


def pdf(x: Any, mean: Any, cov: Any) -> Array:
    """Return the density, exp of `logpdf`.

    x: [..., n]; mean: [..., n]; cov: as of `logpdf`. Returns floats [...], of the dtype to which all are promoted.

    >>> tracer.scipy.stats.multivariate_normal.pdf(tnp.asarray([1.0, 2.0]), tnp.zeros(2), tnp.eye(2))
    Array(0.01306423, f64)
    """
    return exp(_log_density("multivariate_normal.pdf", x, mean, cov))


def _log_density(name: str, x: Any, mean: Any, cov: Any) -> Array:
    value, centre, spread = unified(name, [promoted_inexact(name, array_of(name, v))[0] for v in (x, mean, cov)])
    require_real(name, value.dtype, value, centre, spread)
    if not centre.ndim and not spread.ndim:
        return -0.5 * square(value - centre) / spread - 0.5 * (math.log(2 * math.pi) + log(spread))
    n = centre.shape[-1] if centre.ndim else 0
    apart = value - centre
    if not spread.ndim:
        return -0.5 * sum(square(apart), -1) / spread - 0.5 * n * (math.log(2 * math.pi) + log(spread))
    if not centre.ndim or spread.shape[-2:] != (n, n) or apart.shape[-1] != n:
        raise ShapeError(
            message(
                f"{name}{here()}: x and mean are [..., n], cov is [..., n, n]",
                f"got {value.type}, {centre.type} and {spread.type}",
            )
        )
    factor = linalg.cholesky(spread)
    batch = shape.broadcast(apart.shape[:-1], factor.shape[:-2], operation=f"{name}{here()}")
    lower = broadcast_to(factor, (*batch, n, n))
    scaled = solve_triangular(lower, broadcast_to(apart, (*batch, n))[..., None], lower=True)[..., 0]
    roots = sum(log(factor.diagonal(axis1=-2, axis2=-1)), -1)
    return -0.5 * sum(square(scaled), -1) - 0.5 * n * math.log(2 * math.pi) - roots


set_boundaries(globals())


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
