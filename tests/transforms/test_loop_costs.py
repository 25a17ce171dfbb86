"""The derivative of a loop costs its steps, not their square: no step copies or adds up whole stacks or arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer.ir.loop import Block, Constant, Copy, For, Invoke, Module, StackLength, Statement, While
from tracer.ir.loop import Function as LoopFunction
from tracer.ir.loop.walk import blocks_of
from tracer.ir.visit import equations
from tracer.settings import config

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


def test_a_scan_keeps_one_copy_of_what_does_not_change() -> None:
    def f(w: Any) -> Any:
        return tracer.lax.scan(lambda c, _: (tnp.tanh(w @ c), None), tnp.ones(7), None, length=5)[0].sum()

    program = tracer.jit(tracer.grad(f)).lower(tnp.ones((7, 7))).program()
    shapes = {v.type.shape for equation in equations(program) for v in equation.outputs}
    assert (5, 7) in shapes
    assert (5, 7, 7) not in shapes


def elements_read(n: int) -> Function:
    return lambda x: tracer.lax.scan(lambda c, i: (c + x[i] * c, None), 1.0, tnp.arange(n))[0]


def elements_read_around(n: int) -> Function:
    return lambda x: tracer.lax.fori_loop(0, n, lambda i, c: c * tnp.sin(x[i]) + x[i - 1] * x[0], 0.0)


def windows_read(n: int) -> Function:
    window = lambda x, i: (tracer.lax.dynamic_slice(x, (i,), (3,)) ** 2).sum()  # noqa: E731
    return lambda x: tracer.lax.fori_loop(0, n - 3, lambda i, c: c + window(x, i), 0.0)


def elements_written(n: int) -> Function:
    step = lambda i, y: y.at[i].set(0.5 * y[i - 1] + tnp.sin(y[i]))  # noqa: E731
    return lambda x: tracer.lax.fori_loop(1, n, step, x).sum()


def read_in_branches(n: int) -> Function:
    def step(x: Any, i: Any, c: Any) -> Any:
        return c + tracer.lax.cond(c > 3.0, lambda: x[i] * x[i - 1], lambda: tnp.sin(x[i]))

    return lambda x: tracer.lax.fori_loop(0, n, lambda i, c: step(x, i, c), 0.0)


def read_in_inner_loops(n: int) -> Function:
    inner = lambda x, i, c: tracer.lax.fori_loop(0, 4, lambda j, c: c * x[4 * i + j], c)  # noqa: E731
    return lambda x: tracer.lax.fori_loop(0, n // 4, lambda i, c: inner(x, i, c), 1.0)


def read_again(n: int) -> Function:
    f = tracer.checkpoint(lambda x, i: tnp.sin(tnp.sin(x[i])))
    return lambda x: tracer.lax.fori_loop(0, n, lambda i, c: c + tracer.jit(f)(x, i), 0.0)


def work(block: Block, functions: dict[str, LoopFunction]) -> int:
    """How many statements run, elements copied counted each; loops of unknown length count as one round."""
    total = 0
    for statement in block.statements:
        match statement:
            case Copy(count=count):
                total += count
            case For(start=Constant(value=start), stop=Constant(value=stop), step=step):
                total += int(stop - start) // step * work(statement.body, functions)
            case Invoke(function=name):
                total += work(functions[name].body, functions)
            case _:
                total += 1 + sum(work(inner, functions) for inner in blocks_of(statement))
    return total


@pytest.mark.parametrize(
    "made",
    [
        elements_read,
        elements_read_around,
        windows_read,
        elements_written,
        read_in_branches,
        read_in_inner_loops,
        read_again,
    ],
)
def test_loops_that_read_an_element_a_step_have_gradients_as_long_as_they_are(made: Callable[[int], Function]) -> None:
    def gradient_work(n: int) -> int:
        module: Module = tracer.jit(tracer.grad(made(n))).lower(tnp.ones(n)).loops()
        functions = {f.name: f for f in module.functions}
        return work(functions[module.entry].body, functions)

    short, long = gradient_work(64), gradient_work(256)
    assert 0 < long < 4.5 * short


def read_by_unknown_steps(x: Any) -> Any:
    steps = tnp.floor(x[0] * 10).astype(int)
    return tracer.lax.fori_loop(0, steps, lambda i, c: c * tnp.sin(x[i]) + x[i - 1], 0.5)


def read_until(x: Any) -> Any:
    return tracer.lax.while_loop(lambda c: c[1] < 100.0, lambda c: (c[0] + 1, c[1] + x[c[0]] * c[1]), (0, 0.5))[1]


def read_by_unknown_loops_in_loops(x: Any) -> Any:
    steps = tnp.floor(x[0] * 10).astype(int)
    inner = lambda i, c: tracer.lax.fori_loop(0, steps, lambda j, d: d * x[j + i], c)  # noqa: E731
    return tracer.lax.fori_loop(0, steps, lambda i, c: c + inner(i, c), 0.5)


def windows_by_unknown_steps(x: Any) -> Any:
    steps = tnp.floor(x[0] * 10).astype(int)
    window = lambda i: (tracer.lax.dynamic_slice(x, (i,), (3,)) ** 2).sum()  # noqa: E731
    return tracer.lax.fori_loop(0, steps, lambda i, c: c + window(i), 0.5)


def branches_by_unknown_steps(x: Any) -> Any:
    steps = tnp.floor(x[0] * 10).astype(int)
    step = lambda i, c: tracer.lax.cond(c > 3.0, lambda: x[i] * x[i - 1], lambda: tnp.sin(x[i]))  # noqa: E731
    return tracer.lax.fori_loop(0, steps, lambda i, c: c + step(i, c), 0.5)


def work_of_unknown_steps(block: Block, functions: dict[str, LoopFunction]) -> int:
    """The work of one round of each loop whose length is known only at run time."""
    total = 0
    for statement in block.statements:
        match statement:
            case Invoke(function=name):
                total += work_of_unknown_steps(functions[name].body, functions)
            case While() | For() if not (isinstance(statement, For) and isinstance(statement.stop, Constant)):
                total += sum(work(inner, functions) for inner in blocks_of(statement))
            case _:
                total += sum(work_of_unknown_steps(inner, functions) for inner in blocks_of(statement))
    return total


READ_BY_UNKNOWN_STEPS = [
    read_by_unknown_steps, read_until, read_by_unknown_loops_in_loops, windows_by_unknown_steps,
    branches_by_unknown_steps,
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "order", "memory"), covering(READ_BY_UNKNOWN_STEPS, [1, 2], [None, 4096], least=10)
)
def test_a_step_that_reads_an_element_costs_the_same_for_every_array(
    function: Function, order: int, memory: int | None
) -> None:
    """Under a limit of memory, too, whose steps run again: none adds an array of zeros to a cotangent."""
    derivative = tracer.grad(function)
    if order == 2:
        derivative = tracer.grad(lambda x: tracer.grad(function)(x)[1])

    def steps_work(n: int) -> int:
        with config.using(loop_memory=memory):
            module: Module = tracer.jit(derivative).lower(tnp.ones(n)).loops()
        functions = {f.name: f for f in module.functions}
        return work_of_unknown_steps(functions[module.entry].body, functions)

    assert 0 < steps_work(64) == steps_work(256)
