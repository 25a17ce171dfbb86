"""Functions with the user's derivatives: custom_jvp and custom_vjp.

The equation holds the function's program, and the user's rule as a Python function on lists of operands, for
differentiation. Outside jit, the rule runs on concrete values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tracer.errors import ArgumentError, message
from tracer.ir.primitive import Joint, Linearized, NoRule, Primitive, Structured, Zero
from tracer.ir.program import Program
from tracer.ir.types import Type, is_differentiable, tangent_type, with_shape
from tracer.primitives.arrays.reductions.reductions import reduce_sum
from tracer.primitives.base.nested_programs import (
    Axes,
    active_of,
    batched_of,
    effects_of,
    move_to_front,
    nonzero,
    spread,
)
from tracer.primitives.base.reference import run_reference
from tracer.primitives.control.calls import transpose_call
from tracer.primitives.control.custom.constants_to_literals import closed
from tracer.primitives.control.custom.custom_linear import custom_linear_p, linear_params, push_forward
from tracer.primitives.control.custom.rule_functions import (
    JvpRule,
    Operands,
    VjpRule,
    batched_backward,
    is_moved,
    stage_forward,
)
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.state import named_axis
from tracer.trace.trace import Operand, bind_all, open_trace, stage_process

# custom_jvp


def _jvp_jvp(ctx: Any, xs: Operands, dxs: Sequence[Any], *, program: Program | None, rule: JvpRule) -> Any:
    if not is_moved(f"custom_jvp {rule.name}", rule.closure, active_of(dxs)):
        return _unmoved(program, xs)
    return rule.rule(xs, dxs)


def _unmoved(program: Program | None, xs: Operands) -> tuple[list[Any], list[Any]]:
    """Evaluate the function. Its results have zero tangents."""
    assert program is not None  # functions that run with values take the arguments alone
    ys = evaluate(program, xs)
    return ys, [Zero(tangent_type(y.type)) for y in ys]


def _jvp_linearize(
    ctx: Any, xs: Operands, active: tuple[bool, ...], *, program: Program | None, rule: JvpRule
) -> Linearized:
    """Run the rule once: values that it computes without tangents are the function's results."""
    if not is_moved(f"custom_jvp {rule.name}", rule.closure, active):
        results, still = _unmoved(program, xs)
        return Linearized(results, (), lambda residuals, dxs: still)
    ys, residuals, linear, reached = _run_split(rule, xs, active)
    types = [y.type for y in ys]

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> Sequence[Any]:
        return spread(evaluate(linear, [*residuals, *dxs]), reached, types)

    return Linearized(ys, residuals, apply)


def _run_split(
    rule: JvpRule, xs: Operands, active: Sequence[bool]
) -> tuple[list[Any], list[Array], Program, list[bool]]:
    """Run a rule with tangents in a trace of their own.

    Returns its outputs, the residuals, the linear program from residuals and active tangents to nonzero tangents, and
    these tangents' flags. Raises ArgumentError if an output depends on a tangent.
    """
    with open_trace(stage_process, rule.name, staging=False) as linear:
        types = [tangent_type(x.type) for x in xs]
        tangents = [linear.new_input(t) if on else Zero(t) for t, on in zip(types, active, strict=True)]
        ys, dys = rule.rule(xs, tangents)
        if any(isinstance(y, Array) and y._trace is linear for y in ys):
            raise ArgumentError(
                message(
                    f"custom_jvp {rule.name}{here()}: the outputs of its rule depend on tangents",
                    help="compute them from the primals alone; only the tangents depend on tangents, and linearly",
                )
            )
        program = linear.program(nonzero(dys))
        return list(ys), [array for _, array in linear.constants], program, [not isinstance(dy, Zero) for dy in dys]


class Split(NamedTuple):
    """Rule as two programs. forward: primals -> (outputs..., residuals...).

    linear: (residuals..., active tangents...) -> nonzero tangents. reached: the flags of these.
    """

    forward: Program
    linear: Program
    reached: list[bool]


def split_jvp(rule: JvpRule, types: Sequence[Type], active: Sequence[bool]) -> Split:
    """Stage a rule, its outputs apart from its tangents."""
    found: list[Any] = []

    def run(inputs: list[Any]) -> list[Operand]:
        ys, residuals, *found[:] = _run_split(rule, inputs, active)
        return [*ys, *residuals]

    forward = closed(stage(run, types, name=rule.name))
    return Split(forward, *found)


def _jvp_split(active: tuple[bool, ...], *, program: Program, rule: JvpRule) -> Split | None:
    """Stage the rule of a function that closes over no array which is differentiated."""
    if any(held is not None for held in rule.closure):
        return None
    return split_jvp(rule, program.input_types, active)


def _jvp_transpose(ctx: Any, cts: Sequence[Any], xs: Operands, *, program: Program, rule: JvpRule) -> list[Any]:
    """Transpose the function itself. Where it is linear, the rule is not used."""
    found: list[Any] = transpose_call(ctx, cts, xs, program=program, inline=True)
    return found


def _jvp_batch(ctx: Any, xs: Operands, axes: Axes, *, program: Program, rule: JvpRule) -> Any:
    batched, size, transform = batched_of(axes), ctx.size, ctx.transform
    derived = transform(program, batched, size, ctx.axis_name, True).program

    def batched_rule(primals: Operands, tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        active = tuple(not isinstance(t, Zero) for t in tangents)
        moving = [t for t in tangents if not isinstance(t, Zero)]
        with named_axis(ctx.axis_name, size):
            split = split_jvp(rule, program.input_types, active)
        forward = transform(split.forward, batched, size, ctx.axis_name, True).program
        count = len(program.outputs)
        residuals = len(split.forward.outputs) - count
        flags = (True,) * residuals + tuple(on for on, a in zip(batched, active, strict=True) if a)
        linear = transform(split.linear, flags, size, ctx.axis_name, True).program
        results = evaluate(forward, primals)
        types = [with_shape(t, (size, *t.shape)) for t in program.output_types]
        return results[:count], spread(evaluate(linear, [*results[count:], *moving]), split.reached, types)

    new = JvpRule(rule.name, batched_rule, rule.closure)
    outputs = bind_all(custom_jvp_p, move_to_front(ctx, xs, axes), {"program": derived, "rule": new})
    return outputs, [0] * len(outputs)


custom_jvp_p = Primitive(
    name="custom_jvp",
    infer=lambda *types, program, rule: program.output_types,
    reference=lambda *values, program, rule: run_reference(program, values),
    jvp=Joint(_jvp_jvp), linearize=_jvp_linearize, split=_jvp_split,
    transpose=_jvp_transpose, batch=_jvp_batch,
    lower=Structured("custom_jvp"), effects=effects_of("program"), multiple=True,
    laws={"text": "the user's rule is a Python function, which prints as its name"},
)  # fmt: skip


# custom_vjp


def _vjp_linearize(
    ctx: Any, xs: Operands, active: tuple[bool, ...], *, program: Program | None, rule: VjpRule
) -> Linearized:
    if not is_moved(f"custom_vjp {rule.name}", rule.closure, active):
        results, still = _unmoved(program, xs)
        return Linearized(results, (), lambda residuals, dxs: still)
    ys, residuals = rule.forward(xs, active)
    params = linear_params(rule, xs, active, ys, residuals)
    out_types = [y.type for y in ys]

    def apply(values: Sequence[Any], dxs: Sequence[Any]) -> Sequence[Any]:
        return _with_zeros(bind_all(custom_linear_p, [*values, *dxs], params), out_types)

    return Linearized(ys, residuals, apply)


def _with_zeros(tangents: Sequence[Any], types: Sequence[Type]) -> list[Any]:
    given = iter(tangents)
    return [next(given) if is_differentiable(t) else Zero(tangent_type(t)) for t in types]


def _vjp_jvp(ctx: Any, xs: Operands, dxs: Sequence[Any], *, program: Program | None, rule: VjpRule) -> Any:
    """Push tangents forward by the transpose of the backward function."""
    active = active_of(dxs)
    if not is_moved(f"custom_vjp {rule.name}", rule.closure, active):
        return _unmoved(program, xs)
    ys, residuals = rule.forward(xs, active)
    tangents = push_forward(residuals, nonzero(dxs), linear_params(rule, xs, active, ys, residuals))
    return ys, _with_zeros(tangents, [y.type for y in ys])


def _vjp_batch(ctx: Any, xs: Operands, axes: Axes, *, program: Program, rule: VjpRule) -> Any:
    batched, size, transform, name = batched_of(axes), ctx.size, ctx.transform, ctx.axis_name
    derived = transform(program, batched, size, name, True).program
    count = len(program.outputs)

    def forward(operands: Operands, active: tuple[bool, ...]) -> tuple[list[Any], list[Any]]:
        with named_axis(name, size):
            staged = stage_forward(rule, program.input_types, active)
        fixed = (False,) * len(staged.constants)
        mapped = transform(staged.program, fixed + batched, size, name, True).program
        results = evaluate(mapped, [*staged.constants, *operands])
        return results[:count], results[count:]

    def backward(residuals: Operands, cotangents: Sequence[Any], active: tuple[bool, ...]) -> list[Any]:
        results = batched_backward(rule, ctx, residuals, [True] * len(residuals), cotangents, active)
        return [
            Zero(tangent_type(t)) if r is None else r if on else reduce_sum(r, (0,))
            for r, on, t in zip(results, batched, program.input_types, strict=True)
        ]

    new = VjpRule(rule.name, forward, backward, rule.transpose, rule.closure)
    outputs = bind_all(custom_vjp_p, move_to_front(ctx, xs, axes), {"program": derived, "rule": new})
    return outputs, [0] * len(outputs)


custom_vjp_p = Primitive(
    name="custom_vjp",
    infer=lambda *types, program, rule: program.output_types,
    reference=lambda *values, program, rule: run_reference(program, values),
    jvp=Joint(_vjp_jvp), linearize=_vjp_linearize,
    transpose=NoRule("a custom_vjp function is not linear"), batch=_vjp_batch,
    lower=Structured("custom_vjp"), effects=effects_of("program"), multiple=True,
    laws={"text": "the user's rule is a Python function, which prints as its name"},
)  # fmt: skip


CUSTOM = (custom_jvp_p, custom_vjp_p, custom_linear_p)
