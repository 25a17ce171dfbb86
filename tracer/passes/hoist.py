"""Loop-invariant code motion: equations of a loop that depend on its constants alone move before it.

Only equations without effects move, so a loop of no iterations reports no fault. The work is wasted if the body never
runs; that is the price of doing it once otherwise. Three sorts of equations stay: loops that may not end (a
while_loop), calls into Python, and equations cheaper to repeat than to store. An equation is cheaper to repeat if its
output is larger than its operands: a broadcast or an iota. It still moves if an equation that moves needs it. Library
routines and loops move although they return more than they read: a matrix's factors come with their pivots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracer.ir.primitive import Library, Structured
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.types import StackType, Type, storage_type
from tracer.ir.visit import equations
from tracer.passes.base.loops import loop_of, read_variables
from tracer.passes.base.rewriter import Rewriter, rewriting
from tracer.primitives.base.shapes import optimization_barrier_p


def _hoist(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
    loop = loop_of(equation)
    if loop is None:
        return None
    body, more = _without_invariants(loop.body, len(loop.count), loop.consts, at)
    moved = replace(loop, body=body, consts=(*loop.consts, *more))
    if loop.cond is not None:
        cond, more = _without_invariants(loop.cond, 0, loop.cond_consts, at)
        moved = replace(moved, cond=cond, cond_consts=(*loop.cond_consts, *more))
    if moved.body is loop.body and moved.cond is loop.cond:
        return None
    new = moved.joined()
    return at.emit_all(new.primitive, new.inputs, new.params)


def _without_invariants(
    program: Program, first: int, consts: Sequence[Atom], at: Rewriter
) -> tuple[Program, list[Atom]]:
    """Return the program with invariant values as new constants after its own, and these constants, emitted."""
    last = first + len(consts)
    inputs = program.inputs[first:last]
    values = {v: atom for v, atom in zip(inputs, consts, strict=True) if v.type == atom.type}
    chosen = _choose(program, set(values))
    if not chosen:
        return program, []
    kept: list[Equation] = []
    moved: list[Var] = []
    for number, equation in enumerate(program.equations):
        if number not in chosen:
            kept.append(equation)
            continue
        operands = [values[a] if isinstance(a, Var) else a for a in equation.inputs]
        outputs = at.emit_at(equation.source, equation.primitive, operands, equation.params)
        values.update(zip(equation.outputs, outputs, strict=True))
        if chosen[number]:
            moved.extend(equation.outputs)
        else:
            kept.append(equation)
    rest = Program(program.inputs, tuple(kept), program.outputs, program.name)
    read = read_variables(rest)
    new = [variable for variable in moved if variable in read]
    all_inputs = (*program.inputs[:last], *new, *program.inputs[last:])
    return replace(rest, inputs=all_inputs), [values[variable] for variable in new]


def _choose(program: Program, invariant: set[Var]) -> dict[int, bool]:
    """Return the equations to move, by index: whether they leave the body, or are copied for an equation that moves."""
    candidates: list[int] = []
    for number, equation in enumerate(program.equations):
        if all(a in invariant for a in equation.inputs if isinstance(a, Var)) and _may_move(equation):
            candidates.append(number)
            invariant.update(equation.outputs)
    chosen: dict[int, bool] = {}
    needed: set[Var] = set()
    for number in reversed(candidates):
        equation = program.equations[number]
        pays = _pays(equation)
        if pays or any(variable in needed for variable in equation.outputs):
            chosen[number] = pays
            needed.update(a for a in equation.inputs if isinstance(a, Var))
    return chosen


def _may_move(equation: Equation) -> bool:
    return (
        not equation.effects
        and equation.primitive is not optimization_barrier_p
        and not any(isinstance(atom.type, StackType) for atom in (*equation.inputs, *equation.outputs))
        and not _is_bound(equation)
        and not any(_is_bound(inner) for _, program in equation.nested() for inner in equations(program))
    )


def _is_bound(equation: Equation) -> bool:
    return equation.primitive.lower in (Structured("while"), Structured("callback"))


def _pays(equation: Equation) -> bool:
    """Whether the outputs are stored at every iteration anyway, or cost no more to store than the operands."""
    variables = [a.type for a in equation.inputs if isinstance(a, Var)]
    if variables and isinstance(equation.primitive.lower, Library | Structured):
        return True
    outputs = [v.type for v in equation.outputs]
    return bool(variables) and sum(map(_bytes, outputs)) <= max(sum(map(_bytes, variables)), 16)


def _bytes(type: Type) -> int:
    stored = storage_type(type)
    total = stored.dtype.itemsize
    for n in stored.shape:
        total *= n
    return total


_everywhere = rewriting(_hoist)


def hoist(program: Program) -> Program:
    """Move invariant equations out of loops, inner loops first."""
    return _everywhere(program) if program.holds_programs else program
