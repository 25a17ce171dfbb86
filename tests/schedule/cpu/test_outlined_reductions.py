"""Which vector loops become calls: those that only reduce memory, where the call costs no time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import jit
from tracer.ir.loop import For, Module
from tracer.ir.loop.walk import statements_of
from tracer.schedule.cpu.outlined_reductions import LONG, outline_reductions


def loops(function: Any, *shape: int) -> Module:
    return jit(function).lower(np.ones(shape, "f4")).loops()


def outlined(module: Module) -> list[For]:
    return [s for f in module.functions for s in statements_of(f.body) if isinstance(s, For) and s.outlined]


@pytest.mark.parametrize(
    ("function", "shape", "count"),
    [
        (tnp.sum, (16,), 1),
        (tnp.max, (16,), 1),
        (lambda x: tnp.sum(x, axis=1), (100, LONG), 1),
        (lambda x: tnp.sum(x, axis=1), (100, LONG - 1), 0),
        (lambda x: tnp.sum(x * x), (5000,), 0),
    ],
)
def test_reductions_of_memory_are_calls_where_they_are_long_or_alone(
    function: Any, shape: tuple[int, ...], count: int
) -> None:
    assert len(outlined(loops(function, *shape))) == count


def test_the_text_says_which_loops_are_calls() -> None:
    assert "vector(16) outlined" in str(loops(tnp.sum, 16))


def test_a_second_run_changes_nothing() -> None:
    module = loops(tnp.sum, 10**6)
    assert outlined(module)
    assert outline_reductions(module) is module
