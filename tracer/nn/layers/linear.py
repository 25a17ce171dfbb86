"""Layers of matrix products: Linear, Bilinear, Embedding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer import lax, random
from tracer import numpy as tnp
from tracer.errors import DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.nn.losses import rows_of
from tracer.nn.module import Module, place
from tracer.trace.array import Array
from tracer.trace.source import here


def uniform(key: Array, shape: tuple[int, ...], bound: float, dtype: Any) -> Array:
    """Return numbers between -bound and bound: the distribution of PyTorch's layers for bound = fan_in ** -0.5."""
    drawn: Array = random.uniform(key, shape, dtype, -bound, bound)
    return drawn


def check_input(layer: Module, x: Any, size: int, help: str) -> Any:
    """Return the input as an array.

    Raises ShapeError unless its last axis has `size` elements, DTypeError if it is wider than the layer's weight.
    """
    x = tnp.asarray(x)
    if x.ndim == 0 or x.shape[-1] != size:
        flat = int(np.prod(x.shape[1:]))
        last = f"the last axis has {x.shape[-1]} elements" if x.ndim else "a scalar has no last axis"
        raise ShapeError(
            message(
                f"{place(layer)}: {last}, the layer takes {size}",
                f"got {x.type}{here()}",
                help=f"x.reshape(len(x), -1) has {flat}" if flat == size and x.ndim > 2 else help,
            )
        )
    check_dtype(layer, x)
    return x


def check_dtype(layer: Module, x: Array, weight: str = "weight") -> None:
    """Raise DTypeError for floats wider than the layer's: the whole model would compute in the wider type."""
    own = getattr(layer, weight, None)
    if own is not None and dtypes.is_float(x.dtype) and x.dtype.itemsize > own.dtype.itemsize:
        raise DTypeError(
            message(
                f"{place(layer)}: the input is wider than the layer",
                f"expected {own.dtype}, got {x.type}{here()}",
                help=f'x.astype("{own.dtype}"), or nn.cast(model, "{x.dtype}")',
            )
        )


class Linear(Module):
    """y = x W^T + b.

    n, m: features in and out; x: [..., n], y: [..., m]; weight: [m, n], bias: [m], both uniform within n**-0.5 as
    PyTorch's. Raises ShapeError for inputs of other sizes, DTypeError for wider ones.

    >>> layer = nn.Linear(3, 2, key=tracer.random.key(0))
    >>> layer
    Linear(weight=f32[2,3], bias=f32[2])
    >>> layer(tnp.ones((5, 3), "float32")).shape
    (5, 2)
    """

    def __init__(self, n: int, m: int, *, bias: bool = True, dtype: Any = "float32", key: Array) -> None:
        of_weight, of_bias = random.split(key)
        self.weight = uniform(of_weight, (m, n), max(n, 1) ** -0.5, dtype)
        self.bias = uniform(of_bias, (m,), max(n, 1) ** -0.5, dtype) if bias else None

    def __call__(self, x: Any) -> Array:
        m, n = self.weight.shape
        x = check_input(self, x, n, f"nn.Linear({np.shape(x)[-1] if np.ndim(x) else n}, {m}, ...)")
        y: Array = x @ self.weight.T
        return y if self.bias is None else y + self.bias


class Bilinear(Module):
    """y_k = x1^T W_k x2 + b_k.

    n1, n2, m: features of both inputs and of the result; x1: [..., n1], x2: [..., n2], y: [..., m]; weight:
    [m, n1, n2], bias: [m], uniform within n1**-0.5 as PyTorch's.

    >>> layer = nn.Bilinear(2, 3, 4, key=tracer.random.key(0))
    >>> layer(tnp.ones(2, "float32"), tnp.ones(3, "float32")).shape
    (4,)
    """

    def __init__(self, n1: int, n2: int, m: int, *, bias: bool = True, dtype: Any = "float32", key: Array) -> None:
        of_weight, of_bias = random.split(key)
        self.weight = uniform(of_weight, (m, n1, n2), max(n1, 1) ** -0.5, dtype)
        self.bias = uniform(of_bias, (m,), max(n1, 1) ** -0.5, dtype) if bias else None

    def __call__(self, x1: Any, x2: Any) -> Array:
        _, n1, n2 = self.weight.shape
        x1 = check_input(self, x1, n1, f"nn.Bilinear takes x1 [..., {n1}] and x2 [..., {n2}]")
        x2 = check_input(self, x2, n2, f"nn.Bilinear takes x1 [..., {n1}] and x2 [..., {n2}]")
        y: Array = tnp.einsum("...i,kij,...j->...k", x1, self.weight, x2)
        return y if self.bias is None else y + self.bias


class Embedding(Module):
    """Table of vectors that indices choose.

    count, n: the number of vectors and their length; indices: integers [...], the result: [..., n]; weight: [count, n],
    normal with standard deviation `scale`. padding: an index whose vector is zero at first, and has no gradient.
    Raises OutOfBoundsError, in compiled code too, for indices outside the table: negative ones are.

    >>> table = nn.Embedding(10, 4, key=tracer.random.key(0))
    >>> table(tnp.asarray([1, 2])).shape
    (2, 4)
    """

    def __init__(
        self, count: int, n: int, *, scale: float = 1.0, padding: int | None = None, dtype: Any = "float32", key: Array
    ) -> None:
        weight = scale * random.normal(key, (count, n), dtype)
        self.weight = weight if padding is None else weight.at[padding].set(0.0)
        self.padding = padding

    def __call__(self, indices: Any) -> Array:
        indices = tnp.asarray(indices)
        if not dtypes.is_integer(indices.dtype):
            raise DTypeError(
                message(f"{place(self)} takes integers", f"got {indices.type}{here()}", help="x.astype(int)")
            )
        weight = self.weight
        if self.padding is not None:
            from_padding = tnp.arange(len(weight)) == self.padding % len(weight)
            weight = tnp.where(from_padding[:, None], lax.stop_gradient(weight), weight)
        return rows_of(weight, indices)

    def attend(self, x: Any) -> Array:
        """Return the products with all vectors, [..., n] -> [..., count]: logits of a model that shares its table."""
        x = check_input(self, x, self.weight.shape[1], f"the vectors have {self.weight.shape[1]} elements")
        logits: Array = x @ self.weight.T
        return logits
