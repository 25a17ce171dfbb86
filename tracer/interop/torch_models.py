"""Arrays and weights of models to PyTorch and back: `to_torch` and `from_torch`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.io.state_dicts import places, scattered
from tracer.io.tensors import BITS, as_numpy, is_tensor
from tracer.io.weights import load_weights
from tracer.nn.module import Module
from tracer.trace import trees
from tracer.trace.array import Array, concrete
from tracer.trace.source import here

_BITS_OF = {dtype: (name, bits) for name, (bits, dtype) in BITS.items()}


def from_torch(value: Any, model: Any = None, *, strict: bool = True, copy: bool = True) -> Any:
    """Return a tensor of PyTorch as an array, or a model with the weights of a module of PyTorch.

    value: a tensor of any shape and dtype; a tree of tensors; or with `model` a module of PyTorch or its state dict.
    model: takes the weights by their names, in its own dtypes: see `io.load_weights`, which also renames. strict:
    whether the names must be exactly the model's. copy: whether arrays have memory of their own; otherwise arrays of
    tensors on the CPU share it, and must not be written to. Raises CheckpointError for other names and shapes,
    DTypeError for sparse and quantized tensors.

    >>> import torch  # doctest: +SKIP
    >>> interop.from_torch(torch.arange(3))  # doctest: +SKIP
    Array([0, 1, 2], i64)
    >>> interop.from_torch(torch.nn.Linear(3, 2), nn.Linear(3, 2, key=tracer.random.key(0)))  # doctest: +SKIP
    Linear(weight=f32[2,3], bias=f32[2])
    """
    if model is not None:
        return _filled(value, model, strict)

    def converted(leaf: Any) -> Any:
        if not is_tensor(leaf):
            return leaf
        array = as_numpy(leaf)
        return concrete(np.array(array, order="C") if copy or not array.flags.carray else array)

    return trees.tree_map(converted, value)


def _filled(value: Any, model: Any, strict: bool) -> Any:
    """Return the model with the arrays of a module of PyTorch. Hugging Face's `Conv1D` holds its matrix turned."""
    if isinstance(value, Mapping):
        return load_weights(model, value, strict=strict)
    layers = {name for name, part in value.named_modules() if type(part).__name__ == "Conv1D" and hasattr(part, "nf")}
    arrays = {
        name: as_numpy(tensor).T if name.rpartition(".")[0] in layers and tensor.ndim == 2 else tensor
        for name, tensor in value.state_dict().items()
    }
    return load_weights(model, arrays, strict=strict)


def to_torch(value: Any) -> Any:
    """Return an array as a tensor of PyTorch, or a model as a state dict with PyTorch's names.

    value: an array of any shape and dtype, a model, or a tree of arrays, which becomes a tree of tensors. Tensors have
    memory of their own and lie on the CPU. A state dict fits a module of PyTorch with the attribute names of the model:
    `module.load_state_dict(interop.to_torch(model))`. The dict of a `Stack` has the layers of a list. Raises
    ImportError without PyTorch, DTypeError for dtypes that it lacks.

    >>> interop.to_torch(tnp.arange(3))  # doctest: +SKIP
    tensor([0, 1, 2])
    >>> list(interop.to_torch(nn.MultiheadAttention(4, 2, key=tracer.random.key(0))))  # doctest: +SKIP
    ['in_proj_weight', 'in_proj_bias', 'out_proj.weight', 'out_proj.bias']
    """
    torch = _torch()
    if not isinstance(value, Module):
        return trees.tree_map(lambda leaf: _tensor(torch, leaf), value)
    arrays = [np.asarray(leaf) for leaf in trees.flatten(value)[0]]
    found = scattered(zip(places(value, None), arrays, strict=True))
    return {name: _tensor(torch, array) for name, array in found.items()}


def _torch() -> Any:
    try:
        return sys.modules.get("torch") or import_module("torch")
    except ImportError:
        raise ImportError(message(f"to_torch{here()} makes tensors of PyTorch", help="pip install torch")) from None


def _tensor(torch: Any, leaf: Any) -> Any:
    if not isinstance(leaf, Array | np.ndarray | np.generic):
        return leaf
    array = np.array(leaf, order="C")
    try:
        if array.dtype in _BITS_OF:
            name, bits = _BITS_OF[array.dtype]
            return torch.from_numpy(array.view(bits)).view(getattr(torch, name))
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
    except (TypeError, AttributeError):
        raise DTypeError(
            message(f"to_torch{here()}: PyTorch has no dtype for {array.dtype}", help="cast it first: x.astype(dtype)")
        ) from None
