"""Cases of what moves elements: broadcast, reshape, transpose, slice, pad, concatenate, split and their kin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.laws.cases import ALL, COMPLEX, FLOATS, INTEGERS, WIDE, Case, case, typed
from tests.laws.values import anything, direction
from tracer.ir import dtypes
from tracer.primitives.catalogue import BY_NAME

# name: (shapes of the operands, parameters), each on all dtypes in turn and on f64, the first on every dtype
UNARY: dict[str, list[tuple[tuple[tuple[int, ...], ...], dict[str, Any]]]] = {
    "broadcast_in_dim": [
        (((3, 4),), {"shape": (2, 3, 5, 4), "broadcast_dimensions": (1, 3)}),
        (((3, 1),), {"shape": (3, 5, 4), "broadcast_dimensions": (0, 2)}),
        (((),), {"shape": (2, 3), "broadcast_dimensions": ()}),
        (((),), {"shape": (), "broadcast_dimensions": ()}),
        (((1,),), {"shape": (37,), "broadcast_dimensions": (0,)}),
        (((4,),), {"shape": (0, 4), "broadcast_dimensions": (1,)}),
        (((4,),), {"shape": (4, 0), "broadcast_dimensions": (0,)}),
        (((41,),), {"shape": (41, 101), "broadcast_dimensions": (0,)}),
    ],
    "reshape": [
        (((2, 3, 4),), {"new_sizes": (3, 2, 4)}),
        (((1, 1),), {"new_sizes": ()}),
        (((),), {"new_sizes": (1, 1)}),
        (((0, 3),), {"new_sizes": (2, 0)}),
        (((35,),), {"new_sizes": (5, 7)}),
        (((2, 3, 4),), {"new_sizes": (6, 2, 2)}),
        (((19, 17, 13),), {"new_sizes": (247, 17)}),
    ],
    "transpose": [
        (((2, 3, 4),), {"permutation": (2, 0, 1)}),
        (((17, 19),), {"permutation": (1, 0)}),
        (((),), {"permutation": ()}),
        (((0, 3),), {"permutation": (1, 0)}),
        (((2, 1, 3, 2),), {"permutation": (3, 2, 1, 0)}),
        (((1, 1),), {"permutation": (1, 0)}),
        (((67, 61),), {"permutation": (1, 0)}),
    ],
    "rev": [
        (((2, 3, 4),), {"dimensions": (0, 2)}),
        (((35,),), {"dimensions": (0,)}),
        (((0, 2),), {"dimensions": (0,)}),
        (((1,),), {"dimensions": (0,)}),
        (((),), {"dimensions": ()}),
        (((4099,),), {"dimensions": (0,)}),
    ],
    "squeeze": [
        (((7, 1, 19),), {"dimensions": (1,)}),
        (((1, 3, 1),), {"dimensions": (0, 2)}),
        (((1,),), {"dimensions": (0,)}),
        (((1, 0),), {"dimensions": (0,)}),
        (((4099, 1),), {"dimensions": (1,)}),
    ],
    "copy": [(((3, 4),), {}), (((),), {}), (((0,),), {}), (((1,),), {}), (((133,),), {}), (((4099,),), {})],
    "stop_gradient": [(((3, 4),), {}), (((),), {}), (((0,),), {}), (((1,),), {}), (((133,),), {}), (((4099,),), {})],
    "optimization_barrier": [
        (((3, 4), (2,)), {}),
        (((),), {}),
        (((0,), (1,), ()), {}),
        (((133,),), {}),
        (((4099,),), {}),
    ],
    "slice": [
        (((3, 4),), {"start_indices": (0, 1), "limit_indices": (3, 4), "strides": (2, 2)}),
        (((3, 4),), {"start_indices": (2, 1), "limit_indices": (2, 4), "strides": (1, 1)}),
        (((40,),), {"start_indices": (3,), "limit_indices": (38,), "strides": (1,)}),
        (((40,),), {"start_indices": (1,), "limit_indices": (40,), "strides": (3,)}),
        (((),), {"start_indices": (), "limit_indices": (), "strides": ()}),
        (((2, 0),), {"start_indices": (1, 0), "limit_indices": (2, 0), "strides": (1, 4)}),
        (((3,),), {"start_indices": (1,), "limit_indices": (2,), "strides": (1,)}),
        (((67, 61),), {"start_indices": (1, 3), "limit_indices": (66, 60), "strides": (1, 2)}),
    ],
    "pad": [
        (((3, 4), ()), {"padding_config": ((1, 2, 0), (0, -1, 2))}),
        (((3, 4), ()), {"padding_config": ((-1, -1, 1), (-2, 3, 0))}),
        (((), ()), {"padding_config": ()}),
        (((0,), ()), {"padding_config": ((2, 1, 1),)}),
        (((1,), ()), {"padding_config": ((0, 0, 3),)}),
        (((5,), ()), {"padding_config": ((20, 17, 0),)}),
        (((2, 3), ()), {"padding_config": ((0, 0, 0), (-3, 0, 0))}),
        (((4,), ()), {"padding_config": ((-5, 2, 1),)}),
        (((1033,), ()), {"padding_config": ((7, -2, 3),)}),
    ],
    "sliding_windows": [
        (((3, 9),), {"axes": (1,), "window": (3,), "strides": (2,), "dilations": (1,)}),
        (((2, 5, 6),), {"axes": (2, 1), "window": (2, 3), "strides": (1, 1), "dilations": (3, 1)}),
        (((40,),), {"axes": (0,), "window": (5,), "strides": (1,), "dilations": (2,)}),
        (((4,),), {"axes": (0,), "window": (5,), "strides": (1,), "dilations": (1,)}),
        (((1,),), {"axes": (0,), "window": (1,), "strides": (1,), "dilations": (1,)}),
        (((),), {"axes": (), "window": (), "strides": (), "dilations": ()}),
        (((4,),), {"axes": (0,), "window": (0,), "strides": (1,), "dilations": (1,)}),
        (((3, 0),), {"axes": (0,), "window": (2,), "strides": (3,), "dilations": (1,)}),
        (((2, 3),), {"axes": (), "window": (), "strides": (), "dilations": ()}),
        (((1031,),), {"axes": (0,), "window": (5,), "strides": (1,), "dilations": (1,)}),
    ],
    "concatenate": [
        (((3, 4), (3, 2), (3, 1)), {"dimension": 1}),
        (((2, 3), (4, 3)), {"dimension": 0}),
        (((0,), (3,), (0,)), {"dimension": 0}),
        (((35,), (37,)), {"dimension": 0}),
        (((1,), (0,)), {"dimension": 0}),
        (((2, 2, 3), (2, 1, 3)), {"dimension": 1}),
        (((2051,), (2049,)), {"dimension": 0}),
    ],
    "split": [
        (((3, 4),), {"sizes": (1, 3), "axis": 1}),
        (((6,),), {"sizes": (2, 0, 4), "axis": 0}),
        (((2, 3),), {"sizes": (2,), "axis": 0}),
        (((40,),), {"sizes": (1, 39), "axis": 0}),
        (((4099,),), {"sizes": (2051, 2048), "axis": 0}),
    ],
}  # fmt: skip

_NO_KEYS = ("pad", "sliding_windows")  # a key has no padding value, nor a sum


def shape_cases() -> Iterator[Case]:
    """Every variant on f64, on c128 and on one more dtype; the first one on every dtype there is."""
    for name, variants in UNARY.items():
        every = ALL if name in _NO_KEYS else (*ALL, "key")
        for turn, (shapes, params) in enumerate(variants):
            shorts = every if turn == 0 else dict.fromkeys(["f64", "c128", every[turn % len(every)], every[-1]])
            for short in shorts:
                types = [typed(short, *shape) for shape in shapes]
                smooth = direction if short in WIDE else None
                yield case(BY_NAME[name], types, anything, smooth, **params)
    yield case(
        BY_NAME["pad"], [typed("f64", 3), typed("f64")], anything, direction, literals={1: 7.5},
        padding_config=((2, 2, 1),),
    )  # fmt: skip
    for short in (*INTEGERS, *FLOATS, *COMPLEX):
        shapes: list[tuple[tuple[int, ...], int]] = [((37,), 0), ((3, 4), 1), ((2, 3, 2), 0), ((0, 2), 1), ((1,), 0)]
        for shape, dimension in (*shapes, *([((4099,), 0)] if short in WIDE else [])):
            yield case(BY_NAME["iota"], [], [], [], dtype=dtypes.BY_SHORT_NAME[short], shape=shape, dimension=dimension)
