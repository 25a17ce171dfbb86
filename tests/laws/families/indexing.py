"""Cases of slices at computed places, gather and the scatters: every mode, kind of window and index dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.grids import THOROUGH
from tests.laws.cases import ALL, INTEGERS, LARGE, NUMBERS, WIDE, Case, case, typed
from tests.laws.values import (
    Apart,
    Between,
    Draw,
    additive,
    anything,
    constant,
    direction,
    distinct,
    near_one,
    with_zeros,
)
from tracer.ir import dtypes
from tracer.primitives.arrays.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    bounds_of,
)
from tracer.primitives.catalogue import BY_NAME

Shape = tuple[int, ...]
Numbers = tuple[Any, ...]

# operand, indices, dimension numbers, slice sizes; the updates of the scatter that writes there have the result's shape
WINDOWS: list[tuple[Shape, Shape, Numbers, Shape]] = [
    ((3, 4), (3, 1), ((1,), (0,), (0,)), (1, 4)),  # rows
    ((3, 4), (3, 1), ((0,), (1,), (1,)), (3, 1)),  # columns
    ((3, 4), (5, 2), ((), (0, 1), (1, 0)), (1, 1)),  # points
    ((3, 4), (3, 2), ((1, 2), (), (0, 1)), (2, 3)),  # windows
    ((2, 3, 4), (3, 1), ((0, 2), (1,), (1,)), (2, 1, 4)),  # offsets apart
    ((2, 3, 4), (2, 1), ((1,), (1,), (1,), (0,), (0,)), (1, 1, 4)),  # batching
    ((2, 3, 4), (3, 2, 1), ((2,), (0,), (0,), (1,), (0,)), (1, 1, 4)),  # batching, an axis further
    ((5,), (4, 1), ((1,), (), (0,)), (2,)),  # windows of a vector
    ((3, 4), (2,), ((), (0, 1), (0, 1)), (1, 1)),  # one element
    ((), (2, 0), ((), (), ()), ()),  # of a scalar
    ((3, 4), (0, 1), ((1,), (0,), (0,)), (1, 4)),  # nothing
    ((40,), (37, 1), ((), (0,), (0,)), (1,)),  # many
    ((1,), (1, 1), ((), (0,), (0,)), (1,)),
    ((1031, 5), (1025, 1), ((1,), (0,), (0,)), (1, 5)),
]  # fmt: skip
# Axes that are longer than the indices' dtype reaches, as it stands beside them.
LONG: list[tuple[str, tuple[Shape, Shape, Numbers, Shape]]] = [
    ("i8", ((200,), (9, 1), ((), (0,), (0,)), (1,))),
    ("u8", ((300,), (9, 1), ((), (0,), (0,)), (1,))),
    ("i8", ((3, 140), (4, 2), ((1,), (0,), (0, 1)), (1, 5))),
]
# Places of which no two are alike.
UNIQUE: list[tuple[Shape, Shape, Numbers, Shape]] = [
    ((5, 4), (3, 1), ((1,), (0,), (0,)), (1, 4)),
    ((12, 13), (5, 2), ((), (0, 1), (1, 0)), (1, 1)),
    ((2, 5, 4), (2, 2, 1), ((2,), (1,), (1,), (0,), (0,)), (1, 1, 4)),
    ((40,), (37, 1), ((), (0,), (0,)), (1,)),
]
SCATTERS: list[tuple[str, tuple[str, ...], Draw]] = [
    ("scatter", (*ALL, "key"), anything), ("scatter_add", NUMBERS, additive), ("scatter_mul", NUMBERS, near_one),
    ("scatter_min", NUMBERS, anything), ("scatter_max", NUMBERS, anything),
]  # fmt: skip
HALF = () if THOROUGH else ("scatter_mul", "scatter_min", "scatter_max")  # tried in half of the modes at each window
CHECKED, CLIP = GatherScatterMode.CHECKED, GatherScatterMode.CLIP
FILL, PROMISE = GatherScatterMode.FILL_OR_DROP, GatherScatterMode.PROMISE_IN_BOUNDS
INDEX_DTYPES = ("i64", "i32", "u8", "i8", "u32", "i16", "u64", "u16")


def indexing_cases() -> Iterator[Case]:
    """dynamic_slice and its twin, gather, the scatters."""
    yield from _dynamic()
    for turn, window in enumerate(WINDOWS):
        for mode in GatherScatterMode:
            shorts = (*ALL, "key") if turn == 0 and mode is FILL else ("f64", ("c128", "f32", "i8", "bf16")[turn % 4])
            for short in shorts:
                yield _gather(window, mode, short, INDEX_DTYPES[turn % 8])
    yield from _masked()
    yield from _divisors()
    for turn, window in enumerate(WINDOWS):
        yield _checked(window, INDEX_DTYPES[turn % 8])
        yield _checked(window, "i64", window[1][:-1])
    for index, window in LONG:
        for mode in (CLIP, FILL):
            yield _gather(window, mode, "f64", index)
    for window in UNIQUE:
        for mode in GatherScatterMode:
            for short in ("f64", "i16"):
                yield _gather(window, mode, short, "i32", unique=True)
    for number, (name, kinds, values) in enumerate(SCATTERS):
        for turn, window in enumerate(WINDOWS):
            for at, mode in enumerate(GatherScatterMode):
                every = turn == 0 and mode is FILL
                if name in HALF and not every and math.prod(window[0]) <= LARGE and (number + turn + at) % 2:
                    continue
                shorts = kinds if every else ("f64", kinds[(3 * turn) % len(kinds)])
                for short in dict.fromkeys(shorts):
                    yield _scatter(name, window, mode, short, INDEX_DTYPES[turn % 8], values)
        for index, window in LONG:
            for mode in (CLIP, FILL):
                yield _scatter(name, window, mode, "f64", index, values)
        for window in UNIQUE:
            for mode in GatherScatterMode:
                yield _scatter(name, window, mode, "f64", "i32", values, unique=True)


def _dynamic() -> Iterator[Case]:
    slice_p, update_p = BY_NAME["dynamic_slice"], BY_NAME["dynamic_update_slice"]
    rows: list[tuple[Shape, Shape]] = [
        ((3, 4), (2, 3)), ((40,), (33,)), ((3, 4), (3, 4)), ((2, 3, 4), (1, 0, 2)), ((), ()), ((5,), (1,)),
        ((300,), (7,)), ((2, 140), (1, 3)), ((4099,), (4093,)),
    ]  # fmt: skip
    for turn, (shape, window) in enumerate(rows):
        for short in (*ALL, "key") if turn == 0 else ("f64", "c128", ALL[turn]):
            smooth = short in WIDE
            starts = [typed(INDEX_DTYPES[(turn + axis) % 8]) for axis in range(len(shape))]
            places: list[Draw] = [Between(-9, 1 + max(shape, default=0), ends=True)] * len(shape)
            sizes = {"slice_sizes": window}
            yield case(
                slice_p, [typed(short, *shape), *starts], [anything, *places],
                [direction, *places] if smooth else None, **sizes,
            )  # fmt: skip
            yield case(
                update_p, [typed(short, *shape), typed(short, *window), *starts], [anything, anything, *places],
                [direction, direction, *places] if smooth else None,
            )  # fmt: skip


def _places(
    mode: GatherScatterMode, shape: Shape, numbers: Numbers, sizes: Shape, beyond: int = 3, *, ends: bool = True
) -> Draw:
    """Indices in bounds where they must be, also beyond where the mode says what that means."""
    room = min((shape[axis] - sizes[axis] for axis in numbers[2]), default=0)
    return Between(-beyond, room + beyond, ends) if mode in (CLIP, FILL) else Between(0, room)


def _apart(shape: Shape, numbers: Numbers) -> Draw:
    """Indices in bounds along every axis that is indexed, no number twice."""
    return Apart(min(shape[axis] for axis in numbers[2]))


def _result_shape(shape: Shape, indices: Shape, numbers: Numbers, sizes: Shape) -> Shape:
    kept = iter(n for axis, n in enumerate(sizes) if GatherDimensionNumbers(*numbers).is_window(axis))
    batch = iter(indices[:-1])
    rank = len(numbers[0]) + len(indices) - 1
    return tuple(next(kept if axis in numbers[0] else batch) for axis in range(rank))


def _gather(
    window: tuple[Shape, Shape, Numbers, Shape], mode: GatherScatterMode, short: str, index: str,
    predicate: Shape | None = None, unique: bool = False,
) -> Case:  # fmt: skip
    shape, indices, numbers, sizes = window
    places = _places(mode if predicate is None else CLIP, shape, numbers, sizes)
    places = _apart(shape, numbers) if unique else places
    fill = (
        np.array(3).astype(dtypes.BY_SHORT_NAME[short])[()] if mode is FILL and short not in ("key", "bool") else None
    )
    fits = predicate is None or mode is not PROMISE
    flags = constant(True) if predicate is None else anything
    places = places if fits else _places(PROMISE, shape, numbers, sizes)
    types = [typed(short, *shape), typed(index, *indices), typed("bool", *(predicate or ()))]
    return case(
        BY_NAME["gather"], types, [anything, places, flags],
        [direction, places, flags] if short in WIDE else None,
        dimension_numbers=GatherDimensionNumbers(*numbers), slice_sizes=sizes, mode=mode, fill_value=fill,
        unique_indices=unique,
    )  # fmt: skip


def _checked(window: tuple[Shape, Shape, Numbers, Shape], index: str, predicate: Shape = ()) -> Case:
    """Where the predicate may be false, an index may be anywhere."""
    shape, indices, numbers, sizes = window
    places = _places(CLIP if predicate else CHECKED, shape, numbers, sizes)
    types = [typed(index, *indices), typed("bool", *predicate)]
    bounds = bounds_of(shape, GatherDimensionNumbers(*numbers), sizes)
    flags = constant(False) if predicate else constant(True)
    return case(BY_NAME["checked_indices"], types, [places, flags], None, bounds=bounds)


def _divisors() -> Iterator[Case]:
    """Divisors that are not zero, and any where the predicate is false."""
    for turn, short in enumerate(INTEGERS):
        for shape in ((), (3, 4), (0, 2), (133,), (1,), (4099,))[turn % 2 :: 2]:
            types = [typed(short, *shape), typed("bool", *(shape if turn % 4 < 2 else ()))]
            draws = [Between(1, 100), constant(True)] if turn % 3 else [anything, constant(False)]
            yield case(BY_NAME["checked_divisor"], types, draws, None, operation="div")


def _masked() -> Iterator[Case]:
    """Predicates with a lane for every index vector; where they are false, an index may be anywhere."""
    for mode in (CLIP, FILL, PROMISE):
        for turn in (0, 2, 3, 11):
            window = WINDOWS[turn]
            for short in ("f64", "i16"):
                yield _gather(window, mode, short, "i64", predicate=window[1][:-1])
                for name, _, values in SCATTERS:
                    yield _scatter(name, window, mode, short, "i64", values, predicate=window[1][:-1])


def _scatter(
    name: str, window: tuple[Shape, Shape, Numbers, Shape], mode: GatherScatterMode, short: str, index: str,
    values: Draw, unique: bool = False, predicate: Shape | None = None,
) -> Case:  # fmt: skip
    shape, indices, numbers, sizes = window
    places = _apart(shape, numbers) if unique else _places(mode, shape, numbers, sizes)
    updates = _result_shape(shape, indices, numbers, sizes)
    types = [typed(short, *shape), typed(index, *indices), typed(short, *updates), typed("bool", *(predicate or ()))]
    near = places if unique else _places(mode, shape, numbers, sizes, beyond=1, ends=False)
    smooth: Draw = distinct if name in ("scatter_min", "scatter_max") else direction
    factors: Draw = with_zeros if name == "scatter_mul" else smooth
    flags = constant(True) if predicate is None else anything
    return case(
        BY_NAME[name], types, [values, places, values, flags],
        [smooth, near, factors, flags] if short in WIDE else None,
        dimension_numbers=ScatterDimensionNumbers(*numbers), mode=mode, unique_indices=unique,
    )  # fmt: skip
