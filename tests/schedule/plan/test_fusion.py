"""Which values are stored: long chains are cut where nothing is computed twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.schedule.running import agree, program, vector
from tracer.passes.pipeline import optimize
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.trigonometric import sin, sin_p
from tracer.schedule.dispatch import ALL
from tracer.schedule.plan.fusion import plan_block
from tracer.schedule.plan.steps import Nest


def chain(steps: int) -> Any:
    def run(x: Any) -> Any:
        for _ in range(steps):
            x = add(mul(x, 0.5), sin(x))
        return x

    return run


def test_a_long_chain_becomes_few_nests() -> None:
    plan = plan_block(optimize(program(chain(60), vector(100))), ALL)
    nests = [step for step in plan.steps if isinstance(step, Nest)]
    assert 2 <= len(nests) <= 12
    assert all(nest.operations <= 1000 for nest in nests)
    sines = [e for e in plan.inline.values() if e.primitive is sin_p]
    assert len(sines) + sum(root.primitive is sin_p for nest in nests for root in nest.roots) <= 60


def test_a_long_chain_computes_what_it_should() -> None:
    agree(chain(40), np.linspace(-1.0, 1.0, 70))
