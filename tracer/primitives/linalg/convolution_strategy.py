"""Heuristic for convolutions: a loop nest of their own, or a product with the matrix of windows.

A nest runs its lanes along the last axis of the positions. For a long window, as in gradients, it takes the window's
last axis. It pads the part of lhs that it needs in a small local buffer.
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


def runs_along_window(outs: Shape, window: Shape) -> bool:
    """Return whether the lanes are elements of the window rather than positions."""
    return window[-1] > outs[-1]


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
    reach = extents(outs, window, strides, dilations)
    if runs_along_window(outs, window):
        if outs[-1] == 1:
            return False  # the nest would load every term for one sum; a product keeps a tile of them
        along, unrolled, planes = window[-1], outs[-1], 1
    else:
        along, unrolled, planes = outs[-1], window[-1], rhs.shape[1]
        reach = extents((1, *outs[1:]), window, strides, dilations) if len(outs) > 1 else reach
    return along >= _MIN_LANES and unrolled <= _MAX_UNROLLED and padded_bytes(lhs.dtype, reach, planes) <= LOCAL_BYTES
