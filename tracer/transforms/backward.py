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

    results: for each active input the number of a value of the program, or a literal; None for a zero cotangent.
    """

    program: PreparedProgram
    results: list[int | Literal | None]

    def run(self, operands: Sequence[Array]) -> list[Operand | None]:
        """Return the cotangents of the active inputs, None for a zero."""
        values = self.program.values(operands)
        return [values[n] if isinstance(n, int) else n for n in self.results]


def pull(tape: Tape, linear: LinearTape | None, cotangents: Sequence[Operand]) -> list[Tangent]:
    """Return the cotangents of the tape's inputs. linear: the tape's linear program if it is written, else None."""
    if state.staging is not None or linear is not None:
        linear = linear or linear_tape(tape)
        return pull_back(linear.program, linear.linear, linear.residuals, cotangents)
    pending: dict[Var, Operand] = {}
    given = [v for v, y in zip(tape.output_vars, tape.outputs, strict=True) if is_differentiable(y.type)]
    for variable, cotangent in zip(given, cotangents, strict=True):
        if variable is not None:
            _add(pending, variable, cotangent)
    outer_source = state.source
    try:
        for entry in reversed(tape.entries):
            arriving = [None if v is None else pending.pop(v, None) for v in entry.outputs]
            if all(c is None for c in arriving):
                continue
            state.source = entry.source
            for variable, pulled in zip(entry.inputs, _pulled(entry, arriving), strict=True):
                if pulled is not None:
                    _add(pending, variable, pulled)
    finally:
        state.source = outer_source
    return [pending[v] if v in pending else Zero(tangent_type(v.type)) for v in tape.inputs]


def _add(pending: dict[Var, Operand], variable: Var, cotangent: Operand) -> None:
    other = pending.get(variable)
    if other is None:
        pending[variable] = cotangent
    elif type(cotangent) is Array is type(other) and cotangent._trace is None is other._trace:
        pending[variable] = execute(add_p, (other, cotangent), {})[0]
    else:
        pending[variable] = Context.add(other, cotangent)


def _pulled(entry: Entry, arriving: Sequence[Operand | None]) -> list[Operand | None]:
    recipe = entry.recipe
    moving = [(v, c) for v, c in zip(entry.outputs, arriving, strict=True) if v is not None]
    if recipe.run is None:  # linearised anew at every call
        linear = linear_tape(_tape_of(entry))
        given: list[Tangent] = [Zero(tangent_type(v.type)) if c is None else c for v, c in moving]
        found = pull_back(linear.program, linear.linear, linear.residuals, given)
        return [None if isinstance(c, Zero) else c for c in found]
    cotangents = [zero_here(tangent_type(v.type)) if c is None else c for v, c in moving]
    if recipe.pullback is None:
        recipe.pullback = _pullback(entry, cotangents)
    return recipe.pullback.run([*map(_array, entry.values), *map(_array, cotangents)])  # type: ignore[no-any-return]


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
    """Return a residual or cotangent as an operand of a prepared call."""
    if x.__class__ is Array:
        return x
    assert isinstance(x, Literal)
    return concrete(np.asarray(x.value, x.type.dtype), x.type.weak)


def _spread(x: Any, residual: Operand, entry: Entry) -> Any:
    """Return the operand of a literal residual broadcast to the shape of the operation's result; others unchanged."""
    shape = next(v.type.shape for v in entry.outputs if v is not None)
    return broadcast_in_dim(x, shape, ()) if isinstance(residual, Literal) else x
