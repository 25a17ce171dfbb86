"""Indexing, `x[i]`: slices and integers of a resolved index are taken, its arrays gathered. See `index_parts`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tracer.errors import OutOfBoundsError
from tracer.ir import shape
from tracer.numpy.core.conversion import array_of, broadcast
from tracer.numpy.elementwise.arithmetic import remainder
from tracer.numpy.shapes.index_parts import CHECKED, Index, Places, resolve
from tracer.primitives.arrays import slice_pad_concatenate
from tracer.primitives.arrays.dynamic_slice import as_signed
from tracer.primitives.arrays.indexing.checked_indices import counted_from_0
from tracer.primitives.arrays.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    out_of_bounds_message,
    signed_values,
)
from tracer.primitives.arrays.indexing.gather import default_fill, gather
from tracer.primitives.base.broadcasting import full
from tracer.primitives.base.shapes import expand_dims, reshape, rev, squeeze
from tracer.primitives.elementwise import arithmetic, comparison
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.source import user_source

# Resolution


# Gathering


def get(
    x: Array, index: Any, *, mode: Any = None, fill_value: Any = None, unique_indices: bool = False, wrap: bool = True
) -> Array:
    """Return the elements at an index. wrap: whether negative indices count from the end."""
    found, chosen = resolve_mode(mode, x.shape, index, GatherScatterMode.CLIP, wrap)
    resolved = resolve(x.shape, index, chosen, wrap)
    y = take_slices(x if resolved.shape == x.shape else reshape(x, resolved.shape), resolved)
    if not resolved.arrays:
        return y
    return _gathered(y, resolved, chosen, fill_value, unique_indices, wrap=wrap, modulo=found == "wrap")


def resolve_mode(
    mode: Any, sizes: tuple[int, ...], index: Any, lenient: GatherScatterMode, wrap: bool = True
) -> tuple[Any, GatherScatterMode]:
    """Return the mode as given, and as a gather's mode; for "wrap", indices are first taken modulo the size.

    lenient: the mode of None without `config.index_errors`, for index arrays and for integers out of bounds.
    """
    if mode == "wrap":
        return mode, GatherScatterMode.PROMISE_IN_BOUNDS
    if mode is not None and mode != "raise":
        return mode, GatherScatterMode.from_any(mode)
    return mode, lenient if mode is None and not config.index_errors and _may_miss(sizes, index, wrap) else CHECKED


def _may_miss(sizes: tuple[int, ...], index: Any, wrap: bool) -> bool:
    if any(isinstance(item, Array | np.ndarray | list) for item in (index if isinstance(index, tuple) else (index,))):
        return True
    try:
        resolve(sizes, index, wrap=wrap)
    except OutOfBoundsError:
        return True
    return False


def take_slices(x: Array, index: Index) -> Array:
    """Return the array after the slices, integers and new axes of an index."""
    bounds = [t.bounds for t in index.taken]
    if any(b != (0, n, 1) for b, n in zip(bounds, x.shape, strict=True)):
        starts, limits, steps = zip(*bounds, strict=True)
        x = slice_pad_concatenate.slice(x, starts, limits, steps)
    x = rev(x, [axis for axis, t in enumerate(index.taken) if t.step < 0 and t.size > 1])
    x = squeeze(x, index.dropped)
    return expand_dims(x, index.new) if index.new else x


def _gathered(
    y: Array, index: Index, mode: GatherScatterMode, fill_value: Any, unique: bool, *, wrap: bool, modulo: bool
) -> Array:
    places = [place for _, place, _ in index.arrays]
    if any(y.shape[place] == 0 for place in places):
        return _from_nothing(y, index, mode, fill_value)
    if mode is CHECKED and all(isinstance(a, np.ndarray) for _, _, a in index.arrays):
        mode = GatherScatterMode.PROMISE_IN_BOUNDS  # `resolve` has checked them
    if mode is CHECKED and not wrap:
        index, mode = counted(index), GatherScatterMode.CLIP
    vectors = index_vectors([a for _, _, a in index.arrays], [y.shape[p] for p in places], index.batch, wrap, modulo)
    batch = range(index.place, index.place + len(index.batch))
    rank = y.ndim - len(places) + len(index.batch)
    numbers = GatherDimensionNumbers(
        tuple(d for d in range(rank) if d not in batch), tuple(places), tuple(places),
        reported_axes=tuple(axis for axis, _, _ in index.arrays),
    )  # fmt: skip
    sizes = [1 if place in places else n for place, n in enumerate(y.shape)]
    fill = fill_value.item() if isinstance(fill_value, np.ndarray | np.generic | Array) else fill_value
    return gather(y, vectors, numbers, sizes, mode=mode, fill_value=fill, unique_indices=unique)


def counted(index: Index) -> Index:
    """Return an index whose traced index arrays the program checks to be from 0 up to the size."""
    arrays = tuple(
        (axis, place, counted_from_0(as_signed(a), axis, index.shape[axis]) if isinstance(a, Array) else a)
        for axis, place, a in index.arrays
    )
    return replace(index, arrays=arrays)


def _from_nothing(y: Array, index: Index, mode: GatherScatterMode, fill_value: Any) -> Array:
    """Return the elements of an axis of size 0: none, or fill values. Raises OutOfBoundsError."""
    if shape.size(index.batch) and mode is not GatherScatterMode.FILL_OR_DROP:
        axis = next(axis for axis, _, _ in index.arrays if index.shape[axis] == 0)
        raise OutOfBoundsError(out_of_bounds_message(0, axis, 0, user_source()))
    value = default_fill(y.type) if fill_value is None else fill_value
    return full(index.result, value, y.dtype)


def index_vectors(
    arrays: Sequence[Places], sizes: Sequence[int], batch: tuple[int, ...], wrap: bool = True, modulo: bool = False
) -> Array:
    """Return index vectors [*batch, n] of n index arrays, counted from the front."""
    if all(isinstance(a, np.ndarray) for a in arrays) and not modulo:
        signed = [signed_values(a) for a in arrays]
        known = [np.where((a < 0) & wrap, a + n, a) for a, n in zip(signed, sizes, strict=True)]
        return array_of("indexing", np.stack([np.broadcast_to(a, batch) for a in known], -1), copy=False)
    columns = []
    for places, n in zip(arrays, sizes, strict=True):
        column = as_signed(array_of("indexing", places))
        column = from_front(column, n, modulo) if wrap or modulo else column
        columns.append(reshape(broadcast(column, batch), (*batch, 1)))
    return slice_pad_concatenate.concatenate(columns, len(batch))


def from_front(places: Array, size: int, modulo: bool = False) -> Array:
    """Return indices with the size added to negative ones, or modulo the size."""
    if modulo:
        return remainder(places, size)
    return comparison.select(comparison.lt(places, 0), arithmetic.add(places, size), places)
