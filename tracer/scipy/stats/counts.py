"""Distributions of counts: Bernoulli, beta-binomial, binomial, geometric, negative binomial and Poisson."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.lax import fori_loop, igammac
from tracer.numpy import exp, floor, inf, log, log1p, nan, where, zeros_like
from tracer.primitives.elementwise import special
from tracer.scipy.entropies import xlog1py, xlogy
from tracer.scipy.saddle_points import log_beta, log_binomial, log_negative_binomial, log_poisson
from tracer.scipy.stats.distribution import Distribution
from tracer.scipy.stats.standard import discrete
from tracer.trace.array import Array

BERNOULLI = Distribution(
    name="bernoulli",
    summary="The Bernoulli distribution: `loc + 1` with probability `p`, else `loc`.",
    parameters=("p",),
    density="p for y = 1 and 1 - p for y = 0",
    formulas=discrete(
        valid=lambda p: (p >= 0) & (p <= 1), stand_ins=(0.5,), support=(0.0, 1.0),
        logpmf=lambda y, p: xlogy(y, p) + xlog1py(1.0 - y, -p),
        cdf=lambda y, p: where(y < 1, 1.0 - p, 1.0),
        ppf=lambda q, p: where(q == 0, -1.0, where(q <= 1.0 - p, 0.0, 1.0)),
    ),
    examples={
        "tnp.asarray([0, 1, 2]), 0.25": {
            "logpmf": "[-0.28768207, -1.38629436,        -inf]",
            "pmf": "[0.75, 0.25, 0.  ]",
        },
        "tnp.asarray([-1, 0, 1]), 0.25": {"cdf": "[0.  , 0.75, 1.  ]"},
        "tnp.asarray([0.5, 0.8]), 0.25": {"ppf": "[0., 1.]"},
    },
)  # fmt: skip


def _log_beta_binomial(y: Array, n: Array, a: Array, b: Array) -> Array:
    ways = -log1p(n) - log_beta(n - y + 1.0, y + 1.0)
    return ways + log_beta(y + a, n - y + b) - log_beta(a, b)


BETABINOM = Distribution(
    name="betabinom",
    summary="The beta-binomial distribution: `binom` whose probability has the beta distribution of `a` and `b`.",
    parameters=("n", "a", "b"),
    density="C(n, y) B(y + a, n - y + b) / B(a, b) for whole y from 0 to n",
    formulas=discrete(
        valid=lambda n, a, b: (n >= 0) & (floor(n) == n) & (a > 0) & (b > 0), stand_ins=(1.0, 1.0, 1.0),
        support=lambda y, n, a, b: (0.0, n),
        logpmf=_log_beta_binomial,
    ),
    examples={
        "tnp.asarray([0, 1, 2]), 4, 2.0, 3.0": {
            "logpmf": "[-1.54044504, -1.25276297, -1.35812348]",
            "pmf": "[0.21428571, 0.28571429, 0.25714286]",
        },
    },
)  # fmt: skip

BINOM = Distribution(
    name="binom",
    summary="The binomial distribution: how many of `n` events happen, each with probability `p`, plus `loc`.",
    parameters=("n", "p"),
    density="C(n, y) p^y (1 - p)^(n - y) for whole y from 0 to n",
    formulas=discrete(
        valid=lambda n, p: (n >= 0) & (floor(n) == n) & (p >= 0) & (p <= 1), stand_ins=(1.0, 0.5),
        support=lambda y, n, p: (0.0, n),
        logpmf=log_binomial,
    ),
    examples={
        "tnp.asarray([0, 1, 2]), 4, 0.25": {
            "logpmf": "[-1.15072829, -0.86304622, -1.5561934 ]",
            "pmf": "[0.31640625, 0.421875  , 0.2109375 ]",
        },
    },
)  # fmt: skip

GEOM = Distribution(
    name="geom",
    summary="The geometric distribution: the index of the first success, each with probability `p`, plus `loc`.",
    parameters=("p",),
    density="p (1 - p)^(y - 1) for whole y from 1 on",
    formulas=discrete(
        valid=lambda p: (p > 0) & (p <= 1), stand_ins=(0.5,), support=(1.0, inf),
        logpmf=lambda y, p: xlog1py(y - 1.0, -p) + log(p),
    ),
    examples={
        "tnp.asarray([0, 1, 2]), 0.25": {
            "logpmf": "[       -inf, -1.38629436, -1.67397643]",
            "pmf": "[0.    , 0.25  , 0.1875]",
        },
    },
)  # fmt: skip

NBINOM = Distribution(
    name="nbinom",
    summary="The negative binomial distribution: failures before the `n`-th success, each with probability `p`.",
    parameters=("n", "p"),
    density="Γ(y + n) / (Γ(n) y!) p^n (1 - p)^y for whole y from 0 on and any n > 0",
    formulas=discrete(
        valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1), stand_ins=(1.0, 0.5), logpmf=log_negative_binomial
    ),
    examples={
        "tnp.asarray([0, 1, 2]), 4, 0.25": {
            "logpmf": "[-5.54517744, -4.44656516, -3.8179565 ]",
            "pmf": "[0.00390625, 0.01171875, 0.02197266]",
        },
    },
)

_LARGE = 100.0
_COUNTS = 230  # beyond it the probability is 1e-25 at a mean of 100
_EXPANSION = (-1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520)  # by powers of 1 / mu


def _poisson_entropy(mu: Array, loc: Array) -> Array:
    """Return mu - mu log(mu) + E log(k!) summed; for large mu its expansion in 1 / mu, whose next term is 2e-12."""
    large = mu > _LARGE
    few, many = where(large | ~(mu >= 0), 1.0, mu), where(large, mu, _LARGE)

    def term(k: Any, total: Array) -> Array:
        count = k.astype(few.dtype)
        return total + exp(log_poisson(count, few)) * special.lgamma(count + 1.0)

    series = zeros_like(many)
    for coefficient in _EXPANSION[::-1]:
        series = (series + coefficient) / many
    wide = 0.5 * log(2 * math.pi * math.e * many) + series
    summed = few - xlogy(few, few) + fori_loop(2, _COUNTS, term, zeros_like(few))
    return where(mu >= 0, where(large, wide, summed) + 0.0 * loc, nan)


POISSON = Distribution(
    name="poisson",
    summary="Poisson's distribution of mean `mu`, plus `loc`.",
    parameters=("mu",),
    density="mu^y e^-mu / y! for whole y from 0 on",
    formulas=discrete(
        valid=lambda mu: mu >= 0, stand_ins=(1.0,),
        logpmf=log_poisson,
        cdf=lambda y, mu: igammac(floor(y) + 1.0, mu),
    ) | {"entropy": _poisson_entropy},
    examples={
        "tnp.asarray([0, 1, 2]), 1.5": {
            "logpmf": "[-1.5       , -1.09453489, -1.38221696]",
            "pmf": "[0.22313016, 0.33469524, 0.25102143]",
            "cdf": "[0.22313016, 0.5578254 , 0.80884683]",
        },
        "tnp.asarray([0.0, 1.0, 1000.0])": {"entropy": "[0.        , 1.30484224, 4.8727328 ]"},
    },
)  # fmt: skip

DISTRIBUTIONS = (BERNOULLI, BETABINOM, BINOM, GEOM, NBINOM, POISSON)
