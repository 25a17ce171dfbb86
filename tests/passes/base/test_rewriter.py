"""The walk of a rule over a program: lines, types and shared nested programs stay; a refused result leaves no trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.passes.programs import apply, body, f64, flag, i32, traced
from tracer.ir.program import Atom, Equation
from tracer.ir.types import array_type
from tracer.passes.base.rewriter import Rewriter, rewriting
from tracer.passes.simplify import simplify
from tracer.primitives.control.cond import cond_branches
from tracer.primitives.elementwise.arithmetic import add, add_p, mul, mul_p, neg, neg_p
from tracer.primitives.elementwise.bits import not_
from tracer.primitives.elementwise.comparison import select
from tracer.primitives.elementwise.conversion import convert_element_type


def test_rewritten_equations_keep_the_users_line() -> None:
    before = traced(lambda p, x, y: select(not_(p), x, y), flag(3), f64(3), f64(3))
    (line,) = {e.source.line for e in before.equations if e.source}
    assert [e.source.line for e in simplify(before).equations if e.source] == [line, line]


def test_a_weak_type_is_not_lost() -> None:
    weak = array_type(f64().dtype, (), True)
    before = traced(lambda x: mul(x, np.float64(1.0)), weak)
    after = apply(simplify, before)
    assert after is before  # a weak x in place of a strong product would change the types of what follows
    chosen = traced(lambda p, x: select(p, x, convert_element_type(x, f64().dtype)), flag(), weak)
    assert apply(simplify, chosen).output_types == chosen.output_types


def test_nested_programs_are_simplified_once_each() -> None:
    branch = traced(lambda x: neg(neg(x)), f64(3))
    before = traced(lambda p, x: cond_branches(p, (branch, branch), add(x, 1.0)), i32(), f64(3))
    after = apply(simplify, before)
    first, second = after.equations[-1].params["branches"]
    assert first is second
    assert body(first) == "f(%a: f64[3]) -> f64[3] {\n  %b: f64[3] = neg(%a)\n  return %a\n}"


def doubled(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
    """2 x as x + x."""
    value = at.splat(equation.inputs[0]) if equation.primitive is mul_p else None
    if value is None or value.value != 2.0:
        return None
    return [at.emit(add_p, equation.inputs[1], equation.inputs[1])]


def test_a_rule_that_never_applies_gives_the_same_program() -> None:
    before = traced(lambda x: mul(3.0, neg(x)), f64(3))
    assert rewriting(doubled)(before) is before


def test_equations_that_a_rule_emits_are_rewritten_by_it() -> None:
    def split(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
        if equation.primitive is add_p and equation.inputs[0] is equation.inputs[1]:
            return [at.emit(neg_p, equation.inputs[0])]
        return doubled(equation, at)

    after = rewriting(split)(traced(lambda x: mul(2.0, x), f64(3)))
    assert [e.primitive.name for e in after.equations] == ["neg"]


@pytest.mark.parametrize("given", [lambda at, found: None, lambda at, found: [at.spread(found, (2, 3), (1,))]])
def test_equations_of_a_rule_that_gives_up_or_gives_another_type_are_dropped(given: Any) -> None:
    def rule(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
        return given(at, at.emit(neg_p, equation.inputs[1])) if equation.primitive is mul_p else None

    before = traced(lambda x: mul(2.0, x), f64(3))
    assert rewriting(rule)(before) is before


def test_rules_read_definitions_through_what_was_replaced() -> None:
    after = rewriting(doubled)(traced(lambda x: mul(2.0, mul(2.0, x)), f64(3)))
    first, second = after.equations
    assert first.primitive is second.primitive is add_p
    assert second.inputs == (first.outputs[0],) * 2
