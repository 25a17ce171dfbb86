"""Functions with derivatives of the user's own: custom_jvp and custom_vjp.

Each is an equation with the function's program, for everything but differentiation, and with the user's rule, as a
Python function on lists of operands. Outside jit the rule runs by itself, with values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from tracer.errors import ArgumentError, NoRuleError, message
from tracer.ir.primitive import Composite, Effect, Joint, Linear, Linearized, NoRule, Primitive, Structured, Zero
from tracer.ir.program import Program
from tracer.ir.types import Type, is_differentiable, tangent_type, with_shape
from tracer.primitives.closing import closed
from tracer.primitives.nested import Axes, batched_of, move_to_front, nonzero, spread
from tracer.primitives.reductions import reduce_sum
from tracer.primitives.reference import run_reference
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import Staged, stage
from tracer.trace.state import named_axis, standing_in
from tracer.trace.trace import Operand, bind_all, open_trace, stage_process

Operands = Sequence[Operand]
_serials = itertools.count()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class JvpRule:
    """rule(xs, dxs) -> (ys, dys), the dxs dense or Zero."""

    name: str
    rule: Callable[[Operands, Sequence[Any]], tuple[list[Any], list[Any]]]
    serial: int = field(default_factory=_serials.__next__)

    def __tracer_digest__(self) -> str:
        """Rules of one name are not one rule."""
        return f"jvp#{self.serial}"

    def __repr__(self) -> str:
        return f"<jvp of {self.name}>"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class VjpRule:
    """forward(xs, active) -> (ys, residuals). backward(residuals, cotangents) -> those of xs, or Zero.

    active: which of the xs are differentiated.
    """

    name: str
    forward: Callable[[Operands, tuple[bool, ...]], tuple[list[Any], list[Any]]]
    backward: Callable[[Operands, Sequence[Any]], list[Any]]
    serial: int = field(default_factory=_serials.__next__)

    def __tracer_digest__(self) -> str:
        """Rules of one name are not one rule."""
        return f"vjp#{self.serial}"

    def __repr__(self) -> str:
        return f"<vjp of {self.name}>"


def shifted(rule: JvpRule | VjpRule, count: int, captured: Sequence[Array] = ()) -> JvpRule | VjpRule:
    """The rule of a function whose program takes `count` operands more at the front, which have no derivative.

    captured: arrays that the rule closes over, for which the first of those stand in.
    """

    def stand_ins(operands: Operands) -> AbstractContextManager[None]:
        return standing_in({id(array): x for array, x in zip(captured, operands, strict=False)})

    if isinstance(rule, JvpRule):
        jvp = rule

        def tangents(xs: Operands, dxs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            with stand_ins(xs):
                return jvp.rule(xs[count:], dxs[count:])

        return JvpRule(jvp.name, tangents)
    vjp = rule

    def forward(xs: Operands, active: tuple[bool, ...]) -> tuple[list[Any], list[Any]]:
        with stand_ins(xs):
            ys, residuals = vjp.forward(xs[count:], active[count:])
        return ys, [*residuals, *xs[:count]]

    def backward(residuals: Operands, cts: Sequence[Any]) -> list[Any]:
        split = len(residuals) - count
        gone = [Zero(tangent_type(x.type)) for x in residuals[split:]]
        with stand_ins(residuals[split:]):
            return [*gone, *vjp.backward(residuals[:split], cts)]

    return VjpRule(vjp.name, forward, backward)


def _effects(params: Mapping[str, Any]) -> frozenset[Effect]:
    program: Program | None = params["program"]
    return program.effects if program is not None else frozenset()


# custom_jvp


def _jvp_jvp(ctx: Any, xs: Operands, dxs: Sequence[Any], *, program: Program | None, rule: JvpRule) -> Any:
    return rule.rule(xs, dxs)


def _jvp_linearize(
    ctx: Any, xs: Operands, active: tuple[bool, ...], *, program: Program | None, rule: JvpRule
) -> Linearized:
    """The rule runs once: what it computes without tangents is the function's result."""
    ys, residuals, linear, reached = _run_split(rule, xs, active)
    types = [y.type for y in ys]

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> Sequence[Any]:
        return spread(evaluate(linear, [*residuals, *dxs]), reached, types)

    return Linearized(ys, residuals, apply, key=linear)


def _run_split(
    rule: JvpRule, xs: Operands, active: Sequence[bool]
) -> tuple[list[Any], list[Array], Program, list[bool]]:
    """Run a rule with tangents in a trace of their own: its outputs, residuals, what makes of those and of the active
    tangents the tangents that are not zero, and which those are."""
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


class SplitJvp(NamedTuple):
    """A rule as programs. forward: primals -> (outputs..., residuals...). linear: (residuals..., active tangents...) ->
    tangents that are not zero. reached: which those are."""

    forward: Program
    linear: Program
    reached: list[bool]


def split_jvp(rule: JvpRule, types: Sequence[Type], active: Sequence[bool]) -> SplitJvp:
    """Stage a rule, its outputs apart from its tangents."""
    found: list[Any] = []

    def run(inputs: list[Any]) -> list[Operand]:
        ys, residuals, *found[:] = _run_split(rule, inputs, active)
        return [*ys, *residuals]

    forward = closed(stage(run, types, name=rule.name))
    return SplitJvp(forward, *found)


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

    new = JvpRule(rule.name, batched_rule)
    outputs = bind_all(custom_jvp_p, move_to_front(ctx, xs, axes), {"program": derived, "rule": new})
    return outputs, [0] * len(outputs)


custom_jvp_p = Primitive(
    name="custom_jvp",
    infer=lambda *types, program, rule: program.output_types,
    reference=lambda *values, program, rule: run_reference(program, values),
    jvp=Joint(_jvp_jvp), linearize=_jvp_linearize,
    transpose=NoRule("a custom_jvp function is not linear"), batch=_jvp_batch,
    lower=Structured("custom_jvp"), effects=_effects, multiple=True,
    laws={"text": "the user's rule is a Python function, which prints as its name"},
)  # fmt: skip


# custom_vjp


def _vjp_linearize(
    ctx: Any, xs: Operands, active: tuple[bool, ...], *, program: Program | None, rule: VjpRule
) -> Linearized:
    ys, residuals = rule.forward(xs, active)
    types, out_types = tuple(x.type for x in xs), [y.type for y in ys]
    moving = tuple(tangent_type(t) for t in out_types if is_differentiable(t))
    count = len(residuals)

    def apply(values: Sequence[Any], dxs: Sequence[Any]) -> Sequence[Any]:
        params = {"rule": rule, "types": types, "active": active, "results": moving, "residuals": count}
        given = iter(bind_all(custom_linear_p, [*values, *dxs], params))
        return [next(given) if is_differentiable(t) else Zero(tangent_type(t)) for t in out_types]

    return Linearized(ys, residuals, apply)


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

    def backward(residuals: Operands, cotangents: Sequence[Any]) -> list[Any]:
        lanes = [with_shape(x.type, x.type.shape[1:]) for x in (*residuals, *cotangents)]
        present = [not isinstance(c, Zero) for c in cotangents]
        with named_axis(name, size):
            staged, kept = stage_backward(rule, lanes[: len(residuals)], lanes[len(residuals) :], present)
        moving = len(residuals) + sum(present)
        flags = (False,) * len(staged.constants) + (True,) * moving
        mapped = transform(staged.program, flags, size, name, True).program
        given = iter(evaluate(mapped, [*staged.constants, *residuals, *nonzero(cotangents)]))
        results = [next(given) if on else None for on in kept]
        return [
            Zero(tangent_type(t)) if r is None else r if on else reduce_sum(r, (0,))
            for r, on, t in zip(results, batched, program.input_types, strict=True)
        ]

    new = VjpRule(rule.name, forward, backward)
    outputs = bind_all(custom_vjp_p, move_to_front(ctx, xs, axes), {"program": derived, "rule": new})
    return outputs, [0] * len(outputs)


def stage_forward(rule: VjpRule, types: Sequence[Type], active: tuple[bool, ...]) -> Staged:
    """The forward function as a program of xs -> (ys..., residuals...)."""
    return stage(
        lambda inputs: [y for part in rule.forward(inputs, active) for y in part], types, name=f"{rule.name}.forward"
    )


def stage_backward(
    rule: VjpRule, residuals: Sequence[Type], cotangents: Sequence[Type], present: Sequence[bool]
) -> tuple[Staged, list[bool]]:
    """The backward function as a program of (residuals..., present cotangents...), and which results are not zero."""
    kept: list[bool] = []

    def run(inputs: list[Any]) -> list[Operand]:
        given = iter(inputs[len(residuals) :])
        full = [next(given) if on else Zero(t) for on, t in zip(present, cotangents, strict=True)]
        results = rule.backward(inputs[: len(residuals)], full)
        kept.extend(not isinstance(r, Zero) for r in results)
        return nonzero(results)

    types = [*residuals, *(t for t, on in zip(cotangents, present, strict=True) if on)]
    return stage(run, types, name=f"{rule.name}.backward"), kept


custom_vjp_p = Primitive(
    name="custom_vjp",
    infer=lambda *types, program, rule: program.output_types,
    reference=lambda *values, program, rule: run_reference(program, values),
    jvp=NoRule("a custom_vjp function has a reverse rule only; use custom_jvp, or grad and vjp"),
    linearize=_vjp_linearize,
    transpose=NoRule("a custom_vjp function is not linear"), batch=_vjp_batch,
    lower=Structured("custom_vjp"), effects=_effects, multiple=True,
    laws={"text": "the user's rule is a Python function, which prints as its name"},
)  # fmt: skip


def evaluate_custom(primitive: Primitive, program: Program, rule: JvpRule | VjpRule, operands: Operands) -> list[Any]:
    """The equation again, at the current level."""
    return bind_all(primitive, operands, {"program": program, "rule": rule})


def _linear_transpose(
    ctx: Any, cts: Sequence[Any], xs: Sequence[Any], *, rule: VjpRule, types: tuple[Type, ...], active: Sequence[bool],
    results: tuple[Type, ...], residuals: int,
) -> list[Any]:  # fmt: skip
    """The user's backward function."""
    gradients = rule.backward(xs[:residuals], cts)
    moving = [g for g, on in zip(gradients, active, strict=True) if on]
    return [None] * residuals + [
        g if not isinstance(x, Linear) or not isinstance(g, Zero) else None
        for g, x in zip(moving, xs[residuals:], strict=True)
    ]


def _linear_forward(*values: Any, rule: VjpRule, **params: Any) -> NoReturn:
    raise NoRuleError(
        message(
            f"forward derivative of custom_vjp {rule.name}{here()}: its rule is for reverse mode only",
            help="use grad, vjp or jacrev, or give it a rule with custom_jvp",
        )
    )


custom_linear_p = Primitive(
    name="custom_linear",
    infer=lambda *inputs, results, **params: results,
    reference=_linear_forward,
    jvp=NoRule("the tangents of a custom_vjp function exist only to be transposed"),
    transpose=_linear_transpose,
    batch=NoRule("the tangents of a custom_vjp function exist only to be transposed; use jacrev, or custom_jvp"),
    lower=Composite(_linear_forward),
    multiple=True,
    laws={"all": "it stands in linear programs until they are transposed, and is never executed"},
)  # fmt: skip

CUSTOM = (custom_jvp_p, custom_vjp_p, custom_linear_p)
