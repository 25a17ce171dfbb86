"""Normalisation layers: over batches, features, groups and instances; and normalised weights.

Statistics and normalised values are computed in float32 at least; results have the input's dtype.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tracer import lax, random
from tracer import numpy as tnp
from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.nn.layers.convolutions import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from tracer.nn.layers.linear import check_dtype
from tracer.nn.layout import Role
from tracer.nn.module import Module, State, place
from tracer.trace.array import Array
from tracer.trace.source import here

_TRANSPOSED = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)


def _wide(layer: Module, x: Any, weight: str = "weight") -> tuple[Array, Any]:
    """Return the input in float32 at least, and its own dtype. Raises DTypeError for integers and complex numbers."""
    x = tnp.asarray(x)
    if not dtypes.is_float(x.dtype):
        raise DTypeError(message(f"{place(layer)} takes floats", f"got {x.type}{here()}", help='x.astype("float32")'))
    check_dtype(layer, x, weight)
    return x.astype(tnp.promote_types(x.dtype, "float32")), x.dtype


def _statistics(x: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """Return the mean and the mean square distance from it, with axes of size 1."""
    mean = x.mean(tuple(axes), keepdims=True)
    return mean, tnp.square(x - mean).mean(tuple(axes), keepdims=True)


def _scaled(x: Array, weight: Array | None, bias: Array | None, tail: Sequence[int]) -> Array:
    """Return x times the weight plus the bias, both with axes `tail` of size 1 after theirs."""
    if weight is not None:
        x = x * weight.astype(x.dtype).reshape(*weight.shape, *tail)
    if bias is not None:
        x = x + bias.astype(x.dtype).reshape(*bias.shape, *tail)
    return x


def _check_features(layer: Module, x: Array, n: int) -> None:
    if x.ndim < 2 or x.shape[1] != n:
        last = x.ndim > 2 and x.shape[-1] == n
        first = ", ".join(map(str, (0, x.ndim - 1, *range(1, x.ndim - 1))))
        raise ShapeError(
            message(
                f"{place(layer)} takes [b, {n}, ...]",
                f"got {x.type}{here()}",
                help=f"x.transpose({first}) has the features first" if last else "the features are axis 1",
            )
        )


class BatchNorm(Module):
    """Normalise every feature over the batch and all positions; in inference, by running statistics.

    n: features; momentum: the share of a batch in the running statistics; None keeps means over all batches, by a
    state num_batches_tracked; eps: added to the variance; affine: whether there are weight and bias; axis_name:
    a mapped axis over which statistics are joined, too. x: floats [b, n, *s] of any number of sizes; weight, bias: [n],
    1 and 0 at first; state running_mean, running_var: [n], 0 and 1 at first. A
    training copy normalises by the batch's mean and variance, and updates the running ones. The running variance takes
    the batch's times count / (count - 1), as in PyTorch. A frozen layer does neither. Ioffe & Szegedy 2015,
    arXiv:1502.03167. Raises ShapeError for inputs of other sizes, and for training by one element.

    >>> layer = nn.BatchNorm(2).training()
    >>> layer(tnp.asarray([[0.0, 1.0], [2.0, 1.0]], "float32")).round(3)
    Array([[-1.,  0.],
           [ 1.,  0.]], f32)
    >>> layer.inference().running_mean
    Array([0.1, 0.1], f32)
    """

    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self, n: int, *, momentum: float | None = 0.1, eps: float = 1e-5, affine: bool = True,
        axis_name: str | Sequence[str] | None = None, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        self.weight = tnp.ones(n, dtype) if affine else None
        self.bias = tnp.zeros(n, dtype) if affine else None
        self.running_mean = State(tnp.zeros(n, dtype))
        self.running_var = State(tnp.ones(n, dtype))
        if momentum is None:
            self.num_batches_tracked = State(tnp.asarray(0))
        self.momentum, self.eps = momentum, eps
        self.axis_name = axis_name if axis_name is None or isinstance(axis_name, str) else tuple(axis_name)

    def __call__(self, x: Any) -> Array:
        x, dtype = _wide(self, x, "running_mean")
        _check_features(self, x, self.running_mean.shape[0])
        tail = (1,) * (x.ndim - 2)
        if self.is_training and self.layout.role("running_mean") is Role.STATE:
            mean, var = self._of_batch(x)
        else:
            mean, var = (s.astype(x.dtype).reshape(-1, *tail) for s in (self.running_mean, self.running_var))
        return _scaled((x - mean) * lax.rsqrt(var + self.eps), self.weight, self.bias, tail).astype(dtype)

    def _of_batch(self, x: Array) -> tuple[Array, Array]:
        axes = (0, *range(2, x.ndim))
        count: Any = math.prod(x.shape[axis] for axis in axes)
        if self.axis_name is None:
            if count <= 1:
                raise ShapeError(
                    message(
                        f"{place(self)} takes more than one element of a feature in training",
                        f"got {x.type}{here()}",
                        help="a greater batch, or freeze the layer",
                    )
                )
            mean, var = _statistics(x, axes)
        else:
            count = count * lax.psum(1, self.axis_name)
            mean = lax.pmean(x.mean(axes, keepdims=True), self.axis_name)
            var = lax.pmean(tnp.square(x - mean).mean(axes, keepdims=True), self.axis_name)
        share: Any = self.momentum
        if share is None:
            self.update(num_batches_tracked=self.num_batches_tracked + 1)
            share = 1 / self.num_batches_tracked.astype(mean.dtype)
        self._write("running_mean", mean, share)
        self._write("running_var", var * (count / (count - 1)), share)
        return mean, var

    def _write(self, name: str, batch: Array, share: Any) -> None:
        old = getattr(self, name)
        new = lax.stop_gradient(batch).reshape(old.shape)
        self.update(**{name: ((1 - share) * old + share * new).astype(old.dtype)})


class LayerNorm(Module):
    """Normalise over the last axes: (x - mean) / sqrt(variance + eps) * weight + bias.

    shape: the size of the last axis, or the sizes of the last axes; affine: whether there is a weight; bias: and a
    bias. x: floats [..., *shape]; weight, bias: [*shape], 1 and 0 at first. Ba, Kiros & Hinton 2016, arXiv:1607.06450.
    Raises ShapeError for inputs of other sizes, DTypeError for wider ones.

    >>> nn.LayerNorm(2)(tnp.asarray([[0.0, 2.0], [5.0, 3.0]], "float32")).round(3)
    Array([[-1.,  1.],
           [ 1., -1.]], f32)
    """

    def __init__(
        self, shape: int | Sequence[int], *, eps: float = 1e-5, affine: bool = True, bias: bool = True,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        self.shape = _sizes(shape)
        self.weight = tnp.ones(self.shape, dtype) if affine else None
        self.bias = tnp.zeros(self.shape, dtype) if affine and bias else None
        self.eps = eps

    def __call__(self, x: Any) -> Array:
        x, dtype = _wide(self, x)
        mean, var = _statistics(x, _last_axes(self, x, self.shape))
        return _scaled((x - mean) * lax.rsqrt(var + self.eps), self.weight, self.bias, ()).astype(dtype)


class RMSNorm(Module):
    """Divide by the root of the mean square over the last axes: x / sqrt(mean(x^2) + eps) * weight.

    shape: the size of the last axis, or the sizes of the last axes. x: floats [..., *shape]; weight: [*shape], 1 at
    first. Zhang & Sennrich 2019, arXiv:1910.07467. Raises ShapeError for inputs of other sizes, DTypeError for wider
    ones.

    >>> nn.RMSNorm(2, eps=0.0)(tnp.asarray([1.0, 7.0], "float32"))
    Array([0.2, 1.4], f32)
    """

    def __init__(
        self, shape: int | Sequence[int], *, eps: float = 1e-5, affine: bool = True, dtype: Any = "float32"
    ) -> None:
        self.shape = _sizes(shape)
        self.weight = tnp.ones(self.shape, dtype) if affine else None
        self.eps = eps

    def __call__(self, x: Any) -> Array:
        x, dtype = _wide(self, x)
        square = tnp.square(x).mean(_last_axes(self, x, self.shape), keepdims=True)
        return _scaled(x * lax.rsqrt(square + self.eps), self.weight, None, ()).astype(dtype)


def _sizes(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _last_axes(layer: Module, x: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    first = x.ndim - len(shape)
    if first < 0 or x.shape[first:] != shape:
        raise ShapeError(
            message(
                f"{place(layer)} takes [..., {', '.join(map(str, shape))}]",
                f"got {x.type}{here()}",
                help=f"nn.{type(layer).__name__}({x.shape[-1] if len(shape) == 1 and x.ndim else shape})",
            )
        )
    return tuple(range(first, x.ndim))


class GroupNorm(Module):
    """Normalise every example over groups of features and all positions.

    groups: how many groups n features have; x: floats [b, n, *s]; weight, bias: [n], 1 and 0 at first. Wu & He 2018,
    arXiv:1803.08494. Raises ArgumentError unless groups divide n, ShapeError for inputs of other sizes.

    >>> nn.GroupNorm(2, 4)(tnp.asarray([[0.0, 2.0, 5.0, 3.0]], "float32")).round(3)
    Array([[-1.,  1.,  1., -1.]], f32)
    """

    def __init__(self, groups: int, n: int, *, eps: float = 1e-5, affine: bool = True, dtype: Any = "float32") -> None:
        if groups < 1 or n % groups:
            raise ArgumentError(
                message(f"nn.GroupNorm{here()}: groups must divide the features", f"got groups={groups} for {n}")
            )
        self.weight = tnp.ones(n, dtype) if affine else None
        self.bias = tnp.zeros(n, dtype) if affine else None
        self.groups, self.n, self.eps = groups, n, eps

    def __call__(self, x: Any) -> Array:
        x, dtype = _wide(self, x)
        _check_features(self, x, self.n)
        parts = x.reshape(x.shape[0], self.groups, self.n // self.groups, *x.shape[2:])
        mean, var = _statistics(parts, range(2, parts.ndim))
        y = ((parts - mean) * lax.rsqrt(var + self.eps)).reshape(x.shape)
        return _scaled(y, self.weight, self.bias, (1,) * (x.ndim - 2)).astype(dtype)


class InstanceNorm(Module):
    """Normalise every feature of every example over all positions.

    n: features; affine: whether there are weight and bias, by default not, as in PyTorch. x: floats [b, n, *s] with one
    size or more; weight, bias: [n]. Ulyanov, Vedaldi & Lempitsky 2016, arXiv:1607.08022. Raises ShapeError for inputs
    of other sizes, and for training by one position.

    >>> nn.InstanceNorm(1)(tnp.asarray([[[0.0, 2.0]]], "float32")).round(3)
    Array([[[-1.,  1.]]], f32)
    """

    def __init__(self, n: int, *, eps: float = 1e-5, affine: bool = False, dtype: Any = "float32") -> None:
        self.weight = tnp.ones(n, dtype) if affine else None
        self.bias = tnp.zeros(n, dtype) if affine else None
        self.n, self.eps = n, eps

    def __call__(self, x: Any) -> Array:
        x, dtype = _wide(self, x)
        _check_features(self, x, self.n)
        if x.ndim < 3 or (self.is_training and math.prod(x.shape[2:]) == 1):
            raise ShapeError(
                message(f"{place(self)} takes [b, {self.n}, *s] with more than one position", f"got {x.type}{here()}")
            )
        mean, var = _statistics(x, range(2, x.ndim))
        y = (x - mean) * lax.rsqrt(var + self.eps)
        return _scaled(y, self.weight, self.bias, (1,) * (x.ndim - 2)).astype(dtype)


class SpectralNorm(Module):
    """Call a layer with its weight over an estimate of the weight's largest singular value.

    layer: a layer with an attribute `name`, an array of two axes or more; axis: of its rows, by default 0, or 1 in
    transposed convolutions; all other axes are the columns. iterations: steps of power iteration in each call of a
    training copy, whose vectors are the state u and v; inference takes them as they are. eps: the least norm that u
    and v are divided by. The first vectors come from 15 steps. Miyato et al. 2018, arXiv:1802.05957.

    >>> keys = nn.Keys(tracer.random.key(0))
    >>> layer = nn.SpectralNorm(nn.Linear(3, 2, key=next(keys)), key=next(keys))
    >>> layer(tnp.ones((5, 3), "float32")).shape
    (5, 2)
    """

    u: Any
    v: Any

    def __init__(
        self, layer: Module, name: str = "weight", *, iterations: int = 1, axis: int | None = None, eps: float = 1e-12,
        key: Array,
    ) -> None:  # fmt: skip
        weight = _weight("SpectralNorm", layer, name)
        if iterations < 1:
            raise ArgumentError(message(f"nn.SpectralNorm{here()}: iterations are positive", f"got {iterations}"))
        self.layer, self.name, self.iterations, self.eps = layer, name, iterations, eps
        self.axis = int(isinstance(layer, _TRANSPOSED)) if axis is None else axis
        matrix = self._matrix(weight)
        of_u, of_v = random.split(key)
        u, v = (
            _normal(random.normal(k, (n,), weight.dtype), eps) for k, n in zip((of_u, of_v), matrix.shape, strict=True)
        )
        u, v = _power_iteration(matrix, u, v, 15, eps)
        self.u, self.v = State(u), State(v)

    def _matrix(self, weight: Array) -> Array:
        return tnp.moveaxis(weight, self.axis, 0).reshape(weight.shape[self.axis], -1)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        weight = getattr(self.layer, self.name)
        matrix, u, v = self._matrix(weight), self.u, self.v
        wide = tnp.promote_types(weight.dtype, "float32")
        matrix, u, v = (x.astype(wide) for x in (matrix, u, v))
        if self.is_training and self.layout.role("u") is Role.STATE:
            u, v = _power_iteration(lax.stop_gradient(matrix), u, v, self.iterations, self.eps)
            self.update(u=u.astype(self.u.dtype), v=v.astype(self.v.dtype))
        scale = tnp.vdot(u, matrix @ v)
        layer: Any = self.layer.replace(**{self.name: (weight / scale).astype(weight.dtype)})
        return layer(*args, **kwargs)


def _power_iteration(matrix: Array, u: Array, v: Array, count: int, eps: float) -> tuple[Array, Array]:
    for _ in range(count):
        u = _normal(matrix @ v, eps)
        v = _normal(matrix.T @ u, eps)
    return u, v


def _normal(x: Array, eps: float) -> Array:
    return x / tnp.maximum(tnp.linalg.norm(x), eps)


class WeightNorm(Module):
    """Call a layer with the weight g v / |v|: its size g and its direction v are trained apart.

    layer: a layer with an attribute `name`, an array, which is v; axis: norms are over all other axes, by default over
    all but 0; None for one norm. g: norms of the weight, with axes of size 1, at first such that the layer is as it
    was. Salimans & Kingma 2016, arXiv:1602.07868.

    >>> keys = nn.Keys(tracer.random.key(0))
    >>> layer = nn.WeightNorm(nn.Linear(3, 2, key=next(keys)))
    >>> layer.g.shape, layer(tnp.ones((5, 3), "float32")).shape
    ((2, 1), (5, 2))
    """

    def __init__(self, layer: Module, name: str = "weight", *, axis: int | None = 0) -> None:
        weight = _weight("WeightNorm", layer, name)
        self.layer, self.name, self.axis = layer, name, axis
        self.g = self._norms(weight)

    def _norms(self, weight: Array) -> Array:
        axis = None if self.axis is None else self.axis % weight.ndim
        others = tuple(n for n in range(weight.ndim) if n != axis)
        wide = weight.astype(tnp.promote_types(weight.dtype, "float32"))
        norms: Array = tnp.sqrt(tnp.square(wide).sum(others, keepdims=True)).astype(weight.dtype)
        return norms if axis is not None else norms.reshape(())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        v = getattr(self.layer, self.name)
        layer: Any = self.layer.replace(**{self.name: self.g * (v / self._norms(v))})
        return layer(*args, **kwargs)


def _weight(caller: str, layer: Module, name: str) -> Any:
    weight: Any = getattr(layer, name, None)
    if getattr(weight, "ndim", 0) < 2:
        raise ArgumentError(
            message(
                f"nn.{caller}{here()} takes a layer with an array {name} of two axes or more", f"got {layer!r}",
                help='name="weight_hh" names another attribute',
            )
        )  # fmt: skip
    return weight
