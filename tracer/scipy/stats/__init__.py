"""Probability distributions, each a module of functions such as `norm.logpdf(x)`, and statistics of samples.

Invalid parameters of a distribution give NaN, and values outside its support have probability 0, as in SciPy.
"""

from tracer.absent import absent
from tracer.runtime.eager.call_cache import cached
from tracer.scipy.stats import counts, dirichlet, half_line, interval, multinomial, multivariate_normal, real_line
from tracer.scipy.stats.densities import gaussian_kde
from tracer.scipy.stats.distribution import published
from tracer.scipy.stats.ranks import mode, rankdata, sem
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gaussian_kde",
    "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "mode", "multinomial", "multivariate_normal",
    "nbinom", "norm", "pareto", "poisson", "rankdata", "sem", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip

set_boundaries(globals(), ["mode", "rankdata", "sem"], cached)
bernoulli, betabinom, binom, geom, nbinom, poisson = published(counts)
chi2, expon, gamma, pareto = published(half_line)
beta, truncnorm, uniform, vonmises, wrapcauchy = published(interval)
cauchy, gennorm, gumbel_l, gumbel_r, laplace, logistic, norm, t = published(real_line)

# Examples in docstrings that are not in a file, for doctest
__test__ = {
    f"{module.__name__}.{name}": getattr(module, name).__doc__
    for room in (counts, half_line, interval, real_line)
    for module in (globals()[record.name] for record in room.DISTRIBUTIONS)
    for name in dir(module)
}


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
