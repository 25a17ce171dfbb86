"""Reverse pass: pulls cotangents back along a tape, from the last operation to the first.

Outside staged programs each operation is pulled back by its recipe's program, which is made once and runs by prepared
calls. So every call of a gradient gives equal bits, and no state depends on the path as a whole. Within a staged
program the tape becomes one linear program, which is transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tracer.ir.primitive import Zero
from tracer.ir.program import Literal, Program, Var
from tracer.ir.types import is_differentiable, tangent_type
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.elementwise.arithmetic import add_p
from tracer.trace.array import Array, concrete
from tracer.trace.prepared_program import PreparedProgram
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, execute
from tracer.transforms.context import Context, Tangent, zero_here
from tracer.transforms.run import Entry, LinearTape, Tape, linear_tape
from tracer.transforms.transpose import pull_back


class Pullback(NamedTuple):
    """Pullback of a recipe, from (residuals..., output cotangents...) to cotangents of the active inputs.

    results: for each active input the number of a value of the program; None for a zero cotangent.
    """

    program: PreparedProgram
    results: list[int | None]

    def run(self, operands: Sequence[Operand]) -> list[Operand | None]:
        """Return the cotangents of the active inputs, None for a zero."""
        values = self.program.values([x if x.__class__ is Array else _array(x) for x in operands])
        return [None if n is None else values[n] for n in self.results]


def pull(tape: Tape, linear: LinearTape | None, cotangents: Sequence[Operand]) -> list[Tangent]:
    """Return the cotangents of the tape's inputs. linear: the tape's linear program if it is written, else None."""
    if state.staging is not None or linear is not None:
        linear = linear or linear_tape(tape)
        return pull_back(linear.program, linear.linear, linear.residuals, cotangents)
    pending: dict[Var, Operand] = {}
    given = [v for v, y in zip(tape.output_vars, tape.outputs, strict=True) if is_differentiable(y.type)]
    for variable, cotangent in zip(given, cotangents, strict=True):
        if variable is not None:
            before = pending.get(variable)
            pending[variable] = cotangent if before is None else _sum(before, cotangent)
    outer_source, outer_pulling = state.source, state.pulling
    state.pulling = True
    try:
        for entry in reversed(tape.entries):
            arriving = [pending.pop(v, None) for v in entry.outputs if v is not None]
            for arrived in arriving:
                if arrived is not None:
                    break
            else:
                continue
            state.source = entry.source
            for input, pulled in zip(entry.inputs, _pulled(entry, arriving), strict=True):
                if pulled is None:
                    continue
                before = pending.get(input)
                pending[input] = pulled if before is None else _sum(before, pulled)
    finally:
        state.source, state.pulling = outer_source, outer_pulling
    return [pending[v] if v in pending else Zero(tangent_type(v.type)) for v in tape.inputs]


def _sum(a: Operand, b: Operand) -> Operand:
    if type(a) is Array is type(b) and a._trace is None is b._trace:
        return execute(add_p, (a, b), {})[0]
    return Context.add(a, b)


def _pulled(entry: Entry, arriving: list[Any]) -> list[Operand | None]:
    """Return the cotangents of the entry's inputs, from those of its outputs with tangents; None for a zero."""
    recipe = entry.recipe
    for place, cotangent in enumerate(arriving):
        if cotangent is None:
            zero = Zero(tangent_type([v for v in entry.outputs if v is not None][place].type))
            arriving[place] = zero if recipe.run is None else zero_here(zero.type)
    if recipe.run is None:  # linearised anew at every call
        linear = linear_tape(_tape_of(entry))
        found = pull_back(linear.program, linear.linear, linear.residuals, arriving)
        return [None if isinstance(c, Zero) else c for c in found]
    if recipe.pullback is None:
        recipe.pullback = _pullback(entry, arriving)
    return recipe.pullback.run([*entry.values, *arriving])  # type: ignore[no-any-return]


def _tape_of(entry: Entry) -> Tape:
    """Return a tape of one entry, whose inputs are distinct even where a value occurs twice, as in x * x."""
    inputs = [Var(v.type) for v in entry.inputs]
    outputs = [v for v in entry.outputs if v is not None]
    return Tape(inputs, [entry._replace(inputs=inputs)], [zero_here(v.type) for v in outputs], list(outputs))


def _pullback(entry: Entry, cotangents: Sequence[Operand]) -> Pullback:
    count = len(entry.values)
    is_zero: list[bool] = []

    def run(inputs: list[Any]) -> list[Operand]:
        given = [_spread(x, r, entry) for x, r in zip(inputs, entry.values, strict=False)]
        linear = linear_tape(_tape_of(entry._replace(values=given)))
        found = pull_back(linear.program, linear.linear, linear.residuals, inputs[count:])
        is_zero.extend(isinstance(c, Zero) for c in found)
        return [c for c in found if not isinstance(c, Zero)]

    staged = stage(run, [*(r.type for r in entry.values), *(c.type for c in cotangents)], name="pullback")
    assert not staged.constants, "a pullback reads residuals and cotangents alone"
    program = PreparedProgram(_without_unread(staged.program))
    found = iter(program.results)
    return Pullback(program, [None if zero else next(found) for zero in is_zero])


def _without_unread(program: Program) -> Program:
    """Return the program without equations whose results are unread."""
    read = {atom for atom in program.outputs if isinstance(atom, Var)}
    kept = []
    for equation in reversed(program.equations):
        if equation.effects or not read.isdisjoint(equation.outputs):
            kept.append(equation)
            read.update(atom for atom in equation.inputs if isinstance(atom, Var))
    return replace(program, equations=tuple(reversed(kept)))


def _array(x: Operand) -> Array:
    """Return a literal residual or cotangent as an operand of a prepared call."""
    assert isinstance(x, Literal)
    return concrete(np.asarray(x.value, x.type.dtype), x.type.weak)


def _spread(x: Any, residual: Operand, entry: Entry) -> Any:
    """Return the operand of a literal residual broadcast to the shape of the operation's result; others unchanged."""
    shape = next(v.type.shape for v in entry.outputs if v is not None)
    return broadcast_in_dim(x, shape, ()) if isinstance(residual, Literal) else x
