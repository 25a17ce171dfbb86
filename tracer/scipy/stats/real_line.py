"""Distributions on the real line: Cauchy, generalised normal, Gumbel, Laplace, logistic, normal and Student's t."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.lax import igammac
from tracer.nn import log1mexp
from tracer.numpy import absolute, arctan2, exp, expm1, finfo, inf, log, log1p, ones_like, power, square, tan, where
from tracer.numpy.core.promotion import promoted_real
from tracer.primitives.elementwise import special
from tracer.scipy.normal import log_ndtr, ndtr, ndtri
from tracer.scipy.saddle_points import log_beta
from tracer.scipy.special import expit
from tracer.scipy.stats.distribution import Distribution
from tracer.scipy.stats.standard import Formula, continuous, log1p_square, mirrored
from tracer.trace.array import Array


def _cauchy_below(y: Array) -> Array:
    """Return the probability of at most y, by the angle of (-y, 1): exact for large |y|."""
    return arctan2(ones_like(y), -y) / math.pi


def _tangent(q: Array) -> Array:
    """Return tan(π (q - 1/2)), exact at both ends."""
    low, high = q < 0.25, q > 0.75
    end = where(low, q, where(high, 1.0 - q, 0.5))
    steep = where(end > 0, 1.0 / tan(math.pi * where(end > 0, end, 0.5)), inf)
    middle = tan(math.pi * (where(low | high, 0.5, q) - 0.5))
    return where(low, -steep, where(high, steep, middle))


CAUCHY = Distribution(
    name="cauchy",
    summary="The Cauchy distribution around `loc`, with half its width at half its height `scale`.",
    density="1 / (π scale (1 + y²))",
    formulas=continuous(
        logpdf=lambda y, scale: -log1p_square(y, 1.0) - log(math.pi * scale),
        cdf=_cauchy_below,
        sf=lambda y: _cauchy_below(-y),
        ppf=_tangent,
        isf=lambda q: -_tangent(q),
    ),
    examples={
        "tnp.asarray([0.0, 2.0])": {
            "logpdf": "[-1.14472989, -2.7541678 ]",
            "pdf": "[0.31830989, 0.06366198]",
        },
        "tnp.asarray([-1e20, 0.0])": {
            "cdf": "[3.18309886e-21, 5.00000000e-01]",
            "logcdf": "[-47.19643175,  -0.69314718]",
        },
        "tnp.asarray([0.0, 1e20])": {
            "sf": "[5.00000000e-01, 3.18309886e-21]",
            "logsf": "[ -0.69314718, -47.19643175]",
        },
        "tnp.asarray([1e-20, 0.5])": {
            "ppf": "[-3.18309886e+19,  0.00000000e+00]",
            "isf": "[3.18309886e+19, 0.00000000e+00]",
        },
    },
)


def _generalised_below(y: Array, beta: Array) -> Array:
    centre = y == 0
    tail = 0.5 * igammac(1.0 / beta, power(absolute(where(centre, 1.0, y)), beta))
    rise = 0.5 * y * exp(-special.lgamma(1.0 + 1.0 / beta))  # at 0 igammac's slope is infinite, and |y|'s is 0
    return where(centre, 0.5 + rise, where(y < 0, tail, 1.0 - tail))


GENNORM = Distribution(
    name="gennorm",
    summary="The generalised normal distribution of exponent `beta`: `laplace` for 1, normal for 2.",
    parameters=("beta",),
    density="beta e^(-|y|^beta) / (2 Γ(1/beta) scale)",
    formulas=continuous(
        valid=lambda beta: beta > 0, stand_ins=(1.0,), inside=1.0,
        logpdf=lambda y, beta, scale: (
            -special.lgamma(1.0 + 1.0 / beta) - power(absolute(y), beta) - log(2.0 * scale)
        ),
        cdf=_generalised_below,
    ),
    examples={
        "tnp.asarray([0.0, -2.0]), 1.0": {
            "logpdf": "[-0.69314718, -2.69314718]",
            "pdf": "[0.5       , 0.06766764]",
            "cdf": "[0.5       , 0.06766764]",
        },
    },
)  # fmt: skip


def _log_gumbel_rest(y: Array) -> Array:
    """Return log(1 - exp(-exp(-y))), which is -y where exp(-y) is negligible beside 1."""
    high = y > 40.0
    return where(high, -y, log1mexp(exp(-where(high, 0.0, y))))


GUMBEL_R = Distribution(
    name="gumbel_r",
    summary="Gumbel's distribution of the largest of many, with its mode at `loc`, in units of `scale`.",
    density="e^(-y - e^-y) / scale",
    formulas=continuous(
        support=lambda y: (-math.log(float(finfo(y.dtype).max)), inf),  # exp(-y) overflows below
        logpdf=lambda y, scale: -y - exp(-y) - log(scale),
        cdf=lambda y: exp(-exp(-y)),
        logcdf=lambda y: -exp(-y),
        sf=lambda y: -expm1(-exp(-y)),
        logsf=_log_gumbel_rest,
        ppf=lambda p: -log(-log(p)),
    ),
    examples={
        "tnp.asarray([0.0, 40.0])": {
            "logpdf": "[ -1., -40.]",
            "pdf": "[3.67879441e-01, 4.24835426e-18]",
            "cdf": "[0.36787944, 1.        ]",
            "logcdf": "[-1.00000000e+00, -4.24835426e-18]",
            "sf": "[6.32120559e-01, 4.24835426e-18]",
            "logsf": "[ -0.45867515, -40.        ]",
        },
        "tnp.asarray([0.5, 0.75])": {"ppf": "[0.36651292, 1.24589932]"},
    },
    quantile="p",
)

GUMBEL_L = Distribution(
    name="gumbel_l",
    summary="Gumbel's distribution of the smallest of many, with its mode at `loc`: `gumbel_r` of -x around -loc.",
    density="e^(y - e^y) / scale",
    formulas=mirrored(dict(GUMBEL_R.formulas)) | continuous(ppf=lambda p: log(-log1p(-p))),
    examples={
        "tnp.asarray([0.0, -40.0])": {
            "logpdf": "[ -1., -40.]",
            "pdf": "[3.67879441e-01, 4.24835426e-18]",
            "cdf": "[6.32120559e-01, 4.24835426e-18]",
            "logcdf": "[ -0.45867515, -40.        ]",
            "sf": "[0.36787944, 1.        ]",
            "logsf": "[-1.00000000e+00, -4.24835426e-18]",
        },
        "tnp.asarray([0.5, 0.75])": {"ppf": "[-0.36651292,  0.32663426]"},
    },
    quantile="p",
)


def _laplace_below(y: Array) -> Array:
    tail = 0.5 * exp(-absolute(y))
    return where(y < 0, tail, 1.0 - tail)


LAPLACE = Distribution(
    name="laplace",
    summary="The Laplace distribution around `loc`, with mean distance `scale` from it.",
    density="e^-|y| / (2 scale)",
    formulas=continuous(logpdf=lambda y, scale: -absolute(y) - log(2.0 * scale), cdf=_laplace_below),
    examples={
        "tnp.asarray([0.0, -2.0])": {
            "logpdf": "[-0.69314718, -2.69314718]",
            "pdf": "[0.5       , 0.06766764]",
            "cdf": "[0.5       , 0.06766764]",
        },
    },
)


def _log_logistic(y: Array, scale: Array) -> Array:
    size = absolute(y)
    return -size - 2.0 * log1p(exp(-size)) - log(scale)


LOGISTIC = Distribution(
    name="logistic",
    summary="The logistic distribution around `loc`, in units of `scale`.",
    density="e^-y / (scale (1 + e^-y)²)",
    formulas=continuous(
        logpdf=_log_logistic,
        cdf=expit,
        sf=lambda y: expit(-y),
        ppf=lambda q: log(q) - log1p(-q),
        isf=lambda q: log1p(-q) - log(q),
    ),
    examples={
        "tnp.asarray([0.0, -2.0])": {
            "logpdf": "[-1.38629436, -2.25385602]",
            "pdf": "[0.25      , 0.10499359]",
            "cdf": "[0.5       , 0.11920292]",
        },
        "tnp.asarray([0.0, 50.0])": {"sf": "[5.00000000e-01, 1.92874985e-22]"},
        "tnp.asarray([0.5, 0.75])": {
            "ppf": "[0.        , 1.09861229]",
            "isf": "[ 0.        , -1.09861229]",
        },
    },
    quantile="x",
)


def _as_given(formula: Formula, name: str, *values: Any) -> Array:
    """Return the formula of promoted values, in their own dtype and shapes: numbers stay numbers."""
    return formula(*(x if isinstance(x, Array) else x.value for x in promoted_real(name, *values)))


NORM = Distribution(
    name="norm",
    summary="The normal distribution with mean `loc` and standard deviation `scale`.",
    density="e^(-y²/2) / (√(2π) scale)",
    formulas={
        "logpdf": lambda x, loc, scale: (
            -0.5 * square((x - loc) / scale) - (0.5 * math.log(2 * math.pi) + log(scale))
        ),
        "cdf": lambda x, loc, scale: ndtr((x - loc) / scale),
        "logcdf": lambda x, loc, scale: log_ndtr((x - loc) / scale),
        "sf": lambda x, loc, scale: ndtr(-((x - loc) / scale)),
        "logsf": lambda x, loc, scale: log_ndtr(-((x - loc) / scale)),
        "ppf": lambda q, loc, scale: ndtri(q) * scale + loc,
        "isf": lambda q, loc, scale: -ndtri(q) * scale + loc,
    },
    examples={
        "0.0": {
            "logpdf": "-0.91893853",
            "pdf": "0.39894228",
            "cdf": "0.5",
            "logcdf": "-0.69314718",
            "sf": "0.5",
            "logsf": "-0.69314718",
        },
        "0.5": {"ppf": "0.", "isf": "0."},
    },
    evaluate=_as_given,
)  # fmt: skip


def _log_student(y: Array, df: Array, scale: Array) -> Array:
    """Return the logarithm of the density, the normal one for infinite df."""
    endless = df == inf
    v = where(endless, 1.0, df)
    student = -log_beta(0.5 * ones_like(v), 0.5 * v) - 0.5 * log(v) - 0.5 * (v + 1.0) * log1p_square(y, v)
    return where(endless, -0.5 * y * y - 0.5 * math.log(2 * math.pi), student) - log(scale)


T = Distribution(
    name="t",
    summary="Student's t distribution of `df` degrees of freedom, around `loc`, in units of `scale`.",
    parameters=("df",),
    density="(1 + y²/df)^(-(df + 1)/2) / (√df B(1/2, df/2) scale)",
    formulas=continuous(valid=lambda df: df > 0, stand_ins=(1.0,), logpdf=_log_student),
    examples={
        "tnp.asarray([0.0, 2.0]), 3.0": {
            "logpdf": "[-1.00088885, -2.69548457]",
            "pdf": "[0.3675526 , 0.06750966]",
        },
    },
)

DISTRIBUTIONS = (CAUCHY, GENNORM, GUMBEL_L, GUMBEL_R, LAPLACE, LOGISTIC, NORM, T)
