"""Layers of other shapes, Flatten, Upsample, PixelShuffle, Pad; PReLU, and functions as layers."""

# mypy: disable-error-code="no-any-return"
# (inputs are `Any`, and so are their methods' results)

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.nn.layers.linear import check_dtype
from tracer.nn.layers.windows import Pads, check_mode, padded, pads
from tracer.nn.module import Module, place
from tracer.trace.array import Array
from tracer.trace.source import here


class Flatten(Module):
    """Join all axes from `start` on: [b, *s] -> [b, n] for 1.

    >>> nn.Flatten()(tnp.ones((5, 3, 8, 8))).shape
    (5, 192)
    """

    def __init__(self, start: int = 1) -> None:
        self.start = start

    def __call__(self, x: Any) -> Array:
        x = tnp.asarray(x)
        start = self.start + x.ndim if self.start < 0 else self.start
        if not 0 <= start <= x.ndim:
            raise ShapeError(message(f"{place(self)}: there is no axis {self.start}", f"got {x.type}{here()}"))
        return x.reshape(*x.shape[:start], math.prod(x.shape[start:]))


class Upsample(Module):
    """Enlarge the axes after the second by repeating elements, or by linear interpolation.

    scale: a number, or one for each axis; mode: "nearest", or "linear", also called "bilinear" and "trilinear".
    x: [b, c, *s] -> [b, c, *floor(s scale)]. Interpolation places the centres of elements at halves and repeats the
    edges, as PyTorch's with align_corners=False; computed in float32 at least.

    >>> nn.Upsample(2)(tnp.asarray([[[1.0, 2.0]]]))
    Array([[[1., 1., 2., 2.]]], f64)
    >>> nn.Upsample(2, "linear")(tnp.asarray([[[1.0, 2.0]]]))
    Array([[[1.  , 1.25, 1.75, 2.  ]]], f64)
    """

    def __init__(self, scale: float | Sequence[float], mode: str = "nearest") -> None:
        self.scale = tuple(map(float, scale)) if isinstance(scale, Sequence) else float(scale)
        if mode not in ("nearest", "linear", "bilinear", "trilinear"):
            raise ArgumentError(
                message(f'nn.Upsample{here()}: mode is "nearest", "linear", "bilinear" or "trilinear"', f"got {mode!r}")
            )
        if min(self.scale if isinstance(self.scale, tuple) else (self.scale,), default=0.0) <= 0:
            raise ArgumentError(message(f"nn.Upsample{here()}: scales are positive numbers", f"got {scale!r}"))
        self.mode = mode

    def __call__(self, x: Any) -> Array:
        x = tnp.asarray(x)
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,) * max(x.ndim - 2, 0)
        wanted = {"bilinear": 2, "trilinear": 3}.get(self.mode, len(scales))
        if not scales or len(scales) != x.ndim - 2 or len(scales) != wanted:
            raise ShapeError(
                message(
                    f"{place(self)} takes [b, c, *s] with {wanted or 'one or more'} sizes", f"got {x.type}{here()}",
                    help="x[None] has an axis of one example",
                )
            )  # fmt: skip
        if self.mode == "nearest":
            for axis, scale in enumerate(scales, 2):
                x = tnp.take(x, _nearest(x.shape[axis], scale), axis)
            return x
        dtype = x.dtype if dtypes.is_inexact(x.dtype) else tnp.asarray(0.0).dtype
        y = x.astype(tnp.promote_types(dtype, "float32"))
        for axis, scale in enumerate(scales, 2):
            low, high, share = _between(x.shape[axis], scale)
            part = tnp.asarray(share, y.dtype).reshape(-1, *[1] * (x.ndim - 1 - axis))
            y = tnp.take(y, low, axis) * (1 - part) + tnp.take(y, high, axis) * part
        return y.astype(dtype)


def _nearest(n: int, scale: float) -> Any:
    places = np.arange(math.floor(n * scale))
    return places // int(scale) if scale == int(scale) else np.minimum((places / scale).astype("int64"), max(n - 1, 0))


def _between(n: int, scale: float) -> tuple[Any, Any, Any]:
    """Return the elements below and above each new one, and the share of the element above."""
    places = np.maximum((np.arange(math.floor(n * scale)) + 0.5) / scale - 0.5, 0.0)
    low = np.minimum(places.astype("int64"), max(n - 1, 0))
    return low, np.minimum(low + 1, max(n - 1, 0)), places - low


class PixelShuffle(Module):
    """Move features to positions: [b, c r^2, h, w] -> [b, c, h r, w r] for the factor r. Shi et al. 2016, CVPR.

    >>> nn.PixelShuffle(2)(tnp.arange(4.0).reshape(1, 4, 1, 1))[0, 0]
    Array([[0., 1.],
           [2., 3.]], f64)
    """

    def __init__(self, factor: int) -> None:
        if factor < 1:
            raise ArgumentError(message(f"nn.PixelShuffle{here()}: the factor is positive", f"got {factor!r}"))
        self.factor = factor

    def __call__(self, x: Any) -> Array:
        x, r = tnp.asarray(x), self.factor
        if x.ndim < 3 or x.shape[-3] % r**2:
            raise ShapeError(message(f"{place(self)} takes [b, c * {r**2}, h, w]", f"got {x.type}{here()}"))
        *front, c, h, w = x.shape
        parts = x.reshape(*front, c // r**2, r, r, h, w)
        k = len(front)
        moved = parts.transpose(*range(k), k, k + 3, k + 1, k + 4, k + 2)
        return moved.reshape(*front, c // r**2, h * r, w * r)


class Pad(Module):
    """Pad the axes after the second.

    widths: an integer, or for each of the last axes in their order an integer or a pair (before, after); mode: "zeros",
    "reflect", "replicate" or "circular"; value: the number that "zeros" pads with. x: [b, c, *s].

    >>> nn.Pad(1, "replicate")(tnp.asarray([[[1.0, 2.0]]]))
    Array([[[1., 1., 2., 2.]]], f64)
    """

    def __init__(self, widths: Any, mode: str = "zeros", *, value: float = 0.0) -> None:
        rank = 1 if isinstance(widths, int) else len(widths)
        found = pads("Pad", widths, rank)
        self.widths: int | Pads = found[0][0] if isinstance(widths, int) else found
        self.mode = check_mode("Pad", "mode", mode)
        self.value = value

    def __call__(self, x: Any) -> Array:
        x = tnp.asarray(x)
        if isinstance(self.widths, int):
            widths: Pads = ((self.widths, self.widths),) * max(x.ndim - 2, 0)
        else:
            widths = self.widths
        if not widths or len(widths) > x.ndim:
            raise ShapeError(
                message(f"{place(self)} pads {len(widths) or 'all but the first two'} axes", f"got {x.type}{here()}")
            )
        return padded(x, widths, self.mode, self.value)


class PReLU(Module):
    """max(0, x) + weight min(0, x), with a slope that is trained. He et al. 2015, ICCV.

    count: one slope for all, or one for each feature of axis 1; init: its first value. x: [b, count, *s], or any shape
    for one slope; weight: [count].

    >>> nn.PReLU()(tnp.asarray([-1.0, 2.0], "float32"))
    Array([-0.25,  2.  ], f32)
    """

    def __init__(self, count: int = 1, *, init: float = 0.25, dtype: Any = "float32") -> None:
        self.weight = tnp.full((count,), init, dtype)

    def __call__(self, x: Any) -> Array:
        x = tnp.asarray(x)
        check_dtype(self, x)
        (count,) = self.weight.shape
        slope = self.weight[0] if count == 1 else self.weight
        if count != 1:
            if x.ndim < 2 or x.shape[1] != count:
                raise ShapeError(message(f"{place(self)} takes [b, {count}, ...]", f"got {x.type}{here()}"))
            slope = slope.reshape(-1, *[1] * (x.ndim - 2))
        result: Array = tnp.where(x > 0, x, slope * x)
        return result


class Lambda(Module):
    """Function as a layer, which belongs to the model's structure.

    >>> nn.Lambda(tnp.square)(tnp.asarray([3.0]))
    Array([9.], f64)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)
