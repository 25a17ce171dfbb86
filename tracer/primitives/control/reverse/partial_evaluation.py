"""Partial evaluation of programs that are linear in some inputs: a primal part, and a linear part.

Transposition runs the first and transposes the second. Some loops have a count, or carries, that depend on no linear
input. Such a loop is split as if it were differentiated. A loop of primal values leaves residuals on stacks. A loop of
linear steps, which has a transpose, reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from types import SimpleNamespace
from typing import Any

from tracer.errors import NoRuleError, message
from tracer.ir.linearized import LinearizedProgram
from tracer.ir.primitive import Effect, Linearized, Zero
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.types import ArrayType, Float0Type, StackType, Type, is_differentiable, storage_type, tangent_type
from tracer.primitives.base.nested_programs import active_of, nonzero, pick, reached_results, summed_operands
from tracer.primitives.control.calls import call
from tracer.primitives.control.custom.constants_to_literals import closed
from tracer.primitives.control.reverse.rerun_for_residuals import repeating
from tracer.primitives.control.reverse.residual_stacks import filled
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace.evaluate import Environment, read
from tracer.trace.memo import remembered
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind_all


def run_known(program: Program, environment: Environment, moving: set[Var]) -> list[Equation]:
    """Run, at the current level, all that does not depend on moving variables; return the remaining equations.

    The computed values join the environment, and variables that depend on moving ones join `moving`.
    """
    tape: list[Equation] = []
    asked: set[Atom] = set()
    for equation in program.equations:
        flags = _flags(equation, moving)
        if not any(flags):
            _run(equation, environment)
            continue
        if equation.outputs:
            _check_operands(equation, flags, tape)
        part = equation.primitive.part
        if part is not None and not all(flags[1:]):
            _run(part(equation, [not on for on in flags[1:]]), environment)
            equation = part(equation, flags[1:])
        reached = reached_results(equation, _flags(equation, moving))
        if not all(reached) and Effect.IO not in equation.effects:
            asked = asked or {atom for e in program.equations for atom in e.inputs}.union(program.outputs)
            if any(v in asked for v, on in zip(equation.outputs, reached, strict=True) if not on):
                _run_unreached(equation, reached, moving, environment)
        moving.update(v for v, on in zip(equation.outputs, reached, strict=True) if on)
        tape.append(equation)
    return tape


def _flags(equation: Equation, moving: set[Var]) -> list[bool]:
    return [isinstance(atom, Var) and atom in moving for atom in equation.inputs]


def _run(equation: Equation, environment: Environment, wanted: Container[Var] | None = None) -> None:
    """Run an equation. wanted: the results that join the environment, by default all."""
    state.source = equation.source
    inputs = [read(environment, atom) for atom in equation.inputs]
    outputs = bind_all(equation.primitive, inputs, equation.params)
    environment.update((v, y) for v, y in zip(equation.outputs, outputs, strict=True) if wanted is None or v in wanted)


def _run_unreached(equation: Equation, reached: Sequence[bool], moving: set[Var], environment: Environment) -> None:
    """Compute the results that no linear operand reaches, with zeros for the linear operands."""
    state.source = equation.source
    inputs = [
        _nothing(atom.type) if isinstance(atom, Var) and atom in moving else read(environment, atom)
        for atom in equation.inputs
    ]
    outputs = bind_all(equation.primitive, inputs, equation.params)
    environment.update((v, y) for v, y, on in zip(equation.outputs, outputs, reached, strict=True) if not on)


def _nothing(type: Type) -> Operand:
    """Return zeros of exactly this type."""
    return _as_type(filled(type), type)


def _as_type(x: Operand, type: Type) -> Operand:
    """Convert the operand, which has the type up to weakness."""
    if x.type == type or not isinstance(type, ArrayType):
        return x
    converted: Operand = convert_element_type(x, storage_type(type).dtype, weak=type.weak)
    return converted


def _check_operands(equation: Equation, flags: Sequence[bool], tape: Sequence[Equation]) -> None:
    """Raise NoRuleError if an index or a predicate was computed from a transposed operand."""
    for atom, on in zip(equation.inputs, flags, strict=True):
        if on and not is_differentiable(atom.type) and not isinstance(atom.type, Float0Type):
            made = next((e for e in tape if atom in e.outputs), equation)
            state.source = made.source
            name = made.primitive.name
            raise NoRuleError(
                message(
                    f"transpose of {name}{here()}: {name} is not linear",
                    f"its result {atom.type} is used by {equation.primitive.name}",
                    help="vjp differentiates functions that are not linear",
                )
            )


@remembered
def split_linear(
    program: Program, active: tuple[bool, ...], instantiate: tuple[bool, ...] | bool = False, nested: bool = True
) -> LinearizedProgram:
    """Split a program that is linear in its active inputs, as `linearize_program` does, without any derivatives.

    instantiate: outputs that count as reached in any case. nested: whether residuals must have a fixed size.
    """
    wanted = (instantiate,) * len(program.outputs) if isinstance(instantiate, bool) else instantiate
    inputs = program.inputs
    moving = {v for v, on in zip(inputs, active, strict=True) if on}
    tape: list[Equation] = []
    kept: list[Var] = []
    fresh: list[Var] = []

    def forward(arrays: list[Any]) -> list[Operand]:
        environment: Environment = {v: x for v, x in zip(inputs, arrays, strict=True) if v not in moving}
        tape[:] = run_known(program, environment, moving)
        asked = [atom for equation in tape for atom in equation.inputs]
        asked += [a for a, on in zip(program.outputs, wanted, strict=True) if on]
        kept[:] = dict.fromkeys(a for a in asked if isinstance(a, Var) and a in environment)
        fresh[:] = [v for v in kept if v not in inputs and v not in program.outputs]
        outputs = [_nothing(a.type) if a in moving else read(environment, a) for a in program.outputs]
        return [*outputs, *(environment[v] for v in fresh)]

    def linear(arrays: list[Any]) -> list[Operand]:
        environment: Environment = dict(zip(kept, arrays, strict=False))
        tangents = iter(arrays[len(kept) :])
        environment.update((v, _as_type(next(tangents), v.type)) for v, on in zip(inputs, active, strict=True) if on)
        for equation in tape:
            _run(equation, environment, moving)
        found = zip(program.outputs, active_outputs, strict=True)
        return [
            _as_type(read(environment, a), tangent_type(a.type)) if a in moving else filled(tangent_type(a.type))
            for a, on in found
            if on
        ]

    outer_source = state.source
    try:
        first = closed(stage(forward, program.input_types, name=program.name))
        active_outputs = tuple(
            a in moving or (want and is_differentiable(a.type)) for a, want in zip(program.outputs, wanted, strict=True)
        )
        types = [*(v.type for v in kept), *(tangent_type(v.type) for v, on in zip(inputs, active, strict=True) if on)]
        second = closed(stage(linear, types, name=f"{program.name}.linear"))
    finally:
        state.source = outer_source
    sources = tuple(_source(v, program, fresh) for v in kept)
    split = LinearizedProgram(first, second, sources, active_outputs)
    stacks = any(isinstance(v.type, StackType) and v not in inputs for v in kept)
    return repeating(program, active, split) if nested and stacks else split


def _source(variable: Var, program: Program, fresh: Sequence[Var]) -> tuple[str, int]:
    for role, variables in (("input", program.inputs), ("output", program.outputs), ("residual", fresh)):
        if variable in variables:
            return role, variables.index(variable)
    raise AssertionError(f"{variable} is known, but neither an input, an output nor a residual")


def transpose_parts(ctx: Any, cts: Sequence[Any], xs: Sequence[Any], linearize: Callable[..., Linearized]) -> list[Any]:
    """Transpose a loop by splitting it with its rule `linearize(context, operands, active)`."""
    linear, sums, summed = summed_operands(ctx, xs)
    context = SimpleNamespace(transform=split_linear, nested=False, instantiate=_instantiated)
    reached: list[bool] = []

    def run(inputs: list[Any]) -> list[Operand]:
        operands = [_nothing(x.type) if on else y for x, y, on in zip(xs, inputs, linear, strict=True)]
        parts = linearize(context, operands, linear)
        results = parts.apply(parts.residuals, pick(inputs, linear))
        reached[:] = active_of(results)
        return nonzero(results)

    program = stage(run, [tangent_type(x.type) if on else x.type for x, on in zip(xs, linear, strict=True)]).program
    arriving = pick(cts, reached)
    derived = ctx.transform(program, linear, active_of(arriving), True, summed).program
    known = [x for x, on in zip(xs, linear, strict=True) if not on]
    results = iter(call(derived, *known, *sums, *nonzero(arriving)))
    return [next(results) if on else None for on in linear]


def _instantiated(x: Any) -> Operand:
    return filled(x.type) if isinstance(x, Zero) else x
