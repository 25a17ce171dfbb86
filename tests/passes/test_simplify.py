from __future__ import annotations

from collections.abc import Callable

from tests.grids import each
from tests.passes.algebra.rule_cases import CASES, Case
from tests.passes.programs import apply, body, traced
from tracer.passes.pipeline import optimize
from tracer.passes.simplify import simplify


@each("case", CASES, ids=lambda case: case.title)
def test_simplify_keeps_every_bit_and_is_idempotent(case: Case) -> None:
    apply(simplify, traced(case.function, *case.types))


@each("case", CASES, ids=lambda case: case.title)
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
