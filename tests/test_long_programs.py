"""Programs of more than ten thousand equations in a row: nothing recurses over them, and time grows with their size."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tracer.numpy as tnp
from tracer import grad, jit, lax, make_program, value_and_grad

STEPS = 2500


def chain(x: Any) -> Any:
    for _ in range(STEPS):
        x = tnp.sin(x) * 1.0001
    return x


def test_ten_thousand_equations_are_traced_differentiated_printed_and_compiled() -> None:
    x, slope = 1.0, 1.0
    for _ in range(STEPS):
        x, slope = math.sin(x) * 1.0001, slope * math.cos(x) * 1.0001
    program = make_program(value_and_grad(chain))(1.0)
    assert len(program.equations) > 10_000
    assert len(str(program).splitlines()) > 10_000
    eager, compiled = value_and_grad(chain)(1.0), jit(value_and_grad(chain))(1.0)
    for value, gradient in (eager, compiled):
        assert float(value) == pytest.approx(x, rel=1e-12)
        assert float(gradient) == pytest.approx(slope, rel=1e-11)


def test_functions_of_scalars_are_called_where_there_are_many() -> None:
    """Equal ones are one function of the module, so its text is short."""
    loops = str(jit(chain).lower(1.0).loops())
    assert len([line for line in loops.splitlines() if line.startswith("nest")]) == 2  # the first reads the argument
    assert len(loops) < 400 * STEPS


def branches(count: int) -> Any:
    def run(x: Any) -> Any:
        for _ in range(count):
            x = lax.cond(x > 0.5, lambda v: 0.9 * v, lambda v: tnp.sin(v) + 0.5, x)
        return x

    return run


def test_functions_in_branches_are_called_where_there_are_many() -> None:
    """What LLVM is given for a branch more is short, and none of it is for faults, which such branches do not have."""
    once, twice = (len(jit(grad(branches(n))).lower(0.3).llvm()) for n in (50, 100))
    assert twice - once < 50 * 1500
    text = str(jit(grad(branches(50))).lower(0.3).loops())
    assert "leave" not in text
    x, slope = 0.3, 1.0
    for _ in range(200):
        x, slope = (0.9 * x, 0.9 * slope) if x > 0.5 else (math.sin(x) + 0.5, slope * math.cos(x))
    value, gradient = jit(value_and_grad(branches(200)))(0.3)
    assert float(value) == pytest.approx(x, rel=1e-12)
    assert float(gradient) == pytest.approx(slope, rel=1e-11)
    assert float(jit(branches(3))(0.3)) == float(branches(3)(0.3))  # few: written out, to the same bits


def test_branches_that_may_fail_are_left_at_once() -> None:
    def checked(x: Any) -> Any:
        for n in range(3):
            x = lax.cond(x > 0.5, lambda v: 0.9 * v, lambda v, n=n: v + tnp.ones(2)[(v * 0 + n).astype(int)], x)
        return x

    assert str(jit(checked).lower(0.7).loops()).count("leave") >= 3
    with pytest.raises(IndexError):
        jit(checked)(-3.0)
    assert float(jit(checked)(0.7)) == pytest.approx(float(checked(0.7)))
