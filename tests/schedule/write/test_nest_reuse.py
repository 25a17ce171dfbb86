"""Nests that compute the same are one function, called with other memory; where memory coincides, they are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedule.running import agree, program, staged, vector
from tracer.ir.loop import Invoke, Leave, Module
from tracer.ir.target import CPU, PLAIN, Limits, Target
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.reductions.reductions import reduce_sum
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.primitives.elementwise.arithmetic import add, div, max, mul, sub
from tracer.primitives.elementwise.comparison import gt, le, lt, select
from tracer.runtime.compile.compile import compile_scheduled
from tracer.schedule.pipeline import loops, schedule


def weighted(x: Any, y: Any, by: float = 0.5) -> Any:
    """A sum over all elements, spread again: a step that is a nest of its own."""
    return add(mul(x, by), broadcast_in_dim(reduce_sum(mul(x, y), (0,)), (40,), ()))


def calls(function: Callable[..., Any], count: int) -> list[str]:
    module = loops(optimize(program(function, *[vector(40)] * count))).module
    return [s.function for s in _entry(module) if isinstance(s, Invoke)]


def _entry(module: Module) -> Any:
    statements = list(next(f for f in module.functions if f.name == module.entry).body.statements)
    while statements:
        statement = statements.pop(0)
        if isinstance(statement, Leave):
            continue
        yield statement


def test_equal_steps_are_one_function() -> None:
    def run(x: Any, y: Any) -> Any:
        for _ in range(20):
            x = weighted(x, y)
        return x

    names = calls(run, 2)
    assert len(names) >= 20
    assert len(set(names)) <= 6  # the first step and the last may differ
    agree(run, np.linspace(-0.01, 0.01, 40), np.linspace(0.0, 0.02, 40))


def stepped(x: Any, y: Any) -> Any:
    """Steps that differ in their numbers, of which two are equal in one step and are not in another."""
    for n in range(20):
        scaled = add(mul(x, 0.1 * (n % 5)), mul(y, 0.2))
        total = reduce_sum(max(div(scaled, 1.5 + n), -0.0), (0,))
        x = select(gt(x, 0.01 * n), scaled, add(x, broadcast_in_dim(total, (40,), ())))
    return x


def functions(count: int, target: Target) -> int:
    module = loops(optimize(program(stepped, *[vector(40)] * count)), target).module
    return len(module.functions)


def test_steps_that_differ_in_numbers_alone_are_a_function_of_them() -> None:
    assert functions(2, PLAIN) > 20
    assert functions(2, CPU) < 12
    agree(stepped, np.linspace(-0.2, 0.5, 40), np.linspace(0.0, 0.2, 40))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_that_are_arguments_leave_every_bit(dtype: str) -> None:
    specials = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-310, 0.1, 3.0]
    x = np.array([*specials, *np.random.default_rng(1).standard_normal(30)], dtype)

    number = np.dtype(dtype).type

    def run(x: Any) -> Any:
        results = []
        for a in specials:
            for b in (0.3, -0.0, np.nan):
                y = add(mul(x, number(a)), number(b))
                total = reduce_sum(sub(max(y, number(a)), div(x, number(b))), (0,))
                results += [select(le(y, number(b)), x, y), total]
                x = add(x, broadcast_in_dim(select(lt(total, number(9)), number(0.1), number(-0.2)), (40,), ()))
        return results

    p = staged(run, [x])
    dtype_nan = number(np.nan)
    targets = (CPU, replace(CPU, limits=Limits(equal_nests=10**6)))
    together, apart = (compile_scheduled(p, schedule(optimize(p), target)) for target in targets)
    assert len(together.text) < 0.8 * len(apart.text)
    for one, other in zip(together.run([x]), apart.run([x]), strict=True):
        # LLVM may exchange the operands of a sum, which decides the sign of NaN
        known = [np.where(np.isnan(value), dtype_nan, value).tobytes() for value in (one, other)]
        assert known[0] == known[1]


def test_constants_and_operands_that_coincide_tell_nests_apart() -> None:
    def run(x: Any, y: Any) -> Any:
        for by, other in ((0.5, True), (0.25, True), (0.5, False), (-0.0, True), (0.0, True)):
            x = weighted(x, y if other else x, by)
        return sub(y, x)

    agree(run, np.linspace(-0.1, 0.1, 40), np.linspace(0.0, 0.2, 40))


def test_scalars_are_handed_over_in_their_own_order() -> None:
    def run(x: Any, y: Any) -> Any:
        a, b = (broadcast_in_dim(reduce_sum(v, (0,)), (40,), ()) for v in (x, y))
        first = reduce_sum(sub(mul(x, a), mul(y, b)), (0,))
        second = reduce_sum(sub(mul(x, b), mul(y, a)), (0,))
        third = reduce_sum(sub(mul(y, a), mul(x, a)), (0,))
        return add(add(first, mul(second, 3.0)), mul(third, 7.0))

    agree(run, np.linspace(-1.0, 2.0, 40), np.linspace(3.0, 5.0, 40))
