"""Cases of reductions, cumulative scans, sort and top_k."""

from __future__ import annotations

from collections.abc import Iterator

from tests.laws.cases import ALL, COMPLEX, FLOATS, INTEGERS, NUMBERS, WIDE, Case, case, typed
from tests.laws.values import Draw, additive, anything, direction, distinct, few, near_one
from tracer.ir import dtypes
from tracer.primitives.catalogue import BY_NAME

SHAPES = [
    ((3, 4), (1,)), ((3, 4), (0,)), ((2, 3, 4), (0, 2)), ((133,), (0,)), ((1,), (0,)), ((2, 3), (0, 1)), ((3, 4), ()),
    ((33, 5), (0,)), ((5, 33), (1,)), ((4099,), (0,)), ((67, 65), (0,)), ((65, 67), (1,)),
]  # fmt: skip
EMPTY = [((0, 3), (0,)), ((2, 0, 3), (1,)), ((3, 0), (0,))]
ORDERED = ("bool", *INTEGERS, *FLOATS)

# name: dtypes, values, smooth points, whether nothing has a value
REDUCTIONS: dict[str, tuple[tuple[str, ...], Draw, Draw, bool]] = {
    "reduce_sum": (NUMBERS, additive, direction, True),
    "reduce_prod": (NUMBERS, near_one, distinct, True),
    "reduce_max": ((*ORDERED, *COMPLEX), anything, distinct, False),
    "reduce_min": ((*ORDERED, *COMPLEX), anything, distinct, False),
    "reduce_and": (("bool", *INTEGERS), anything, distinct, True),
    "reduce_or": (("bool", *INTEGERS), anything, distinct, True),
    "reduce_xor": (("bool", *INTEGERS), anything, distinct, True),
}
SCANS: dict[str, tuple[tuple[str, ...], Draw, Draw]] = {
    "cumsum": (NUMBERS, additive, direction),
    "cumprod": (NUMBERS, near_one, distinct),
    "cummax": (("bool", *NUMBERS), anything, distinct),
    "cummin": (("bool", *NUMBERS), anything, distinct),
    "cumlogsumexp": (FLOATS, additive, distinct),
    "cumlogsumexp of complex numbers": (COMPLEX, distinct, distinct),  # whose terms do not cancel
}


def reduction_cases() -> Iterator[Case]:
    """Every dtype on one shape, in turn; f64 and c128 on all of them."""
    for name, (shorts, values, smooth, of_nothing) in REDUCTIONS.items():
        shapes = SHAPES + (EMPTY if of_nothing else [((0, 3), (1,))])
        for turn, (shape, axes) in enumerate(shapes):
            for short in dict.fromkeys((shorts[turn % len(shorts)], *(s for s in WIDE if s in shorts))):
                yield case(BY_NAME[name], [typed(short, *shape)], values, smooth if short in WIDE else None, axes=axes)
        for turn, short in enumerate(shorts):
            shape, axes = SHAPES[turn % 4]
            yield case(BY_NAME[name], [typed(short, *shape)], values, None, axes=axes)
    for name in ("argmax", "argmin"):
        for turn, short in enumerate(ORDERED):
            shapes: list[tuple[tuple[int, ...], int]] = [
                ((3, 4), 1),
                ((37,), 0),
                ((2, 3, 4), 0),
                ((0, 3), 1),
                ((1,), 0),
            ]
            for shape, axis in (*shapes, *([((4099,), 0)] if short in ("f32", "f64") else [])):
                index = dtypes.INTEGERS[turn % 8]
                draw = distinct if short in WIDE else None
                yield case(BY_NAME[name], [typed(short, *shape)], few, draw, axis=axis, index_dtype=index)
    yield from _windows()
    yield from _scans()
    yield from _sorts()


# shape, window, and what is not the default: strides, padding, base_dilation, window_dilation
POOLS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, tuple[object, ...]]]] = [
    ((2, 6, 6), (1, 2, 2), {"strides": (1, 2, 2)}),
    ((7, 5), (3, 3), {"padding": ((1, 1), (0, 2)), "strides": (2, 1)}),
    ((9,), (3,), {"window_dilation": (2,), "padding": ((2, -1),)}),
    ((4,), (3,), {"base_dilation": (3,), "padding": ((1, 2),)}),
    ((40,), (20,), {"strides": (3,)}),
    ((3,), (5,), {}),
    ((3,), (2,), {"padding": ((-3, -2),)}),
    ((0, 3), (1, 2), {}),
    ((), (), {}),
    ((133,), (2,), {}),
    ((1, 1), (1, 1), {}),
    ((65, 67), (3, 2), {"strides": (2, 1)}),
]  # fmt: skip


def _windows() -> Iterator[Case]:
    for name, shorts, values, smooth in (
        ("reduce_window_sum", NUMBERS, additive, direction),
        ("reduce_window_max", ("bool", *NUMBERS), anything, distinct),
        ("reduce_window_min", ("bool", *NUMBERS), anything, distinct),
    ):
        for turn, (shape, window, given) in enumerate(POOLS):
            ones = (1,) * len(shape)
            params = {
                "window": window, "strides": ones, "padding": ((0, 0),) * len(shape), "base_dilation": ones,
                "window_dilation": ones, **given,
            }  # fmt: skip
            kinds = shorts if turn < 2 else (shorts[turn % len(shorts)], *(s for s in WIDE if s in shorts))
            for short in dict.fromkeys(kinds):
                draw = smooth if short in WIDE else None
                yield case(BY_NAME[name], [typed(short, *shape)], values, draw, **params)


def _scans() -> Iterator[Case]:
    shapes = [
        ((5,), 0),
        ((2, 3, 4), 1),
        ((2, 3, 4), 2),
        ((37,), 0),
        ((0, 3), 0),
        ((1,), 0),
        ((3, 0), 0),
        ((33, 3), 0),
        ((4099,), 0),
    ]
    for name, (shorts, values, smooth) in SCANS.items():
        primitive = BY_NAME[name.split()[0]]
        for turn, (shape, axis) in enumerate(shapes):
            for reverse in (False, True):
                for short in dict.fromkeys((shorts[turn % len(shorts)], *(s for s in WIDE if s in shorts))):
                    draw = smooth if short in WIDE else None
                    yield case(primitive, [typed(short, *shape)], values, draw, axis=axis, reverse=reverse)
        for turn, short in enumerate(shorts):
            yield case(primitive, [typed(short, 2, 17)], values, None, axis=1, reverse=bool(turn % 2))


def _sorts() -> Iterator[Case]:
    for turn, short in enumerate((*ORDERED, *COMPLEX)):
        draw = distinct if short in WIDE else None
        for shape, axis in (
            ((5,), 0),
            ((3, 4), 0),
            ((2, 3, 4), 1),
            ((67,), 0),
            ((0, 2), 0),
            ((1, 3), 0),
            ((1,), 0),
            *([((4099,), 0)] if short in ("i32", "f64", "c128") else []),
        ):
            yield _sort([typed(short, *shape)], axis, 1, few, draw)
        # the order of equal keys, told by payloads
        yield _sort([typed(short, 19), typed("i32", 19)], 0, 1, few, None)
        yield _sort([typed(short, 9), typed(ALL[turn], 9), typed("f64", 9)], 0, 2, few, None)
    yield _sort([typed("f64", 6), typed("f64", 6)], 0, 1, few, distinct)
    yield _sort([typed("i64", 2, 6), typed("f64", 2, 6), typed("f64", 2, 6)], 1, 2, few, distinct)
    yield _sort([typed("f64", 6), typed("key", 6)], 0, 1, few, None)
    for turn, short in enumerate(ORDERED):
        for shape, axis, k in (
            ((7,), 0, 3), ((3, 4), 0, 3), ((3, 4), 1, 1), ((5,), 0, 0), ((2, 40), 1, 33), ((1,), 0, 1),
            *([((4099,), 0, 100)] if short == "f64" else []),
        ):  # fmt: skip
            draw = distinct if short in WIDE else None
            if short == "f64" or (turn + k) % 2:
                yield case(BY_NAME["top_k"], [typed(short, *shape)], few, draw, k=k, axis=axis)


def _sort(types: list, axis: int, keys: int, values: Draw, smooth: Draw | None) -> Case:  # type: ignore[type-arg]
    first = [values] * keys + [anything] * (len(types) - keys)
    return case(BY_NAME["sort"], types, first, smooth, dimension=axis, is_stable=True, num_keys=keys)
