"""Programs of more than ten thousand equations in a row: nothing recurses over them, and time grows with their size."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tracer.numpy as tnp
from tracer import jit, make_program, value_and_grad

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
