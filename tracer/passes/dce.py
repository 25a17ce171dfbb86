"""Dead code elimination."""

from __future__ import annotations

from dataclasses import replace

from tracer.ir.primitive import Effect
from tracer.ir.program import Program, Var
from tracer.passes.rewrite import nested_first


def _eliminate(program: Program) -> Program:
    """Drop equations that nothing reads and that have no ordered effect; a fault alone keeps nothing alive."""
    live: set[Var] = {a for a in program.outputs if isinstance(a, Var)}
    kept = []
    for equation in reversed(program.equations):
        if Effect.IO in equation.effects or any(v in live for v in equation.outputs):
            kept.append(equation)
            live.update(a for a in equation.inputs if isinstance(a, Var))
    if len(kept) == len(program.equations):
        return program
    return replace(program, equations=tuple(reversed(kept)))


dce = nested_first(_eliminate)
