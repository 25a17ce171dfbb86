"""LoRA: a frozen linear layer with a trained correction of low rank."""

from __future__ import annotations

from typing import Any

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.nn.layers.linear import Linear, uniform
from tracer.nn.module import Module
from tracer.nn.selecting import at
from tracer.trace.array import Array
from tracer.trace.source import here


class LoRA(Module):
    """y = linear(x) + alpha / rank * B A x, where A and B alone are trained. Hu et al. 2021, arXiv:2106.09685.

    linear: a linear layer of n features to m, which is frozen; rank: of the correction; alpha: its size, rank by
    default. a: [rank, n], uniform within n**-0.5; b: [m, rank], 0 at first, so the result is `linear`'s.
    Raises ArgumentError for other layers and ranks below 1.

    >>> keys = nn.Keys(tracer.random.key(0))
    >>> model = nn.MLP([8, 16, 2], key=next(keys))
    >>> tuned = nn.at(model, "layers[*]").map(lambda linear: nn.LoRA(linear, 2, key=next(keys)))
    >>> nn.count(tuned), nn.count(model)
    (84, 178)
    >>> nn.at(tuned, nn.LoRA).map(nn.LoRA.merged).layers[0]
    Linear(weight=f32[16,8], bias=f32[16])
    """

    def __init__(self, linear: Any, rank: int, *, alpha: float | None = None, key: Array) -> None:
        if not isinstance(linear, Linear) or rank < 1:
            came = f"rank={rank}" if isinstance(linear, Linear) else type(linear).__name__
            raise ArgumentError(
                message(
                    f"nn.LoRA{here()} takes a Linear and a rank of 1 or more", f"got {came}", help="nn.at(model, ...)"
                )
            )
        m, n = linear.weight.shape
        self.linear = at(linear, "**").freeze()
        self.a = uniform(key, (rank, n), max(n, 1) ** -0.5, linear.weight.dtype)
        self.b = tnp.zeros((m, rank), linear.weight.dtype)
        self.scale = 1.0 if alpha is None else alpha / rank

    def __call__(self, x: Any) -> Array:
        x = tnp.asarray(x)
        y: Array = self.linear(x) + x @ self.a.T @ self.b.T * self.scale
        return y

    def merged(self) -> Linear:
        """Return the linear layer with the correction in its weight, trained again."""
        weight = self.linear.weight + (self.b @ self.a * self.scale).astype(self.linear.weight.dtype)
        merged: Linear = at(self.linear.replace(weight=weight), "**").thaw()
        return merged
