"""Cases of dot_general, conv and row_products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.laws.cases import ALL, NUMBERS, WIDE, Case, case, typed
from tests.laws.values import Array, Between, additive, direction, small_integers
from tests.primitives.linalg.test_dot_general import PATTERNS
from tracer.ir import dtypes
from tracer.ir.types import Type, storage_type
from tracer.primitives.catalogue import BY_NAME

EMPTY = [
    ((2, 0), (0, 3), (((1,), (0,)), ((), ()))),
    ((0, 2), (2, 3), (((1,), (0,)), ((), ()))),
    ((2, 3), (3, 0), (((1,), (0,)), ((), ()))),
    ((0, 2, 3), (0, 3, 4), (((2,), (1,)), ((0,), (0,)))),
]
SINGLE = [((1, 1), (1, 1), (((1,), (0,)), ((), ())))]
LARGE = [
    ((33, 17), (17, 40), (((1,), (0,)), ((), ()))),
    ((70,), (70,), (((0,), (0,)), ((), ()))),
    ((67, 130), (130, 71), (((1,), (0,)), ((), ()))),
]
PREFERRED = [
    ("i8", "i32"),
    ("f16", "f32"),
    ("bf16", "f32"),
    ("f32", "f64"),
    ("u8", "f64"),
    ("c64", "c128"),
    ("i32", "u32"),
    ("f64", "i32"),
    ("f16", "u8"),
    ("f32", "bool"),
    ("bool", "i64"),
    ("bool", "c64"),
    ("i8", "c64"),
    ("bf16", "f16"),
    ("f64", "f32"),
    ("f64", "c128"),
    ("f32", "c128"),
    ("f64", "c64"),
    ("c128", "f64"),
    ("c64", "f64"),
    ("c128", "i64"),
    ("c64", "i32"),
    ("c128", "c64"),
    ("c128", "f16"),
]

# lhs, rhs, and what is not the default: strides, padding, lhs_dilation, rhs_dilation, feature_groups, batch_groups
CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 8), (4, 3, 3), {}),
    ((1, 2, 5, 6), (3, 2, 2, 3), {"padding": ((1, 1), (0, 2))}),
    ((2, 4, 9), (6, 2, 3), {"feature_groups": 2, "strides": (2,)}),
    ((4, 3, 7), (4, 3, 2), {"batch_groups": 2, "rhs_dilation": (2,)}),
    ((1, 1, 4), (1, 1, 3), {"lhs_dilation": (3,), "padding": ((2, -1),)}),
    ((1, 2, 3, 3, 3), (2, 2, 2, 2, 2), {}),
    ((2, 1, 3), (1, 1, 5), {}),  # the window does not fit
    ((0, 1, 3), (2, 1, 2), {}),
    ((2, 3), (4, 3), {}),  # no spatial axis
    ((1, 1, 1), (1, 1, 1), {}),
    ((2, 3, 19, 23), (5, 3, 3, 3), {"padding": ((1, 1), (0, 2))}),
]

# entries, rows, the array
ROWS: list[tuple[int, int, tuple[int, ...]]] = [
    (7, 4, (5,)), (9, 3, (4, 3)), (0, 2, (3,)), (3, 0, (2,)), (4, 2, (0, 2)), (3, 2, (2, 0)), (1, 1, (1,)),
    (40, 33, (17, 3)), (6, 3, (4, 2, 3)), (1031, 5, (1025,)),
]  # fmt: skip


def contraction_cases() -> Iterator[Case]:
    """Every pattern on f64 and c128 and one more dtype; the first on every dtype."""
    yield from _row_products()
    dot_p, conv_p = BY_NAME["dot_general"], BY_NAME["conv"]
    patterns = [(left, right, numbers) for left, right, numbers, _ in PATTERNS] + EMPTY + LARGE + SINGLE
    for turn, (left, right, numbers) in enumerate(patterns):
        shorts = ALL if turn in (0, 5) else dict.fromkeys(("f64", "c128", "f32", ALL[turn % len(ALL)]))
        for short in shorts:
            yield case(
                dot_p, [typed(short, *left), typed(short, *right)], additive, direction if short in WIDE else None,
                dimension_numbers=numbers, precision=None, preferred_element_type=dtypes.BY_SHORT_NAME[short],
            )  # fmt: skip
    for short, preferred in PREFERRED:
        result = dtypes.BY_SHORT_NAME[preferred]
        exact = not dtypes.is_inexact(result)  # two ways to sum may lie on either side of an integer
        values, smooth = (small_integers, None) if exact else (additive, direction if short in WIDE else None)
        for left, right, numbers in (patterns[0], LARGE[0], EMPTY[0]):
            yield case(
                dot_p, [typed(short, *left), typed(short, *right)], values, smooth,
                dimension_numbers=numbers, precision="highest", preferred_element_type=result,
            )  # fmt: skip
        left, right, given = CONVOLUTIONS[2]
        yield case(
            conv_p, [typed(short, *left), typed(short, *right)], values, smooth, preferred_element_type=result,
            padding=((0, 0),), lhs_dilation=(1,), rhs_dilation=(1,), batch_groups=1, precision=None, **given,
        )  # fmt: skip
    for turn, (left, right, given) in enumerate(CONVOLUTIONS):
        rank = len(left) - 2
        params = {
            "strides": (1,) * rank, "padding": ((0, 0),) * rank, "lhs_dilation": (1,) * rank,
            "rhs_dilation": (1,) * rank, "feature_groups": 1, "batch_groups": 1, "precision": None, **given,
        }  # fmt: skip
        for short in ALL if turn == 0 else dict.fromkeys(("f64", "c128", NUMBERS[turn])):
            yield case(
                conv_p, [typed(short, *left), typed(short, *right)], additive, direction if short in WIDE else None,
                preferred_element_type=dtypes.BY_SHORT_NAME[short], **params,
            )  # fmt: skip


def _row_products() -> Iterator[Case]:
    for turn, (count, rows, shape) in enumerate(ROWS):

        def starts(rng: np.random.Generator, type: Type, count: int = count) -> Array:
            """Places in order, the first 0, some rows empty, some entries beyond the last."""
            places = np.sort(rng.integers(0, count + 1, storage_type(type).shape))
            places[:1] = 0
            return np.asarray(places.astype(storage_type(type).dtype))

        columns = Between(-2, shape[0] + 2)
        for short in NUMBERS if turn < 2 else dict.fromkeys(("f64", "c128", NUMBERS[turn])):
            index = ("i64", "i32")[turn % 2]
            types = [typed(short, count), typed(index, count), typed(index, rows + 1), typed(short, *shape)]
            yield case(
                BY_NAME["row_products"], types, [additive, columns, starts, additive],
                [direction, columns, starts, direction] if short in WIDE else None,
            )  # fmt: skip
