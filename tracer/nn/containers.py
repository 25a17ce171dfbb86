"""Modules of modules: Sequential, MLP, Residual, Identity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from tracer.nn.activations import relu
from tracer.nn.layers.linear import Linear
from tracer.nn.module import Keys, Module
from tracer.trace.array import Array


class Identity(Module):
    """Return the input.

    >>> nn.Identity()(3.0)
    3.0
    """

    def __call__(self, x: Any) -> Any:
        return x


class Sequential(Module):
    """Call layers and functions one after another.

    >>> keys = nn.Keys(tracer.random.key(0))
    >>> model = nn.Sequential(nn.Linear(3, 8, key=next(keys)), nn.relu, nn.Linear(8, 1, key=next(keys)))
    >>> model(tnp.ones((5, 3), "float32")).shape
    (5, 1)
    >>> len(model), len(model[:2])
    (3, 2)
    """

    def __init__(self, *layers: Callable[[Any], Any]) -> None:
        self.layers = list(layers)

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)

    def __getitem__(self, index: int | slice) -> Any:
        return Sequential(*self.layers[index]) if isinstance(index, slice) else self.layers[index]


class Residual(Module):
    """Add the input to the result of layers called one after another.

    >>> nn.Residual(nn.relu)(tnp.asarray([-1.0, 2.0]))
    Array([-1.,  4.], f64)
    """

    def __init__(self, *layers: Callable[[Any], Any]) -> None:
        self.layers = list(layers)

    def __call__(self, x: Any) -> Any:
        y = x
        for layer in self.layers:
            y = layer(y)
        return x + y


class MLP(Module):
    """Linear layers with an activation between them.

    sizes: features of the input, of each hidden layer, and of the result. x: [..., sizes[0]] -> [..., sizes[-1]].

    >>> nn.MLP([64, 128, 10], key=tracer.random.key(0))
    MLP(activation=relu
      layers[0]: Linear(weight=f32[128,64], bias=f32[128])
      layers[1]: Linear(weight=f32[10,128], bias=f32[10])
    )
    """

    def __init__(
        self, sizes: Sequence[int], *, activation: Callable[[Any], Any] = relu, bias: bool = True,
        dtype: Any = "float32", key: Array,
    ) -> None:  # fmt: skip
        keys = Keys(key)
        self.activation = activation
        self.layers = [Linear(n, m, bias=bias, dtype=dtype, key=next(keys)) for n, m in pairwise(sizes)]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)
