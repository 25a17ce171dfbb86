"""Laws: index sets hold every element of a derivative that is not zero, for every primitive that has one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.laws.cases import Case, cases_of
from tests.laws.differences import actives
from tests.laws.programs import draw_program
from tests.laws.sampling import THOROUGH, generator, primitives_with, sampled
from tracer.ir.primitive import NoRule, Primitive
from tracer.ir.program import Program
from tracer.ir.types import size
from tracer.primitives.base.reference import run_reference
from tracer.transforms.jvp import jvp_program
from tracer.transforms.sparsity.index_sets import identity
from tracer.transforms.sparsity.loops import PROGRAMS
from tracer.transforms.sparsity.propagation import Propagation, Value
from tracer.transforms.sparsity.rules import RULES

LARGEST = 48  # inputs: the law runs the derivative once for each


def small_cases(primitive: Primitive) -> list[Case]:
    cases = [c for c in cases_of(primitive.name) if c.smooth is not None and any(actives(c.program))]
    return [c for c in cases if c.is_exact_enough and 0 < moving_size(c) <= LARGEST]


def moving_size(case: Case) -> int:
    return sum(size(t) for t, on in zip(case.program.input_types, actives(case.program), strict=True) if on)


def found(derived: Program, xs: list[Any], count: int, *, told: bool) -> list[np.ndarray[Any, Any]]:
    """The pattern of each tangent, dense. told: whether the values of the operands are known."""
    inputs = derived.inputs
    start, values = 0, []
    total = sum(size(v.type) for v in inputs[len(xs) :])
    for variable, x in zip(inputs[: len(xs)], xs, strict=True):
        values.append(Value(variable.type, None, np.asarray(x) if told else None))
    for variable in inputs[len(xs) :]:
        values.append(Value(variable.type, identity(start, size(variable.type), total)))
        start += size(variable.type)
    patterns = []
    for value in Propagation(RULES, PROGRAMS).run(derived, values)[count:]:
        dense = np.zeros((value.size, total), bool)
        if value.sets is not None:
            dense[value.sets.entries()] = True
        patterns.append(dense)
    return patterns


@primitives_with(lambda p: not isinstance(p.jvp, NoRule) and bool(small_cases(p)), "jvp")
@sampled(1)
def test_a_pattern_holds_every_derivative_that_is_not_zero(primitive: Primitive, seed: int) -> None:
    cases = small_cases(primitive)
    for case in cases[:: 1 if THOROUGH else -(-len(cases) // 3)]:
        xs = case.draw_smooth(generator(seed, case))
        active = actives(case.program)
        derived = jvp_program(case.program, active, True).program
        count = len(case.program.outputs)
        shown = [found(derived, xs, count, told=told) for told in (False, True)]
        moving = [x for x, on in zip(xs, active, strict=True) if on]
        for position in range(moving_size(case)):
            unit = np.zeros(moving_size(case))
            unit[position] = 1
            parts = np.split(unit, np.cumsum([x.size for x in moving])[:-1])
            dxs = [part.reshape(x.shape).astype(x.dtype) for part, x in zip(parts, moving, strict=True)]
            columns = run_reference(derived, [*xs, *dxs])[count:]
            for patterns in shown:
                for pattern, column in zip(patterns, columns, strict=True):
                    reached = np.asarray(column).ravel() != 0
                    assert not (reached & ~pattern[:, position]).any(), repr(case)


def test_a_pattern_holds_the_derivatives_of_random_programs() -> None:
    filled = []
    for seed in range(400 if THOROUGH else 8):
        program, xs = draw_program(seed, 5 + seed % 20, smooth=True)
        active = actives(program)
        derived, count = jvp_program(program, active, True).program, len(program.outputs)
        shown = [found(derived, xs, count, told=told) for told in (False, True)]
        rng = np.random.default_rng(seed)
        moving = [x for x, on in zip(xs, active, strict=True) if on]
        starts = np.cumsum([0, *(x.size for x in moving)])
        for position in rng.permutation(starts[-1])[:6]:
            unit = np.zeros(starts[-1])
            unit[position] = 1
            parts = np.split(unit, starts[1:-1])
            dxs = [part.reshape(x.shape).astype(x.dtype) for part, x in zip(parts, moving, strict=True)]
            columns = run_reference(derived, [*xs, *dxs])[count:]
            for patterns in shown:
                for pattern, column in zip(patterns, columns, strict=True):
                    reached = np.asarray(column).ravel() != 0
                    assert not (reached & ~pattern[:, position]).any(), f"seed {seed}"
        filled += [pattern.mean() for pattern in shown[1] if pattern.size]
    assert np.mean(filled) < 0.5, "most patterns are full: the law says little"
