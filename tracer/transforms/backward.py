"""Reverse pass: pulls cotangents back along a tape, from the last operation to the first.

Outside staged programs each operation is pulled back by its recipe's program. This program is made once and runs by
prepared calls. So every call of a gradient gives equal bits, and no state depends on the path as a whole. Within a
staged program the tape becomes one linear program, which is transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import StorageDTypeError
from tracer.ir.primitive import Zero
from tracer.ir.program import Literal, Program, Var
from tracer.ir.types import is_differentiable, tangent_type
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.elementwise.arithmetic import add_p
from tracer.trace.array import Array, concrete, follows
from tracer.trace.device_trace import beside
from tracer.trace.prepared_program import PreparedProgram, array_of_literal
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, eager, execute
from tracer.transforms.context import Context, Tangent, zero_here
from tracer.transforms.run import Entry, LinearTape, Tape, linear_tape
from tracer.transforms.transpose import pull_back


class Pullback(NamedTuple):
    """Pullback of a recipe, from (residuals..., output cotangents...) to cotangents of the active inputs.

    sums: for each active input the index of a value of the program, None for a zero cotangent; and the addition of
    NumPy arrays of the type, None where there is none. is_raw: whether the program runs on NumPy arrays, and has one
    cotangent.
    """

    program: PreparedProgram
    sums: list[tuple[int | None, Callable[..., Any] | None]]
    is_raw: bool

    def run(self, operands: Sequence[Operand]) -> list[Operand | None]:
        """Return the cotangents of the active inputs, None for a zero."""
        values = self.program.values([x if x.__class__ is Array else array_of_literal(x) for x in operands])
        return [None if n is None else values[n] for n, _ in self.sums]


def pull(tape: Tape, linear: LinearTape | None, cotangents: Sequence[Operand]) -> list[Tangent]:
    """Return the cotangents of the tape's inputs. linear: the tape's linear program if it is written, else None."""
    if state.staging is not None or linear is not None:
        linear = linear or linear_tape(tape)
        return pull_back(linear.program, linear.linear, linear.residuals, cotangents)
    pending: dict[Var, Any] = {}  # NumPy arrays of concrete cotangents, other operands as they are
    given = [(v, y) for v, y in zip(tape.output_vars, tape.outputs, strict=True) if is_differentiable(y.type)]
    is_raw = True
    for (variable, output), cotangent in zip(given, cotangents, strict=True):
        if variable is not None:
            placed = beside(output, cotangent) if type(cotangent) is Array and follows(cotangent) else cotangent
            is_raw = _add(pending, variable, placed) and is_raw
    outer_source, outer_pulling = state.source, state.pulling
    state.pulling = True
    try:
        left = len(tape.entries)
        while left:
            if is_raw:
                left = eager.quietly(_pull_values, tape.entries, left, pending)
            if left:
                left -= 1
                is_raw = _pull_entry(tape.entries[left], pending) and is_raw
    finally:
        state.source, state.pulling = outer_source, outer_pulling
    return [_operand(pending[v], v) if v in pending else Zero(tangent_type(v.type)) for v in tape.inputs]


def _pull_values(entries: Sequence[Entry], left: int, pending: dict[Var, Any]) -> int:
    """Pull NumPy arrays back along the first `left` entries, from the last one on.

    Return how many are left at the first entry that does not run on NumPy arrays; 0 at the end.
    """
    while left:
        recipe, residuals, inputs, outputs, source = entries[left - 1]
        pullback = recipe.pullback
        if pullback is None or not pullback.is_raw:
            return left
        arrived = pending.pop(outputs[0], None)  # type: ignore[arg-type]
        left -= 1
        if arrived is None:
            continue
        values: list[Any] = []
        for x in residuals:
            if x.__class__ is not Array:
                x = array_of_literal(x)
            elif x._trace is not None:
                pending[outputs[0]] = arrived  # type: ignore[index]
                return left + 1
            values.append(x._value)
        values.append(arrived)
        state.source = source
        pullback.program.extend(values)
        for input, (n, add) in zip(inputs, pullback.sums):  # noqa: B905  # as many, in half the time
            if n is not None:
                before = pending.get(input)
                pending[input] = values[n] if before is None else add(before, values[n])
    return 0


def _pull_entry(entry: Entry, pending: dict[Var, Any]) -> bool:
    """Pull cotangents back along one entry. Return whether all that it added are NumPy arrays."""
    arriving = [_operand(pending.pop(v), v) if v in pending else None for v in entry.outputs if v is not None]
    if all(c is None for c in arriving):
        return True
    state.source = entry.source
    are_raw = True
    for input, cotangent in zip(entry.inputs, _pulled(entry, arriving), strict=True):
        if cotangent is not None:
            are_raw = _add(pending, input, cotangent) and are_raw
    return are_raw


def _operand(x: Any, variable: Var) -> Operand:
    """Return a pending cotangent of a variable as an operand."""
    return concrete(x, False, tangent_type(variable.type)) if x.__class__ is np.ndarray else x


def _add(pending: dict[Var, Any], variable: Var, cotangent: Any) -> bool:
    """Add a cotangent to the pending one of a variable, if there is one. Return whether a NumPy array is pending."""
    before = pending.get(variable)
    if before is not None:
        x = _operand(before, variable)
        if type(x) is Array is type(cotangent) and x._trace is None is cotangent._trace:
            cotangent = execute(add_p, (x, cotangent), {})[0]
        else:
            cotangent = Context.add(x, cotangent)
    is_raw = cotangent.__class__ is Array and cotangent._trace is None
    pending[variable] = cotangent._value if is_raw else cotangent
    return is_raw


def _pulled(entry: Entry, arriving: list[Any]) -> list[Operand | None]:
    """Return the cotangents of an entry's inputs, None for a zero.

    arriving: the cotangents of its outputs that have tangents.
    """
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
    adders = [_adder(zero_here(tangent_type(v.type))) for v in entry.inputs]
    sums = [(None if zero else next(found), add) for zero, add in zip(is_zero, adders, strict=True)]
    return Pullback(program, sums, program.is_raw and len(cotangents) == 1 and None not in adders)


def _adder(sample: Operand) -> Callable[..., Any] | None:
    """Return the addition of NumPy arrays of a type; None for a type that additions do not compute in."""
    try:
        add: Callable[..., Any] | None = eager.prepare(add_p, (sample, sample), {}).raw
    except StorageDTypeError:
        return None
    return add


def _without_unread(program: Program) -> Program:
    """Return the program without equations whose results are unread."""
    read = {atom for atom in program.outputs if isinstance(atom, Var)}
    kept = []
    for equation in reversed(program.equations):
        if equation.effects or not read.isdisjoint(equation.outputs):
            kept.append(equation)
            read.update(atom for atom in equation.inputs if isinstance(atom, Var))
    return replace(program, equations=tuple(reversed(kept)))


def _spread(x: Any, residual: Operand, entry: Entry) -> Any:
    """Return the operand, broadcast to the shape of the operation's result if the residual is a literal."""
    shape = next(v.type.shape for v in entry.outputs if v is not None)
    return broadcast_in_dim(x, shape, ()) if isinstance(residual, Literal) else x
