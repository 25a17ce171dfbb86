from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.passes.programs import apply, body, f64, flag, traced
from tests.passes.rule_cases import CASES, Case
from tracer.ir.program import Equation
from tracer.ir.types import array_type
from tracer.passes.base.rewriter import rewriting
from tracer.passes.base.rules import by_primitive
from tracer.passes.pipeline import optimize
from tracer.passes.simplify import RULES, simplify
from tracer.primitives.control.cond import cond_branches
from tracer.primitives.elementwise.arithmetic import add, mul, neg
from tracer.primitives.elementwise.bits import not_
from tracer.primitives.elementwise.comparison import select
from tracer.primitives.elementwise.conversion import convert_element_type


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_simplify_keeps_every_bit_and_is_idempotent(case: Case) -> None:
    apply(simplify, traced(case.function, *case.types))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_optimize_keeps_every_bit(case: Case) -> None:
    apply(lambda program: optimize(program, verify=True), traced(case.function, *case.types))


def test_simplify_prints_as_reviewed(golden: Callable[[str, str], None]) -> None:
    parts = []
    for case in CASES:
        before = traced(case.function, *case.types)
        after = simplify(before)
        shown = "unchanged" if after is before else body(after)
        parts.append(f"== {case.title}\n{body(before)}\n-> {shown}")
    golden("passes/simplify", "\n\n".join(parts))


def test_every_rule_has_a_case() -> None:
    fired: set[str] = set()

    def recorded(function: Any) -> Any:
        def rule(equation: Equation, at: Any) -> Any:
            result = function(equation, at)
            if result is not None:
                fired.add(function.__name__)
            return result

        return rule

    table = tuple((primitives, tuple(map(recorded, functions))) for primitives, functions in RULES)
    for case in CASES:
        rewriting(by_primitive(table))(traced(case.function, *case.types))
    assert sorted(fired) == sorted({f.__name__ for _, functions in RULES for f in functions})


def test_every_rule_says_what_it_does() -> None:
    for _, functions in RULES:
        for function in functions:
            assert function.__doc__, function.__name__


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
    before = traced(lambda p, x: cond_branches(p, (branch, branch), add(x, 1.0)), array_type(convert_i32(), ()), f64(3))
    after = apply(simplify, before)
    first, second = after.equations[-1].params["branches"]
    assert first is second
    assert body(first) == "f(%a: f64[3]) -> f64[3] {\n  %b: f64[3] = neg(%a)\n  return %a\n}"


def convert_i32() -> Any:
    from tracer.ir import dtypes

    return dtypes.I32
