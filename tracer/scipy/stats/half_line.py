"""Distributions on a half line: chi-squared, exponential, gamma and Pareto."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from tracer.lax import igamma, igammac
from tracer.nn import log1mexp
from tracer.numpy import exp, expm1, inf, log, log1p
from tracer.scipy.saddle_points import log_gamma_density
from tracer.scipy.stats.distribution import Distribution
from tracer.scipy.stats.standard import Formula, continuous

EXPON = Distribution(
    name="expon",
    summary="The exponential distribution from `loc` on, with mean `loc + scale`.",
    density="e^-y / scale for y from 0 on",
    formulas=continuous(
        support=(0.0, inf), inside=1.0,
        logpdf=lambda y, scale: -y - log(scale),
        cdf=lambda y: -expm1(-y),
        logcdf=log1mexp,
        logsf=lambda y: -y,
        ppf=lambda q: -log1p(-q),
    ),
    examples={
        "tnp.asarray([0.0, 2.0])": {
            "logpdf": "[-0., -2.]",
            "pdf": "[1.        , 0.13533528]",
        },
        "tnp.asarray([1e-9, 2.0])": {
            "cdf": "[9.99999999e-10, 8.64664717e-01]",
            "logcdf": "[-20.72326584,  -0.14541346]",
        },
        "tnp.asarray([1.0, 50.0])": {
            "sf": "[3.67879441e-01, 1.92874985e-22]",
            "logsf": "[ -1., -50.]",
        },
        "tnp.asarray([0.0, 0.5])": {"ppf": "[0.        , 0.69314718]"},
    },
)  # fmt: skip

GAMMA = Distribution(
    name="gamma",
    summary="The gamma distribution of shape `a`, from `loc` on, in units of `scale`.",
    parameters=("a",),
    density="y^(a - 1) e^-y / (Γ(a) scale) for y from 0 on",
    formulas=continuous(
        valid=lambda a: a > 0, stand_ins=(1.0,), support=(0.0, inf), inside=1.0,
        logpdf=lambda y, a, scale: log_gamma_density(a, y) - log(scale),
        cdf=lambda y, a: igamma(a, y),
        sf=lambda y, a: igammac(a, y),
    ),
    examples={
        "tnp.asarray([0.5, 2.0]), 3.0": {
            "logpdf": "[-2.57944154, -1.30685282]",
            "pdf": "[0.07581633, 0.27067057]",
            "cdf": "[0.01438768, 0.32332358]",
            "logcdf": "[-4.24138314, -1.12910165]",
            "sf": "[0.98561232, 0.67667642]",
            "logsf": "[-0.01449218, -0.39056209]",
        },
    },
)  # fmt: skip


def _halved(formula: Formula) -> Formula:
    """Return a formula of the gamma distribution of df / 2, in units of 2 scale."""
    return lambda x, df, loc, scale: formula(x, 0.5 * df, loc, 2.0 * scale)


CHI2 = Distribution(
    name="chi2",
    summary="The chi-squared distribution of `df` degrees of freedom: `gamma` of df / 2, in units of 2 scale.",
    parameters=("df",),
    density="y^(df/2 - 1) e^(-y/2) / (2^(df/2) Γ(df/2) scale) for y from 0 on",
    formulas={name: _halved(formula) for name, formula in GAMMA.formulas.items()},
    examples={
        "tnp.asarray([0.5, 2.0]), 3.0": {
            "logpdf": "[-1.51551212, -1.57236494]",
            "pdf": "[0.21969564, 0.20755375]",
            "cdf": "[0.08110859, 0.4275933 ]",
            "logcdf": "[-2.51196643, -0.84958278]",
            "sf": "[0.91889141, 0.5724067 ]",
            "logsf": "[-0.08458732, -0.55790552]",
        },
    },
)

PARETO = Distribution(
    name="pareto",
    summary="The Pareto distribution of exponent `b`, from `loc + scale` on.",
    parameters=("b",),
    density="b / (y^(b + 1) scale) for y from 1 on",
    formulas=continuous(
        valid=lambda b: b > 0, stand_ins=(1.0,), support=(1.0, inf), inside=2.0,
        logpdf=lambda y, b, scale: log(b) - (b + 1.0) * log(y) - log(scale),
        cdf=lambda y, b: -expm1(-b * log(y)),
        logcdf=lambda y, b: log1mexp(b * log(y)),
        logsf=lambda y, b: -b * log(y),
        ppf=lambda q, b: exp(-log1p(-q) / b),
    ),
    examples={
        "tnp.asarray([1.0, 2.0]), 3.0": {
            "logpdf": "[ 1.09861229, -1.67397643]",
            "pdf": "[3.    , 0.1875]",
            "cdf": "[0.   , 0.875]",
            "logcdf": "[       -inf, -0.13353139]",
            "sf": "[1.   , 0.125]",
            "logsf": "[-0.        , -2.07944154]",
        },
        "tnp.asarray([0.0, 0.875]), 3.0": {"ppf": "[1., 2.]"},
    },
)  # fmt: skip

DISTRIBUTIONS = (CHI2, EXPON, GAMMA, PARETO)
