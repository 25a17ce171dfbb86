"""Evaluation of a program by binding its equations: eagerly, or into the trace that is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracer.ir.program import Atom, Literal, Program, Var
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind_all

Environment = dict[Var, Operand]


def read(environment: Mapping[Var, Operand], atom: Atom) -> Operand:
    """Return the value of an atom; a literal is its own value."""
    return atom if isinstance(atom, Literal) else environment[atom]


def evaluate(program: Program, operands: Sequence[Operand]) -> list[Operand]:
    """Return the program's outputs on the operands. New equations keep the source lines of the program's."""
    environment: Environment = dict(zip(program.inputs, operands, strict=True))
    outer_source = state.source
    try:
        for equation in program.equations:
            state.source = equation.source
            inputs = [read(environment, atom) for atom in equation.inputs]
            outputs = bind_all(equation.primitive, inputs, equation.params)
            environment.update(zip(equation.outputs, outputs, strict=True))
    finally:
        state.source = outer_source
    return [read(environment, atom) for atom in program.outputs]
