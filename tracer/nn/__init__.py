"""`tracer.nn`: activation functions, attention and initializers, with JAX's names; and layers, which are modules."""

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING

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
from tracer.trace.tracebacks import boundary, set_boundaries

if TYPE_CHECKING:
    from tracer.nn.containers import MLP, Identity, Residual, Sequential
    from tracer.nn.layers.adaptive_pooling import (
        AdaptiveAvgPool1d,
        AdaptiveAvgPool2d,
        AdaptiveAvgPool3d,
        AdaptiveMaxPool1d,
        AdaptiveMaxPool2d,
        AdaptiveMaxPool3d,
        GlobalAvgPool,
        GlobalMaxPool,
    )
    from tracer.nn.layers.attention_layers import KVCache, MultiheadAttention, SinusoidalPositions, alibi, rotary
    from tracer.nn.layers.convolutions import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
    from tracer.nn.layers.dropout import Dropout, DropPath
    from tracer.nn.layers.linear import Bilinear, Embedding, Linear
    from tracer.nn.layers.lora import LoRA
    from tracer.nn.layers.norms import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm, SpectralNorm, WeightNorm
    from tracer.nn.layers.pooling import (
        AvgPool1d,
        AvgPool2d,
        AvgPool3d,
        MaxPool1d,
        MaxPool2d,
        MaxPool3d,
        avg_pool,
        max_pool,
    )
    from tracer.nn.layers.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
    from tracer.nn.layers.shapes import Flatten, Lambda, Pad, PixelShuffle, PReLU, Upsample
    from tracer.nn.layers.transformers import FeedForward, TransformerBlock, TransformerDecoder, TransformerEncoder
    from tracer.nn.linear_losses import linear_cross_entropy
    from tracer.nn.losses import (
        binary_cross_entropy,
        cosine_similarity,
        cross_entropy,
        ctc,
        focal,
        hinge,
        huber,
        kl_divergence,
        l1,
        mse,
        nll,
        triplet,
    )
    from tracer.nn.metrics import Mean, accuracy, auroc, confusion, f1, r2, top_k
    from tracer.nn.microbatching import microbatches
    from tracer.nn.model_functions import cast, count, map, merged, nbytes, paths, trained
    from tracer.nn.module import Keys, Module, State
    from tracer.nn.selecting import at
    from tracer.nn.stacks import Stack, remat
    from tracer.nn.summaries import summary

# Modules and their functions, by the file that defines them, imported at their first use
_LATER = {
    name: file
    for file, names in {
        "summaries": "summary",
        "layers.lora": "LoRA",
        "stacks": "Stack remat",
        "layers.transformers": "FeedForward TransformerBlock TransformerDecoder TransformerEncoder",
        "layers.attention_layers": "KVCache MultiheadAttention SinusoidalPositions alibi rotary",
        "layers.recurrent": "GRU LSTM RNN GRUCell LSTMCell RNNCell",
        "containers": "Identity MLP Residual Sequential",
        "layers.convolutions": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
        "layers.dropout": "DropPath Dropout",
        "layers.linear": "Bilinear Embedding Linear",
        "linear_losses": "linear_cross_entropy",
        "losses": "binary_cross_entropy cosine_similarity cross_entropy ctc focal hinge huber "
        "kl_divergence l1 mse nll triplet",
        "metrics": "Mean accuracy auroc confusion f1 r2 top_k",
        "microbatching": "microbatches",
        "model_functions": "cast count map merged nbytes paths trained",
        "module": "Keys Module State",
        "layers.norms": "BatchNorm GroupNorm InstanceNorm LayerNorm RMSNorm SpectralNorm WeightNorm",
        "layers.adaptive_pooling": "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d "
        "AdaptiveMaxPool2d AdaptiveMaxPool3d GlobalAvgPool GlobalMaxPool",
        "layers.pooling": "AvgPool1d AvgPool2d AvgPool3d MaxPool1d MaxPool2d MaxPool3d avg_pool max_pool",
        "selecting": "at",
        "layers.shapes": "Flatten Lambda PReLU Pad PixelShuffle Upsample",
    }.items()
    for name in names.split()
}

__all__ = [
    "GRU",
    "LSTM",
    "MLP",
    "RNN",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BatchNorm",
    "Bilinear",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DropPath",
    "Dropout",
    "Embedding",
    "FeedForward",
    "Flatten",
    "GRUCell",
    "GlobalAvgPool",
    "GlobalMaxPool",
    "GroupNorm",
    "Identity",
    "InstanceNorm",
    "KVCache",
    "Keys",
    "LSTMCell",
    "Lambda",
    "LayerNorm",
    "Linear",
    "LoRA",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Mean",
    "Module",
    "MultiheadAttention",
    "PReLU",
    "Pad",
    "PixelShuffle",
    "RMSNorm",
    "RNNCell",
    "Residual",
    "Sequential",
    "SinusoidalPositions",
    "SpectralNorm",
    "Stack",
    "State",
    "TransformerBlock",
    "TransformerDecoder",
    "TransformerEncoder",
    "Upsample",
    "WeightNorm",
    "accuracy",
    "alibi",
    "at",
    "auroc",
    "avg_pool",
    "binary_cross_entropy",
    "cast",
    "celu",
    "confusion",
    "cosine_similarity",
    "count",
    "cross_entropy",
    "ctc",
    "dot_product_attention",
    "elu",
    "f1",
    "focal",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "hinge",
    "huber",
    "identity",
    "initializers",
    "kl_divergence",
    "l1",
    "leaky_relu",
    "linear_cross_entropy",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "map",
    "max_pool",
    "merged",
    "microbatches",
    "mish",
    "mse",
    "nbytes",
    "nll",
    "one_hot",
    "paths",
    "r2",
    "relu",
    "relu6",
    "remat",
    "rotary",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "summary",
    "swish",
    "tanh",
    "top_k",
    "trained",
    "triplet",
]  # fmt: skip

_FUNCTIONS = [name for name in __all__ if name not in {"initializers", *_LATER}]
set_boundaries(globals(), _FUNCTIONS, cached)  # they look at no elements
say_of_elements({globals()[name] for name in _FUNCTIONS}, complex_too=("sigmoid", "silu"))


def __getattr__(name: str) -> object:
    if name in _LATER:
        value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        if isinstance(value, FunctionType):
            value = boundary(value)
        value.__module__ = __name__
        globals()[name] = value
        return value
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
