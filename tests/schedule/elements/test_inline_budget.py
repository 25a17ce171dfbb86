"""What is computed inline before a value is limited, in time that grows with the program's length."""

from __future__ import annotations

import cProfile
import pstats
from dataclasses import replace
from typing import Any

import tracer
import tracer.numpy as tnp
from tracer.ir.loop import Compute
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import PLAIN, Limits
from tracer.passes.pipeline import optimize
from tracer.schedule.elements.inline_budget import limited
from tracer.schedule.elements.puller import is_map
from tracer.schedule.pipeline import loops
from tracer.schedule.terms.element_cost import operations_of

LIMIT = 100


def sums_of_products(steps: int) -> Program:
    """One long sum, inline, of products of vectors that are read twice each: more than a nest may hold."""

    def run(w: Any) -> Any:
        v, total = w, tnp.zeros((8, 8))
        for _ in range(steps):
            v = 0.9 * v + 0.1
            total = total + v[:, None] * v
        return total

    return optimize(tracer.make_program(run)(tnp.linspace(0.0, 1.0, 8)))


def inline_values(program: Program) -> dict[Var, Any]:
    """Every elementwise value but the results."""
    values = {v: e for e in program.equations if is_map(e) for v in e.outputs}
    return {v: e for v, e in values.items() if v not in program.outputs}


def pulled(program: Program, inline: dict[Var, Any], number: int) -> int:
    """The operations of an equation and of all that is inline before it."""
    defined = {v: n for n, e in enumerate(program.equations) for v in e.outputs}
    seen, waiting = {number}, [number]
    while waiting:
        for atom in program.equations[waiting.pop()].inputs:
            if isinstance(atom, Var) and atom in inline and defined[atom] not in seen:
                seen.add(defined[atom])
                waiting.append(defined[atom])
    return sum(operations_of(program.equations[n]) for n in seen)


def test_no_value_has_more_operations_before_it_than_the_limit() -> None:
    program = sums_of_products(80)
    inline = inline_values(program)
    before = dict(inline)
    operations = limited(program.equations, inline, LIMIT)
    totals = [pulled(program, inline, number) for number in range(len(program.equations))]
    assert max(pulled(program, before, number) for number in range(len(program.equations))) > LIMIT
    assert max(totals) <= LIMIT
    assert set(inline) < set(before)
    for number, equation in enumerate(program.equations):
        for variable in equation.outputs:
            assert variable in inline or operations[variable] == totals[number]


def weighted_mean(taps: int) -> Program:
    """A mean of numbers by weights that both of its sums read."""

    def run(x: Any) -> Any:
        above, below = tnp.zeros_like(x), tnp.zeros_like(x)
        for k in range(taps):
            weight = tnp.exp(x * (0.1 * k))
            above, below = above + weight * x, below + weight
        return above / below

    return optimize(tracer.make_program(run)(tnp.linspace(0.0, 1.0, 64)))


def test_sums_so_far_are_stored_rather_than_weights() -> None:
    program = weighted_mean(12)
    inline = inline_values(program)
    before = dict(inline)
    limited(program.equations, inline, LIMIT)
    stored = [before[v].primitive.name for v in before if v not in inline]
    assert set(stored) == {"add"}
    assert len(stored) % 2 == 0


def test_roots_that_share_what_they_are_computed_from_share_a_nest() -> None:
    """Each weight is computed once, though two sums so far have more operations than a nest, counted for each."""
    limits = Limits(nest_operations=LIMIT)
    module = loops(weighted_mean(12), replace(PLAIN, limits=limits)).module
    computed = [s.op for f in module.functions for s in statements_of(f.body) if isinstance(s, Compute)]
    assert computed.count(ScalarOp.EXP) == 12
    assert len(module.functions) > 4


def test_counting_takes_time_in_the_length_of_the_program() -> None:
    """Four times the steps take four times the calls, values being stored all along."""

    def calls(steps: int) -> int:
        program = sums_of_products(steps)
        profile = cProfile.Profile()
        profile.runcall(limited, program.equations, inline_values(program), LIMIT)
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]

    short, long = calls(150), calls(600)
    assert 0 < long < 4.6 * short
