"""Cases of slices at computed places, gather and the scatters: every mode, kind of window and index dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.laws.cases import ALL, NUMBERS, WIDE, Case, case, typed
from tests.laws.values import Between, Draw, additive, constant, direction, distinct, every_part, near_one, with_zeros
from tracer.ir import dtypes
from tracer.primitives.catalogue import BY_NAME
from tracer.primitives.windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers

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
]  # fmt: skip
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
    for name, kinds, values in (
        ("scatter", (*ALL, "key"), every_part), ("scatter_add", NUMBERS, additive), ("scatter_mul", NUMBERS, near_one),
        ("scatter_min", NUMBERS, every_part), ("scatter_max", NUMBERS, every_part),
    ):  # fmt: skip
        for turn, window in enumerate(WINDOWS):
            for mode in GatherScatterMode:
                shorts = kinds if turn == 0 and mode is FILL else ("f64", kinds[(3 * turn) % len(kinds)])
                for short in dict.fromkeys(shorts):
                    yield _scatter(name, window, mode, short, INDEX_DTYPES[turn % 8], values)


def _dynamic() -> Iterator[Case]:
    slice_p, update_p = BY_NAME["dynamic_slice"], BY_NAME["dynamic_update_slice"]
    rows: list[tuple[Shape, Shape]] = [
        ((3, 4), (2, 3)), ((40,), (33,)), ((3, 4), (3, 4)), ((2, 3, 4), (1, 0, 2)), ((), ()), ((5,), (1,)),
    ]  # fmt: skip
    for turn, (shape, window) in enumerate(rows):
        for short in (*ALL, "key") if turn == 0 else ("f64", "c128", ALL[turn]):
            smooth = short in WIDE
            starts = [typed(INDEX_DTYPES[(turn + axis) % 8]) for axis in range(len(shape))]
            places: list[Draw] = [Between(-9, 44)] * len(shape)
            sizes = {"slice_sizes": window}
            yield case(
                slice_p, [typed(short, *shape), *starts], [every_part, *places],
                [direction, *places] if smooth else None, **sizes,
            )  # fmt: skip
            yield case(
                update_p, [typed(short, *shape), typed(short, *window), *starts], [every_part, every_part, *places],
                [direction, direction, *places] if smooth else None,
            )  # fmt: skip


def _places(mode: GatherScatterMode, shape: Shape, numbers: Numbers, sizes: Shape, beyond: int = 3) -> Draw:
    """Indices in bounds where they must be, also beyond where the mode says what that means."""
    room = min((shape[axis] - sizes[axis] for axis in numbers[2]), default=0)
    return Between(-beyond, room + beyond) if mode in (CLIP, FILL) else Between(0, room)


def _result_shape(shape: Shape, indices: Shape, numbers: Numbers, sizes: Shape) -> Shape:
    kept = iter(n for axis, n in enumerate(sizes) if GatherDimensionNumbers(*numbers).is_window(axis))
    batch = iter(indices[:-1])
    rank = len(numbers[0]) + len(indices) - 1
    return tuple(next(kept if axis in numbers[0] else batch) for axis in range(rank))


def _gather(
    window: tuple[Shape, Shape, Numbers, Shape], mode: GatherScatterMode, short: str, index: str,
    predicate: Shape | None = None,
) -> Case:  # fmt: skip
    shape, indices, numbers, sizes = window
    places = _places(mode if predicate is None else CLIP, shape, numbers, sizes)
    fill = (
        np.array(3).astype(dtypes.BY_SHORT_NAME[short])[()] if mode is FILL and short not in ("key", "bool") else None
    )
    fits = predicate is None or mode is not PROMISE
    flags = constant(True) if predicate is None else every_part
    places = places if fits else _places(PROMISE, shape, numbers, sizes)
    types = [typed(short, *shape), typed(index, *indices), typed("bool", *(predicate or ()))]
    return case(
        BY_NAME["gather"], types, [every_part, places, flags],
        [direction, places, flags] if short in WIDE else None,
        dimension_numbers=GatherDimensionNumbers(*numbers), slice_sizes=sizes, mode=mode, fill_value=fill,
        unique_indices=False,
    )  # fmt: skip


def _masked() -> Iterator[Case]:
    """Predicates with a lane for every index vector; where they are false, an index may be anywhere."""
    for mode in (CLIP, FILL, PROMISE):
        for turn in (0, 2, 3, 11):
            window = WINDOWS[turn]
            for short in ("f64", "i16"):
                yield _gather(window, mode, short, "i64", predicate=window[1][:-1])


def _scatter(
    name: str, window: tuple[Shape, Shape, Numbers, Shape], mode: GatherScatterMode, short: str, index: str,
    values: Draw,
) -> Case:  # fmt: skip
    shape, indices, numbers, sizes = window
    places = _places(mode, shape, numbers, sizes)
    updates = _result_shape(shape, indices, numbers, sizes)
    types = [typed(short, *shape), typed(index, *indices), typed(short, *updates), typed("bool")]
    near = _places(mode, shape, numbers, sizes, beyond=1)
    smooth: Draw = distinct if name in ("scatter_min", "scatter_max") else direction
    factors: Draw = with_zeros if name == "scatter_mul" else smooth
    flags = constant(True)
    return case(
        BY_NAME[name], types, [values, places, values, flags],
        [smooth, near, factors, flags] if short in WIDE else None,
        dimension_numbers=ScatterDimensionNumbers(*numbers), mode=mode, unique_indices=False,
    )  # fmt: skip
