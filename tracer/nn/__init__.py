"""`tracer.nn`: activation functions, attention and initializers, with JAX's names."""

from tracer.absent import absent
from tracer.nn import initializers
from tracer.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
)
from tracer.nn.attention import dot_product_attention
from tracer.nn.normalisation import log_softmax, logmeanexp, logsumexp, one_hot, softmax, standardize
from tracer.numpy import tanh
from tracer.runtime.eager.call_cache import cached
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "initializers", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp",
    "mish", "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus",
    "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip

_FUNCTIONS = [name for name in __all__ if name != "initializers"]
set_boundaries(globals(), _FUNCTIONS, cached)  # they look at no elements
say_of_elements({globals()[name] for name in _FUNCTIONS}, complex_too=("sigmoid", "silu"))


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
