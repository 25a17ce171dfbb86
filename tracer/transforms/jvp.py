"""Forward mode: the program of (outputs, tangents) from (inputs, tangents).

A tangent that is zero by construction stays a `Zero`; the transform never computes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tracer.errors import InternalError
from tracer.ir.primitive import Effect, Joint, NoRule, Primitive, Zero
from tracer.ir.program import Literal, Program, Var
from tracer.ir.types import ArrayType, is_differentiable, same_up_to_weakness, tangent_type
from tracer.primitives.control.custom.constants_to_literals import closed
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace.array import Array, is_recorded
from tracer.trace.evaluate import Environment, read
from tracer.trace.memo import remembered
from tracer.trace.source import derivative_source, user_source
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind_all
from tracer.transforms.context import Context, Tangent, raise_no_rule, zero_like

Push = Callable[
    [Primitive, Sequence[Operand], Sequence[Tangent], Mapping[str, Any]], tuple[Sequence[Operand], Sequence[Tangent]]
]
"""push(primitive, xs, dxs, params) -> ys, dys: an operation and its tangents, at the current level."""


class JvpProgram(NamedTuple):
    """Program (inputs..., tangents of the active inputs...) -> (outputs..., tangents of the active outputs...)."""

    program: Program
    active_outputs: tuple[bool, ...]


@remembered
def jvp_program(program: Program, active: tuple[bool, ...], instantiate: tuple[bool, ...] | bool = False) -> JvpProgram:
    """Differentiate a program forward.

    active: which inputs have tangents. instantiate: which outputs get a tangent even where it is zero.
    """
    wanted = (instantiate,) * len(program.outputs) if isinstance(instantiate, bool) else instantiate
    tangent_types = [tangent_type(v.type) for v, on in zip(program.inputs, active, strict=True) if on]
    active_outputs: list[bool] = []

    def run(inputs: list[Any]) -> list[Operand]:
        primals, given = inputs[: len(program.inputs)], iter(inputs[len(program.inputs) :])
        tangents: list[Tangent] = [next(given) if on else zero_like(x) for x, on in zip(primals, active, strict=True)]
        outputs, outgoing = push_forward(program, primals, tangents, jvp_equation)
        for output, tangent, want in zip(outputs, outgoing, wanted, strict=True):
            active_outputs.append(not isinstance(tangent, Zero) or (want and is_differentiable(output.type)))
        return outputs + [Context.instantiate(t) for t, on in zip(outgoing, active_outputs, strict=True) if on]

    staged = stage(run, [*program.input_types, *tangent_types], name=program.name)
    return JvpProgram(closed(staged), tuple(active_outputs))


def push_forward(
    program: Program, primals: Sequence[Operand], tangents: Sequence[Tangent], push: Push
) -> tuple[list[Operand], list[Tangent]]:
    """Run a program at the current level, with its tangents beside it.

    push: the rule for an equation with a tangent that is not zero, such as `jvp_equation`.
    """
    environment: Environment = dict(zip(program.inputs, primals, strict=True))
    moving: dict[Var, Operand] = {
        v: t for v, t in zip(program.inputs, tangents, strict=True) if not isinstance(t, Zero)
    }
    outer_source = state.source
    try:
        for equation in program.equations:
            state.source = equation.source
            xs = [read(environment, atom) for atom in equation.inputs]
            if any(atom in moving for atom in equation.inputs if isinstance(atom, Var)):
                dxs = [
                    moving[atom] if isinstance(atom, Var) and atom in moving else Zero(tangent_type(atom.type))
                    for atom in equation.inputs
                ]
                ys, dys = push(equation.primitive, xs, dxs, equation.params)
                moving.update((v, dy) for v, dy in zip(equation.outputs, dys, strict=True) if not isinstance(dy, Zero))
            else:
                ys = bind_all(equation.primitive, xs, equation.params)
            environment.update(zip(equation.outputs, ys, strict=True))
    finally:
        state.source = outer_source
    outputs = [read(environment, atom) for atom in program.outputs]
    outgoing: list[Tangent] = [
        Zero(tangent_type(atom.type)) if isinstance(atom, Literal) or atom not in moving else moving[atom]
        for atom in program.outputs
    ]
    return outputs, outgoing


def settled(
    primitive: Primitive, xs: Sequence[Operand], params: Mapping[str, Any]
) -> tuple[Sequence[Operand], Mapping[str, Any]]:
    """Return operands and parameters whose checks the derivatives need not repeat; eagerly they have passed by now."""
    if primitive.settle is None or Effect.FAULT not in primitive.effects_of(params):
        return xs, params
    if state.staging is None and not any(isinstance(x, Array) and is_recorded(x) for x in xs):
        return xs, params
    found: tuple[Sequence[Operand], Mapping[str, Any]] = primitive.settle(xs, **params)
    return found


def jvp_equation(
    primitive: Primitive, xs: Sequence[Operand], dxs: Sequence[Tangent], params: Mapping[str, Any]
) -> tuple[Sequence[Operand], Sequence[Tangent]]:
    """Run one operation and its tangents, at the current level. Raises NoRuleError if it has no derivative."""
    xs, params = settled(primitive, xs, params)
    rule = primitive.jvp
    if isinstance(rule, NoRule) and params.get("program", rule) is None:  # a user's function without a program yet
        raise_no_rule(primitive, "derivative", rule)
    if isinstance(rule, Joint):
        context = Context(primitive, transform=jvp_program)
        ys, dys = rule.rule(context, xs, dxs, **params)
        dys = strong_tangents(dys)
    else:
        ys = bind_all(primitive, xs, params)
        dys = tangents_of(primitive, xs, ys, dxs, params)
    return ys, dys


def tangents_of(
    primitive: Primitive,
    xs: Sequence[Operand],
    ys: Sequence[Operand],
    dxs: Sequence[Tangent],
    params: Mapping[str, Any],
) -> Sequence[Tangent]:
    """Return the tangents of an operation whose outputs are given, by its tangent-only rule."""
    if not any(is_differentiable(y.type) for y in ys):
        return [zero_like(y) for y in ys]
    rule = primitive.jvp
    if isinstance(rule, NoRule):
        raise_no_rule(primitive, "derivative", rule)
    assert not isinstance(rule, Joint)
    outer = state.source
    if state.staging is not None:  # outside a program no equation keeps the mark, and the line takes 2 µs to find
        state.source = derivative_source(user_source())
    try:
        dys: Sequence[Tangent] = rule(Context(primitive, ys, transform=jvp_program), xs, dxs, **params)
    finally:
        state.source = outer
    for y, dy in zip(ys, dys, strict=True):
        if not same_up_to_weakness(dy.type, tangent_type(y.type)):
            raise InternalError(f"jvp of {primitive.name} gave a tangent {dy.type} for an output {y.type}")
    return strong_tangents(dys)


def strong_tangents(dys: Sequence[Tangent]) -> Sequence[Tangent]:
    """Return the tangents without weak types, which programs do not carry but users' rules may make."""
    return [_strong(dy) for dy in dys]


def _strong(dy: Tangent) -> Tangent:
    if isinstance(dy, Zero) or not isinstance(dy.type, ArrayType) or not dy.type.weak:
        return dy
    result: Tangent = convert_element_type(dy, dy.type.dtype)
    return result
