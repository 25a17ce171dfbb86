"""Regression by a Gaussian process whose length, height and noise are learned from the data.

The marginal likelihood and its gradient go through a Cholesky factorisation. See Rasmussen & Williams 2006, Gaussian
Processes for Machine Learning, sections 2.2 and 5.4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import jit
from tracer.scipy import linalg, optimize


class Hyperparameters(NamedTuple):
    """height: standard deviation of the function; length: of its waves, in the unit of x; noise: standard deviation."""

    height: tracer.Array
    length: tracer.Array
    noise: tracer.Array


class Prediction(NamedTuple):
    """mean and standard deviation of the function, each float64 [m]."""

    mean: tracer.Array
    deviation: tracer.Array


def covariance(x: tracer.Array, y: tracer.Array, h: Hyperparameters) -> tracer.Array:
    """Return the function's covariance between places x, float64 [n], and y, float64 [m]: [n, m]."""
    kernel: tracer.Array = h.height**2 * tnp.exp(-0.5 * ((x[:, None] - y) / h.length) ** 2)
    return kernel


def log_likelihood(h: Hyperparameters, x: tracer.Array, y: tracer.Array) -> tracer.Array:
    """Return the logarithm of the density of values y, float64 [n], at places x, float64 [n]."""
    factor = tnp.linalg.cholesky(covariance(x, x, h) + h.noise**2 * tnp.eye(len(x)))
    white = linalg.solve_triangular(factor, y, lower=True)
    density: tracer.Array = (
        -0.5 * tnp.sum(white**2) - tnp.sum(tnp.log(tnp.diag(factor))) - 0.5 * len(x) * np.log(2 * np.pi)
    )
    return density


@jit
def learn(start: Hyperparameters, x: tracer.Array, y: tracer.Array) -> tuple[Hyperparameters, tracer.Array]:
    """Return the hyperparameters of maximum likelihood near `start`, and its logarithm, float64 []. By BFGS."""

    def loss(logs: tracer.Array) -> tracer.Array:
        return -log_likelihood(Hyperparameters(*tnp.exp(logs)), x, y)

    found = optimize.minimize(loss, tnp.log(tnp.stack(start)), method="BFGS")
    return Hyperparameters(*tnp.exp(found.x)), -found.fun


@jit
def predict(h: Hyperparameters, x: tracer.Array, y: tracer.Array, places: tracer.Array) -> Prediction:
    """Return the prediction from values y at x, float64 [n], of the function at `places`, float64 [m]."""
    factor = tnp.linalg.cholesky(covariance(x, x, h) + h.noise**2 * tnp.eye(len(x)))
    shared = covariance(x, places, h)
    mean = shared.T @ linalg.cho_solve((factor, True), y)
    explained = linalg.solve_triangular(factor, shared, lower=True)
    return Prediction(mean, tnp.sqrt(tnp.maximum(h.height**2 - tnp.sum(explained**2, axis=0), 0.0)))
