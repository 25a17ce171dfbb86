"""Kernel density estimates of samples: `gaussian_kde`. Scott 1992, Multivariate Density Estimation, chapter 6."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any, NoReturn

from tracer import random
from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir.dtypes import is_inexact
from tracer.numpy import (
    atleast_1d,
    atleast_2d,
    cov,
    diagonal,
    dot,
    exp,
    full,
    linalg,
    log,
    result_type,
    sqrt,
    square,
    squeeze,
    sum,
)
from tracer.numpy.core.conversion import array_of, inexact_dtype
from tracer.numpy.core.promotion import require_real
from tracer.once import once
from tracer.scipy.linalg import cho_factor, cho_solve
from tracer.scipy.normal import ndtr
from tracer.scipy.special import logsumexp
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import set_method_boundaries
from tracer.tree_util import register_pytree_node_class


class gaussian_kde:  # noqa: N801  # JAX's name
    """A density estimate: the mean of normal distributions around samples, with a scaled covariance of the samples.

    dataset: real numbers [d, n], or [n] in one dimension: n samples, more than one. bw_method: "scott", by default, or
    "silverman"; a factor of standard deviations; or a function of this object that returns one. weights: [n], of the
    samples. The object is a tree of its arrays. Raises ShapeError and ArgumentError for arguments that do not fit.

    >>> density = tracer.scipy.stats.gaussian_kde(tnp.asarray([1.0, 2.0, 4.0]))
    >>> density(tnp.asarray([1.5, 10.0]))
    Array([2.13165758e-01, 6.85740401e-07], f64)
    >>> density.integrate_box_1d(-tnp.inf, tnp.inf)
    Array(1., f64)
    """

    dataset: Array
    weights: Array
    neff: Any
    covariance: Array
    inv_cov: Array

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        _as_tree()
        samples = atleast_2d(array_of(_NAME, dataset))
        if samples.ndim != 2 or samples.size < 2:
            raise _refused(ShapeError, "a dataset holds samples [d, n], more than one", f"got {samples.type}")
        dimensions, count = samples.shape
        if weights is None:
            (self.dataset,) = _alike(samples)
            self.weights = full(count, 1 / count, self.dataset.dtype)
        else:
            self.dataset, given = _alike(samples, atleast_1d(array_of(_NAME, weights)))
            if given.shape != (count,):
                raise _refused(ShapeError, f"a weight for each of the {count} samples", f"got {given.type}")
            self.weights = given / sum(given)
        self.neff = 1 / sum(square(self.weights))
        factor = self._factor(bw_method, dimensions)
        spread = atleast_2d(cov(self.dataset, aweights=self.weights))
        self.covariance, self.inv_cov = spread * factor**2, linalg.inv(spread) / factor**2

    def _factor(self, method: Any, dimensions: int) -> Any:
        if method is None or (isinstance(method, str) and method == "scott"):
            return self.neff ** (-1 / (dimensions + 4))
        if isinstance(method, str) and method == "silverman":
            return (self.neff * (dimensions + 2) / 4) ** (-1 / (dimensions + 4))
        if callable(method):
            return method(self)
        if isinstance(method, str) or array_of(_NAME, method).ndim:
            text = 'bw_method is "scott", "silverman", a number, or a function'
            raise _refused(ArgumentError, text, f"got {method!r}")
        return method

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Return the arrays and the auxiliary data, as a pytree node."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> gaussian_kde:
        """Return a density of such arrays."""
        made = cls.__new__(cls)
        made.neff, made.dataset, made.weights, made.covariance, made.inv_cov = children
        return made

    @property
    def d(self) -> int:
        """The dimension of the samples."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    def evaluate(self, points: Any) -> Array:
        """Return the density at points [d, m], or [m] in one dimension: floats [m]."""
        return exp(self.logpdf(points))

    __call__ = evaluate

    def pdf(self, x: Any) -> Array:
        """Return `evaluate` of points."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Array:
        """Return the logarithm of the density, finite even where the density underflows."""
        points, samples, precision, weights = _alike(self._points(x), self.dataset, self.inv_cov, self.weights)
        turn = linalg.cholesky(precision).mT
        apart = dot(turn, points)[:, :, None] - dot(turn, samples)[:, None, :]
        scale = sum(log(diagonal(turn))) - 0.5 * self.d * math.log(2 * math.pi)
        return logsumexp(log(weights) - 0.5 * sum(square(apart), 0), axis=-1) + scale

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """Return the integral of the density times a normal density of a mean [d] and a covariance [d, d]."""
        centre, spread = atleast_1d(squeeze(array_of(_NAME, mean))), atleast_2d(array_of(_NAME, cov))
        if centre.shape != (self.d,) or spread.shape != (self.d, self.d):
            expected = f"expected [{self.d}] and [{self.d},{self.d}]"
            raise _refused(ShapeError, f"a mean and a covariance; {expected}", f"got {centre.type} and {spread.type}")
        return sum(_overlaps(self, centre[:, None], spread)[:, 0] * self.weights)

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """Return the probability between two numbers, in one dimension."""
        low, high = array_of(_NAME, low), array_of(_NAME, high)
        if self.d != 1 or low.ndim or high.ndim:
            text = "integrate_box_1d takes two numbers, of a density of one dimension"
            raise _refused(ShapeError, text, f"got {low.type} and {high.type} for {self.d} dimensions")
        deviation = sqrt(self.covariance)[0, 0]
        below, above = ((limit - self.dataset[0]) / deviation for limit in (low, high))
        return sum(self.weights * (ndtr(above) - ndtr(below)))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Return the integral of the product with another density estimate."""
        if other.d != self.d:
            raise _refused(ShapeError, "both densities have one dimension", f"got {self.d} and {other.d}")
        return dot(self.weights, dot(_overlaps(self, other.dataset, other.covariance), other.weights))

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> NoReturn:
        """Raise ArgumentError: as in JAX, there is only `integrate_box_1d`."""
        raise _refused(ArgumentError, "boxes have one dimension", "got more", "integrate_box_1d(low, high)")

    def set_bandwidth(self, bw_method: Any = None) -> NoReturn:
        """Raise ArgumentError: a density is immutable."""
        raise _refused(
            ArgumentError, "a density keeps its bandwidth", f"got {bw_method!r}", "gaussian_kde(dataset, bw_method)"
        )

    def resample(self, key: Any, shape: Any = ()) -> Array:
        """Draw samples [d, *shape]: elements of the dataset by weight, plus noise of the covariance. Equal to JAX's."""
        first, second = random.split(key)
        chosen = random.choice(first, self.n, shape=shape, p=self.weights)
        centre = full(self.d, 0, self.covariance.dtype)
        noise = random.multivariate_normal(second, centre, self.covariance, shape=shape, dtype=self.dataset.dtype)
        return self.dataset[:, chosen] + noise.T

    def _points(self, points: Any) -> Array:
        given = atleast_2d(array_of(_NAME, points))
        if given.shape == (1, self.d) and self.d != 1:
            return given.T
        if given.ndim != 2 or given.shape[0] != self.d:
            raise _refused(ShapeError, f"points are [{self.d}, m], as the samples are", f"got {given.type}")
        return given


_NAME = "gaussian_kde"


def _alike(*arrays: Array) -> list[Array]:
    """Return real numbers as floats of one dtype."""
    for x in arrays:
        require_real(_NAME, x.dtype, x)
    dtype = result_type(*arrays)
    wanted = dtype if is_inexact(dtype) else inexact_dtype(dtype)
    return [x.astype(wanted) for x in arrays]


@once
def _as_tree() -> None:
    register_pytree_node_class(gaussian_kde)


def _overlaps(density: gaussian_kde, centres: Any, spread: Any) -> Array:
    """Return the integrals of products of normal densities, around samples and around centres [d, m]: [n, m]."""
    samples, others, joint = _alike(density.dataset, centres, density.covariance + spread)
    factor = cho_factor(joint, lower=True)
    apart = samples[:, :, None] - others[:, None, :]
    flat = apart.reshape(density.d, -1)
    distances = sum(flat * cho_solve(factor, flat), 0).reshape(apart.shape[1:])
    return exp(-0.5 * distances - sum(log(diagonal(factor[0]))) - 0.5 * density.d * math.log(2 * math.pi))


def _refused(kind: type[Exception], reason: str, got: str, remedy: str | None = None) -> Exception:
    return kind(message(f"{_NAME}{here()}: {reason}", got, help=remedy))


set_method_boundaries(gaussian_kde)
