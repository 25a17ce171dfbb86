"""Cases of the primitives of random keys."""

from __future__ import annotations

from collections.abc import Iterator

from tests.grids import covering
from tests.laws.cases import INTEGERS, Case, case, typed
from tests.laws.values import anything
from tracer.primitives.catalogue import BY_NAME


def random_cases() -> Iterator[Case]:
    """Keys and words of several shapes; none has a derivative."""
    shapes = ((), (1,), (5,), (0,), (2, 3), (37,), (1031,))
    for shape in shapes:
        keys, words = typed("key", *shape), typed("u32", *shape)
        yield case(BY_NAME["threefry2x32"], [words] * 4, anything)
        yield case(BY_NAME["random_wrap"], [typed("u32", *shape, 2)], anything)
        yield case(BY_NAME["random_unwrap"], [keys], anything)
        yield case(BY_NAME["random_fold_in"], [keys, words], anything)
        for short in INTEGERS:
            yield case(BY_NAME["random_seed"], [typed(short, *shape)], anything)
    for shape, split in covering(shapes, ((2,), (), (2, 3), (0,), (1,)), least=14):
        yield case(BY_NAME["random_split"], [typed("key", *shape)], anything, shape=split)
    for shape, width, draws in covering(shapes, (8, 16, 32, 64), ((7,), (), (2, 3)), least=28):
        yield case(BY_NAME["random_bits"], [typed("key", *shape)], anything, bit_width=width, shape=draws)
