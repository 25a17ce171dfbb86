"""Tables of rewrite rules: every rule has a case in which it fires, and a docstring."""

from __future__ import annotations

from typing import Any

from tests.passes.algebra.rule_cases import CASES
from tests.passes.programs import traced
from tracer.ir.program import Equation
from tracer.passes.base.rewriter import rewriting
from tracer.passes.base.rules import by_primitive
from tracer.passes.simplify import RULES


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
