"""Tables of rewrite rules: primitives, and the functions that may rewrite their equations, tried in order.

    rule(equation, at) -> the atom that stands for its output, or None

The functions look at the equations that define the operands, no further back. They return an atom of the output's type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracer.ir.primitive import Primitive
from tracer.ir.program import Atom, Equation
from tracer.passes.base import rewriter
from tracer.passes.base.rewriter import Rewriter

OutputRule = Callable[[Equation, Rewriter], Atom | None]
Rules = tuple[tuple[tuple[Primitive, ...], tuple[OutputRule, ...]], ...]


def by_primitive(rules: Rules) -> rewriter.Rule:
    """Return one rule that applies a table of rules."""
    table: dict[Primitive, list[OutputRule]] = {}
    for primitives, functions in rules:
        for primitive in primitives:
            table.setdefault(primitive, []).extend(functions)

    def rule(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
        for function in table.get(equation.primitive, ()):
            result = function(equation, at)
            if result is not None and result.type == equation.outputs[0].type:
                return (result,)
        return None

    return rule
