"""Bits packed into bytes, and bytes unpacked into bits."""

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
    """Bits, as which elements that are not 0 count, eight to a byte along an axis; of all elements without one. uint8.

    a: bools or integers [*s]; axis: one, or None; bitorder: "big" puts the first bit into the highest place of its
    byte, "little" into the lowest. Returns [..., ceil(n / 8), ...]: the last byte is filled up with zeros. DTypeError
    for floats.

    >>> tnp.packbits(tnp.asarray([1, 0, 0, 0, 0, 0, 1, 1, 1]))
    Array([131, 128], u8)
    """
    x = array_of("packbits", a)
    if dtypes.is_inexact(x.dtype):
        raise DTypeError(message(f"packbits{here()} takes integers or bools", f"got {x.type}"))
    places = _places("packbits", bitorder)
    moved = ravel(x) if axis is None else moveaxis(x, axis, -1)
    bits = cast(moved != 0, dtypes.U8)
    filled = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, -bits.shape[-1] % 8)])
    grouped = reshape(filled, (*filled.shape[:-1], filled.shape[-1] // 8, 8))
    packed = sum(grouped << places, axis=-1, dtype=dtypes.U8)
    return packed if axis is None else moveaxis(packed, -1, axis)


def unpackbits(a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes along an axis, of all elements without one: uint8 of 0 and 1. DTypeError unless uint8.

    a: uint8 [*s]; axis: one, or None; count: how many bits are kept, zeros added where there are fewer; a negative one
    leaves so many out at the end; bitorder: as of `packbits`. Returns uint8 [..., 8 n, ...] unless there is a count.

    >>> tnp.unpackbits(tnp.asarray([131], dtype=tnp.uint8))
    Array([1, 0, 0, 0, 0, 0, 1, 1], u8)
    """
    x = array_of("unpackbits", a)
    if x.dtype != dtypes.U8:
        raise DTypeError(message(f"unpackbits{here()} takes uint8", f"got {x.type}", help="see view and astype"))
    places = _places("unpackbits", bitorder)
    moved = ravel(x) if axis is None else moveaxis(x, axis, -1)
    bits = (moved[..., None] >> places) & 1
    flat = reshape(bits, (*moved.shape[:-1], 8 * moved.shape[-1]))
    if count is not None:
        size = flat.shape[-1]
        wanted = integer("unpackbits", "count", count)
        wanted += size if wanted < 0 else 0
        if wanted < 0:
            raise ShapeError(message(f"unpackbits{here()}: there are {size} bits", f"got count={count}"))
        flat = pad(flat[..., :wanted], [(0, 0)] * (flat.ndim - 1) + [(0, max(wanted - size, 0))])
    return flat if axis is None else moveaxis(flat, -1, axis)


def _places(name: str, bitorder: str) -> np.ndarray[Any, Any]:
    if bitorder not in _ORDERS:
        raise ArgumentError(message(f'{name}{here()}: bitorder is "big" or "little"', f"got {bitorder!r}"))
    return _ORDERS[bitorder]
