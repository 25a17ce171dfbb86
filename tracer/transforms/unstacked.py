"""Derivatives without stacks: the operations that made the stacks run again, so that all residuals have a fixed size.

A stack lives in the program that made it. The derivative of a loop of unknown length keeps stacks. To leave jit, or to
be stacked by scan and vmap, it keeps the operands of the stacks' operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.ir.program import Atom, Literal, Program, Var
from tracer.ir.types import StackType
from tracer.primitives.control.calls import call
from tracer.primitives.control.reverse.without_effects import silent
from tracer.trace.array import Array, traced
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, Origin, Trace, bind_all
from tracer.transforms.linearize import identity


def without_stacks(program: Program, residuals: Sequence[Array]) -> tuple[Program, list[Array]]:
    """Return a linear program of (residuals..., tangents...) and its residuals, with stacks among neither."""
    if not any(isinstance(r.type, StackType) for r in residuals):
        return program, list(residuals)
    origins, kept = _traced_back(residuals)

    def run(inputs: list[Array]) -> list[Operand]:
        values: dict[Any, Operand] = dict(zip(map(identity, kept), inputs, strict=False))

        def value(x: Operand) -> Operand:
            return x if isinstance(x, Literal) else values[identity(x)]

        for origin in origins:
            state.source = origin.source
            made = bind_all(origin.primitive, list(map(value, origin.operands)), origin.params)
            values.update(zip(map(identity, origin.results), made, strict=True))
        return evaluate(program, [*map(value, residuals), *inputs[len(kept) :]])

    tangents = program.input_types[len(residuals) :]
    outer_source = state.source
    try:
        staged = stage(run, [*(x.type for x in kept), *tangents], name=program.name)
    finally:
        state.source = outer_source
    whole = silent(staged.program)
    return _as_one(whole), [*staged.constants, *kept]


def _as_one(program: Program) -> Program:
    """Return the program as one call, so that its stacks stay hidden where it runs outside jit."""
    return stage(lambda inputs: call(program, *inputs), program.input_types, name=program.name).program


def _traced_back(residuals: Sequence[Array]) -> tuple[list[Origin], list[Array]]:
    """Return the operations that make the stacks among these arrays, in order, and the other arrays that are read."""
    found: dict[Trace, dict[Var, Origin]] = {}
    origins: dict[int, Origin] = {}  # by id: each after the origins whose stacks it reads
    kept: dict[Any, Array] = {}
    waiting: list[Operand | Origin] = list(reversed(residuals))
    while waiting:
        this = waiting.pop()
        if isinstance(this, Origin):
            origins.setdefault(id(this), this)
        elif isinstance(this, Array) and not isinstance(this.type, StackType):
            kept.setdefault(identity(this), this)
        elif isinstance(this, Array):
            trace, variable = this._trace, this._atom
            assert trace is not None  # a stack is in a program
            assert variable is not None
            if trace not in found:
                found[trace] = _origins(trace)
            origin = found[trace][variable]
            if id(origin) not in origins:
                waiting += [origin, *origin.operands]
    return list(origins.values()), list(kept.values())


def _origins(trace: Trace) -> dict[Var, Origin]:
    """Return the operation that made each stack of a trace."""
    found = dict(trace.origins)
    constants = dict(trace.constants)

    def operand(atom: Atom) -> Operand:
        if isinstance(atom, Literal):
            return atom
        return constants[atom] if atom in constants else traced(trace, atom)

    for equation in trace.equations:
        stacks = [v for v in equation.outputs if isinstance(v.type, StackType)]
        if stacks:
            results = [traced(trace, v) for v in equation.outputs]
            origin = Origin(
                equation.primitive, list(map(operand, equation.inputs)), equation.params, equation.source, results
            )
            found.update(dict.fromkeys(stacks, origin))
    return found
