"""Indices of `x[i]` resolved against a shape: the slice of each axis, the index arrays, and axes dropped or new.

By NumPy's rules, axes of adjacent index arrays replace the first of them; axes of separated ones come first. Integers
count as index arrays beside one. Indices are checked: Python integers, slices and NumPy arrays at once, traced indices
when the program runs.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tracer.errors import (
    ArgumentError,
    IndexingError,
    IndexShapeError,
    OutOfBoundsError,
    TracerArrayError,
    TracerError,
    message,
)
from tracer.ir import dtypes, shape
from tracer.numpy.core.conversion import array_of, native
from tracer.primitives.arrays.indexing.dimension_numbers import (
    COUNTED_FROM_0,
    GatherScatterMode,
    coordinate_message,
    out_of_bounds_message,
    signed_values,
)
from tracer.trace.array import Array, concrete_value
from tracer.trace.captured_values import looked_at
from tracer.trace.source import here, user_source
from tracer.trace.state import state

CHECKED = GatherScatterMode.CHECKED
Places = np.ndarray[Any, Any] | Array  # integer indices: concrete, or traced


class Taken(NamedTuple):
    """Elements of an axis in a slice: `size` of them from `start` by `step`, which may be negative."""

    start: int
    size: int
    step: int

    @property
    def bounds(self) -> tuple[int, int, int]:
        """Start, limit and stride of the ascending slice with the same elements."""
        if not self.size:
            return 0, 0, 1
        last = self.start + (self.size - 1) * self.step
        low, high = min(self.start, last), max(self.start, last)
        return low, high + 1, abs(self.step)


@dataclass(frozen=True, slots=True)
class Index:
    """Index resolved against a shape.

    taken: the slice of every axis, all of it for an axis with an index array. dropped: the axes that integers remove.
    new: positions of new axes in `left`. arrays: (axis, its position in `left`, index array) of each axis with an
    index array. batch: the shape to which index arrays broadcast. place: position of the batch in the result.
    """

    shape: tuple[int, ...]  # the array's, with an axis of size 1 for every single bool
    taken: tuple[Taken, ...]
    dropped: tuple[int, ...]
    new: tuple[int, ...]
    arrays: tuple[tuple[int, int, Places], ...]
    batch: tuple[int, ...]
    place: int

    @property
    def left(self) -> tuple[int, ...]:
        """Shape after slices, dropped and new axes, before index arrays are gathered."""
        sizes = [t.size for axis, t in enumerate(self.taken) if axis not in self.dropped]
        for place in self.new:
            sizes.insert(place, 1)
        return tuple(sizes)

    @property
    def result(self) -> tuple[int, ...]:
        """Shape of the indexed elements."""
        gathered = {place for _, place, _ in self.arrays}
        sizes = [n for place, n in enumerate(self.left) if place not in gathered]
        return (*sizes[: self.place], *self.batch, *sizes[self.place :]) if self.arrays else tuple(sizes)


class _Part(NamedTuple):
    """Item of an index. kind: new, gap, integer, slice, array, mask, bool. axes: count of axes that it indexes."""

    kind: str
    axes: int
    value: Any = None


def resolve(sizes: tuple[int, ...], index: Any, mode: GatherScatterMode = CHECKED, wrap: bool = True) -> Index:
    """Resolve an index against a shape. Raises OutOfBoundsError for a concrete index that is out of bounds.

    mode: "checked" looks integers up at once; other modes keep them as index arrays. wrap: whether negative ones
    count from the end.
    """
    items = index if isinstance(index, tuple) else (index,)
    parts = [part for item in items for part in _parts(item)]
    parts = _with_ellipsis(parts, sizes)
    if mode is not CHECKED:
        parts = [_Part("array", 1, np.asarray(p.value)) if p.kind == "integer" else p for p in parts]
    taken: list[Taken] = []
    dropped: list[int] = []
    new: list[int] = []
    arrays: list[tuple[int, int, Any]] = []
    left = 0
    for kind, _, value in parts:
        axis = len(taken)
        if kind == "integer":
            dropped.append(axis)
            taken.append(Taken(checked_integer(value, axis, sizes[axis], wrap), 1, 1))
            continue
        if kind == "bool":
            sizes = (*sizes[:axis], 1, *sizes[axis:])
            kind, value = "array", np.zeros(int(value), np.int64)
        if kind == "new":
            new.append(left)
        elif kind == "slice":
            taken.append(_taken(value, sizes[axis]))
        elif kind == "array":
            if mode is CHECKED and isinstance(value, np.ndarray):
                value = checked_places(value, axis, sizes[axis], wrap)
            arrays.append((axis, left, value))
            taken.append(Taken(0, sizes[axis], 1))
        left += kind != "gap"
    shapes = [places.shape for _, _, places in arrays] or [()]
    batch = shape.broadcast(*shapes, operation=f"indexing{here()}", kind=IndexShapeError)
    return Index(sizes, tuple(taken), tuple(dropped), tuple(new), tuple(arrays), batch, _place(parts))


def _parts(item: Any) -> Iterator[_Part]:
    """Yield the parts of one item of an index."""
    if item is None:
        yield _Part("new", 0)
    elif item is Ellipsis:
        yield _Part("gap", 0)
    elif isinstance(item, slice):
        yield _Part("slice", 1, item)
    elif isinstance(item, bool | np.bool_):
        yield _Part("bool", 0, item)
    elif isinstance(item, int | np.integer):
        yield _Part("integer", 1, operator.index(item))
    else:
        yield from _array_parts(_places(item))


def _places(item: Any) -> Places:
    """Return an item as an index array: a NumPy array if the values are trace-time constants, else an `Array`.

    Raises IndexingError for an item that is no index.
    """
    if isinstance(item, list | tuple | range):
        item = array_of("indexing", item)
        if not item.size and not _are_places(item.dtype):  # empty lists have no dtype
            item = np.zeros(item.shape, np.int64)
    if isinstance(item, Array) and item._trace is None and state.staging is None and _are_places(item.dtype):
        value: np.ndarray[Any, Any] = concrete_value(item)
        return value
    if isinstance(item, Array):
        return item
    if isinstance(item, np.ndarray):
        dtype = native(item.dtype)
        return looked_at(item).astype(dtype, copy=False) if _are_places(dtype) else item
    if hasattr(item, "__index__"):
        return np.asarray(operator.index(item))
    if hasattr(item, "__array__"):
        return np.asarray(item)
    raise IndexingError(
        message(
            f"indexing{here()}: an index is an integer, a slice, an array of integers or bools, None or ...",
            f"got {type(item).__name__}: {item!r}"[:60],
            help="cast it with int(...)" if isinstance(item, float) else "arrays have no named axes or fields",
        )
    )


def _are_places(dtype: dtypes.DType) -> bool:
    return dtypes.is_integer(dtype) or dtype == dtypes.BOOL


def _array_parts(places: Places) -> Iterator[_Part]:
    if places.dtype == dtypes.BOOL:
        mask = places if isinstance(places, np.ndarray) else concrete_value(places)
        if mask is None:
            raise TracerArrayError(
                message(
                    f"indexing with a mask{here()}: the shape of the result depends on the mask's values",
                    f"got a mask {places.type}, known only when the compiled program runs",  # type: ignore[union-attr]
                    help="tnp.where(mask, x, 0) keeps the shape; x.at[mask].set(value) writes",
                )
            )
        yield _Part("mask", mask.ndim, mask) if mask.ndim else _Part("bool", 0, mask)
    elif not dtypes.is_integer(places.dtype):
        raise IndexingError(
            message(
                f"indexing{here()}: index arrays hold integers or bools",
                f"got {places.dtype}",
                help="cast the index with .astype(int)",
            )
        )
    elif places.ndim == 0 and isinstance(places, np.ndarray) and state.innermost is None:
        yield _Part("integer", 1, int(places))
    else:
        yield _Part("array", 1, places)


def _with_ellipsis(parts: list[_Part], sizes: tuple[int, ...]) -> list[_Part]:
    """Replace the ellipsis, or the missing end, by full slices, and masks by index arrays.

    Raises OutOfBoundsError for too many indices or ellipses.
    """
    used = sum(part.axes for part in parts)
    if used > len(sizes):
        raise OutOfBoundsError(
            message(
                f"indexing{here()}: too many indices",
                f"got {used} for an array of shape {shape.show(sizes)}",
                help="one index an axis; None and ... do not count",
            )
        )
    gaps = [i for i, part in enumerate(parts) if part.kind == "gap"]
    if len(gaps) > 1:
        raise OutOfBoundsError(message(f"indexing{here()}: an index has one ellipsis (...) at most"))
    place = gaps[0] if gaps else len(parts)
    filling = [_Part("slice", 1, slice(None))] * (len(sizes) - used)
    full = [*parts[: place + len(gaps)], *filling, *parts[place + len(gaps) :]]
    result: list[_Part] = []
    for part in full:
        if part.kind == "mask":
            axis = sum(p.axes for p in result)
            result += [_Part("array", 1, found) for found in _true_places(part.value, axis, sizes)]
        else:
            result.append(part)
    return result


def _true_places(mask: Any, axis: int, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    named = sizes[axis : axis + mask.ndim]
    if len(named) < mask.ndim or any(m not in (0, n) for m, n in zip(mask.shape, named, strict=True)):
        raise OutOfBoundsError(
            message(
                f"indexing with a mask{here()}: it must have the shape of the axes that it stands for",
                f"got {shape.show(mask.shape)} for {shape.show(sizes)}, from axis {axis}",
            )
        )
    return np.nonzero(mask)


def _place(parts: Sequence[_Part]) -> int:
    """Return the position of the batch of index arrays in the result."""
    if not any(part.kind in ("array", "bool") for part in parts):
        return 0
    advanced = [i for i, part in enumerate(parts) if part.kind in ("array", "integer", "bool")]
    first, last = advanced[0], advanced[-1]
    if last - first + 1 != len(advanced):
        return 0
    return sum(part.kind in ("new", "slice") for part in parts[:first])


def _taken(item: slice, size: int) -> Taken:
    start, stop, step = (_bound(bound) for bound in (item.start, item.stop, item.step))
    if step == 0:
        raise ArgumentError(message(f"indexing{here()}: the step of a slice must not be 0"))
    first, limit, by = slice(start, stop, step).indices(size)
    return Taken(first, len(range(first, limit, by)), by)


def _bound(bound: Any) -> int | None:
    if bound is None:
        return None
    if isinstance(bound, Array) and concrete_value(bound) is None:
        raise TracerArrayError(
            message(
                f"slicing{here()}: the bounds of a slice decide the shape, and must be known while tracing",
                f"got a bound {bound.type}",
                help="lax.dynamic_slice takes a fixed size from a traced start; or mark the argument static",
            )
        )
    try:
        return operator.index(bound)
    except TracerError:
        raise
    except TypeError:
        shown = f"{type(bound).__name__}: {bound!r}"[:80]
        raise IndexingError(message(f"slicing{here()}: the bounds of a slice are integers", f"got {shown}")) from None


def known_places(name: str, places: Any) -> np.ndarray[Any, Any]:
    """Return concrete indices, integers or bools, as a NumPy array. Raises ArgumentError for other dtypes."""
    found = looked_at(places) if isinstance(places, np.ndarray) else np.asarray(places)
    if found.dtype.kind not in "biu" and found.size:
        raise ArgumentError(message(f"{name}{here()}: places are integers or bools", f"got {found.dtype}"))
    return found


def checked_integer(index: int, axis: int, size: int, wrap: bool = True) -> int:
    """Return an integer index counted from the front. Raises OutOfBoundsError."""
    found = index + size if wrap and index < 0 else index
    if not 0 <= found < size:
        _raise_outside(found, axis, size, wrap)
    return found


def checked_places(places: Any, axis: int, size: int, wrap: bool = True) -> Any:
    """Return a NumPy array of indices counted from the front. Raises OutOfBoundsError."""
    if not places.size:
        return places.astype(np.int64)
    wide = signed_values(places)
    found = np.where(wide < 0, wide + size, wide) if wrap else wide
    outside = (found < 0) | (found >= size)
    if outside.any():
        _raise_outside(int(found.reshape(-1)[int(outside.argmax())]), axis, size, wrap)
    return found


def _raise_outside(found: int, axis: int, size: int, wrap: bool) -> NoReturn:
    if wrap:
        raise OutOfBoundsError(out_of_bounds_message(found, axis, size, user_source()))
    raise OutOfBoundsError(coordinate_message(COUNTED_FROM_0, found, axis, size, user_source()))
