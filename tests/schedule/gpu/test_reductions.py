"""Reductions on a GPU: columns in tiles, long ones in chunks. Results equal the reference in any order of blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.schedule.gpu.gpu_programs import program_of
from tests.schedule.gpu.test_mapping import extent, kernel_loops, mapped, run
from tracer.codegen.reference.interpreter import Order
from tracer.primitives.arrays.reductions.reductions import reduce_max, reduce_sum
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.reference import run_reference
from tracer.primitives.elementwise.arithmetic import div, mul, sub


def total(x: Any) -> list[Any]:
    return [reduce_sum(x, axes=tuple(range(len(x.shape))))]


def squares_and_extremes(x: Any) -> list[Any]:
    return [reduce_sum(mul(x, x), axes=(0,)), reduce_max(x, axes=(0,))]


def centred_columns(x: Any) -> list[Any]:
    mean = div(reduce_sum(x, axes=(0,)), float(x.shape[0]))
    away = sub(x, broadcast_in_dim(mean, x.shape, (1,)))
    return [reduce_sum(mul(away, away), axes=(0,))]


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (total, (40000,)),
        (total, (40009,)),  # a prime: the last chunk is shorter
        (lambda x: [reduce_sum(x, axes=(1,))], (3, 20011)),
        (lambda x: [reduce_sum(x, axes=(0, 2))], (130, 3, 129)),  # chunks of the outer of two loops
        (squares_and_extremes, (900, 33)),
        (centred_columns, (300, 129)),  # five tiles of 32, the last of one column
        (lambda x: [reduce_sum(x, axes=(1,))], (3, 50, 40)),
        (lambda x: [reduce_sum(x, axes=(0,))], (40, 1)),
    ],
)
@pytest.mark.rung("interpreter", of="reductions")
def test_long_reductions_equal_the_reference(
    function: Callable[..., Any], shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    program = program_of(function, [("float32", shape)])
    schedule, x = mapped(program), rng.standard_normal(shape).astype(np.float32)
    results = [run(schedule.module, [x], order)[1] for order in Order]
    for wanted, *got in zip(run_reference(program, [x]), *results, strict=True):
        np.testing.assert_allclose(got[0].reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-3)
        assert len({array.tobytes() for array in got}) == 1


@pytest.mark.parametrize(
    ("shape", "axes", "grids"),
    [
        ((1 << 23,), (0,), [256, 1]),
        ((2048, 1024), (0,), [256, 4]),  # eight chunks of 32 tiles, then a thread a column
        ((1 << 20, 3), (0,), [256, 1]),
        ((2048, 1024), (1,), [2048]),
        ((64, 100), (0, 1), [1]),
    ],
)
def test_shapes_alone_decide_the_chunks(shape: tuple[int, ...], axes: tuple[int, ...], grids: list[int]) -> None:
    module = mapped(program_of(lambda x: [reduce_sum(x, axes=axes)], [("float32", shape)])).module
    assert [extent(blocks) for _, blocks, _ in kernel_loops(module)] == grids


def test_equal_columns_have_equal_bits(rng: np.random.Generator) -> None:
    x = np.repeat(rng.standard_normal((700, 1)).astype(np.float32), 70, axis=1)
    _, (got,) = run(mapped(program_of(lambda x: [reduce_sum(x, axes=(0,))], [("float32", (700, 70))])).module, [x])
    assert len(set(got.tolist())) == 1
