"""Inlining: a call is replaced by its program if that is small, or called once.

A large program that is called several times is kept, so that the passes rewrite it once; `expand` inlines it later.
Functions with derivative rules of their own no longer need the rules and are always inlined.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracer.ir.primitive import Structured
from tracer.ir.program import Atom, Equation, Program
from tracer.ir.visit import equations
from tracer.passes.base.loops import called_program
from tracer.passes.base.rewrite import nested_first
from tracer.passes.base.rewriter import Rewriter

_MAX_EQUATIONS = 400  # in all copies of a program that is called several times


def _inline(program: Program) -> Program:
    called = [called_program(equation) for equation in program.equations]
    counts: dict[int, int] = {}
    for callee in called:
        if callee is not None:
            counts[id(callee)] = counts.get(id(callee), 0) + 1
    if not counts:
        return program
    sizes = {id(callee): sum(1 for _ in equations(callee)) for callee in called if callee is not None}

    def rule(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
        callee = called_program(equation)
        if callee is None or equation.params.get("inline") is False:
            return None
        if equation.primitive.lower == Structured("call"):
            count = counts.get(id(callee))
            if count is None or (count > 1 and count * sizes[id(callee)] > _MAX_EQUATIONS):
                return None  # kept when its caller was rewritten, or too large now
        return at.inline(callee, equation.inputs)

    return Rewriter(rule).run(program)


inline = nested_first(_inline)
"""Inline calls where that pays, nested programs included."""
