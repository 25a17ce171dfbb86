"""Heuristic for convolutions: a loop nest of their own, or a product with the matrix of windows.

A nest runs its lanes along the last axis of the positions. For a long window, as in gradients, it takes the window's
last axis. It pads the part of lhs that it needs in a small local buffer. Lanes run on over narrow rows: the buffer then
holds a copy of lhs for each element of the other last axis, so that rows adjoin.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from tracer.ir import dtypes
from tracer.ir.types import ArrayType, Shape, Type
from tracer.primitives.arrays.sliding_windows import dilated, positions

LOCAL_BYTES: Final = 3 << 16
"""Limit of the buffer of padded lhs: part of a core's L2 cache, and of a thread's stack."""
_MIN_WORK: Final = 1 << 14  # multiplications
_MIN_LANES: Final = 8  # positions along the last axis: half a vector of f32
_MAX_UNROLLED: Final = 16  # terms along the other last axis
_MANY: Final = 64  # features of a group
_MAX_WEIGHTS: Final = 1 << 20  # bytes of rhs, which narrow images read once each
VECTOR_BYTES: Final = 64
"""Bytes of the lanes of sums, on every machine."""


def runs_along_window(outs: Shape, window: Shape) -> bool:
    """Return whether the lanes are elements of the window rather than positions."""
    return window[-1] > outs[-1]


def joins_rows(dtype: Any, along: Shape, steps: Shape) -> bool:
    """Return whether lanes run on from row to row, which takes at most four fifths of the vectors.

    along: the extents of the axes that lanes follow; steps: how far apart neighbours lie in padded lhs.
    """
    if len(along) < 2 or steps[-2] != 1:
        return False
    unit = VECTOR_BYTES // int(dtype.itemsize)
    return 5 * -(-along[-2] * along[-1] // unit) <= 4 * along[-2] * -(-along[-1] // unit)


def joined_sizes(reach: Shape, along: Shape, copies: int) -> Shape:
    """Return the sizes of a plane of padded lhs whose rows adjoin."""
    return (copies, *reach[:-1], along[-1])


def joins_window(dtype: Any, outs: Shape, window: Shape, strides: Shape, dilations: Shape) -> bool:
    """Return whether lanes along a window run on from row to row."""
    sizes = joined_sizes(extents(outs, window, strides, dilations), window, outs[-1])
    return joins_rows(dtype, window, dilations) and padded_bytes(dtype, sizes, 1) <= LOCAL_BYTES


def padded_bytes(dtype: Any, sizes: Shape, planes: int) -> int:
    """Return the bytes of `planes` planes of padded lhs."""
    return planes * prod(sizes) * int(dtype.itemsize)


def extents(outs: Shape, window: Shape, strides: Shape, dilations: Shape) -> Shape:
    """Return the extent of padded lhs that the positions reach, along each axis."""
    rows = zip(outs, window, strides, dilations, strict=True)
    return tuple((n - 1) * s + dilated(w, d) for n, w, s, d in rows)


def has_nest(lhs: Type, rhs: Type, *, padding: Any, **params: Any) -> bool:
    """Return whether a convolution of these operands has a loop nest of its own."""
    assert isinstance(lhs, ArrayType)
    strides, dilations = params["strides"], params["rhs_dilation"]
    same = lhs.dtype == getattr(rhs, "dtype", None) == params["preferred_element_type"]
    if not (same and strides and lhs.dtype in (dtypes.F32, dtypes.F64)) or 0 in (*lhs.shape, *rhs.shape):
        return False
    if any(d != 1 for d in params["lhs_dilation"]):
        return False
    window = rhs.shape[2:]
    padded = tuple(max(0, n + low + high) for n, (low, high) in zip(lhs.shape[2:], padding, strict=True))
    outs = positions(padded, window, strides, dilations)
    groups = params["feature_groups"] * params["batch_groups"]
    work = lhs.shape[0] // params["batch_groups"] * prod(outs) * prod(rhs.shape)
    if 0 in outs or work < _MIN_WORK or groups > rhs.shape[0]:
        return False
    least = reach = extents(outs, window, strides, dilations)
    if runs_along_window(outs, window):
        if outs[-1] == 1:
            return False  # the nest would load every term for one sum; a product keeps a tile of them
        if window[-1] < _MIN_LANES and rhs.shape[0] // groups >= _MANY:
            return False  # rows leave lanes empty, and many features pay for the matrix of windows
        along, other, steps, planes = window, outs, dilations, 1
    else:
        along, other, steps, planes = outs, window, strides, rhs.shape[1]
        least = extents((1, *outs[1:]), window, strides, dilations) if len(outs) > 1 else reach
    if other[-1] > _MAX_UNROLLED:
        return False
    if along[-1] >= _MIN_LANES:
        return padded_bytes(lhs.dtype, least, planes) <= LOCAL_BYTES
    joined = padded_bytes(lhs.dtype, joined_sizes(reach, along, other[-1]), planes)
    is_small = joined <= LOCAL_BYTES and padded_bytes(lhs.dtype, rhs.shape, 1) <= _MAX_WEIGHTS
    return is_small and joins_rows(lhs.dtype, along, steps) and prod(along[-2:]) >= 2 * _MIN_LANES
