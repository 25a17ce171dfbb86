"""Probability distributions, each a module of functions, as `norm.logpdf(x)`; ranks, modes, and the error of means.

Parameters that a distribution has not give NaN, and what lies outside of its support the probability 0, as in SciPy.
"""

from tracer.absent import absent
from tracer.runtime.replay import replayed
from tracer.scipy.stats import (
    bernoulli,
    beta,
    betabinom,
    binom,
    cauchy,
    chi2,
    dirichlet,
    expon,
    gamma,
    gennorm,
    geom,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    multinomial,
    multivariate_normal,
    nbinom,
    norm,
    pareto,
    poisson,
    t,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)
from tracer.scipy.stats.ranks import rankdata, sem
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gennorm", "geom",
    "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial", "multivariate_normal", "nbinom", "norm", "pareto",
    "poisson", "rankdata", "sem", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip

set_boundaries(globals(), ["rankdata", "sem"], replayed)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
