"""Common subexpressions: an equation equal to an earlier one gives way to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tracer.ir.digest import encode
from tracer.ir.primitive import Effect
from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.passes.rewrite import nested_first, substitute, with_inputs


def _merge(program: Program) -> Program:
    known: dict[Any, Equation] = {}
    replaced: dict[Var, Atom] = {}
    kept = []
    for original in program.equations:
        equation = with_inputs(original, replaced)
        if Effect.IO in equation.effects:
            kept.append(equation)
            continue
        key = _key(equation)
        earlier = known.get(key)
        if earlier is None:
            known[key] = equation
            kept.append(equation)
        else:
            replaced.update(zip(equation.outputs, earlier.outputs, strict=True))
    if not replaced:
        return program
    outputs = tuple(substitute(atom, replaced) for atom in program.outputs)
    return replace(program, equations=tuple(kept), outputs=outputs)


def _key(equation: Equation) -> Any:
    inputs = tuple((a.type, a.bits) if isinstance(a, Literal) else a for a in equation.inputs)
    params = tuple((name, encode(equation.params[name])) for name in sorted(equation.params))
    return (equation.primitive, inputs, params)


cse = nested_first(_merge)
