"""Nests over the same rows in one loop: where they are, where they must not be, and that the bits stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import executable
from tests.grids import covering
from tests.schedule.running import agree, call, program, same, shared
from tests.targets import TINY
from tracer.ir.dtypes import F32
from tracer.ir.loop import Invoke, Module
from tracer.ir.loop.check import check_module
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program
from tracer.ir.target import CPU, Target
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.reductions.reductions import argmax, reduce_max
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import broadcast_in_dim, reshape, transpose
from tracer.primitives.control.scan import scan_program
from tracer.primitives.elementwise.arithmetic import add, div, mul, sub
from tracer.primitives.elementwise.exponential import exp, log
from tracer.schedule.loops.row_fusion import fuse_rows
from tracer.schedule.pipeline import loops, schedule
from tracer.settings import config


def spread(row: Any, x: Any) -> Any:
    return broadcast_in_dim(row, x.type.shape, (0,))


def softmax(x: Any) -> Any:
    e = exp(sub(x, spread(reduce_max(x, (1,)), x)))
    return div(e, spread(reduce_sum(e, (1,)), x))


def log_sum_exp(x: Any) -> Any:
    most = reduce_max(x, (1,))
    return add(log(reduce_sum(exp(sub(x, spread(most, x))), (1,))), most)


def normalised(x: Any) -> Any:
    count = float(x.type.shape[1])
    centred = sub(x, spread(div(reduce_sum(x, (1,)), count), x))
    return mul(centred, spread(div(1.0, add(reduce_sum(mul(centred, centred), (1,)), 1e-5)), x))


def invoked(module: Module) -> list[str]:
    entry = next(f for f in module.functions if f.name == module.entry)
    return [s.function for s in statements_of(entry.body) if isinstance(s, Invoke)]


def fused(p: Program, target: Target = CPU) -> list[str]:
    """The names of what is called, with a check of the module."""
    module = fuse_rows(loops(optimize(p)).module, target)
    check_module(module)
    return invoked(module)


def matrix(function: Callable[..., Any], *shape: int) -> Program:
    return program(function, array_type(F32, shape))


@pytest.mark.parametrize("function", [softmax, normalised, lambda x: argmax(x, 1)], ids=["softmax", "normal", "arg"])
def test_a_row_goes_through_all_its_nests_in_one_loop(function: Any) -> None:
    assert sum(name.startswith("rows") for name in fused(matrix(function, 1024, 1024))) == 1


@pytest.mark.parametrize(
    ("shape", "function"),
    covering([(100, 70), (65, 1), (3, 1000), (1, 5), (200, 64), (64, 33)], [softmax, normalised, log_sum_exp], least=9),
)
def test_fused_rows_keep_their_bits(function: Any, shape: tuple[int, int], rng: np.random.Generator) -> None:
    x = rng.standard_normal(shape).astype(np.float32)
    p = matrix(function, *shape)
    scheduled = schedule(optimize(p))
    (result,) = call(scheduled, executable(scheduled.module), p, [x])
    same(result, np.asarray(run_reference(p, [x])[0]))
    one_row = parts_of(function, x[:1])
    alone = [call(*one_row, [row])[0] for row in np.split(x, len(x))]
    np.testing.assert_array_equal(result, np.concatenate(alone))
    (by_threads,) = shared(p, [x])
    np.testing.assert_allclose(by_threads, result, rtol=1e-5)


def parts_of(function: Any, row: Any) -> tuple[Any, Any, Program]:
    """The program of one row: whatever is fused, a row is computed as it is alone."""
    p = matrix(function, *row.shape)
    scheduled = schedule(optimize(p))
    return scheduled, executable(scheduled.module), p


@pytest.mark.parametrize("count", [1, 3])
def test_threads_share_fused_rows(count: int, rng: np.random.Generator) -> None:
    x = rng.standard_normal((300, 40)).astype(np.float32)
    p = matrix(softmax, 300, 40)
    scheduled = schedule(optimize(p), TINY)
    with config.using(threads=count):
        (result,) = call(scheduled, executable(scheduled.module), p, [x])
    same(result, np.asarray(run_reference(p, [x])[0]))


def test_few_long_rows_stay_apart_for_threads() -> None:
    assert not any(name.startswith("rows") for name in fused(matrix(softmax, 4, 20_000)))
    assert any(name.startswith("rows") for name in fused(matrix(softmax, 4, 20)))


def test_rows_that_no_cache_holds_stay_apart() -> None:
    assert not any(name.startswith("rows") for name in fused(matrix(softmax, 64, 200_000)))


def test_columns_stream_as_before() -> None:
    def down(x: Any) -> Any:
        most = reduce_max(x, (0,))
        return div(x, broadcast_in_dim(add(most, 1.0), x.type.shape, (1,)))

    assert not any(name.startswith("rows") for name in fused(matrix(down, 1000, 1000)))
    agree(down, np.random.default_rng(0).standard_normal((70, 50)) + 20)


def test_what_reads_other_rows_waits_for_all_of_them(rng: np.random.Generator) -> None:
    def turned(x: Any) -> Any:
        y = softmax(x)
        return add(softmax(transpose(y, (1, 0))), y)

    def further(x: Any) -> Any:
        y = softmax(x)
        return softmax(reshape(transpose(reshape(y, (8, 8, 70)), (1, 0, 2)), (64, 70)))

    agree(turned, rng.standard_normal((80, 80)))
    agree(further, rng.standard_normal((64, 70)))
    (names,) = [fused(matrix(turned, 80, 80))]
    assert sum(name.startswith("rows") for name in names) == 2


def test_nests_in_loops_are_fused_there(rng: np.random.Generator) -> None:
    def steps(x: Any) -> Any:
        body = program(lambda c: (softmax(mul(c, 3.0)),), x.type)
        return scan_program(body, [], [x], [], length=4)[0]

    x = rng.standard_normal((70, 33))
    agree(steps, x)
    assert any(name.startswith("rows") for name in fused(program(steps, array_type(x.dtype, x.shape))))
