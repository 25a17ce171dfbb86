"""PyTorch's names of functions and methods, with what does their work here, for AttributeError and TypeError."""

from __future__ import annotations

from typing import Final

_GRAD = "tracer.grad(f) differentiates functions: arrays keep no gradients"
_PLACE = "arrays are values: x = x + v, or x = x.at[i].set(v), in place of methods that end in _"
_DTYPE = "x.astype(dtype)"
_DEVICE = "arrays lie on the CPU; tracer.device_put moves trees"

# Of arrays
MEMBERS: Final[dict[str, str]] = {
    **dict.fromkeys(("backward", "detach", "grad", "grad_fn", "is_leaf", "requires_grad", "retain_grad"), _GRAD),
    **dict.fromkeys(("add_", "mul_", "sub_", "div_", "zero_", "fill_", "copy_", "clamp_"), _PLACE),
    **dict.fromkeys(("double", "float", "half", "int", "long", "bool", "to"), _DTYPE),
    **dict.fromkeys(("cpu", "cuda", "is_cuda", "pin_memory"), _DEVICE),
    "chunk": "tracer.numpy.array_split(x, parts, axis)",
    "clamp": "x.clip(low, high)",
    "contiguous": "all arrays are contiguous: leave it out",
    "dim": "x.ndim",
    "expand": "tracer.numpy.broadcast_to(x, shape)",
    "expand_as": "tracer.numpy.broadcast_to(x, y.shape)",
    "index_select": "x.take(indices, axis)",
    "is_contiguous": "all arrays are contiguous",
    "masked_fill": "tracer.numpy.where(mask, value, x)",
    "matmul": "x @ y",
    "mm": "x @ y",
    "norm": "tracer.numpy.linalg.norm(x)",
    "numel": "x.size",
    "numpy": "numpy.asarray(x)",
    "permute": "x.transpose(axes)",
    "select": "x[:, i] takes one index of an axis",
    "softmax": "tracer.nn.softmax(x, axis)",
    "t": "x.T",
    "topk": "tracer.lax.top_k(x, k)",
    "type_as": "x.astype(y.dtype)",
    "unsqueeze": "tracer.numpy.expand_dims(x, axis), or x[:, None]",
    "view_as": "x.reshape(y.shape)",
    **dict.fromkeys(
        ("abs", "cos", "exp", "log", "pow", "relu", "sigmoid", "sin", "sqrt", "tanh"),
        "a function of the array: tracer.numpy.exp(x), tracer.nn.relu(x)",
    ),
}

_KEYS = "tracer.random.normal(key, shape) and its like take a key: key = tracer.random.key(seed)"
_LAYERS = "tracer.nn.Module: float arrays that its __init__ assigns are parameters"
_STEPS = "{}(rate): state = tx.init(params); updates, state = tx.update(grads, state, params)"
_NUMPYS = "tracer.numpy.{}"

# Of modules
NAMES: Final[dict[str, dict[str, str]]] = {
    "tracer": {
        **dict.fromkeys(("Tensor", "tensor", "from_numpy", "as_tensor"), "tracer.numpy.asarray(values)"),
        **dict.fromkeys(("autograd", "backward", "enable_grad", "no_grad", "set_grad_enabled"), _GRAD),
        **dict.fromkeys(("rand", "randn", "randint", "randperm", "manual_seed", "Generator"), _KEYS),
        **dict.fromkeys(("Module", "Parameter"), _LAYERS),
        "cat": "tracer.numpy.concatenate",
        "compile": "tracer.jit",
        "cuda": _DEVICE,
        **{name: _NUMPYS.format(name) for name in (
            "arange", "eye", "exp", "full", "linspace", "log", "matmul", "ones", "ones_like", "sin", "stack", "sum",
            "where", "zeros", "zeros_like",
        )},
    },
    "tracer.optim": {
        **{name: _STEPS.format(name.lower()) for name in (
            "SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "Adafactor", "RMSprop", "Rprop",
            "LBFGS", "Muon",
        )},
        "ASGD": "ema_params averages parameters",
        "lr_scheduler": "a schedule is a function of the count: adam(cosine_decay_schedule(rate, steps))",
        "swa_utils": "ema_params averages parameters",
        "zero_grad": "gradients are values of grad, which nothing adds up",
    },
    "tracer.numpy": {
        **dict.fromkeys(("Tensor", "tensor", "from_numpy", "as_tensor"), "asarray(values)"),
        **dict.fromkeys(("rand", "randn", "randint", "randperm", "manual_seed"), _KEYS),
        **dict.fromkeys(("relu", "sigmoid", "softmax", "log_softmax", "logsumexp", "gelu"), "tracer.nn has it"),
        "bmm": "matmul: it takes stacks of matrices",
        "cat": "concatenate",
        "chunk": "array_split(x, parts, axis)",
        "clamp": "clip",
        "gather": "take_along_axis(x, indices, axis)",
        "index_select": "take(x, indices, axis)",
        "masked_fill": "where(mask, value, x)",
        "mm": "matmul",
        "no_grad": _GRAD,
        "numel": "size",
        "permute": "transpose(x, axes)",
        "rsqrt": "tracer.lax.rsqrt",
        "topk": "tracer.lax.top_k",
        "unsqueeze": "expand_dims(x, axis), or x[:, None]",
        "view": "reshape(x, shape)",
    },
    "tracer.nn": {
        "Parameter": "a float array that __init__ assigns is a parameter; nn.State(x) is not",
        "ModuleList": "a list of modules",
        "functional": "tracer.nn has the functions: tracer.nn.relu",
        "CrossEntropyLoss": "cross_entropy(logits, labels).mean()",
        "MSELoss": "mse(x, y).mean()",
        "mse_loss": "mse(x, y).mean()",
    },
}  # fmt: skip

PARAMETERS: Final[dict[str, str]] = {
    "device": _DEVICE,
    "dim": "it is called axis=",
    "dims": "it is called axis=",
    "keepdim": "it is called keepdims=",
    "requires_grad": _GRAD,
}
"""Parameters of functions."""

CALLS: Final[dict[str, str]] = {
    "view": "x.reshape(3, 4) changes the shape; x.view(dtype) reads the bytes as another dtype",
    "expand": "tracer.numpy.broadcast_to(x, shape)",
}
"""Functions that PyTorch calls with other arguments."""
