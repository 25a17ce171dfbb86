"""Selection by arrays of indices or masks, such as `take`, `choose` and `compress`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError, message
from tracer.ir import dtypes, shape
from tracer.numpy.core.conversion import array_of, broadcast, cast, no_out
from tracer.numpy.elementwise.arithmetic import clip
from tracer.numpy.shapes.index_parts import checked_places
from tracer.numpy.shapes.indexing import get
from tracer.numpy.shapes.manipulation import ravel
from tracer.numpy.shapes.where import nonzero, where
from tracer.primitives.base.broadcasting import axis_of
from tracer.primitives.base.shapes import broadcasted_iota
from tracer.runtime.eager.call_cache import cached
from tracer.runtime.values.fresh_handles import makes_new
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here


def take(
    a: Any, indices: Any, axis: int | None = None, out: None = None, mode: Any = None, unique_indices: bool = False,
    indices_are_sorted: bool = False, fill_value: Any = None,
) -> Array:  # fmt: skip
    """Return the slices at `indices` along an axis, or elements of the flattened array.

    a: [*s]; indices: integers [*t]; axis: None to flatten. Returns [..., *t, ...] in place of the axis, in a's dtype.
    mode: for indices out of bounds: an error (None, "raise"), "clip" (negative ones become 0, as in NumPy), "wrap",
    "fill" (with `fill_value`, by default NaN), "promise_in_bounds". unique_indices: a promise, which saves derivatives
    a sum; indices_are_sorted: ignored. Raises OutOfBoundsError, from compiled code too, and ArgumentError for indices
    that are not integers.

    >>> tnp.take(tnp.asarray([4.0, 5.0, 6.0]), tnp.asarray([2, 0]))
    Array([6., 4.], f64)
    """
    del indices_are_sorted
    no_out("take", out)
    x = array_of("take", a)
    wanted = array_of("take", indices)
    if isinstance(indices, list | tuple) and not wanted.size:
        wanted = cast(wanted, dtypes.I64)  # NumPy converts an empty list to floats
    if wanted.dtype == dtypes.BOOL or not dtypes.is_integer(wanted.dtype):
        raise ArgumentError(message(f"take{here()} takes integer indices", f"got {wanted.type}"))
    if axis is None:
        x, axis = ravel(x), 0
    if x.ndim == 0:
        x = x.reshape(1)
    along = axis_of("take", axis, x.ndim)
    index = (*[slice(None)] * along, wanted)
    return get(
        x, index, mode=mode, fill_value=fill_value, unique_indices=unique_indices, wrap=mode not in ("clip",)
    )  # fmt: skip


def take_along_axis(
    arr: Any, indices: Any, axis: int | None = -1, mode: Any = None, fill_value: Any = None,
    wrap_negative_indices: bool = True,
) -> Array:  # fmt: skip
    """Return result[..., j, ...] = arr[..., indices[..., j, ...], ...] along an axis; the other axes broadcast.

    arr: [*s]; indices: integers, with as many axes; axis: None to flatten; mode, fill_value: as in `take`.
    wrap_negative_indices: whether negative indices count from the end; False puts them out of bounds. Returns arr's
    dtype. Raises ShapeError for indices of another number of axes.

    >>> tnp.take_along_axis(tnp.asarray([[1, 2], [3, 4]]), tnp.asarray([[1], [0]]), axis=1)
    Array([[2],
           [3]], i64)
    """
    x, index = along("take_along_axis", arr, indices, axis)
    return get(x, index, mode=mode, fill_value=fill_value, wrap=wrap_negative_indices)


def along(name: str, arr: Any, indices: Any, axis: int | None) -> tuple[Array, tuple[Any, ...]]:
    """Return the array and an index array for every axis: `indices` along one axis, 0, 1, 2, ... along any other."""
    x, wanted = array_of(name, arr), array_of(name, indices)
    if axis is None:
        x, axis = ravel(x), 0
    if x.ndim != wanted.ndim:
        raise ShapeError(
            message(f"{name}{here()}: array and indices must have equally many axes", f"got {x.type} and {wanted.type}")
        )
    along = axis_of(name, axis, x.ndim)
    others = [1 if d == along else n for d, n in enumerate(x.shape)]
    sizes = shape.broadcast(tuple(others), wanted.shape, operation=f"{name}{here()}")
    index: list[Any] = []
    for d in range(x.ndim):
        if d == along:
            index.append(broadcast(wanted, sizes))
        elif x.shape[d] == 1:
            index.append(np.zeros((1,) * x.ndim, np.int64))
        else:
            index.append(np.arange(x.shape[d]).reshape([-1 if e == d else 1 for e in range(x.ndim)]))
    return x, tuple(index)


@makes_new
def choose(a: Any, choices: Sequence[Any] | Any, out: None = None, mode: str = "raise") -> Array:
    """Select from several arrays by an array of indices: result[i] = choices[a[i]][i], all broadcast together.

    a: integers [*s]; choices: arrays, which broadcast with it to [*t]; mode: as in `take`. Returns [*t], in the dtype
    to which the choices are promoted.

    >>> tnp.choose(tnp.asarray([1, 0]), [tnp.asarray([10, 11]), tnp.asarray([20, 21])])
    Array([20, 11], i64)
    """
    no_out("choose", out)
    wanted = array_of("choose", a)
    if wanted.dtype == dtypes.BOOL:
        wanted = wanted.astype(int)
    if not dtypes.is_integer(wanted.dtype):
        raise DTypeError(message(f"choose{here()}: a must hold integers", f"got {wanted.type}", help="a.astype(int)"))
    if getattr(choices, "ndim", 1) == 0 or not isinstance(choices, Iterable):
        raise ArgumentError(
            message(
                f"choose{here()}: the choices are arrays, one for each number of `a`",
                f"got {type(choices).__name__}",
                help="pass a list: choose(a, [x, y])",
            )
        )
    arrays = [array_of("choose", c) for c in choices]
    if mode == "raise":
        known = concrete_value(wanted)
        if known is not None and (known < 0).any():
            raise OutOfBoundsError(
                message(f"choose{here()}: choices are numbered from 0", f"got {known.min()}", help='mode="wrap"')
            )
        wanted = where(wanted < 0, len(arrays), wanted)  # out of bounds
    sizes = shape.broadcast(wanted.shape, *(c.shape for c in arrays), operation=f"choose{here()}")
    stacked = array_of("choose", [broadcast(c, sizes) for c in arrays])
    index = (broadcast(wanted, sizes), *(broadcasted_iota(dtypes.I64, sizes, d) for d in range(len(sizes))))
    if mode == "clip":
        index = (clip(index[0], 0, len(arrays) - 1), *index[1:])
    return get(stacked, index, mode=mode)


def compress(
    condition: Any, a: Any, axis: int | None = None, out: None = None, *, size: int | None = None, fill_value: Any = 0
) -> Array:
    """Return the slices along an axis where a vector of conditions is true.

    condition: bools [m], m at most the size of the axis; a: [*s]; axis: None to flatten. Returns [..., n, ...], in a's
    dtype.

    Under `jit`, n is unknown: `size` must be given. Results are truncated to it, or padded with `fill_value`.

    >>> tnp.compress([True, False, True], tnp.asarray([1, 2, 3]))
    Array([1, 3], i64)
    """
    no_out("compress", out)
    if size is None and axis is None and _is_mask_of(condition, a):
        return a[condition]
    return _compressed(condition, a, axis, size, fill_value)


@makes_new
def _compressed(condition: Any, a: Any, axis: int | None, size: int | None, fill_value: Any) -> Array:
    x = array_of("compress", a)
    if axis is None:
        x, axis = ravel(x), 0
    along = axis_of("compress", axis, x.ndim)
    holds = array_of("compress", condition)
    if holds.ndim != 1:
        raise ShapeError(
            message(
                f"compress{here()}: the condition is a vector", f"got {holds.type}", help="x[condition] takes masks"
            )
        )
    if size is not None:
        (found,) = nonzero(holds, size=size, fill_value=x.shape[along])
        return take(x, found, along, mode="fill", fill_value=fill_value)
    (known,) = nonzero(holds)
    wanted = np.asarray(known)
    return _taken(x, checked_places(wanted, along, x.shape[along]), along)


_taken = cached(take, named=False)


def _is_mask_of(mask: Any, x: Any) -> bool:
    """Return whether both are vectors of one length, the mask of concrete bools."""
    if type(x) is not Array or type(mask) is not Array:
        return False
    known = concrete_value(mask)
    return known is not None and known.ndim == 1 and known.dtype == dtypes.BOOL and known.shape == x.shape


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Array:
    """Return the elements of the flattened array where a condition is true; `size` as in `compress`.

    condition: any shape, flattened; arr: any shape; fill_value: by default 0. Returns [n], in arr's dtype.

    >>> tnp.extract(tnp.asarray([True, False]), tnp.asarray([1, 2]))
    Array([1], i64)
    """
    flat = ravel(condition) if isinstance(condition, Array) else np.ravel(condition)  # keeps concrete values concrete
    return compress(flat, arr, size=size, fill_value=fill_value)
