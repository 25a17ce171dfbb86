"""Long reductions in blocks: the same bits for any number of threads, and NumPy's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import executable
from tests.schedule.running import agree, call, counted, same, shared, staged
from tests.targets import TINY
from tracer.ir.loop import For
from tracer.ir.target import CPU
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.reductions.reductions import reduce_and, reduce_max, reduce_min, reduce_prod
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.base.shapes import broadcasted_iota
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.comparison import eq
from tracer.schedule.pipeline import Scheduled, schedule
from tracer.settings import config

BLOCK = CPU.blocks.reduction
RNG = np.random.default_rng(8)


def names(scheduled: Scheduled) -> list[str]:
    return [f.name for f in scheduled.module.functions]


def all_kinds(x: Any) -> Any:
    y = mul(x, x)
    return [reduce_sum(y, axes=(0,)), reduce_max(x, axes=(0,)), reduce_min(x, axes=(0,)), reduce_prod(x, axes=(0,))]


@pytest.mark.parametrize("n", [8 * BLOCK, 8 * BLOCK + 1, 320_000])
def test_long_reductions_are_split(n: int) -> None:
    x = RNG.uniform(0.99999, 1.00001, n)
    assert any(name.endswith(".blocks") for name in names(schedule(optimize(staged(all_kinds, [x])))))
    agree(all_kinds, x)


def test_short_reductions_are_one_loop() -> None:
    p = staged(all_kinds, [np.ones(8 * BLOCK - 1)])
    assert not any(name.endswith(".blocks") for name in names(schedule(optimize(p))))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "int64", "complex64"])
def test_every_kind_of_number(dtype: str) -> None:
    x = RNG.integers(-3, 4, 8 * BLOCK + 5).astype(dtype)
    agree(lambda x: [reduce_sum(x, axes=(0,))], x)


def test_booleans_and_positions() -> None:
    n = 8 * BLOCK + 77
    agree(lambda x: [reduce_and(eq(x, x), axes=(0,))], np.ones(n))
    agree(lambda x: [reduce_sum(mul(x, broadcasted_iota("float64", (n,), 0)), axes=(0,))], np.ones(n))


@pytest.mark.parametrize(("n", "loops"), [(10**6, 1), (10**7, 1), (8 * BLOCK, 1), (1_000_003, 2)])
def test_blocks_divide_lengths_that_have_a_divisor_near(n: int, loops: int) -> None:
    """What is left behind the last block is a loop of its own."""
    x = np.empty(n, np.float32)
    scheduled = schedule(optimize(staged(lambda x: [reduce_sum(x, axes=(0,))], [x])))
    (joined,) = (f for f in scheduled.module.functions if f.name.endswith(".joined"))
    assert sum(isinstance(s, For) for s in joined.body.statements) == loops


@pytest.mark.parametrize("n", [128, 131, 200])
def test_threads_do_not_change_bits(n: int) -> None:
    x = RNG.standard_normal(n)
    p = staged(all_kinds, [x])
    scheduled = schedule(optimize(p), TINY)
    assert any(name.endswith(".blocks") for name in names(scheduled))
    runnable, results = executable(scheduled.module), []
    for count in (1, 2, 3):
        with config.using(threads=count):
            results.append(np.array(call(scheduled, runnable, p, [x])).view(np.uint64))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    for got, wanted in zip(shared(p, [x]), agree(all_kinds, x), strict=True):
        same(got, wanted)


def test_split_reductions_within_a_loop() -> None:
    x = np.full(8 * BLOCK + 3, 1e-3)
    start = np.float64(1.0)

    def run(x: Any, s: Any) -> Any:
        return counted(lambda x, i, s: [add(s, reduce_sum(mul(x, x), axes=(0,)))], s, trips=5, consts=[x])

    agree(run, x, start)
