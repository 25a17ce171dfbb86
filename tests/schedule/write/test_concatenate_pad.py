"""concatenate: operands of one element each are stored by one loop, all others one after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.grids import covering
from tests.schedule.running import agree, staged
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.slice_pad_concatenate import concatenate
from tracer.primitives.base.shapes import expand_dims
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.schedule.pipeline import schedule

RNG = np.random.default_rng(3)


def turns(count: int) -> Any:
    """`count` arrays computed of two, as the elements of a last axis."""
    return lambda x, y: concatenate(
        [expand_dims(add(mul(x, x.type.dtype.type(i)), y), (-1,)) for i in range(count)], -1
    )


def loops(function: Any, *arrays: Any) -> int:
    return len(schedule(optimize(staged(function, arrays))).module.functions) - 1


@pytest.mark.parametrize(
    ("dtype", "shape", "count"),
    covering(
        ["float64", "float32", "complex128", "int32", "float16"],
        [(100,), (7, 33), (1,), (0,), (3, 0)],
        [1, 2, 3, 8, 9],
        least=32,
    ),
    ids=str,
)
def test_arrays_that_take_turns_agree_with_the_reference(count: int, shape: tuple[int, ...], dtype: str) -> None:
    x, y = (RNG.uniform(-9, 9, shape).astype(dtype) for _ in range(2))
    agree(turns(count), x, y)


def test_arrays_that_take_turns_are_stored_by_one_loop() -> None:
    x, y = RNG.standard_normal((2, 100))
    assert loops(turns(3), x, y) == 1
    assert loops(turns(9), x, y) == 9
    assert loops(lambda x, y: concatenate([x, mul(x, y)], 0), x, y) == 2


def test_an_operand_that_is_joined_twice_is_stored_twice() -> None:
    x = RNG.standard_normal((5, 1))
    agree(lambda x: concatenate([x, x, add(x, x)], 1), x)


def test_a_last_axis_of_one_element_may_lie_behind() -> None:
    x, y = RNG.standard_normal((2, 4, 1, 1))
    agree(lambda x, y: concatenate([x, y, x], 1), x, y)
