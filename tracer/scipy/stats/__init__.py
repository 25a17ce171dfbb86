"""Probability distributions, each a module of functions, as `norm.logpdf(x)`; and statistics of samples.

Parameters that a distribution has not give NaN, and what lies outside of its support the probability 0, as in SciPy.
"""

from tracer.absent import absent, refusing
from tracer.runtime.eager.call_cache import replayed
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
from tracer.scipy.stats.densities import gaussian_kde
from tracer.scipy.stats.ranks import mode, rankdata, sem
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gaussian_kde",
    "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "mode", "multinomial", "multivariate_normal",
    "nbinom", "norm", "pareto", "poisson", "rankdata", "sem", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip

set_boundaries(globals(), ["mode", "rankdata", "sem"], replayed)
for _module in (
    bernoulli, beta, betabinom, binom, cauchy, chi2, dirichlet, expon, gamma, gennorm, geom, gumbel_l, gumbel_r,
    laplace, logistic, multinomial, multivariate_normal, nbinom, norm, pareto, poisson, t, truncnorm, uniform, vonmises,
    wrapcauchy,
):  # fmt: skip
    vars(_module)["__getattr__"] = refusing(_module.__name__)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
