"""Sliding windows: a window at every position of an array, as separate axes, and the transpose, which sums windows.

    result[i, w] = operand[i * stride + w * dilation]      along each axis that has a window

Convolutions and window reductions read their operand this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.ir import shape as shapes
from tracer.ir.primitive import IndexMap, Primitive
from tracer.ir.types import Shape, Type, with_shape
from tracer.primitives.arrays.slice_pad_concatenate import pad, slice_in_dim
from tracer.primitives.base.broadcasting import full
from tracer.primitives.base.rules import check_kinds, linear_jvp
from tracer.primitives.base.shapes import Batched, moveaxis, reshape, squeeze
from tracer.primitives.elementwise.arithmetic import add
from tracer.trace.source import here
from tracer.trace.trace import bind

Padding = tuple[tuple[int, int], ...]


def dilated(size: int, dilation: int) -> int:
    """Return the extent of `size` elements that lie `dilation` apart."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def positions(sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Shape:
    """Return the number of positions at which the dilated window fits, per axis."""
    rows = zip(sizes, window, strides, dilations, strict=True)
    return tuple(shapes.slice_size(0, n - dilated(w, d) + 1, s) for n, w, s, d in rows)


def padded_sizes(sizes: Sequence[int], padding: Padding, base_dilation: Sequence[int]) -> Shape:
    """Return the sizes of an operand that is dilated, then padded; 0 where more is cropped than there is."""
    rows = zip(sizes, padding, base_dilation, strict=True)
    return tuple(max(0, dilated(n, d) + low + high) for n, (low, high), d in rows)


def padding_config(sizes: Shape, padding: Padding, base_dilation: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    """Return the padding for `pad`. Cropping more than there is leaves nothing."""
    config = []
    for n, (low, high), d in zip(sizes, padding, base_dilation, strict=True):
        emptied = dilated(n, d) + low + high < 0
        config.append((-dilated(n, d), 0, d - 1) if emptied else (low, high, d - 1))
    return tuple(config)


def padded(x: Any, value: Any, padding: Padding, base_dilation: Sequence[int]) -> Any:
    """Dilate and pad an operand for its windows."""
    config = padding_config(x.type.shape, padding, base_dilation)
    return pad(x, value, config) if any(map(any, config)) else x


def _infer(x: Type, *, axes: Shape, window: Shape, strides: Shape, dilations: Shape) -> Type:
    check_kinds("sliding_windows", (x,), "bifc")
    if not len(axes) == len(window) == len(strides) == len(dilations) or len(set(axes)) != len(axes):
        raise ShapeError(
            message(
                f"sliding_windows{here()}: expected distinct axes, each with one window size, stride and dilation",
                f"got axes={axes}, window={window}, strides={strides}, dilations={dilations}",
                help="leave out axes without a window",
            )
        )
    places = positions([x.shape[axis] for axis in axes], window, strides, dilations)
    sizes = list(x.shape)
    for axis, n in zip(axes, places, strict=True):
        sizes[axis] = n
    return with_shape(x, (*sizes, *window))


def _reference(x: Any, *, axes: Shape, window: Shape, strides: Shape, dilations: Shape) -> Any:
    places = positions([x.shape[axis] for axis in axes], window, strides, dilations)
    taken = x
    for number, axis in enumerate(axes):
        at = np.arange(places[number])[:, None] * strides[number] + np.arange(window[number]) * dilations[number]
        index: list[Any] = [np.s_[:]] * taken.ndim
        index[axis] = at
        taken = np.moveaxis(taken[tuple(index)], axis + 1, x.ndim + number)
    return np.asarray(taken, order="C")


def _transpose(
    ctx: Any, cts: Any, xs: Any, *, axes: Shape, window: Shape, strides: Shape, dilations: Shape
) -> list[Any]:
    """Add every window back to the elements it was read from, axis by axis."""
    (ct,), sizes = cts, xs[0].type.shape
    for axis, count, stride, dilation in reversed(list(zip(axes, window, strides, dilations, strict=True))):
        ct = _added(ct, axis, sizes[axis], count, stride, dilation)
    return [ct]


def _added(ct: Any, axis: int, size: int, count: int, stride: int, dilation: int) -> Any:
    """Undo the window of the last axis: [..., positions, ..., count] to [..., size, ...]."""
    last, places = ct.ndim - 1, ct.shape[axis]
    if places and count <= stride and (dilation == 1 or count == 1):
        return _side_by_side(ct, axis, size, stride)
    total: Any = None
    for w in range(count if places else 0):
        part = squeeze(slice_in_dim(ct, w, w + 1, axis=last), (last,))
        config = [(0, 0, 0)] * last
        low = w * dilation
        config[axis] = (low, size - low - dilated(places, stride), stride - 1)
        part = pad(part, 0, config)
        total = part if total is None else add(total, part)
    if total is None:
        sizes = list(ct.shape[:-1])
        sizes[axis] = size
        return full(sizes, 0, ct.dtype)
    return total


def _side_by_side(ct: Any, axis: int, size: int, stride: int) -> Any:
    """Undo a window whose positions do not overlap: place them one after another, with zeros between."""
    places, count = ct.shape[axis], ct.shape[-1]
    rows = moveaxis(ct, ct.ndim - 1, axis + 1)
    if count < stride:
        config = [(0, 0, 0)] * rows.ndim
        config[axis + 1] = (0, stride - count, 0)
        rows = pad(rows, 0, config)
    whole = reshape(rows, (*ct.shape[:axis], places * stride, *ct.shape[axis + 1 : -1]))
    if places * stride == size:
        return whole
    config = [(0, 0, 0)] * whole.ndim
    config[axis] = (0, size - places * stride, 0)
    return pad(whole, 0, config)


def _batch(ctx: Any, xs: Any, batch_axes: Any, *, axes: Shape, **params: Any) -> Batched:
    shifted = tuple(axis + (axis >= batch_axes[0]) for axis in axes)
    return ctx.bind_all(ctx.primitive, xs, {"axes": shifted, **params}), [batch_axes[0]]


sliding_windows_p = Primitive(
    name="sliding_windows", infer=_infer, reference=_reference,
    jvp=linear_jvp, transpose=_transpose, batch=_batch, lower=IndexMap("windows"),
)  # fmt: skip


def sliding_windows(
    x: Any, axes: Sequence[int], window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Any:
    """Return the windows along some axes of an array: [positions along these axes, *window].

    >>> sliding_windows(tnp.arange(5), (0,), (2,), (3,), (1,))
    Array([[0, 1], [3, 4]], i64)
    """
    return bind(
        sliding_windows_p, x, axes=tuple(axes), window=tuple(window), strides=tuple(strides),
        dilations=tuple(dilations),
    )  # fmt: skip


SLIDING: tuple[Primitive, ...] = (sliding_windows_p,)
