"""`custom_vmap`: a function with the user's batching rule, and a call otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tracer.ir.primitive import Eager, Joint, Linearized, Primitive, Structured
from tracer.ir.program import Program
from tracer.primitives.base.nested_programs import (
    Axes,
    active_of,
    batched_of,
    effects_of,
    front_axes,
    move_to_front,
    nonzero,
    pick,
    spread,
)
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.primitives.control.calls import call_p
from tracer.primitives.control.custom.rule_functions import Operands, UserRule
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage
from tracer.trace.trace import Operand, bind_all

Flags = Sequence[bool]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VmapRule(UserRule):
    """Batching rule: rule(size, batched, xs) -> (ys, their flags). Batch axes come first."""

    rule: Callable[[int, Flags, Operands], tuple[list[Any], list[bool]]]


def shifted_vmap(rule: VmapRule, count: int) -> VmapRule:
    """Return the rule of a program with `count` more operands at the front, which the rule does not see."""
    return VmapRule(rule.name, lambda size, batched, xs: rule.rule(size, batched[count:], xs[count:]))


def _jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], *, program: Program, rule: VmapRule) -> Any:
    """Differentiate the function and its batching rule."""
    active = active_of(dxs)
    derived = ctx.transform(program, active)
    new = VmapRule(rule.name, _tangent_rule(ctx.transform, rule, active, derived.active_outputs))
    results = bind_all(custom_vmap_p, [*xs, *nonzero(dxs)], {"program": derived.program, "rule": new})
    count = len(program.outputs)
    return results[:count], spread(results[count:], derived.active_outputs, program.output_types)


def _tangent_rule(
    transform: Callable[..., Any], rule: VmapRule, active: tuple[bool, ...], reached: tuple[bool, ...]
) -> Callable[[int, Flags, Operands], tuple[list[Any], list[bool]]]:
    """Differentiate a batching rule. Primals and tangents are batched together, as are outputs and tangents."""
    count = len(active)

    def tangent_rule(size: int, batched: Flags, operands: Operands) -> tuple[list[Any], list[bool]]:
        moving = iter(batched[count:])
        together = [(on and next(moving)) or flag for flag, on in zip(batched[:count], active, strict=True)]
        wanted = [*together, *pick(together, active)]
        given = [_spread(x, size) if on and not was else x
                 for x, on, was in zip(operands, wanted, batched, strict=True)]  # fmt: skip
        found: list[bool] = []

        def run(inputs: list[Any]) -> list[Operand]:
            ys, flags = rule.rule(size, together, inputs)
            found.extend(flags)
            return ys

        staged = stage(run, [x.type for x in given[:count]], name=rule.name)
        fixed = (False,) * len(staged.constants)
        derived = transform(staged.program, (*fixed, *active), reached)
        results = evaluate(derived.program, [*staged.constants, *given])
        outputs = len(found)
        tangents = iter(results[outputs:])
        dys = [next(tangents) if on else None for on in derived.active_outputs]
        return [*results[:outputs], *pick(dys, reached)], [*found, *pick(found, reached)]

    return tangent_rule


def _spread(x: Operand, size: int) -> Any:
    shape = x.type.shape
    return broadcast_in_dim(x, (size, *shape), tuple(range(1, len(shape) + 1)))


def _linearize(
    ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], *, program: Program, rule: VmapRule
) -> Linearized:
    """Linearise the function itself, without its batching rule."""
    assert call_p.linearize is not None
    result: Linearized = call_p.linearize(ctx, xs, active, program=program, inline=True)
    return result


def _transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any], *, program: Program, rule: VmapRule) -> Any:
    assert callable(call_p.transpose)
    return call_p.transpose(ctx, cts, xs, program=program, inline=True)


def _batch(ctx: Any, xs: Sequence[Any], axes: Axes, *, program: Program, rule: VmapRule) -> Any:
    outputs, batched = rule.rule(ctx.size, batched_of(axes), move_to_front(ctx, xs, axes))
    return outputs, front_axes(batched)


custom_vmap_p = Primitive(
    name="custom_vmap",
    infer=lambda *types, program, rule: program.output_types,
    reference=lambda *values, program, rule: run_reference(program, values),
    jvp=Joint(_jvp), linearize=_linearize, transpose=_transpose, batch=_batch,
    lower=Structured("call"), effects=effects_of("program"), multiple=True, eager=Eager.COMPILED,
    laws={"text": "the user's rule is a Python function, which prints as its name"},
)  # fmt: skip

CUSTOM_BATCHING = (custom_vmap_p,)
