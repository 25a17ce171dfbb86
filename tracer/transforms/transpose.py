"""Transposition of a program that is linear in some inputs: cotangents of outputs become cotangents of these inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tracer.errors import InternalError
from tracer.ir.primitive import Linear, NoRule, Onto, Zero
from tracer.ir.program import Equation, Literal, Program, Var
from tracer.ir.types import (
    same_up_to_weakness,
    tangent_type,
)
from tracer.primitives.control.custom.constants_to_literals import closed
from tracer.primitives.control.reverse.partial_evaluation import run_known
from tracer.trace.evaluate import Environment
from tracer.trace.memo import remembered
from tracer.trace.source import derivative_source
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand
from tracer.transforms.context import Context, Tangent, raise_no_rule, zero_here
from tracer.transforms.tiling import laid_out


class TransposedProgram(NamedTuple):
    """Program (known inputs..., sums..., cotangents of the active outputs...) -> cotangents of active linear inputs.

    The sums are further cotangents of the linear inputs that have one: the results include them.
    """

    program: Program
    active_inputs: tuple[bool, ...]


@remembered
def transpose_program(
    program: Program,
    linear: tuple[bool, ...],
    active_outputs: tuple[bool, ...] | None = None,
    instantiate: bool = True,
    summed: tuple[bool, ...] | None = None,
) -> TransposedProgram:
    """Transpose a program with respect to its `linear` inputs.

    active_outputs: which outputs have cotangents (all, by default). instantiate: whether linear inputs that no
    cotangent reaches get zeros; otherwise they are left out, as `active_inputs` says. summed: which of the linear
    inputs, one flag for each, have a sum that their cotangents are added to (none, by default).
    """
    given = (True,) * len(program.outputs) if active_outputs is None else active_outputs
    known_types = [v.type for v, on in zip(program.inputs, linear, strict=True) if not on]
    moving = [v for v, on in zip(program.inputs, linear, strict=True) if on]
    with_sums = (False,) * len(moving) if summed is None else summed
    sum_types = [tangent_type(v.type) for v, on in zip(moving, with_sums, strict=True) if on]
    cotangent_types = [tangent_type(a.type) for a, on in zip(program.outputs, given, strict=True) if on]
    active_inputs: list[bool] = []

    def run(inputs: list[Any]) -> list[Operand]:
        known, rest = inputs[: len(known_types)], iter(inputs[len(known_types) :])
        sums = [next(rest) if on else None for on in with_sums]
        arriving = rest
        cotangents: list[Tangent] = [
            next(arriving) if on else Zero(tangent_type(a.type)) for a, on in zip(program.outputs, given, strict=True)
        ]
        results = pull_back(program, linear, known, cotangents, sums)
        active_inputs.extend(instantiate or not isinstance(r, Zero) for r in results)
        return [Context.instantiate(r) for r, on in zip(results, active_inputs, strict=True) if on]

    staged = stage(run, [*known_types, *sum_types, *cotangent_types], name=f"{program.name}.transpose")
    return TransposedProgram(closed(staged), tuple(active_inputs))


class _Total:
    """Cotangents of one value: their sum, and parts that are added to a few elements of it at the end."""

    __slots__ = ("parts", "sum")

    def __init__(self) -> None:
        self.sum: Operand | None = None
        self.parts: list[Onto] = []

    def add(self, cotangent: Operand | Onto) -> None:
        if isinstance(cotangent, Onto):
            self.parts.append(cotangent)
        else:
            self.sum = cotangent if self.sum is None else Context.add(self.sum, cotangent)

    def whole(self) -> Operand:
        total, parts = self.sum, self.parts
        if len(parts) > 1:
            arrays, parts = laid_out(parts)
            for array in arrays:
                total = array if total is None else Context.add(total, array)
        if total is None:
            first = parts[0]
            total, parts = (zero_here(first.type), parts) if first.alone is None else (first.alone(), parts[1:])
        for part in parts:
            total = part.add(total)
        return total


_Pending = dict[Var, _Total]


def pull_back(
    program: Program, linear: Sequence[bool], known: Sequence[Operand], cotangents: Sequence[Tangent],
    sums: Sequence[Operand | None] = (),
) -> list[Tangent]:  # fmt: skip
    """Return the cotangents of the linear inputs, at the current level.

    Equations that do not depend on the linear inputs are run first, the other equations are transposed in reverse.
    sums: the sums that the linear inputs' cotangents are added to, or None; for all of them or for none.
    """
    values = iter(known)
    environment: Environment = {v: next(values) for v, on in zip(program.inputs, linear, strict=True) if not on}
    moving_inputs = [v for v, on in zip(program.inputs, linear, strict=True) if on]
    moving = set(moving_inputs)
    outer_source = state.source
    try:
        tape = run_known(program, environment, moving)
        pending: _Pending = {}
        for variable, total in zip(moving_inputs, sums, strict=False):
            if total is not None:
                _accumulate(pending, variable, total)
        for atom, cotangent in zip(program.outputs, cotangents, strict=True):
            if isinstance(atom, Var) and atom in moving and not isinstance(cotangent, Zero):
                _accumulate(pending, atom, cotangent)
        for equation in reversed(tape):
            _transpose_equation(equation, environment, moving, pending)
        return [pending[v].whole() if v in pending else Zero(tangent_type(v.type)) for v in moving_inputs]
    finally:
        state.source = outer_source


def _accumulate(pending: _Pending, variable: Var, cotangent: Operand | Onto) -> None:
    pending.setdefault(variable, _Total()).add(cotangent)


def _transpose_equation(equation: Equation, environment: Environment, moving: set[Var], pending: _Pending) -> None:
    arriving: list[Tangent] = []
    for variable in equation.outputs:
        total = pending.pop(variable, None)
        arriving.append(Zero(tangent_type(variable.type)) if total is None else total.whole())
    if all(isinstance(c, Zero) for c in arriving):
        return
    primitive = equation.primitive
    if isinstance(primitive.transpose, NoRule):
        raise_no_rule(primitive, "transpose", primitive.transpose)
    state.source = derivative_source(equation.source)
    xs = [
        Linear(atom.type)
        if isinstance(atom, Var) and atom in moving
        else atom if isinstance(atom, Literal) else environment[atom]
        for atom in equation.inputs
    ]  # fmt: skip

    def claim(position: int) -> Operand | None:
        atom = equation.inputs[position]
        total = pending.pop(atom, None) if isinstance(atom, Var) else None
        return None if total is None else total.whole()

    context = Context(primitive, transform=transpose_program, claim=claim)
    results = primitive.transpose(context, arriving, xs, **equation.params)
    for atom, cotangent in zip(equation.inputs, results, strict=True):
        if not (isinstance(atom, Var) and atom in moving) or cotangent is None or isinstance(cotangent, Zero):
            continue
        if not same_up_to_weakness(cotangent.type, tangent_type(atom.type)):
            raise InternalError(
                f"transpose of {primitive.name} gave a cotangent {cotangent.type} for an operand {atom.type}"
            )
        _accumulate(pending, atom, cotangent)
