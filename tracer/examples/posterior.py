"""Bayesian logistic regression by Hamiltonian Monte Carlo: samples of the posterior, and how many they are worth.

Chains run as lanes of one compiled program. Neal 2011, Handbook of Markov Chain Monte Carlo, chapter 5; the step size
by dual averaging, Hoffman & Gelman 2014, J. Mach. Learn. Res. 15; the effective sample size by Geyer's initial monotone
sequence, Stat. Sci. 7(4), 1992, over all chains as in Gelman et al. 2013, Bayesian Data Analysis, section 11.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import jit, lax, nn, random, value_and_grad, vmap

ACCEPTANCE = 0.8  # the mean probability of acceptance that the step size aims at
FIRST_STEP = 0.1
LogDensity = Callable[[tracer.Array], tracer.Array]


class Samples(NamedTuple):
    """values: [chains, samples, d]; acceptance: mean probability of acceptance, [chains]; step: step size, [chains]."""

    values: tracer.Array
    acceptance: tracer.Array
    step: tracer.Array


def log_posterior(weights: tracer.Array, features: tracer.Array, labels: tracer.Array) -> tracer.Array:
    """Return the logarithm of the posterior density but for a constant, float [].

    weights: [1 + d], the first the intercept, each normal with variance 1 beforehand; features: [n, d], standardised;
    labels: [n], 0 or 1.
    """
    logits = weights[0] + features @ weights[1:]
    likelihood = tnp.sum(labels * logits - nn.softplus(logits))
    return likelihood - 0.5 * tnp.sum(weights**2)


def _step(
    log_density: LogDensity, key: tracer.Array, position: tracer.Array, size: tracer.Array, longest: int
) -> tuple[tracer.Array, tracer.Array]:
    """Return the next position, and the probability with which the proposal was accepted."""
    of_momentum, of_length, of_choice = random.split(key, 3)
    momentum = random.normal(of_momentum, position.shape, position.dtype)
    length = random.randint(of_length, (), 1, longest + 1)  # of another length each time, against periods
    density = value_and_grad(log_density)
    before, slope = density(position)

    def leap(
        _: tracer.Array, state: tuple[tracer.Array, tracer.Array, tracer.Array, tracer.Array]
    ) -> tuple[tracer.Array, tracer.Array, tracer.Array, tracer.Array]:
        x, p, _value, slope = state
        p = p + 0.5 * size * slope
        x = x + size * p
        value, slope = density(x)
        return x, p + 0.5 * size * slope, value, slope

    x, p, after, _ = lax.fori_loop(0, length, leap, (position, momentum, before, slope))
    gained = (after - 0.5 * tnp.sum(p**2)) - (before - 0.5 * tnp.sum(momentum**2))
    probability = tnp.exp(tnp.minimum(tnp.nan_to_num(gained, nan=-np.inf), 0.0))
    accepted = random.uniform(of_choice) < probability
    return tnp.where(accepted, x, position), probability


def _chain(
    log_density: LogDensity, key: tracer.Array, start: tracer.Array, warmup: int, samples: int, longest: int
) -> Samples:
    of_warmup, of_samples = random.split(key)

    def adapt(
        state: tuple[tracer.Array, tracer.Array, tracer.Array], item: tuple[tracer.Array, tracer.Array]
    ) -> tuple[tuple[tracer.Array, tracer.Array, tracer.Array], None]:
        (position, mean_error, mean_log), (t, key) = state, item
        log_size = np.log(10 * FIRST_STEP) - tnp.sqrt(t) / 0.05 * mean_error
        position, probability = _step(log_density, key, position, tnp.exp(log_size), longest)
        weight = 1 / (t + 10)
        mean_error = (1 - weight) * mean_error + weight * (ACCEPTANCE - probability)
        decay = t**-0.75
        return (position, mean_error, decay * log_size + (1 - decay) * mean_log), None

    counts = tnp.arange(1.0, warmup + 1)
    first = (start, tnp.asarray(0.0), tnp.asarray(np.log(FIRST_STEP)))
    (position, _, log_size), _ = lax.scan(adapt, first, (counts, random.split(of_warmup, warmup)))
    size = tnp.exp(log_size)

    def sample(position: tracer.Array, key: tracer.Array) -> tuple[tracer.Array, tuple[tracer.Array, tracer.Array]]:
        position, probability = _step(log_density, key, position, size, longest)
        return position, (position, probability)

    _, (values, probabilities) = lax.scan(sample, position, random.split(of_samples, samples))
    return Samples(values, tnp.mean(probabilities), size)


@jit(static_argnames=("chains", "warmup", "samples", "longest"))
def sample_posterior(
    key: tracer.Array,
    features: tracer.Array,
    labels: tracer.Array,
    *,
    chains: int = 4,
    warmup: int = 300,
    samples: int = 500,
    longest: int = 20,
) -> Samples:
    """Return samples of the weights' posterior, see `log_posterior`.

    warmup: steps that find the step size and are dropped; longest: bound of the leapfrog steps of a sample.
    """
    of_starts, of_chains = random.split(key)
    starts = 0.1 * random.normal(of_starts, (chains, features.shape[1] + 1), features.dtype)

    def one(key: tracer.Array, start: tracer.Array) -> Samples:
        return _chain(lambda w: log_posterior(w, features, labels), key, start, warmup, samples, longest)

    result: Samples = vmap(one)(random.split(of_chains, chains), starts)
    return result


@jit
def effective_sample_size(values: tracer.Array) -> tracer.Array:
    """Return how many independent samples would give means as good as these, float [d].

    values: [chains, samples, d]. Chains that disagree are worth little.
    """
    chains, samples, _ = values.shape
    centred = values - tnp.mean(values, axis=1, keepdims=True)
    modes = tnp.fft.rfft(centred, 2 * samples, axis=1)
    covariance = tnp.fft.irfft(tnp.abs(modes) ** 2, 2 * samples, axis=1)[:, :samples] / samples
    within = tnp.mean(covariance[:, 0], axis=0) * samples / (samples - 1)
    between = tnp.var(tnp.mean(values, axis=1), axis=0, ddof=1) if chains > 1 else 0.0
    total = within * (samples - 1) / samples + between
    correlation = 1 - (within - tnp.mean(covariance, axis=0)) / total
    correlation = correlation.at[0].set(1.0)
    pairs = correlation[: samples // 2 * 2].reshape(samples // 2, 2, -1).sum(axis=1)
    kept = lax.cummin(tnp.where(tnp.cumprod(pairs > 0, axis=0), pairs, 0.0), axis=0)
    return chains * samples / (2 * tnp.sum(kept, axis=0) - 1)
