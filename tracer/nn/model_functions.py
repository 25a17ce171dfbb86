"""Functions of whole models: their arrays by path, sizes, casts, and the part that is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.nn.layout import Role
from tracer.nn.module import parts, with_mode
from tracer.primitives.elementwise.conversion import dtype_named
from tracer.trace import trees
from tracer.trace.source import here


def paths(model: Any) -> dict[str, Any]:
    """Return the arrays of a model by their paths, in its order.

    model: a tree of arrays of any shapes and dtypes. Paths are PyTorch's names with indices in brackets.

    >>> list(nn.paths(nn.MLP([2, 3], key=tracer.random.key(0))))
    ['layers[0].weight', 'layers[0].bias']
    """
    return {path: value for path, value, _ in parts(model)}


def trained(tree: Any) -> Any:
    """Return the tree with None for all that is not trained: state, frozen arrays, integers, keys.

    tree: of arrays of any shapes and dtypes. Trees without modules are returned as they are.

    >>> layer = nn.at(nn.Linear(2, 3, key=tracer.random.key(0)), "bias").freeze()
    >>> nn.trained(layer).bias is None
    True
    """
    return trees.trained_part(tree)


def merged(full: Any, part: Any) -> Any:
    """Return the tree `full` with the leaves of `part` where it has any: the inverse of `trained`.

    full, part: trees of arrays of any shapes and dtypes.

    >>> layer = nn.Linear(2, 3, key=tracer.random.key(0))
    >>> nn.merged(layer, nn.trained(layer)).bias is layer.bias
    True
    """
    return trees.merged(full, part)


def map(function: Callable[..., Any], model: Any, *others: Any) -> Any:
    """Return the model with a function of each trained array and of its counterparts in other trees in its place.

    function: from an array of the model and one of each other tree to an array of any shape and dtype; others: trees of
    the model's structure, such as gradients, which have None for untrained leaves. Frozen arrays, state, integers
    and keys stay as they are, unlike by `tracer.tree.map`.

    >>> model = nn.Sequential(nn.Linear(2, 3, key=tracer.random.key(0)), nn.BatchNorm(3))
    >>> slopes = tracer.grad(lambda model: model(tnp.ones((1, 2), "float32")).sum())(model)
    >>> nn.map(lambda p, g: p - 0.1 * g, model, slopes).layers[1].bias
    Array([-0.1, -0.1, -0.1], f32)
    """
    chosen = trained(model)
    return merged(model, trees.tree_map(function, chosen, *(trained(other) for other in others)))


def count(model: Any, role: str | None = "param") -> int:
    """Return the number of elements of a model's arrays with a role.

    model: a tree of arrays of any shapes and dtypes; role: "param", "state", "frozen" or, for all arrays, None.

    >>> nn.count(nn.Linear(2, 3, key=tracer.random.key(0)))
    9
    """
    return sum(int(np.prod(value.shape)) for _, value, own in parts(model) if _has(value, own, role))


def nbytes(model: Any, role: str | None = None) -> int:
    """Return the bytes of a model's arrays with a role.

    model: a tree of arrays of any shapes and dtypes; role: as of `count`.

    >>> nn.nbytes(nn.Linear(2, 3, key=tracer.random.key(0)))
    36
    """
    held = [value for _, value, own in parts(model) if _has(value, own, role)]
    return sum(int(np.prod(value.shape)) * value.dtype.itemsize for value in held)


def _has(value: Any, own: Role, role: str | None) -> bool:
    is_trained = own is not Role.PARAM or dtypes.is_inexact(value.dtype)  # integers have no role
    return role is None or (own.value.startswith(role) and is_trained)


def cast(tree: Any, dtype: Any, where: Callable[[str, Any], bool] | None = None) -> Any:
    """Return the tree with its floats in another dtype; complex numbers, integers and keys stay.

    tree: of arrays of any shapes; dtype: of floats; where: a function of (path, array) that chooses. Gradients have the
    dtypes of the original. State is cast to wider dtypes alone, so that running means keep their digits. The cast of a
    training copy is one, too, and its `inference` returns the arrays before the cast. Raises DTypeError for dtypes of
    no floats.

    >>> nn.cast(nn.Linear(2, 3, key=tracer.random.key(0)), "bfloat16")
    Linear(weight=bf16[3,2], bias=bf16[3])
    """
    named = dtype_named("nn.cast", dtype)
    if not dtypes.is_float(named):
        raise DTypeError(message(f"nn.cast{here()} takes a dtype of floats", f"got {named.name}"))
    width = named.itemsize
    chosen = [
        _is_float(value)
        and (where is None or where(path, value))
        and (role is not Role.STATE or width > value.dtype.itemsize)
        for path, value, role in parts(tree)
    ]
    leaves, structure = trees.flatten(tree)
    cast_leaves = [leaf.astype(dtype) if flag else leaf for leaf, flag in zip(leaves, chosen, strict=True)]
    return with_mode(trees.unflatten(structure, cast_leaves), tree)


def _is_float(value: Any) -> bool:
    return hasattr(value, "astype") and dtypes.is_float(value.dtype)
