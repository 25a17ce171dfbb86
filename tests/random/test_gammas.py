"""Distributions made of gamma samples: derivatives by their parameters; counts: their moments, and odd parameters."""

from __future__ import annotations

import numpy as np
import scipy.special

import tracer
from tracer import random

KEY = random.key(7)


def test_samples_of_gamma_move_with_their_quantile() -> None:
    a = np.array([0.05, 0.5, 1.0, 4.0, 50.0])
    samples = np.asarray(random.gamma(KEY, a))
    below, step = scipy.special.gammainc(a, samples), 1e-5
    moved = [scipy.special.gammaincinv(a * (1 + s), below) for s in (-step, step)]
    wanted = (moved[1] - moved[0]) / (2 * step * a)
    np.testing.assert_allclose(tracer.grad(lambda a: random.gamma(KEY, a).sum())(a), wanted, rtol=1e-6)
    logarithms = tracer.grad(lambda a: random.loggamma(KEY, a).sum())(a)
    np.testing.assert_allclose(logarithms, wanted / samples, rtol=1e-6)


def test_logarithms_of_tiny_samples_have_finite_derivatives() -> None:
    a = np.full(20, 1e-4)
    samples, slopes = random.loggamma(KEY, a), tracer.grad(lambda a: random.loggamma(KEY, a).sum())(a)
    # far below 1, P(a, x) is x^a, so that log x = log P / a
    np.testing.assert_allclose(slopes, -np.asarray(samples) / a, rtol=1e-3)


def test_the_mean_of_beta_has_its_derivative() -> None:
    mean = lambda a: random.beta(KEY, a, 3.0, (40_000,)).mean()  # noqa: E731
    np.testing.assert_allclose(mean(2.0), 2 / 5, atol=3e-3)
    np.testing.assert_allclose(tracer.grad(mean)(2.0), 3 / 25, atol=3e-3)


def test_counts_have_their_means_and_variances() -> None:
    for rate in (0.5, 9.0, 11.0, 1e6):
        counts = np.asarray(random.poisson(KEY, rate, (40_000,)))
        assert abs(counts.mean() - rate) < 5 * (rate / 40_000) ** 0.5
        assert abs(counts.var() / rate - 1) < 5 * ((2 + 1 / rate) / 40_000) ** 0.5
    for n, p in ((10, 0.3), (1000, 0.3), (1000, 0.9), (10**6, 0.5)):
        counts, variance = np.asarray(random.binomial(KEY, n, p, (40_000,))), n * p * (1 - p)
        assert abs(counts.mean() - n * p) < 5 * (variance / 40_000) ** 0.5
        assert abs(counts.var() / variance - 1) < 5 * (2.1 / 40_000) ** 0.5


def test_counts_of_impossible_parameters() -> None:
    n, p = np.array([np.inf, np.inf, np.nan, 4.0, 4.0, 4.0]), np.array([0.0, 0.3, 0.3, np.nan, -0.1, 1.1])
    np.testing.assert_array_equal(random.binomial(KEY, n, p), [np.inf, np.inf, *[np.nan] * 4])
    np.testing.assert_array_equal(random.poisson(KEY, np.array([np.nan, -1.0, 0.0])), [-1, -1, 0])


def test_multinomial_counts_sum_to_the_trials() -> None:
    counts = np.asarray(random.multinomial(KEY, np.array([200.0, 7.0]), np.array([0.5, 0.0, 0.2, 0.3]), shape=(2, 4)))
    np.testing.assert_array_equal(counts.sum(1), [200, 7])
    assert (counts[:, 1] == 0).all()
