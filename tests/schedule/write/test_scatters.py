"""Scatters whose updates meet: their order at every vector width, windows, and memory that is taken over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import WIDTHS, executable
from tests.grids import covering
from tests.schedule.running import agree, call, interpreted, program, same, shared, vector
from tests.targets import TINY
from tracer.ir.dtypes import F32, F64, I32, I64, DType, short_name
from tracer.ir.loop import For, LoopKind, Module, Update
from tracer.ir.loop.walk import statements_of
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.indexing.dimension_numbers import ScatterDimensionNumbers
from tracer.primitives.arrays.indexing.gather import scatter_add
from tracer.primitives.arrays.indexing.scatter import scatter, scatter_max
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import reshape
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.comparison import lt, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.schedule.pipeline import schedule
from tracer.settings import config

POINTS = ScatterDimensionNumbers((), (0,), (0,))
ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
COUNTS = (1, 15, 16, 17, 100)


def counted_from_either_end(i: Any, size: int) -> Any:
    return reshape(select(lt(i, 0), add(i, size), i), (*i.type.shape, 1))


def kinds(module: Module) -> list[LoopKind]:
    loops = [s for f in module.functions for s in statements_of(f.body) if isinstance(s, For)]
    return [s.kind for s in loops]


@pytest.mark.parametrize(("bits", "dtype", "count"), covering(WIDTHS, [F32, F64, I32], COUNTS, least=15), ids=str)
def test_updates_that_meet_apply_in_their_order(count: int, dtype: DType, bits: int, rng: np.random.Generator) -> None:
    def function(x: Any, i: Any, v: Any) -> Any:
        at = counted_from_either_end(i, 5)
        return scatter_add(x, at, v, POINTS), scatter(x, at, v, POINTS), scatter_max(x, at, v, POINTS)

    p = program(function, vector(5, dtype), vector(count, I64), vector(count, dtype))
    x, i = rng.standard_normal(5).astype(dtype), rng.integers(-5, 5, count)
    v = (1000 * rng.standard_normal(count)).astype(dtype)
    total, last, most = x.copy(), x.copy(), x.copy()
    for at, value in zip(i, v, strict=True):
        total[at], last[at], most[at] = total[at] + value, value, max(most[at], value)
    scheduled = schedule(optimize(p))
    results = call(scheduled, executable(scheduled.module, vector_bits=bits), p, [x, i, v])
    for got, expected in zip(results, (total, last, most), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("dtype", [F32, F64, I32], ids=short_name)
def test_places_far_apart_are_reached_from_every_lane(bits: int, dtype: DType, rng: np.random.Generator) -> None:
    shape = (70_000, 3)
    numbers = ScatterDimensionNumbers((1,), (0,), (0,))

    def function(x: Any, i: Any, v: Any) -> Any:
        return scatter_add(x, counted_from_either_end(i, shape[0]), v, numbers)

    p = program(function, array_type(dtype, shape), vector(200, I64), array_type(dtype, (200, 3)))
    x, i = (100 * rng.standard_normal(shape)).astype(dtype), rng.integers(-shape[0], shape[0], 200)
    i[:2] = 0, shape[0] - 1
    v = (100 * rng.standard_normal((200, 3))).astype(dtype)
    expected = x.copy()
    np.add.at(expected, i, v)
    scheduled = schedule(optimize(p))
    got = call(scheduled, executable(scheduled.module, vector_bits=bits), p, [x, i, v])[0]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("count", COUNTS)
def test_places_out_of_bounds_are_left_out_or_the_first_is_reported(count: int, rng: np.random.Generator) -> None:
    x, v, i = rng.standard_normal(4), rng.standard_normal(count), rng.integers(-2, 6, (count, 1))
    i[count // 2] = 4
    agree(lambda x, i, v: scatter_add(x, i, v, POINTS, mode="drop"), x, i, v)
    agree(lambda x, i, v: scatter(x, i, v, POINTS, mode="clip"), x, i, v)
    p = program(lambda x, i, v: scatter_add(x, i, v, POINTS), vector(4), array_type(I64, (count, 1)), vector(count))
    scheduled = schedule(optimize(p))
    first = int(i[(i < 0) | (i > 3)][0])
    shown = first - 4 if first < 0 else first
    with pytest.raises(IndexError, match=f"index {shown} is out of bounds"):
        call(scheduled, executable(scheduled.module), p, [x, i, v])


@pytest.mark.parametrize("shape", [(40, 3), (3, 40), (17, 16)])
def test_windows_are_lanes_and_their_order_stays(shape: tuple[int, int], rng: np.random.Generator) -> None:
    count, width = shape
    x, i, v = rng.standard_normal((4, width)), rng.integers(0, 4, (count, 1)), rng.standard_normal(shape)
    agree(lambda x, i, v: scatter_add(x, i, v, ROWS), x, i, v)
    whole = ScatterDimensionNumbers((0,), (1,), (1,))
    agree(lambda x, i, v: scatter_add(x, i, v, whole), x.T.copy(), i, v.T.copy())
    part = ScatterDimensionNumbers((1,), (), (0,))
    line = rng.standard_normal(width + 3)
    agree(lambda x, i, v: scatter(x, i, v, part), line, i, v)


@pytest.mark.parametrize("numbers", [((0,), (), (0,)), ((1,), (), (0,))])
def test_windows_that_overlap_are_written_one_after_another(numbers: Any, rng: np.random.Generator) -> None:
    where = ScatterDimensionNumbers(*numbers)
    x, i, v = rng.standard_normal(70), rng.integers(0, 6, (50, 1)), rng.standard_normal((64, 50))
    v = v if numbers[0] == (0,) else v.T.copy()
    agree(lambda x, i, v: scatter(x, i, v, where), x, i, v)
    agree(lambda x, i, v: scatter_add(x, i, v, where), x, i, v)
    p = program(lambda x, i, v: scatter(x, i, v, where), *(array_type(a.dtype, a.shape) for a in (x, i, v)))
    for got in (interpreted(p, [x, i, v]), shared(p, [x, i, v])):
        same(got[0], run_reference(p, [x, i, v])[0])


def test_indices_read_what_the_updates_write_over_before_it_changes(rng: np.random.Generator) -> None:
    def function(x: Any, v: Any) -> Any:
        y = add(x, 1)
        places = reshape(convert_element_type(mul(y, 0.5), np.int64), (64, 1))
        return scatter(y, places, v, POINTS, mode="clip")

    x, v = rng.integers(0, 128, 64).astype(np.float64), rng.integers(0, 128, 64).astype(np.float64)
    agree(function, x, v)


@pytest.mark.parametrize("count", [1, 4])
def test_threads_share_rows_that_are_batched_only(count: int, rng: np.random.Generator) -> None:
    lanes = ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    x, i, v = rng.standard_normal((64, 9)), rng.integers(0, 9, (64, 500, 1)), rng.standard_normal((64, 500))
    p = program(lambda x, i, v: scatter_add(x, i, v, lanes), *(array_type(a.dtype, a.shape) for a in (x, i, v)))
    scheduled = schedule(optimize(p), TINY)
    expected = x.copy()
    np.add.at(expected, (np.arange(64)[:, None], i[..., 0]), v)
    with config.using(threads=count):
        (got,) = call(scheduled, executable(scheduled.module), p, [x, i, v])
    np.testing.assert_array_equal(got, expected)


def test_cheap_indices_are_computed_where_they_are_used() -> None:
    p = program(
        lambda x, i, v: scatter_add(x, counted_from_either_end(i, 1000), v, POINTS),
        vector(1000), vector(4000, I64), vector(4000),
    )  # fmt: skip
    module = schedule(optimize(p)).module
    nests = [f for f in module.functions if f.name != module.entry]
    assert len(nests) == 1
    assert module.arena == 0
    update = next(s for s in statements_of(nests[0].body) if isinstance(s, Update))
    assert update.mask is None
    assert LoopKind.VECTOR in kinds(module)
