"""The loop passes: each changes some program, and nothing when it runs again. See `tests.test_golden_programs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tests.targets import TINY
from tracer import lax
from tracer.ir.loop import Module
from tracer.ir.loop.check import check_module
from tracer.ir.target import CPU, Target, cpu
from tracer.passes.pipeline import optimize
from tracer.schedule.pipeline import LOOP_PIPELINE, LoopPass, loop_stages, loops


def softmax(x: Any) -> Any:
    shifted = x - tnp.max(x, axis=1, keepdims=True)
    weights = tnp.exp(shifted)
    return weights / tnp.sum(weights, axis=1, keepdims=True)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "softmax": (softmax, [(64, 300)]),
    "sum": (tnp.sum, [(1 << 19,)]),
    "columns": (lambda x: tnp.sum(x * x, axis=0), [(400, 70)]),
    "transpose": (lambda x: x.T + 1, [(70, 90)]),
    "product": (lambda x, y: tnp.tanh(x @ y), [(40, 50), (50, 60)]),
    "scan": (lambda x, y: lax.scan(lambda c, row: (tnp.tanh(c + row), c), x, y), [(30,), (20, 30)]),
    "scalars": (lambda x, y: (tnp.sin(x) * tnp.sin(y) + tnp.exp(x), tnp.sinh(y) - tnp.cosh(y)), [(), ()]),
    "scores": (lambda x, y: softmax(x @ y), [(200, 30), (30, 200)]),
    "stream": (lambda x: 2 * x + 1, [(1 << 23,)]),
    "roots": (lambda x: tnp.sqrt(x.astype("float64")), [(100,)]),
}
USUAL = cpu(bf16=False, root_estimates=True)


def nests(name: str, target: Target) -> Module:
    function, shapes = PROGRAMS[name]
    types = [tracer.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    return loops(optimize(tracer.jit(function).lower(*types).program(), target), target).module


@pytest.mark.parametrize("target", [USUAL, TINY], ids=["usual", "tiny"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_loop_pass_is_idempotent(name: str, target: Target) -> None:
    """But for `parallelise`, which may widen a loop that it has widened."""
    module = nests(name, target)
    for step, after in loop_stages(module, target):
        check_module(after)
        if step.name != "parallelise":
            assert str(step.run(after, target)) == str(after), step.name


@pytest.mark.parametrize("step", LOOP_PIPELINE, ids=lambda step: step.name)
def test_each_loop_pass_changes_some_program(step: LoopPass) -> None:
    for target in (USUAL, TINY):
        for name in PROGRAMS:
            module = nests(name, target)
            for other, after in loop_stages(module, target):
                if other is step and str(after) != str(module):
                    return
                module = after
    pytest.fail(f"{step.name} changes none of the programs")


def test_the_target_says_how_many_lanes_and_what_is_shared() -> None:
    assert "share" not in str(list(loop_stages(nests("columns", CPU), CPU))[-1][1])
    assert "share" in str(list(loop_stages(nests("columns", TINY), TINY))[-1][1])
