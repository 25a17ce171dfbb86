"""PyTorch's names of functions and methods, with tracer's way for each, for AttributeError and TypeError."""

from __future__ import annotations

from typing import Final

_GRAD = "tracer.grad(f) differentiates functions: arrays keep no gradients"
_PLACE = "arrays are values: x = x + v, or x = x.at[i].set(v), in place of methods that end in _"
_DTYPE = "x.astype(dtype)"
_DEVICE = "tracer.device_put(x, device) moves arrays and trees of them"
_AT = "x.at[indices].set(v), or .add(v)"

# Of arrays
MEMBERS: Final[dict[str, str]] = {
    **dict.fromkeys(("backward", "detach", "grad", "grad_fn", "is_leaf", "requires_grad", "retain_grad"), _GRAD),
    **dict.fromkeys(("add_", "mul_", "sub_", "div_", "zero_", "fill_", "copy_", "clamp_"), _PLACE),
    **dict.fromkeys(("double", "float", "half", "int", "long", "bool", "to"), _DTYPE),
    **dict.fromkeys(("cpu", "cuda", "is_cuda", "pin_memory"), _DEVICE),
    **dict.fromkeys(
        ("scatter", "scatter_", "scatter_add", "scatter_add_", "index_add", "index_add_", "index_put_"), _AT
    ),
    **dict.fromkeys(("new_zeros", "new_ones", "new_full"), "tracer.numpy.zeros(shape, x.dtype)"),
    "bmm": "x @ y",
    "chunk": "tracer.numpy.array_split(x, parts, axis)",
    "clamp": "x.clip(low, high)",
    "contiguous": "all arrays are contiguous: leave it out",
    "dim": "x.ndim",
    "expand": "tracer.numpy.broadcast_to(x, shape)",
    "expand_as": "tracer.numpy.broadcast_to(x, y.shape)",
    "gather": "tracer.numpy.take_along_axis(x, indices, axis)",
    "index_select": "x.take(indices, axis)",
    "is_contiguous": "all arrays are contiguous",
    "masked_fill": "tracer.numpy.where(mask, value, x)",
    "matmul": "x @ y",
    "mm": "x @ y",
    "norm": "tracer.numpy.linalg.norm(x)",
    "numel": "x.size",
    "numpy": "numpy.asarray(x)",
    "permute": "x.transpose(axes)",
    "repeat_interleave": "x.repeat(count, axis)",
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

# Of models
MODELS: Final[dict[str, str]] = {
    "train": "model.training(key) is a copy that may draw and write: see .inference()",
    "eval": "a model is for inference; model.training(key) is a copy to train",
    "forward": "the method is __call__",
    "parameters": "tx.init(model) takes the model; tracer.nn.paths(model) has its arrays",
    "named_parameters": "tracer.nn.paths(model)",
    "state_dict": "tracer.nn.paths(model), and tracer.interop.to_torch(model) for PyTorch",
    "load_state_dict": "tracer.io.load_weights(model, weights)",
    "zero_grad": "gradients are values of tracer.grad, which nothing adds up",
    "requires_grad_": "tracer.nn.at(model, where).freeze()",
    "register_buffer": "self.name = tracer.nn.State(array)",
    "register_parameter": "self.name = array",
    "to": "tracer.nn.cast(model, dtype)",
    "cuda": "tracer.device_put(model, device)",
    "init": "the class makes its arrays: Model(key=key)",
    "apply": "model(x); tracer.nn.at(model, where).map(f) changes parts",
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
        **dict.fromkeys(("bmm", "mm"), "tracer.numpy.matmul"),
        **dict.fromkeys(("relu", "sigmoid", "softmax"), "tracer.nn has it"),
        "cat": "tracer.numpy.concatenate",
        "compile": "tracer.jit",
        "cuda": _DEVICE,
        "gather": "tracer.numpy.take_along_axis",
        "permute": "tracer.numpy.transpose",
        "unsqueeze": "tracer.numpy.expand_dims",
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
        "softmax_cross_entropy": "tracer.nn.cross_entropy(logits, probabilities)",
        "softmax_cross_entropy_with_integer_labels": "tracer.nn.cross_entropy(logits, labels)",
        "sigmoid_binary_cross_entropy": "tracer.nn.binary_cross_entropy(logits, labels)",
        "squared_error": "tracer.nn.mse(x, y)",
        "l2_loss": "tracer.nn.mse(x, y) / 2",
        "huber_loss": "tracer.nn.huber(x, y)",
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
        "ModuleDict": "a dict of modules",
        "functional": "tracer.nn has the functions: tracer.nn.relu",
        "CrossEntropyLoss": "cross_entropy(logits, labels).mean()",
        "BCEWithLogitsLoss": "binary_cross_entropy(logits, labels).mean()",
        "L1Loss": "l1(x, y).mean()",
        "MSELoss": "mse(x, y).mean()",
        "NLLLoss": "nll(log_probabilities, labels).mean()",
        "mse_loss": "mse(x, y).mean()",
        "init": "tracer.nn.initializers, and model.replace(weight=...)",
        "utils": "optim.clip_by_global_norm clips, io.load_weights loads",
        **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), "BatchNorm(features), of any number of axes"),
        **dict.fromkeys(("Dropout1d", "Dropout2d", "Dropout3d"), "Dropout(rate, axes=(2, 3)): axes that share a draw"),
        **dict.fromkeys(("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"), "InstanceNorm(features)"),
        **{name: f"{name.lower()}, a function, also between the layers of Sequential" for name in (
            "ELU", "GELU", "GLU", "ReLU", "SELU", "Sigmoid", "SiLU", "Softmax", "Softplus", "Tanh",
        )},
        "LeakyReLU": "leaky_relu, a function, also between the layers of Sequential",
        "Dense": "Linear(n, m, key=key)",
        "Conv": "Conv1d, Conv2d, Conv3d",
        "Embed": "Embedding(count, n, key=key)",
        **dict.fromkeys(("Param", "Variable"), "__init__ assigns arrays: floats are trained, nn.State(x) is not"),
        **dict.fromkeys(("Rngs", "compact"), "layers are made in __init__, from keys: keys = nn.Keys(key)"),
    },
    "tracer.data": {
        "DataLoader": "Loader(source, batch, key=key)",
        "Dataset": "Loader takes trees of arrays, and objects with __len__ and __getitem__: see Rows",
        "TensorDataset": "Loader takes trees of arrays: Loader((x, y), batch, key=key)",
        "random_split": "split(source, parts, key=key)",
    },
    "tracer.io": {
        "load_state_dict": "load_weights(model, state_dict)",
        "save_checkpoint": "Checkpoints(folder).save(step, tree)",
        "restore_checkpoint": "Checkpoints(folder).restore(like)",
        "from_torch": "tracer.interop.from_torch(module, model); load_weights takes files and state dicts",
        "to_torch": "tracer.interop.to_torch(model)",
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
