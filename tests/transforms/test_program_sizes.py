"""Programs of derivatives grow with the program that is differentiated, not with its square or worse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tracer.ir.loop import Invoke, Leave, Module
from tracer.ir.program import Program
from tracer.ir.visit import equations

Function = Callable[[Any], Any]


def chain(steps: int) -> Function:
    def run(x: Any) -> Any:
        for _ in range(steps):
            x = tnp.sin(x) * x + 0.25
        return x

    return run


def rollout(steps: int) -> Function:
    def run(w: Any) -> Any:
        state = tnp.ones(8)
        for _ in range(steps):
            state = tnp.tanh(w @ state) + 0.1 * state
        return (state**2).sum()

    return run


def in_calls(steps: int) -> Function:
    """Each step under jit of its own, which derivatives visit once."""
    step = tracer.jit(lambda x: tnp.exp(-x) * tnp.sin(x))

    def run(x: Any) -> Any:
        for _ in range(steps):
            x = step(x)
        return x

    return run


def in_loops(steps: int) -> Function:
    """A scan whose body has so many steps."""

    def run(x: Any) -> Any:
        return tracer.lax.scan(lambda c, _: (chain(steps)(c), None), x, None, length=5)[0]

    return run


def derivative(function: Function, order: int) -> Function:
    for _ in range(order):
        function = tracer.grad(function)
    return function


def size(program: Program) -> int:
    """How many equations, nested ones included."""
    return sum(1 for _ in equations(program))


def sizes(function: Function, argument: Any) -> tuple[int, int]:
    """As traced, and after the passes."""
    lowered = tracer.jit(function).lower(argument)
    return size(lowered.program()), size(lowered.optimized())


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("make", [chain, in_calls, in_loops], ids=lambda f: f.__name__)
def test_derivatives_of_every_order_are_linear_in_size(make: Callable[[int], Function], order: int) -> None:
    """Twice the steps add what the steps before them added."""
    once, twice, thrice = (sizes(derivative(make(n), order), 1.3) for n in (6, 12, 18))
    for a, b, c in zip(once, twice, thrice, strict=True):
        assert c - b <= 1.05 * (b - a) + 5
        assert c <= 4 * a


def test_the_gradient_of_300_steps_is_a_few_times_their_size() -> None:
    """Products with vectors are several equations once optimised, so each stage is compared with itself."""
    w = tnp.eye(8) * 0.5
    forward, gradient = sizes(rollout(300), w), sizes(tracer.grad(rollout(300)), w)
    assert max(forward) <= 300 * 10
    for before, after in zip(forward, gradient, strict=True):
        assert after <= 4 * before
    assert gradient[1] <= 300 * 19  # the program that the schedule sees


def test_equal_steps_share_their_code() -> None:
    """300 steps are a handful of functions, which the entry calls, with a branch in between now and then."""
    module: Module = tracer.jit(rollout(300)).lower(tnp.eye(8)).loops()
    assert len(module.functions) <= 12
    entry = next(f for f in module.functions if f.name == module.entry)
    run = longest = 0
    for statement in entry.body.statements:
        run = 0 if isinstance(statement, Leave) else run + isinstance(statement, Invoke)
        longest = max(longest, run)
    assert 0 < longest <= 64


def test_ten_thousand_equations_are_ten_thousand() -> None:
    program = tracer.make_program(chain(3334))(1.3)
    assert 10_000 <= size(program) <= 10_010
