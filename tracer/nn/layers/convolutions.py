"""Convolutions and transposed convolutions over one, two or three axes, with PyTorch's weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tracer import lax, random
from tracer import numpy as tnp
from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.nn.layers.linear import check_dtype, uniform
from tracer.nn.layers.windows import Pads, check_mode, check_windows, padded, pads, per_axis
from tracer.nn.module import Module, place
from tracer.trace.array import Array
from tracer.trace.source import here

_NAMES = {1: "[b, {n}, t]", 2: "[b, {n}, h, w]", 3: "[b, {n}, d, h, w]"}


class _Convolution(Module):
    """Weight, bias and settings of both kinds of convolutions."""

    rank: ClassVar[int]
    weight: Array
    bias: Array | None

    def _set(
        self, n: int, m: int, first: int, second: int, size: Any, stride: Any, dilation: Any, groups: int, bias: bool,
        dtype: Any, key: Array,
    ) -> None:  # fmt: skip
        """Draw a weight [first, second / groups, *size], with a fan in of second / groups times the window's size."""
        caller = type(self).__name__
        window = per_axis(caller, "size", size, self.rank)
        if groups < 1 or n % groups or m % groups:
            raise ArgumentError(
                message(
                    f"nn.{caller}{here()}: groups must divide the features in and out",
                    f"got groups={groups} for {n} in and {m} out",
                )
            )
        second //= groups
        bound = max(second * math.prod(window), 1) ** -0.5
        of_weight, of_bias = random.split(key)
        self.weight = uniform(of_weight, (first, second, *window), bound, dtype)
        self.bias = uniform(of_bias, (m,), bound, dtype) if bias else None
        self.stride = per_axis(caller, "stride", stride, self.rank)
        self.dilation = per_axis(caller, "dilation", dilation, self.rank)
        self.groups = groups

    def _operands(self, x: Any, n: int) -> tuple[Array, Array, Sequence[int]]:
        """Return x and the weight in one dtype, and the window's sizes with dilation. Raises unless x fits."""
        x = tnp.asarray(x)
        if x.ndim not in (self.rank + 1, self.rank + 2) or x.shape[-1 - self.rank] != n:
            raise ShapeError(
                message(
                    f"{place(self)} takes {_NAMES[self.rank].format(n=n)}",
                    f"got {x.type}{here()}",
                    help=self._remedy(x, n),
                )
            )
        check_dtype(self, x)
        if dtypes.is_complex(x.dtype) and not dtypes.is_complex(self.weight.dtype):
            raise DTypeError(message(f"{place(self)} takes real numbers", f"got {x.type}{here()}"))
        wide = tnp.promote_types(x.dtype, self.weight.dtype) if dtypes.is_inexact(x.dtype) else self.weight.dtype
        window = tuple((k - 1) * d + 1 for k, d in zip(self.weight.shape[2:], self.dilation, strict=True))
        return x.astype(wide), self.weight.astype(wide), window

    def _remedy(self, x: Array, n: int) -> str:
        rank = self.rank
        if x.ndim == rank + 2 and x.shape[-1] == n:
            return f"x.transpose({', '.join(map(str, (0, rank + 1, *range(1, rank + 1))))}) has the features first"
        if x.ndim == rank + 1 and n == 1:
            return "x[:, None] has an axis of one feature"
        if x.ndim in (rank + 1, rank + 2):
            return f"the layer was made for {n} features: nn.{type(self).__name__}({x.shape[-1 - rank]}, ...)"
        return f"one axis of examples, one of features, then {rank}"

    def _with_bias(self, y: Array, has_batch: bool) -> Array:
        if self.bias is not None:
            y = y + self.bias.reshape(-1, *[1] * self.rank)
        return y if has_batch else y[0]


class _Conv(_Convolution):
    """Convolution of any rank."""

    def __init__(
        self, n: int, m: int, size: int | Sequence[int], *, stride: int | Sequence[int] = 1, padding: Any = 0,
        dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
        dtype: Any = "float32", key: Array,
    ) -> None:  # fmt: skip
        self._set(n, m, m, n, size, stride, dilation, groups, bias, dtype, key)
        self.padding = self._pads(padding)
        self.padding_mode = check_mode(type(self).__name__, "padding_mode", padding_mode)

    def _pads(self, padding: Any) -> Pads:
        caller = type(self).__name__
        if padding == "valid":
            return ((0, 0),) * self.rank
        if padding != "same":
            if isinstance(padding, str):
                raise ArgumentError(
                    message(f'nn.{caller}{here()}: padding by name is "same" or "valid"', f"got {padding!r}")
                )
            return pads(caller, padding, self.rank)
        if max(self.stride) > 1:
            raise ArgumentError(
                message(
                    f'nn.{caller}{here()}: padding="same" is for strides of 1',
                    f"got stride={self.stride}",
                    help="padding=size // 2 for odd sizes",
                )
            )
        totals = [(k - 1) * d for k, d in zip(self.weight.shape[2:], self.dilation, strict=True)]
        return tuple((total // 2, total - total // 2) for total in totals)

    def __call__(self, x: Any) -> Array:
        x, weight, window = self._operands(x, self.weight.shape[1] * self.groups)
        has_batch = x.ndim == self.rank + 2
        x, padding = x if has_batch else x[None], self.padding
        check_windows(place(self), x, window, padding)
        if self.padding_mode != "zeros":
            x, padding = padded(x, padding, self.padding_mode), ((0, 0),) * self.rank
        y = lax.conv_general_dilated(
            x, weight, self.stride, padding, rhs_dilation=self.dilation, feature_group_count=self.groups
        )
        return self._with_bias(y, has_batch)


class Conv1d(_Conv):
    """Convolve along the last axis.

    n, m: features in and out; size, stride, dilation: an integer; padding: an integer, ((before, after),), "same" or
    "valid"; groups: how many parts the features have, each with its own results; padding_mode: "zeros", "reflect",
    "replicate" or "circular". x: [b, n, t] or [n, t], the result: [b, m, u] or [m, u] with u = (t + before + after -
    dilation (size - 1) - 1) // stride + 1; weight: [m, n / groups, size], bias: [m], both uniform within (n / groups *
    size)**-0.5 as PyTorch's. Raises ShapeError for inputs of other sizes, DTypeError for wider ones.

    >>> layer = nn.Conv1d(2, 4, 3, padding="same", key=tracer.random.key(0))
    >>> layer(tnp.ones((5, 2, 10), "float32")).shape
    (5, 4, 10)
    """

    rank = 1


class Conv2d(_Conv):
    """Convolve along the last two axes.

    n, m: features in and out; size, stride, dilation: an integer, or one for each axis; padding: an integer, an integer
    or a pair (before, after) for each axis, "same" or "valid"; groups: how many parts the features have, each with its
    own results; padding_mode: "zeros", "reflect", "replicate" or "circular". x: [b, n, h, w] or [n, h, w], the result:
    [b, m, *positions] or [m, *positions]; weight: [m, n / groups, *size], bias: [m], both uniform within fan_in**-0.5
    as PyTorch's. Raises ShapeError for inputs of other sizes, DTypeError for wider ones.

    >>> layer = nn.Conv2d(3, 8, 3, padding=1, key=tracer.random.key(0))
    >>> layer(tnp.ones((5, 3, 32, 32), "float32")).shape
    (5, 8, 32, 32)
    """

    rank = 2


class Conv3d(_Conv):
    """Convolve along the last three axes. The arguments are as in `Conv2d`, x is [b, n, d, h, w] or [n, d, h, w].

    >>> layer = nn.Conv3d(1, 2, 3, stride=2, padding=1, key=tracer.random.key(0))
    >>> layer(tnp.ones((1, 1, 8, 8, 8), "float32")).shape
    (1, 2, 4, 4, 4)
    """

    rank = 3


class _ConvTranspose(_Convolution):
    """Transposed convolution of any rank."""

    def __init__(
        self, n: int, m: int, size: int | Sequence[int], *, stride: int | Sequence[int] = 1, padding: Any = 0,
        output_padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True,
        dtype: Any = "float32", key: Array,
    ) -> None:  # fmt: skip
        self._set(n, m, n, m, size, stride, dilation, groups, bias, dtype, key)
        caller = type(self).__name__
        self.padding = pads(caller, padding, self.rank)
        self.output_padding = per_axis(caller, "output_padding", output_padding, self.rank, 0)
        most = tuple(max(s, d) for s, d in zip(self.stride, self.dilation, strict=True))
        if any(more >= limit for more, limit in zip(self.output_padding, most, strict=True)):
            raise ArgumentError(
                message(
                    f"nn.{caller}{here()}: output_padding must be less than the stride or the dilation",
                    f"got output_padding={self.output_padding} for stride={self.stride}, dilation={self.dilation}",
                )
            )

    def __call__(self, x: Any) -> Array:
        n, m = self.weight.shape[0], self.weight.shape[1] * self.groups
        x, weight, window = self._operands(x, n)
        has_batch = x.ndim == self.rank + 2
        x = x if has_batch else x[None]
        padding = [
            (size - 1 - before, size - 1 - after + more)
            for size, (before, after), more in zip(window, self.padding, self.output_padding, strict=True)
        ]
        spatial = weight.shape[2:]
        flipped = tnp.flip(weight, range(2, weight.ndim)).reshape(self.groups, n // self.groups, -1, *spatial)
        y = lax.conv_general_dilated(
            x, tnp.swapaxes(flipped, 1, 2).reshape(m, n // self.groups, *spatial), (1,) * self.rank, padding,
            lhs_dilation=self.stride, rhs_dilation=self.dilation, feature_group_count=self.groups,
        )  # fmt: skip
        return self._with_bias(y, has_batch)


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution along the last axis: the derivative of `Conv1d` by its input.

    n, m: features in and out; size, stride, dilation: an integer; padding: an integer or ((before, after),), by which
    the result is shorter; output_padding: elements more at the end; groups: how many parts the features have. x: [b, n,
    t] or [n, t], the result: [b, m, u] or [m, u] with u = (t - 1) stride - before - after + dilation (size - 1) +
    output_padding + 1; weight: [n, m / groups, size], bias: [m], both uniform within (m / groups * size)**-0.5 as
    PyTorch's. Raises ShapeError for inputs of other sizes, DTypeError for wider ones.

    >>> layer = nn.ConvTranspose1d(4, 2, 4, stride=2, padding=1, key=tracer.random.key(0))
    >>> layer(tnp.ones((5, 4, 10), "float32")).shape
    (5, 2, 20)
    """

    rank = 1


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution along the last two axes: the derivative of `Conv2d` by its input.

    n, m: features in and out; size, stride, dilation, output_padding: an integer, or one for each axis; padding: an
    integer, or an integer or a pair (before, after) for each axis, by which the result is shorter; groups: how many
    parts the features have. x: [b, n, h, w] or [n, h, w]; weight: [n, m / groups, *size], bias: [m], both uniform
    within fan_in**-0.5 for a fan in of m / groups times the window, as PyTorch's. Raises ShapeError for inputs of other
    sizes, DTypeError for wider ones.

    >>> layer = nn.ConvTranspose2d(4, 2, 2, stride=2, key=tracer.random.key(0))
    >>> layer(tnp.ones((5, 4, 8, 8), "float32")).shape
    (5, 2, 16, 16)
    """

    rank = 2


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution along the last three axes. The arguments are as in `ConvTranspose2d`.

    >>> layer = nn.ConvTranspose3d(2, 1, 2, stride=2, key=tracer.random.key(0))
    >>> layer(tnp.ones((1, 2, 4, 4, 4), "float32")).shape
    (1, 1, 8, 8, 8)
    """

    rank = 3
