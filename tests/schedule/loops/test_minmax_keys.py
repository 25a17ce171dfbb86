"""Extremes of floats by keys: zeros with signs, infinities and NaNs of both signs, at every width and length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import WIDTHS, executable
from tests.schedule.running import call, program
from tracer.ir.dtypes import F32, F64, I32, DType, short_name
from tracer.ir.loop import For, LoopKind, Module
from tracer.ir.loop.walk import statements_of
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.reductions.reductions import reduce_max, reduce_min
from tracer.schedule.pipeline import schedule

EDGES = (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, -5e-324, 1e-45, -1e-45, 1.0, -1.0, 3e38, -3e38)


def carried(module: Module) -> set[str]:
    loops = [s for f in module.functions for s in statements_of(f.body) if isinstance(s, For)]
    return {short_name(c.register.dtype) for s in loops if s.kind is LoopKind.VECTOR for c in s.carries}


def extremes(dtype: DType, shape: tuple[int, ...], arrays: list[Any], bits: int | None = None) -> list[Any]:
    p = program(lambda x: (reduce_max(x, (1,)), reduce_min(x, (1,))), array_type(dtype, shape))
    scheduled = schedule(optimize(p))
    runnable = executable(scheduled.module, vector_bits=bits)
    return [call(scheduled, runnable, p, [x]) for x in arrays]


def agree_with_numpy(x: Any, greatest: Any, least: Any) -> None:
    for got, function in ((greatest, np.max), (least, np.min)):
        expected = function(x, axis=1)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("dtype", [F32, F64], ids=short_name)
def test_every_pair_of_edges_is_ordered(dtype: DType, bits: int) -> None:
    edges = np.array(EDGES).astype(dtype)
    pairs = np.array([(a, b) for a in edges for b in edges], dtype)
    x = np.repeat(pairs, 40, axis=1)
    ((greatest, least),) = extremes(dtype, x.shape, [x], bits)
    agree_with_numpy(x, greatest, least)
    zeros = (pairs == 0).all(1)
    positive = ~np.signbit(pairs[zeros])
    np.testing.assert_array_equal(~np.signbit(greatest[zeros]), positive.any(1))
    np.testing.assert_array_equal(~np.signbit(least[zeros]), positive.all(1))


@pytest.mark.parametrize("dtype", [F32, F64], ids=short_name)
@pytest.mark.parametrize("length", [1, 5, 16, 63, 64, 65, 300, 70_001])
def test_extremes_are_numpys_wherever_they_lie(length: int, dtype: DType, rng: np.random.Generator) -> None:
    calm = rng.standard_normal((3, length)).astype(dtype)
    arrays = [calm, -np.abs(calm), np.full((3, length), -np.inf, dtype), np.full((3, length), np.nan, dtype)]
    for place in (0, length // 2, length - 1):
        for value in (np.nan, -np.nan, np.inf, -np.inf):
            x = calm.copy()
            x[1, place] = value
            arrays.append(x)
    for x, (greatest, least) in zip(arrays, extremes(dtype, (3, length), arrays), strict=True):
        agree_with_numpy(x, greatest, least)


def test_floats_are_compared_as_unsigned_integers_and_integers_as_they_are() -> None:
    for dtype, expected in ((F32, {"u32"}), (F64, {"u64"}), (I32, {"i32"})):
        p = program(lambda x: reduce_max(x, (0,)), array_type(dtype, (1000,)))
        assert carried(schedule(optimize(p)).module) == expected
