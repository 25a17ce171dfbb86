"""`tracer.nn`: activation functions and their kin, with JAX's names."""

from tracer.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    leaky_relu,
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
    squareplus,
    swish,
)
from tracer.nn.normalisation import log_softmax, logmeanexp, logsumexp, one_hot, softmax, standardize
from tracer.numpy import tanh
from tracer.runtime.replay import replayed
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "leaky_relu", "log_sigmoid",
    "log_softmax", "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6", "selu", "sigmoid", "silu",
    "soft_sign", "softmax", "softplus", "sparse_plus", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip

set_boundaries(globals(), __all__, replayed)  # they look at no elements
say_of_elements({globals()[name] for name in __all__})
