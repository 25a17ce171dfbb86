"""Logarithms of gamma, beta and binomial densities, without cancellation for large parameters.

Factorials are computed by the remainder R of Stirling's formula. Large terms of factorials and powers are combined as
deviances (Loader 2000, Fast and Accurate Computation of Binomial Probabilities). With c = a + b, y = 1 - x and the
deviance D(a, m) = a log(a / m) - a + m,

    log(m^k e^-m / k!)     = -D(k, m) - log(2π k) / 2 - R(k)
    log(x^a y^b / B(a, b)) = -D(a, c x) - D(b, c y) - log(2π c / (a b)) / 2 - R(a) - R(b) + R(c)
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math

from tracer.numpy import inf, log, log1p, where, zeros_like
from tracer.primitives.elementwise import special
from tracer.scipy.entropies import kl_div, xlog1py, xlogy
from tracer.trace.array import Array
from tracer.transforms.custom.derivatives import custom_jvp

_LARGE = 16.0  # above, the series of six terms is exact: the seventh is 1e-18
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
_HALF_LOG = 0.5 * math.log(2 * math.pi)


def remainder(x: Array) -> Array:
    """Return log Γ(x) - (x - 1/2) log x + x - log(2π) / 2, for positive x."""
    large = x >= _LARGE
    inverse = 1.0 / where(large, x, _LARGE)
    square = inverse * inverse
    series = square * _SERIES[-1]
    for coefficient in _SERIES[-2:0:-1]:
        series = (series + coefficient) * square
    small = where(large, 1.0, x)
    direct = special.lgamma(small) - ((small - 0.5) * log(small) - small + _HALF_LOG)
    return where(large, (series + _SERIES[0]) * inverse, direct)


def log_poisson(k: Array, mean: Array) -> Array:
    """Return log(mean^k e^-mean / Γ(k + 1)) for real k >= 0 and mean >= 0."""
    large = k >= _LARGE
    few, many = where(large, 1.0, k), where(large, k, _LARGE)
    little, much = where(large, 1.0, mean), where(large, mean, 1.0)
    direct = xlogy(few, little) - little - special.lgamma(few + 1.0)
    return where(large, -kl_div(many, much) - 0.5 * log(many) - _HALF_LOG - remainder(many), direct)


def log_gamma_density(a: Array, x: Array) -> Array:
    """Return log(x^(a - 1) e^-x / Γ(a)) for a > 0 and x >= 0."""
    large = a >= _LARGE + 1.0
    low, near = where(large, 1.0, a), where(large, 1.0, x)
    direct = xlogy(low - 1.0, near) - near - special.lgamma(low)
    return where(large, log_poisson(where(large, a - 1.0, _LARGE), where(large, x, 1.0)), direct)


def log_beta(a: Array, b: Array) -> Array:
    """Return log B(a, b), for positive a and b."""
    c = a + b
    powers = a * _log_ratio(b, a) + b * _log_ratio(a, b)
    return remainder(a) + remainder(b) - remainder(c) - powers + 0.5 * (log(c) - log(a) - log(b)) + _HALF_LOG


def _log_ratio(b: Array, a: Array) -> Array:
    """Return log((a + b) / a)."""
    ratio = b / a
    fits = ratio < inf
    return where(fits, log1p(where(fits, ratio, 1.0)), log(b) - log(a))


def log_beta_weight(a: Array, b: Array, x: Array, y: Array) -> Array:
    """Return log(x^a y^b / B(a, b)), for positive a and b, and x + y = 1."""
    c = a + b
    deviance = kl_div(a, c * x) + kl_div(b, c * y)
    return remainder(c) - remainder(a) - remainder(b) - deviance + 0.5 * (log(a) + log(b) - log(c)) - _HALF_LOG


def log_beta_density(a: Array, b: Array, x: Array) -> Array:
    """Return log(x^(a - 1) (1 - x)^(b - 1) / B(a, b)), for positive a and b, and x from 0 to 1."""
    direct = xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - log_beta(a, b)
    weighed = ((a >= _LARGE) | (b >= _LARGE)) & (x > 0) & (x < 1)
    inner = where(weighed, x, 0.5)
    return where(weighed, log_beta_weight(a, b, inner, 1.0 - inner) - log(inner) - log1p(-inner), direct)


@custom_jvp
def _log_ways_of_one(a: Array, b: Array) -> Array:
    """Return log(Γ(a + b) / (Γ(a) Γ(b + 1))) where b is 0 or a is 1: 0, with the derivatives of the formula."""
    return zeros_like(a)


_log_ways_of_one.defjvps(
    lambda da, _, a, b: da * (special.digamma(a + b) - special.digamma(a)),
    lambda db, _, a, b: db * (special.digamma(a + b) - special.digamma(b + 1.0)),
)


def log_binomial(k: Array, n: Array, p: Array) -> Array:
    """Return the logarithm of the probability of k successes in n trials of probability p, for 0 <= k <= n."""
    inner = (k > 0) & (k < n)
    several, others, chance = where(inner, k, 1.0), where(inner, n - k, 1.0), where(inner, p, 0.5)
    ways = log_beta_weight(several, others, chance, 1.0 - chance) - log(several) - log(others) + log(several + others)
    one, rest, odds = where(inner, 0.0, k), where(inner, 1.0, n - k), where(inner, 0.5, p)
    return where(inner, ways, xlogy(one, odds) + xlog1py(rest, -odds) + _log_ways_of_one(rest + 1.0, one))


def log_negative_binomial(k: Array, n: Array, p: Array) -> Array:
    """Return the logarithm of the probability of k failures before the n-th success, for k >= 0 and n > 0."""
    some = k > 0
    several, chance = where(some, k, 1.0), where(some, p, 0.5)
    none, odds = where(some, 0.0, k), where(some, 0.5, p)
    at_once = n * log(p) + xlog1py(none, -odds) + _log_ways_of_one(n, none)
    return where(some, log_beta_weight(n, several, chance, 1.0 - chance) - log(several), at_once)
