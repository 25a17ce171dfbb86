"""The derivative of a loop costs its steps, not their square: no step copies or adds up whole stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tracer.ir.loop import Block, For, Module, StackLength, Statement, While
from tracer.ir.loop_walk import blocks_of

Function = Callable[[Any], Any]


def while_steps(x: Any) -> Any:
    return tracer.lax.while_loop(lambda c: c[0] < 50, lambda c: (c[0] + 1, c[1] - tnp.sin(c[1]) * c[1] * x), (0, x))[1]


def counted_steps(x: Any) -> Any:
    return tracer.lax.fori_loop(0, tnp.floor(50 * x).astype(int), lambda i, c: c - 0.01 * tnp.sin(c) * x, x)


def steps_on_arrays(x: Any) -> Any:
    steps = tnp.floor(50 * x).astype(int)
    return tracer.lax.fori_loop(0, steps, lambda i, c: c - 0.01 * tnp.sin(c) * x, x * tnp.ones(16)).sum()


def loops_in_loops(x: Any) -> Any:
    steps = tnp.floor(5 * x).astype(int)
    inner = lambda i, c: tracer.lax.fori_loop(0, steps, lambda j, d: d - 0.01 * tnp.sin(d) * x, c)  # noqa: E731
    return tracer.lax.fori_loop(0, steps, inner, x)


def whole_stacks(block: Block, outside: int) -> Iterator[Statement]:
    """Where the length of a stack is asked for in more than `outside` loops: to go through all of it."""
    for statement in block.statements:
        if isinstance(statement, StackLength) and outside < 0:
            yield statement
        for inner in blocks_of(statement):
            yield from whole_stacks(inner, outside - isinstance(statement, For | While))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("function", [while_steps, counted_steps, steps_on_arrays, loops_in_loops])
def test_no_step_goes_through_a_whole_stack(function: Function, order: int) -> None:
    function_is_nested = function is loops_in_loops
    for _ in range(order):
        function = tracer.grad(function)
    module: Module = tracer.jit(function).lower(1.3).loops()
    outside = 1 if function_is_nested else 0  # what an inner loop kept may be gone through once by each outer step
    found = [s for f in module.functions for s in whole_stacks(f.body, outside)]
    assert found == []
