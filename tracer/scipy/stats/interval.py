"""Distributions on an interval: beta, truncated normal, uniform, and of angles von Mises and wrapped Cauchy."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.nn import log1mexp
from tracer.numpy import exp, inf, log, log1p, nan, sin, where
from tracer.scipy.incomplete_beta import incomplete_beta, incomplete_beta_rest
from tracer.scipy.normal import log_ndtr, ndtr
from tracer.scipy.saddle_points import log_beta_density
from tracer.scipy.special import cosm1, i0e
from tracer.scipy.stats.distribution import Distribution
from tracer.scipy.stats.standard import continuous
from tracer.trace.array import Array

BETA = Distribution(
    name="beta",
    summary="The beta distribution of shapes `a` and `b`, from `loc` to `loc + scale`.",
    parameters=("a", "b"),
    density="y^(a - 1) (1 - y)^(b - 1) / (B(a, b) scale)",
    formulas=continuous(
        valid=lambda a, b: (a > 0) & (b > 0), stand_ins=(1.0, 1.0), support=(0.0, 1.0), inside=0.5,
        logpdf=lambda y, a, b, scale: log_beta_density(a, b, y) - log(scale),
        cdf=lambda y, a, b: incomplete_beta(a, b, y),
        sf=lambda y, a, b: incomplete_beta_rest(a, b, y),
    ),
    examples={
        "tnp.asarray([0.25, 0.5]), 2.0, 3.0": {
            "logpdf": "[0.52324814, 0.40546511]",
            "pdf": "[1.6875, 1.5   ]",
            "cdf": "[0.26171875, 0.6875    ]",
            "logcdf": "[-1.34048483, -0.37469345]",
            "sf": "[0.73828125, 0.3125    ]",
            "logsf": "[-0.30343043, -1.16315081]",
        },
    },
)  # fmt: skip


def _middle(y: Array, low: Array, high: Array) -> Array:
    """Return a point between the bounds, either of which may be infinite."""
    endless = (low == -inf) & (high == inf)
    left, right = where(low == -inf, high - 1.0, low), where(high == inf, low + 1.0, high)
    return where(endless, 0.0, 0.5 * (where(endless, 0.0, left) + where(endless, 0.0, right)))


def _log_normal_mass(low: Array, high: Array) -> Array:
    """Return the logarithm of the normal probability from low to high, computed in the nearer tail."""
    right = low > 0
    far, near = where(right, -high, low), where(right, -low, high)  # both below 0, or one on each side of it
    central = near > 0
    one, other = where(central, -1.0, far), where(central, -0.5, near)
    upper = log_ndtr(other)
    empty = one == -inf
    tail = upper + where(empty, 0.0, log1mexp(upper - log_ndtr(where(empty, other - 1.0, one))))
    between = log1p(-(ndtr(where(central, far, -1.0)) + ndtr(-where(central, near, 1.0))))
    return where(central, between, tail)


def _log_truncated_normal(y: Array, low: Array, high: Array, scale: Array) -> Array:
    whole = _log_normal_mass(low, high)
    return -0.5 * y * y - 0.5 * math.log(2 * math.pi) - whole - log(scale)


def _log_truncated_below(y: Array, low: Array, high: Array) -> Array:
    whole = _log_normal_mass(low, high)
    log_rest = _log_normal_mass(y, high) - whole
    log_part = _log_normal_mass(low, y) - whole
    likely = (log_part > -0.1) & (log_rest < 0.0)
    return where(likely, log1p(-exp(where(likely, log_rest, -1.0))), log_part)


TRUNCNORM = Distribution(
    name="truncnorm",
    summary="The normal distribution around `loc` truncated to the interval from loc + `a` scale to loc + `b` scale.",
    parameters=("a", "b"),
    density="e^(-y²/2) / (√(2π) Z scale) for y from a to b,\nwhere Z is the normal probability from a to b",
    formulas=continuous(
        valid=lambda a, b: a < b, stand_ins=(-1.0, 1.0), support=lambda y, a, b: (a, b), inside=_middle,
        logpdf=_log_truncated_normal,
        logcdf=_log_truncated_below,
        logsf=lambda y, a, b: _log_truncated_below(-y, -b, -a),
    ),
    examples={
        "tnp.asarray([0.5, 2.0]), 0.0, 1.0": {
            "logpdf": "[0.03092379,       -inf]",
            "pdf": "[1.0314069, 0.       ]",
            "cdf": "[0.56090643, 1.        ]",
            "logcdf": "[-0.57820119,  0.        ]",
            "sf": "[0.43909357, 0.        ]",
            "logsf": "[-0.82304273,        -inf]",
        },
    },
)  # fmt: skip

UNIFORM = Distribution(
    name="uniform",
    summary="The uniform distribution from `loc` to `loc + scale`.",
    density="1 / scale for y from 0 to 1",
    formulas=continuous(
        support=(0.0, 1.0), inside=0.5,
        logpdf=lambda y, scale: 0.0 * y - log(scale),
        cdf=lambda y: y,
        ppf=lambda q: q,
    ),
    examples={
        "tnp.asarray([0.5, 9.0]), 0.0, 4.0": {
            "logpdf": "[-1.38629436,        -inf]",
            "pdf": "[0.25, 0.  ]",
            "cdf": "[0.125, 1.   ]",
        },
        "tnp.asarray([0.25, 1.0]), 1.0, 2.0": {"ppf": "[1.5, 3. ]"},
    },
)  # fmt: skip


def _log_von_mises(y: Array, kappa: Array, scale: Array) -> Array:
    return kappa * cosm1(y) - (log(2 * math.pi * i0e(kappa)) + log(scale))


VONMISES = Distribution(
    name="vonmises",
    summary="The von Mises distribution of angles around `loc`, of concentration `kappa`.",
    parameters=("kappa",),
    density="e^(kappa cos y) / (2π I0(kappa) scale)",
    formulas=continuous(
        valid=lambda kappa: kappa >= 0, stand_ins=(1.0,), outside=nan,
        logpdf=_log_von_mises,
    ),
    examples={
        "tnp.asarray([0.0, 2.0]), 1.0": {
            "logpdf": "[-1.07379142, -2.48993826]",
            "pdf": "[0.34171049, 0.08291509]",
        },
    },
)  # fmt: skip


def _log_wrapped_cauchy(y: Array, c: Array, scale: Any) -> Array:
    half = sin(0.5 * y)
    constant = log1p(-c) + log1p(c) - math.log(2 * math.pi) - log(scale)
    return constant - log((1.0 - c) ** 2 + 4.0 * c * half * half)


WRAPCAUCHY = Distribution(
    name="wrapcauchy",
    summary="The wrapped Cauchy distribution of angles from 0 to 2π, of concentration `c` between 0 and 1.",
    parameters=("c",),
    density="(1 - c²) / (2π (1 + c² - 2c cos y) scale) for y from 0 to 2π",
    formulas=continuous(
        valid=lambda c: (c > 0) & (c < 1), stand_ins=(0.5,), support=(0.0, 2 * math.pi), inside=1.0,
        logpdf=_log_wrapped_cauchy,
    ),
    examples={
        "tnp.asarray([0.0, 2.0]), 0.5": {
            "logpdf": "[-0.73926478, -2.63607282]",
            "pdf": "[0.47746483, 0.07164207]",
        },
    },
)  # fmt: skip

DISTRIBUTIONS = (BETA, TRUNCNORM, UNIFORM, VONMISES, WRAPCAUCHY)
