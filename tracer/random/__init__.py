"""Random numbers from explicit keys: `tracer.random`, with JAX's names, arguments and streams.

A key is an immutable value. It gives the same samples on every device, under jit and vmap, and in JAX. Split a key to
draw again:

>>> k1, k2 = tracer.random.split(tracer.random.key(0))
>>> tracer.random.normal(k1, (2,), dtype="float32")
Array([ 1.0040144 , -0.90633726], f32)

Raw uint32[2] keys from `PRNGKey` are accepted as keys. The default dtypes are `config.default_float` and `default_int`.
"""

from tracer.absent import absent
from tracer.random.choosing import categorical, choice, permutation
from tracer.random.continuous import (
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    normal,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    wald,
    weibull_min,
)
from tracer.random.counts import binomial, multinomial, poisson
from tracer.random.discrete import bernoulli, geometric, rademacher
from tracer.random.gammas import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from tracer.random.keys import PRNGKey, clone, fold_in, key, key_data, key_impl, split, wrap_key_data
from tracer.random.multivariate import multivariate_normal, orthogonal
from tracer.random.uniform import bits, randint, uniform
from tracer.runtime.eager.call_cache import cached
from tracer.trace.docstrings import say
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice", "clone",
    "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in", "gamma", "generalized_normal", "geometric",
    "gumbel", "key", "key_data", "key_impl", "laplace", "loggamma", "logistic", "lognormal", "maxwell", "multinomial",
    "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson", "rademacher", "randint",
    "rayleigh", "split", "t", "triangular", "truncated_normal", "uniform", "wald", "weibull_min", "wrap_key_data",
]  # fmt: skip

# Functions that make keys are called with ever new numbers, and a factorisation reads its matrix. All other functions
# read no values, and are cached.
_OF_NUMBERS = frozenset(("PRNGKey", "clone", "fold_in", "key", "key_impl", "wrap_key_data"))
_LOOKING = _OF_NUMBERS | {"multivariate_normal"}
set_boundaries(globals(), [name for name in __all__ if name in _LOOKING])
set_boundaries(globals(), [name for name in __all__ if name not in _LOOKING], cached)

_SAMPLERS = [name for name in __all__ if name not in _OF_NUMBERS and name not in ("key_data", "split")]
_SHAPED_BY_PARAMETERS = frozenset((
    "bernoulli", "beta", "binomial", "chisquare", "f", "gamma", "geometric", "loggamma", "lognormal", "pareto",
    "poisson", "rayleigh", "t", "triangular", "truncated_normal", "wald",
))  # fmt: skip
_PHRASES = {
    "key": "one key, or its words, uint32 [2]. Raises ShapeError for several: `vmap` draws with those.",
    "shape": "of the result: a size, or several; () for one sample.",
    "dtype": "a float dtype of 16 bits or more, by default `config.default_float`. Raises DTypeError for others.",
}
_SHAPE = "of the result, to which the parameters broadcast; by default the shape that they have together."
say([globals()[name] for name in _SAMPLERS if name not in _SHAPED_BY_PARAMETERS], _PHRASES)
say([globals()[name] for name in _SAMPLERS if name in _SHAPED_BY_PARAMETERS], {**_PHRASES, "shape": _SHAPE})


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
