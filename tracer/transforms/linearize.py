"""Linearisation: split a program into the part that can be computed now and a linear program of its tangents.

The tangents belong to a trace of their own, which records only the operations that depend on them. Everything else in
the jvp rules is computed at the enclosing level, and enters the linear program as a residual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tracer.ir.linearized import LinearizedProgram
from tracer.ir.primitive import Joint, Linearized, NoRule, Primitive, Zero
from tracer.ir.program import Atom, Program, Var
from tracer.ir.types import StackType, is_differentiable, tangent_type
from tracer.primitives.control.custom.constants_to_literals import close_over
from tracer.primitives.control.reverse.rerun_for_residuals import repeating
from tracer.primitives.control.safe_operands import unchanged
from tracer.trace.array import Array, is_recorded
from tracer.trace.memo import remembered
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind_all, open_trace, stage_process
from tracer.transforms.context import Context, Tangent, raise_no_rule, zero_like
from tracer.transforms.jvp import jvp_equation, jvp_program, push_forward, settled, strong_tangents, tangents_of


@remembered
def linearize_program(
    program: Program, active: tuple[bool, ...], instantiate: tuple[bool, ...] | bool = False, nested: bool = False
) -> LinearizedProgram:
    """Split a program at its active inputs.

    instantiate: which outputs get a tangent even where it is zero. nested: whether the residuals must have a fixed
    size. A program with stacks among them is then run again by its linear part.
    """
    wanted = (instantiate,) * len(program.outputs) if isinstance(instantiate, bool) else instantiate
    with open_trace(stage_process, program.name, staging=True) as forward:
        primals = [forward.new_input(type) for type in program.input_types]
        with open_trace(stage_process, f"{program.name}.linear", staging=False) as linear:
            tangents: list[Tangent] = [
                linear.new_input(tangent_type(x.type)) if on else zero_like(x)
                for x, on in zip(primals, active, strict=True)
            ]
            outputs, outgoing = push_forward(program, primals, tangents, split_equation)
            active_outputs = tuple(
                not isinstance(t, Zero) or (want and is_differentiable(y.type))
                for y, t, want in zip(outputs, outgoing, wanted, strict=True)
            )
            dense = [Context.instantiate(t) for t, on in zip(outgoing, active_outputs, strict=True) if on]
            linear_program = linear.program(dense)
            residuals = [array for _, array in linear.constants]
        if nested and any(isinstance(r.type, StackType) for r in residuals):
            return repeating(program, active, linearize_program(program, active, instantiate))
        sources, fresh = _residual_sources(primals, outputs, residuals, unchanged(forward.equations))
        forward_program = forward.program([*outputs, *fresh])
    forward_program = close_over(forward_program, [array for _, array in forward.constants])
    return LinearizedProgram(forward_program, linear_program, sources, active_outputs)


def _residual_sources(
    inputs: Sequence[Array], outputs: Sequence[Operand], residuals: Sequence[Array], same: Mapping[Var, Atom]
) -> tuple[tuple[tuple[str, int], ...], list[Array]]:
    """Return the source of each residual, and the residuals that the forward program must return besides its outputs.

    same: variables that have another's value, which may be an input: these are not kept for every step of a loop.
    """
    known: dict[Any, tuple[str, int]] = {}
    for position, output in enumerate(outputs):
        if isinstance(output, Array):
            known[identity(output)] = ("output", position)
    for position, array in enumerate(inputs):
        known[identity(array)] = ("input", position)
    fresh: list[Array] = []
    sources = []
    for residual in residuals:
        name = identity(residual)
        while name not in known and name in same:
            name = same[name]
        if name not in known:
            known[name] = ("residual", len(fresh))
            fresh.append(residual)
        sources.append(known[name])
    return tuple(sources), fresh


def identity(array: Array) -> Any:
    """Return a value's identity: its variable, or the id of the handle, which is alive, for a value from outside."""
    return array._atom if is_recorded(array) else id(array)


def linearize_equation(
    primitive: Primitive,
    xs: Sequence[Operand],
    active: Sequence[bool],
    params: Mapping[str, Any],
    nested: bool = False,
) -> Linearized:
    """Run one operation at the current level, with its tangents as a function of residuals and active tangents.

    Raises NoRuleError if it has no derivative.
    """
    xs, params = settled(primitive, xs, params)
    if primitive.linearize is not None:
        context = Context(primitive, transform=_TRANSFORMS[nested], nested=nested)
        result: Linearized = primitive.linearize(context, xs, tuple(active), **params)
        return result
    if isinstance(primitive.jvp, NoRule):
        ys = bind_all(primitive, xs, params)
        if any(is_differentiable(y.type) for y in ys):
            raise_no_rule(primitive, "derivative", primitive.jvp)
        return Linearized(ys, (), lambda residuals, dxs: [zero_like(y) for y in ys])
    ys = bind_all(primitive, xs, params)
    count = len(xs)
    joint = primitive.jvp if isinstance(primitive.jvp, Joint) else None

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> Sequence[Tangent]:
        given = iter(dxs)
        full = [next(given) if on else zero_like(x) for x, on in zip(residuals[:count], active, strict=True)]
        if joint is not None:  # linear in the tangents, yet not to be transposed: it repeats the primal part
            context = Context(primitive, transform=jvp_program)
            tangents: Sequence[Tangent] = joint.rule(context, residuals[:count], full, **params)[1]
            return tangents
        return tangents_of(primitive, residuals[:count], residuals[count:], full, params)

    return Linearized(ys, [*xs, *ys], apply)


def split_equation(
    primitive: Primitive,
    xs: Sequence[Operand],
    dxs: Sequence[Tangent],
    params: Mapping[str, Any],
    nested: bool = False,
) -> tuple[Sequence[Operand], Sequence[Tangent]]:
    """Linearise one operation at the current level, and apply its linear part to the tangents in their trace."""
    linearized = linearize_equation(primitive, xs, [not isinstance(dx, Zero) for dx in dxs], params, nested)
    moving = [dx for dx in dxs if not isinstance(dx, Zero)]
    return linearized.outputs, strong_tangents(linearized.apply(linearized.residuals, moving))


def push_equation(
    primitive: Primitive, xs: Sequence[Operand], dxs: Sequence[Tangent], params: Mapping[str, Any]
) -> tuple[Sequence[Operand], Sequence[Tangent]]:
    """Run one operation and its tangents, at the current level.

    Control flow and sorts are split if the tangents belong to a linear program. As one operation, their outputs would
    depend on the tangents.
    """
    splits = primitive.linearize is not None or isinstance(primitive.jvp, Joint)
    if not splits or not any(_is_linear(dx) for dx in dxs):
        return jvp_equation(primitive, xs, dxs, params)
    return split_equation(primitive, xs, dxs, params, nested=state.staging is None)


def _is_linear(tangent: Tangent) -> bool:
    """Whether the tangent belongs to a linear trace within a staging trace.

    A linear trace records only operations that depend on its tangents.
    """
    trace = tangent._trace if isinstance(tangent, Array) else None
    level = 0 if state.staging is None else state.staging.level
    return trace is not None and trace.process is stage_process and trace.level > level


_TRANSFORMS = {nested: partial(linearize_program, nested=nested) for nested in (False, True)}
