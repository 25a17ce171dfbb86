"""References of gather and scatter: windows of NumPy arrays, read and written by one advanced index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tracer.ir import dtypes, shape
from tracer.ir.primitive import Rule
from tracer.ir.types import ArrayType, Shape, Type
from tracer.primitives.arrays.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    bounds_of,
    raise_first_fault,
    signed_values,
)


class Windows(NamedTuple):
    """Windows of an access. starts: [n, rank], clamped. live: [n], read or written. wanted: [n], the predicate."""

    starts: Any
    live: Any
    wanted: Any


def find_windows(
    operand: Shape, indices: Any, predicate: Any, numbers: GatherDimensionNumbers, slice_sizes: Shape,
    mode: GatherScatterMode,
) -> Windows:  # fmt: skip
    """Return where the windows start, in row-major order of the index vectors. Raises the first fault in that order."""
    batch = indices.shape[:-1]
    count, mapped = shape.size(batch), list(numbers.start_index_map)
    starts = np.zeros((count, len(slice_sizes)), np.int64)
    for axis, index_axis in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        starts[:, axis] = _lane(batch, index_axis)
    given = signed_values(indices).reshape(count, len(mapped))
    last = np.array([operand[axis] - slice_sizes[axis] for axis in mapped], np.int64)
    inside = (given >= 0) & (given <= last)
    wanted = np.broadcast_to(predicate, batch).reshape(count)
    if mode is GatherScatterMode.CHECKED:
        raise_first_fault(indices, predicate, bounds_of(operand, numbers, slice_sizes))
    starts[:, mapped] = np.clip(given, 0, np.maximum(last, 0))
    drops = mode in (GatherScatterMode.CHECKED, GatherScatterMode.FILL_OR_DROP)
    return Windows(starts, wanted & inside.all(1) if drops else wanted, wanted)


def _lane(batch: Shape, axis: int) -> Any:
    """Return the index along one axis of the batch, flattened."""
    inner = [1] * len(batch)
    inner[axis] = batch[axis]
    return np.broadcast_to(np.arange(batch[axis]).reshape(inner), batch).reshape(-1)


class View(NamedTuple):
    """Transposed view of an operand, in which one advanced index reaches every window.

    array: the operand with an axis of size 1 in front; then the axes along which windows move; then the whole axes.
    moving, whole: these axes.
    """

    array: Any
    moving: list[int]
    whole: list[int]


def movable_view(operand: Any, slice_sizes: Shape) -> View:
    """View the operand with the axes along which windows move in front."""
    rank = len(slice_sizes)
    whole = [axis for axis in range(rank) if slice_sizes[axis] == operand.shape[axis]]
    moving = [axis for axis in range(rank) if axis not in whole]
    hidden = range(rank, operand.ndim)
    return View(operand.transpose((*moving, *whole, *hidden))[None], moving, whole)


def window_index(starts: Any, moving: Sequence[int], slice_sizes: Shape) -> tuple[Any, ...]:
    """Return the advanced index into a movable view: arrays that broadcast to [n, *sizes along the moving axes]."""
    index = [np.zeros((len(starts), *[1] * len(moving)), np.int64)]
    for position, axis in enumerate(moving):
        inner = [1] * len(moving)
        inner[position] = slice_sizes[axis]
        index.append(starts[:, axis].reshape(-1, *[1] * len(moving)) + np.arange(slice_sizes[axis]).reshape(inner))
    return tuple(index)


def gather_reference(
    operand: Any, indices: Any, predicate: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    mode: GatherScatterMode, fill_value: Any, unique_indices: bool,
) -> Any:  # fmt: skip
    """Gather by one advanced index in NumPy."""
    numbers, rank = dimension_numbers, len(slice_sizes)
    batch, hidden = indices.shape[:-1], operand.shape[rank:]
    windows = find_windows(operand.shape[:rank], indices, predicate, numbers, slice_sizes, mode)
    count = len(windows.live)
    if windows.live.any():
        view = movable_view(operand, slice_sizes)
        taken = view.array[window_index(windows.starts, view.moving, slice_sizes)]
        order = shape.inverse((*view.moving, *view.whole))
        taken = taken.transpose((0, *(1 + axis for axis in order), *range(1 + rank, taken.ndim)))
    else:
        taken = np.zeros((count, *slice_sizes, *hidden), operand.dtype)
    if not windows.live.all():
        fill = np.zeros((), operand.dtype) if fill_value is None else np.asarray(fill_value).astype(operand.dtype)
        wide = (count, *[1] * (taken.ndim - 1))
        missed = np.where(windows.wanted.reshape(wide), fill, np.zeros((), operand.dtype))
        taken = np.where(windows.live.reshape(wide), taken, missed)
    kept = [n for axis, n in enumerate(slice_sizes) if numbers.is_window(axis)]
    result = taken.reshape((*batch, *kept, *hidden))
    out_rank = len(batch) + len(kept)
    batch_axes = [axis for axis in range(out_rank) if axis not in numbers.offset_dims]
    order = shape.inverse((*batch_axes, *numbers.offset_dims))
    return np.asarray(result.transpose((*order, *range(out_rank, result.ndim))), order="C")


def gather_prepared(
    operand: Type, indices: Type, predicate: Type, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    **params: Any,
) -> Rule | None:  # fmt: skip
    """Return the gather of single elements of a vector, which is one index where all are in bounds; else None."""
    of_elements = GatherDimensionNumbers((), (0,), (0,), reported_axes=dimension_numbers.reported_axes)
    is_vector = isinstance(operand, ArrayType) and len(operand.shape) == 1 and operand.shape[0] > 0
    if not is_vector or slice_sizes != (1,) or dimension_numbers != of_elements:
        return None
    assert isinstance(indices, ArrayType)
    if indices.dtype not in (dtypes.I32, dtypes.I64):
        return None
    size, unsigned = operand.shape[0], np.dtype(f"uint{8 * indices.dtype.itemsize}")

    def elements(x: Any, places: Any, wanted: Any) -> Any:
        given = places[..., 0]
        if wanted.ndim == 0 and wanted and (given.view(unsigned) < size).all():
            return np.asarray(x[given])
        options = {"dimension_numbers": dimension_numbers, "slice_sizes": slice_sizes, **params}
        return gather_reference(x, places, wanted, **options)

    return elements


def _flat_positions(operand: Shape, starts: Any, slice_sizes: Shape) -> Any:
    """Return the position in the flat operand of every element of the windows, in the order of the windows: [n * size].

    `ufunc.at` is an order faster on flat arrays than on arrays of more axes, and crashes for more than 32 axes.
    """
    steps = shape.strides(operand)
    sizes = (*slice_sizes, *operand[len(slice_sizes) :])
    offsets = np.zeros((), np.int64)
    for size, step in zip(sizes, steps, strict=True):
        offsets = np.add.outer(offsets, np.arange(size) * step)
    return np.add.outer(starts @ np.array(steps[: len(slice_sizes)], np.int64), offsets).reshape(-1)


def scatter_reference(combine: Any | None) -> Any:
    """Make the reference of a scatter.

    combine: a NumPy ufunc, applied in the order of the updates. None overwrites, so that the last update wins.
    """

    def reference(
        operand: Any, indices: Any, updates: Any, predicate: Any, *, dimension_numbers: ScatterDimensionNumbers,
        mode: GatherScatterMode, unique_indices: bool,
    ) -> Any:  # fmt: skip
        numbers, result = dimension_numbers, np.array(operand, order="C")
        rank = len(numbers.update_window_dims) + len(numbers.inserted_window_dims) + len(numbers.operand_batching_dims)
        slice_sizes = numbers.slice_sizes(rank, updates.shape)
        windows = find_windows(operand.shape[:rank], indices, predicate, numbers.as_gather, slice_sizes, mode)
        update_rank = len(numbers.update_window_dims) + indices.ndim - 1
        batch_axes = [axis for axis in range(update_rank) if axis not in numbers.update_window_dims]
        values = updates.transpose((*batch_axes, *numbers.update_window_dims, *range(update_rank, updates.ndim)))
        values = values.reshape((len(windows.live), *slice_sizes, *operand.shape[rank:]))
        if combine is not None:
            positions = _flat_positions(operand.shape, windows.starts[windows.live], slice_sizes)
            with np.errstate(all="ignore"):
                combine.at(result.reshape(-1), positions, values[windows.live].reshape(-1))
            return result
        view = movable_view(result, slice_sizes)
        order = (*view.moving, *view.whole, *range(rank, operand.ndim))
        values = values.transpose((0, *(1 + axis for axis in order)))
        view.array[window_index(windows.starts[windows.live], view.moving, slice_sizes)] = values[windows.live]
        return result

    return reference
