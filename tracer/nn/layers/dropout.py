"""Layers that draw: Dropout and DropPath."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer import numpy as tnp
from tracer import random
from tracer.errors import ArgumentError, message
from tracer.nn.module import Module
from tracer.trace.array import Array
from tracer.trace.source import here


class Dropout(Module):
    """Zero random elements in training copies, and scale the remaining ones by 1 / (1 - rate); else the identity.

    rate: the probability of zero, from 0 up to 1. axes: axes that share a mask, such as (2, 3) for whole channels of
    images. Srivastava et al. 2014, J. Mach. Learn. Res. 15.

    >>> layer = nn.Dropout(0.5)
    >>> layer(tnp.ones(4))
    Array([1., 1., 1., 1.], f64)
    >>> set(layer.training(tracer.random.key(0))(tnp.ones(100)).tolist())
    {0.0, 2.0}
    """

    def __init__(self, rate: float = 0.5, *, axes: Sequence[int] | None = None) -> None:
        self.rate = _checked(rate, "Dropout")
        self.axes = None if axes is None else tuple(axes)

    def __call__(self, x: Any, *, key: Array | None = None) -> Any:
        x = tnp.asarray(x)
        if not self.rate or (key is None and not self.is_training):
            return x
        shared = [axis % x.ndim for axis in self.axes or ()]
        shape = [1 if axis in shared else size for axis, size in enumerate(x.shape)]
        return _dropped(x, self.rate, shape, self.draw_key(key))


class DropPath(Module):
    """Zero whole examples of a residual branch at random in training copies: stochastic depth.

    rate: the probability of zero. x: [b, ...]. Huang et al. 2016, ECCV.

    >>> nn.DropPath(0.1)(tnp.ones((2, 3))).sum()
    Array(6., f64)
    """

    def __init__(self, rate: float) -> None:
        self.rate = _checked(rate, "DropPath")

    def __call__(self, x: Any, *, key: Array | None = None) -> Any:
        x = tnp.asarray(x)
        if not self.rate or (key is None and not self.is_training):
            return x
        return _dropped(x, self.rate, [len(x)] + [1] * (x.ndim - 1), self.draw_key(key))


def _checked(rate: float, name: str) -> float:
    if not 0 <= rate < 1:
        raise ArgumentError(message(f"nn.{name}{here()}: the rate must be from 0 up to 1", f"got {rate!r}"))
    return float(rate)


def _dropped(x: Array, rate: float, shape: Sequence[int], key: Array) -> Array:
    kept = random.bernoulli(key, 1 - rate, shape)
    result: Array = tnp.where(kept, x / (1 - rate), 0.0).astype(x.dtype)
    return result
