"""Dimension numbers and modes of gather and scatter, and the checks of types and indices.

A gather reads one window of the operand, of `slice_sizes`, for each index vector (the last axis of the indices). A
scatter writes or combines such windows. An axis of the operand is one of three: collapsed (size 1 in the window, absent
from the result), batching (paired with an axis of the indices), or a window axis (in the result).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from tracer.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError, message
from tracer.ir import dtypes, shape
from tracer.ir.program import Source
from tracer.ir.types import ArrayType, Shape, Type
from tracer.settings import config
from tracer.trace.source import here, user_source

COUNTED_FROM_0: Final = "counted from 0"  # operation of a bound whose negative indices do not count from the end


class GatherScatterMode(Enum):
    """Meaning of an index that is out of bounds.

    CHECKED: an error that names the user's line. CLIP: the window moves to the nearest index inside. FILL_OR_DROP:
    gathers give a fill value, scatters drop the update. PROMISE_IN_BOUNDS: it does not happen.

    >>> GatherScatterMode.from_any("drop")
    <GatherScatterMode.FILL_OR_DROP: 'fill'>
    """

    CHECKED = "checked"
    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    @classmethod
    def from_any(cls, mode: GatherScatterMode | str | None) -> GatherScatterMode:
        """Return the mode of a name ("drop" is "fill"). Raises ArgumentError for an unknown name.

        None is CHECKED, or FILL_OR_DROP by `config.index_errors`.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode is None and not config.index_errors:
            return cls.FILL_OR_DROP
        found = _MODES.get(mode)
        if found is None:
            raise ArgumentError(
                message(
                    f"indexing{here()}: no mode {mode!r}",
                    help=f"take one of {', '.join(repr(name) for name in _MODES if name)}",
                )
            )
        return found

    @property
    def settled(self) -> GatherScatterMode:
        """Mode for derivatives, which reuse indices that were already checked."""
        return GatherScatterMode.CLIP if self is GatherScatterMode.CHECKED else self


_MODES: dict[str | None, GatherScatterMode] = {
    None: GatherScatterMode.CHECKED,
    **{mode.value: mode for mode in GatherScatterMode},
    "drop": GatherScatterMode.FILL_OR_DROP,
}


@dataclass(frozen=True, slots=True)
class GatherDimensionNumbers:
    """Correspondence of index vectors, windows and the result's axes.

    offset_dims: the result's axes that run along windows. collapsed_slice_dims: operand axes absent from the result.
    start_index_map: the operand axis of each component of an index vector. operand_batching_dims pair off with
    start_indices_batching_dims. reported_axes: the names of start_index_map's axes in errors, kept by batching.

    >>> GatherDimensionNumbers((1,), (0,), (0,)).is_window(1)  # rows of a matrix
    True
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()
    reported_axes: tuple[int, ...] | None = None

    @property
    def as_scatter(self) -> ScatterDimensionNumbers:
        """Dimension numbers of the scatter that writes where this gather reads."""
        return ScatterDimensionNumbers(
            self.offset_dims, self.collapsed_slice_dims, self.start_index_map,
            self.operand_batching_dims, self.start_indices_batching_dims, self.reported_axes,
        )  # fmt: skip

    def is_window(self, axis: int) -> bool:
        """Return whether an operand axis is one of the result."""
        return axis not in self.collapsed_slice_dims and axis not in self.operand_batching_dims


@dataclass(frozen=True, slots=True)
class ScatterDimensionNumbers:
    """Correspondence of index vectors, windows and the updates' axes. `update_window_dims` are axes of the updates.

    For the other fields see GatherDimensionNumbers; here they have XLA's names for scatters.

    >>> ScatterDimensionNumbers((1,), (0,), (0,)).slice_sizes(2, (5, 4))  # rows of a matrix
    (1, 4)
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()
    reported_axes: tuple[int, ...] | None = None

    @property
    def as_gather(self) -> GatherDimensionNumbers:
        """Dimension numbers of the gather that reads where this scatter writes."""
        return GatherDimensionNumbers(
            self.update_window_dims, self.inserted_window_dims, self.scatter_dims_to_operand_dims,
            self.operand_batching_dims, self.scatter_indices_batching_dims, self.reported_axes,
        )  # fmt: skip

    def slice_sizes(self, rank: int, updates: Shape) -> Shape:
        """Return the size of the window that an array of updates writes, along every axis of an operand."""
        sizes = iter(self.update_window_dims)
        return tuple(updates[next(sizes)] if self.as_gather.is_window(axis) else 1 for axis in range(rank))


def out_of_bounds_message(index: int, axis: int, size: int, source: Source | None) -> str:
    """Return the text of an OutOfBoundsError, from the values that a fault reports.

    A negative `index` has had `size` added, so a value below zero is shown as the user wrote it.

    >>> print(out_of_bounds_message(-1, 0, 3, Source("demo.py", 1, "f")))
    index -4 is out of bounds for axis 0 with size 3, at demo.py:1
      help: index within bounds, or say what to do beyond them: x.at[i].get(mode="clip"), x.at[i].set(v, mode="drop")
    """
    shown = index - size if index < 0 else index
    return message(
        f"index {shown} is out of bounds for axis {axis} with size {size}{_of_line(source)}",
        help='index within bounds, or say what to do beyond them: x.at[i].get(mode="clip"), '
        'x.at[i].set(v, mode="drop")',
    )


def _of_line(source: Source | None) -> str:
    return f", at {source}{f' in {source.scope}' if source.scope else ''}" if source is not None else ""


def coordinate_message(operation: str, index: int, axis: int, size: int, source: Source | None) -> str:
    """Return the text of an OutOfBoundsError for an operation on coordinates, which count from 0.

    >>> print(coordinate_message("ravel_multi_index", -1, 0, 3, Source("demo.py", 1, "f")))
    ravel_multi_index at demo.py:1: a coordinate is out of bounds
      expected 0 to 2 for axis 0 with size 3, got -1
      help: coordinates count from 0; mode="wrap" takes them modulo the size, and mode="clip" the nearest one
    """
    if operation == COUNTED_FROM_0:
        return message(
            f"index {index} is out of bounds for axis {axis} with size {size}{_of_line(source)}",
            help="indices count from 0 here, up to the size; losses take ignore= for labels of no class",
        )
    where = f" at {source}" if source is not None else ""
    return message(
        f"{operation}{where}: a coordinate is out of bounds",
        f"expected 0 to {size - 1} for axis {axis} with size {size}, got {index}" if size else f"axis {axis} has none",
        help='coordinates count from 0; mode="wrap" takes them modulo the size, and mode="clip" the nearest one',
    )


# Types


def window_shape(
    name: str, operand: Type, indices: Type, predicate: Type, numbers: Any, slice_sizes: Shape,
    mode: GatherScatterMode,
) -> Shape:  # fmt: skip
    """Return the shape of the gathered result, after every check of XLA's semantics."""
    if not isinstance(numbers, GatherDimensionNumbers):
        kind = type(numbers).__name__
        raise ArgumentError(message(f"{name}{here()}: dimension_numbers is a GatherDimensionNumbers", f"got {kind}"))
    if not isinstance(indices, ArrayType) or not dtypes.is_integer(indices.dtype):
        raise DTypeError(message(f"{name}{here()} takes integer indices", f"got {indices}", help="cast them to int"))
    expected = _first_violation(operand.shape, indices.shape, numbers, slice_sizes, mode)
    if expected is not None:
        raise ShapeError(
            message(
                f"{name}{here()}: {expected}",
                f"got {operand}, indices {indices}, slice_sizes={slice_sizes}, {numbers}",
                help="x[i] and x.at[i] compute dimension numbers that fit",
            )
        )
    batch = indices.shape[:-1]
    is_mask = isinstance(predicate, ArrayType) and dtypes.is_bool(predicate.dtype)
    if not is_mask or predicate.shape not in ((), batch):
        raise ShapeError(
            message(
                f"{name}{here()}: the predicate must be a bool, or bools of shape {shape.show(batch)}",
                f"got {predicate}",
                help="one for each index vector; broadcast it",
            )
        )
    batch_sizes = iter(batch)
    window_sizes = iter(n for axis, n in enumerate(slice_sizes) if numbers.is_window(axis))
    rank = len(numbers.offset_dims) + len(batch)
    return tuple(next(window_sizes if axis in numbers.offset_dims else batch_sizes) for axis in range(rank))


@lru_cache(maxsize=4096)
def _first_violation(
    operand: Shape, indices: Shape, numbers: GatherDimensionNumbers, slice_sizes: Shape, mode: GatherScatterMode
) -> str | None:
    return next(_violations(operand, indices, numbers, slice_sizes, mode), None)


def _violations(
    operand: Shape, indices: Shape, numbers: GatherDimensionNumbers, slice_sizes: Shape, mode: GatherScatterMode
) -> Iterator[str]:
    """Yield each violated rule of dimension numbers, as a statement of the expectation."""
    rank, mapped, batching = len(operand), numbers.start_index_map, numbers.operand_batching_dims
    collapsed, paired = numbers.collapsed_slice_dims, numbers.start_indices_batching_dims
    if not indices or indices[-1] != len(mapped):
        yield "the indices' last axis must have one component for each axis of the index map"
        return
    if len(slice_sizes) != rank:
        yield "one slice size for every axis of the operand"
        return
    result_rank = len(numbers.offset_dims) + len(indices) - 1
    for axes, limit, role in (
        (numbers.offset_dims, result_rank, "offset (update window) dims"),
        (collapsed, rank, "collapsed (inserted) dims"),
        (batching, rank, "operand batching dims"),
    ):
        if list(axes) != sorted(set(axes)) or any(not 0 <= axis < limit for axis in axes):
            yield f"{role} must be distinct, sorted and within 0 to {limit - 1}"
    for axes, limit, role in ((mapped, rank, "the index map"), (paired, len(indices) - 1, "index batching dims")):
        if len(set(axes)) != len(axes) or any(not 0 <= axis < limit for axis in axes):
            yield f"{role} must hold distinct axes within 0 to {limit - 1}"
    if set(batching) & (set(mapped) | set(collapsed)):
        yield "operand batching dims must be neither indexed nor collapsed"
    if len(numbers.offset_dims) + len(collapsed) + len(batching) != rank:
        yield "every operand axis must be an offset, a collapsed or a batching one"
    if len(batching) != len(paired) or any(operand[b] != indices[i] for b, i in zip(batching, paired, strict=False)):
        yield "batching dims of operand and indices must have equal sizes"
    if any(slice_sizes[axis] != 1 for axis in (*collapsed, *batching)):
        yield "slices must have size 1 along collapsed and batching axes"
    may_miss = mode in (GatherScatterMode.CHECKED, GatherScatterMode.FILL_OR_DROP)
    for axis, (taken, n) in enumerate(zip(slice_sizes, operand, strict=True)):
        nothing_to_take = n == 0 and axis in mapped and axis in collapsed and may_miss
        if not 0 <= taken <= n and 0 not in indices and not nothing_to_take:
            yield f"slice sizes must lie between 0 and the operand's, not {taken} for axis {axis}"


# Checks of indices


class Bound(NamedTuple):
    """Bound of one component of index vectors: its maximum, and the axis and size that errors name.

    operation: the name of an operation on coordinates, or COUNTED_FROM_0; empty for an index.
    """

    last: int
    axis: int
    size: int
    operation: str = ""


def bounds_of(operand: Shape, numbers: GatherDimensionNumbers, slice_sizes: Sequence[int]) -> tuple[Bound, ...]:
    """Return the bounds of index vectors into an operand, one per component."""
    mapped = numbers.start_index_map
    named = mapped if numbers.reported_axes is None else numbers.reported_axes
    return tuple(
        Bound(operand[axis] - slice_sizes[axis], name, operand[axis]) for axis, name in zip(mapped, named, strict=True)
    )


def signed_values(places: Any) -> Any:
    """Convert NumPy integers to i64. Values beyond its range become its maximum, which no array reaches."""
    return (np.minimum(places, 2**63 - 1) if places.dtype == np.uint64 else places).astype(np.int64)


def raise_first_fault(indices: Any, predicate: Any, bounds: Sequence[Bound]) -> None:
    """Raise OutOfBoundsError for the first component out of bounds, in row-major order, where the predicate holds.

    indices: a NumPy array [*batch, k], k = len(bounds); predicate: bool, [] or [*batch].
    """
    batch = indices.shape[:-1]
    given = signed_values(indices).reshape(shape.size(batch), len(bounds))
    last = np.array([bound.last for bound in bounds], np.int64)
    wanted = np.broadcast_to(predicate, batch).reshape(-1, 1)
    faults = wanted & ((given < 0) | (given > last))
    if faults.any():
        window, component = divmod(int(faults.argmax()), len(bounds))
        index, (_, axis, size, operation) = int(given[window, component]), bounds[component]
        if operation:
            raise OutOfBoundsError(coordinate_message(operation, index, axis, size, user_source()))
        raise OutOfBoundsError(out_of_bounds_message(index, axis, size, user_source()))
