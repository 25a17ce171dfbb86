"""Transposed reads in tiles, and reductions down columns: right for every size, for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import WIDTHS, executable
from tests.schedule.running import agree, call, program, same, shared, staged
from tests.targets import TINY
from tracer.ir.loop import For, Invoke, Load, LoopKind, Share, Transpose
from tracer.ir.loop.walk import statements_of
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.reductions.reductions import reduce_max
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.base.shapes import broadcasted_iota, transpose
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.linalg.dot_general import dot_general
from tracer.schedule.pipeline import Scheduled, schedule
from tracer.settings import config

RNG = np.random.default_rng(3)
SHAPES = ((8, 8), (15, 16), (16, 17), (31, 33), (64, 64), (65, 130), (7, 100), (100, 9))


def transposes(scheduled: Scheduled) -> int:
    return sum(isinstance(s, Transpose) for f in scheduled.module.functions for s in statements_of(f.body))


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    return RNG.integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_transposes(shape: tuple[int, ...], dtype: str) -> None:
    agree(lambda x: transpose(x, (1, 0)), drawn(shape, dtype))


@pytest.mark.parametrize("bits", WIDTHS)
def test_transposes_on_narrow_machines(bits: int) -> None:
    x = drawn((40, 50), "float32")
    p = staged(lambda x: transpose(x, (1, 0)), [x])
    scheduled = schedule(optimize(p))
    assert transposes(scheduled) == 1
    same(call(scheduled, executable(scheduled.module, vector_bits=bits), p, [x])[0], x.T)


@pytest.mark.parametrize("axes", [(0, 2, 1), (1, 2, 0), (2, 0, 1), (2, 1, 0), (0, 2, 3, 1), (3, 1, 0, 2)])
def test_permutations(axes: tuple[int, ...]) -> None:
    agree(lambda x: transpose(x, axes), drawn((9, 10, 11, 12)[: len(axes)], "float32"))


def both_ways(x: Any) -> Any:
    return add(mul(transpose(x, (1, 0)), 2.0), x)


def with_positions(x: Any) -> Any:
    return add(transpose(x, (1, 0)), broadcasted_iota("float64", (37, 37), 1))


@pytest.mark.parametrize("function", [both_ways, with_positions])
def test_transposes_within_other_work(function: Any) -> None:
    x = drawn((37, 37), "float64")
    assert transposes(schedule(optimize(staged(function, [x])))) == 1
    agree(function, x)


@pytest.mark.parametrize("function", [both_ways, with_positions])
def test_tiles_may_be_shared_by_threads(function: Any) -> None:
    x = drawn((37, 37), "float64")
    p = staged(function, [x])
    same(shared(p, [x])[0], np.asarray(agree(function, x)[0]))


@pytest.mark.parametrize("function", [lambda x: transpose(x, (1, 0)), both_ways])
def test_tiles_of_large_arrays_are_shared(function: Any) -> None:
    type = array_type(np.dtype("float64"), (1001, 1001))
    module = schedule(optimize(program(function, type))).module
    assert any(isinstance(s, Invoke) and s.share for f in module.functions for s in statements_of(f.body))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(5, 32), (4, 33), (100, 63), (64, 300), (3, 5, 70)])
def test_sums_down_columns(shape: tuple[int, ...], dtype: str) -> None:
    axes = tuple(range(len(shape) - 1))
    agree(lambda x: (reduce_sum(x, axes=axes), reduce_max(x, axes=axes)), drawn(shape, dtype))


def test_sums_down_columns_of_what_depends_on_the_column() -> None:
    agree(lambda x: reduce_sum(mul(x, broadcasted_iota("float64", (6, 75), 1)), axes=(0,)), drawn((6, 75), "float64"))


def test_sums_down_columns_have_the_same_bits_for_any_number_of_threads() -> None:
    p = program(lambda x: reduce_sum(x, axes=(0,)), array_type(np.dtype("float32"), (300, 517)))
    scheduled = schedule(optimize(p), TINY)
    runnable = executable(scheduled.module)
    x = RNG.standard_normal((300, 517)).astype("float32")
    results = []
    for count in (1, 2, 3):
        with config.using(threads=count):
            results.append(call(scheduled, runnable, p, [x])[0].view(np.uint32))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_rows_may_be_shared_by_threads_while_they_stream() -> None:
    x = drawn((5, 40), "float64")
    same(shared(staged(lambda x: reduce_sum(x, axes=(0,)), [x]), [x])[0], x.sum(axis=0))


def test_two_threads_share_two_blocks_of_columns() -> None:
    p = program(lambda x: reduce_sum(x, axes=(0,)), array_type(np.dtype("float32"), (2048, 1024)))
    module = schedule(optimize(p)).module
    assert [s.share for f in module.functions for s in statements_of(f.body) if isinstance(s, Invoke)] == [Share(2, 1)]


def test_what_all_columns_share_is_loaded_before_them() -> None:
    type = array_type(np.dtype("float32"), (40, 70))
    p = program(lambda v, x: dot_general(v, x, (((0,), (0,)), ((), ()))), array_type(np.dtype("float32"), (40,)), type)
    loops = [
        s
        for f in schedule(optimize(p)).module.functions
        for s in statements_of(f.body)
        if isinstance(s, For) and s.kind is LoopKind.VECTOR
    ]
    vectors = [load for loop in loops for load in loop.body.statements if isinstance(load, Load)]
    assert vectors
    assert all(load.address.terms for load in vectors)
    assert not any(load.buffer.size == 40 for load in vectors)
    v, x = drawn((40,), "float32"), drawn((40, 70), "float32")
    agree(lambda v, x: dot_general(v, x, (((0,), (0,)), ((), ()))), v, x)
