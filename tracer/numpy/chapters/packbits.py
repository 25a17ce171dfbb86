"""Packing of bits into bytes, and unpacking."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.chapters.padding import pad
from tracer.numpy.core.conversion import array_of, cast
from tracer.numpy.reduce.reductions import sum
from tracer.numpy.shapes.manipulation import moveaxis, ravel, reshape
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here

_ORDERS = {"big": np.arange(7, -1, -1, dtype=np.uint8), "little": np.arange(8, dtype=np.uint8)}


def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack bits, eight to a byte of uint8, along an axis; without one, of all elements.

    a: bools or integers [*s], where nonzero is a set bit; axis: an axis, or None to flatten; bitorder: "big" puts the
    first bit into the highest position of its byte, "little" into the lowest. Returns uint8 [..., ceil(n / 8), ...];
    the last byte is zero-padded. Raises DTypeError for floats.

    >>> tnp.packbits(tnp.asarray([1, 0, 0, 0, 0, 0, 1, 1, 1]))
    Array([131, 128], u8)
    """
    x = array_of("packbits", a)
    if dtypes.is_inexact(x.dtype):
        raise DTypeError(message(f"packbits{here()} takes integers or bools", f"got {x.type}"))
    shifts = _shifts("packbits", bitorder)
    moved = ravel(x) if axis is None else moveaxis(x, axis, -1)
    bits = cast(moved != 0, dtypes.U8)
    filled = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, -bits.shape[-1] % 8)])
    grouped = reshape(filled, (*filled.shape[:-1], filled.shape[-1] // 8, 8))
    packed = sum(grouped << shifts, axis=-1, dtype=dtypes.U8)
    return packed if axis is None else moveaxis(packed, -1, axis)


def unpackbits(a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """Unpack the bits of bytes along an axis, or of all elements: uint8 of 0 and 1.

    a: uint8 [*s]; axis: an axis, or None to flatten; count: how many bits to keep, zero-padded if there are fewer; a
    negative one drops bits at the end; bitorder: as in `packbits`. Returns uint8 [..., 8 n, ...] unless `count` is
    given. Raises DTypeError unless `a` is uint8.

    >>> tnp.unpackbits(tnp.asarray([131], dtype=tnp.uint8))
    Array([1, 0, 0, 0, 0, 0, 1, 1], u8)
    """
    x = array_of("unpackbits", a)
    if x.dtype != dtypes.U8:
        raise DTypeError(message(f"unpackbits{here()} takes uint8", f"got {x.type}", help="see view and astype"))
    shifts = _shifts("unpackbits", bitorder)
    moved = ravel(x) if axis is None else moveaxis(x, axis, -1)
    bits = (moved[..., None] >> shifts) & 1
    flat = reshape(bits, (*moved.shape[:-1], 8 * moved.shape[-1]))
    if count is not None:
        size = flat.shape[-1]
        wanted = integer("unpackbits", "count", count)
        wanted += size if wanted < 0 else 0
        if wanted < 0:
            raise ShapeError(message(f"unpackbits{here()}: the axis has {size} bits", f"got count={count}"))
        flat = pad(flat[..., :wanted], [(0, 0)] * (flat.ndim - 1) + [(0, max(wanted - size, 0))])
    return flat if axis is None else moveaxis(flat, -1, axis)


def _shifts(name: str, bitorder: str) -> np.ndarray[Any, Any]:
    if bitorder not in _ORDERS:
        raise ArgumentError(message(f'{name}{here()}: bitorder is "big" or "little"', f"got {bitorder!r}"))
    return _ORDERS[bitorder]
