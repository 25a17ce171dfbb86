"""`while_loop`: a body repeated while a condition holds.

Operands are (constants of the condition, constants of the body, carries). Forward derivatives carry tangents along.
Batching keeps a scalar condition if lanes agree. Else finished lanes are frozen until all are finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import CarryTypeError, NoRuleError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Eager, Effect, Joint, Linearized, Primitive, Structured
from tracer.ir.program import Program, Var
from tracer.ir.types import StackType, Type, array_type
from tracer.ir.visit import equations
from tracer.primitives.arrays.reductions.reductions import reduce_or
from tracer.primitives.base.nested_programs import (
    Axes,
    active_of,
    batched_of,
    effects_of,
    either,
    fixpoint,
    front_axes,
    handed_on,
    linear_carries,
    move_to_front,
    nonzero,
    pick,
    reached_outputs,
    spread,
)
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.rules import is_linear
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.primitives.control.divergence import mask_position
from tracer.primitives.control.for_loop import (
    batched_function,
    empty_stacks,
    linear_loop,
    pushing_body,
    repeated,
    split_body,
    where_live,
)
from tracer.primitives.control.reverse.partial_evaluation import transpose_parts
from tracer.primitives.control.reverse.rematerialization import economical
from tracer.primitives.control.reverse.sweeps import split_sweep
from tracer.primitives.control.safe_operands import in_live_lanes
from tracer.primitives.elementwise.arithmetic import add
from tracer.primitives.elementwise.bits import and_
from tracer.primitives.elementwise.stop_gradient import shared_scalars
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.trace import Operand, as_literal, bind_all


class _Parts(NamedTuple):
    """Operands by role."""

    cond_consts: list[Any]
    body_consts: list[Any]
    carry: list[Any]


def _split(values: Sequence[Any], cond_consts: int, body_consts: int) -> _Parts:
    first, second = cond_consts, cond_consts + body_consts
    return _Parts(list(values[:first]), list(values[first:second]), list(values[second:]))


def _infer(
    *types: Type, cond: Program, body: Program, cond_consts: int, body_consts: int, memory: int = 0
) -> tuple[Type, ...]:
    carry = tuple(types[cond_consts + body_consts :])
    if cond.output_types != (array_type(dtypes.BOOL, ()),):
        raise CarryTypeError(
            message(
                f"while_loop{here()}: the condition must return one bool[]",
                f"got ({', '.join(map(str, cond.output_types))})",
                help="compare, or reduce with .any() or .all()",
            )
        )
    if body.output_types != carry:
        raise CarryTypeError(
            message(
                f"while_loop{here()}: the body must return what it takes",
                f"takes ({', '.join(map(str, carry))})",
                f"returns ({', '.join(map(str, body.output_types))})",
                help="cast the carries so that they keep their types",
            )
        )
    return carry


def _reference(
    *values: Any, cond: Program, body: Program, cond_consts: int, body_consts: int, memory: int = 0
) -> list[Any]:
    parts = _split(values, cond_consts, body_consts)
    carry = parts.carry
    while bool(np.asarray(run_reference(cond, parts.cond_consts + carry)[0])):
        carry = run_reference(body, parts.body_consts + carry)
    return carry


def _jvp(
    ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], *, cond: Program, body: Program, cond_consts: int,
    body_consts: int, **limit: int,
) -> Any:  # fmt: skip
    parts, tangents = _split(xs, cond_consts, body_consts), _split(dxs, cond_consts, body_consts)
    active_consts, active = active_of(tangents.body_consts), active_of(tangents.carry)

    def step(flags: tuple[bool, ...]) -> tuple[Any, Sequence[bool]]:
        derived = ctx.transform(body, active_consts + flags, flags)
        return derived, derived.active_outputs

    derived, active = fixpoint(active, step)
    carry_tangents = [ctx.instantiate(t) for t, on in zip(tangents.carry, active, strict=True) if on]
    consts, carry, moving = body_consts, len(parts.carry), sum(active_consts)
    program = derived.program
    order = [*range(consts), *range(consts + carry, consts + carry + moving)]
    order += [*range(consts, consts + carry), *range(consts + carry + moving, len(program.inputs))]
    body = Program(tuple(program.inputs[i] for i in order), program.equations, program.outputs, body.name)
    unread = tuple(Var(t.type) for t in carry_tangents)
    cond = Program(cond.inputs + unread, cond.equations, cond.outputs, cond.name)
    results = bind_all(
        while_p,
        [*parts.cond_consts, *parts.body_consts, *nonzero(tangents.body_consts), *parts.carry, *carry_tangents],
        {"cond": cond, "body": body, "cond_consts": cond_consts, "body_consts": consts + moving, **limit},
    )
    return results[:carry], spread(results[carry:], active, [x.type for x in results[:carry]])


def _linearize(ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], *, memory: int = 0, **params: Any) -> Linearized:
    """Count the loop's steps and keep their residuals on stacks, which its linear part, a `for_loop`, reads."""
    if memory and _may_run_again(xs, params["cond"], params["body"]):
        return _repeatable(ctx, xs, active, memory, **params)
    if ctx.nested:
        outputs = bind_all(while_p, xs, params)
        return repeated(xs, active, outputs, lambda again: _stacked(ctx, again, active, **params))
    return _stacked(ctx, xs, active, **params)


def _may_run_again(xs: Sequence[Any], cond: Program, body: Program) -> bool:
    """Return whether a loop can be rerun from checkpoints: it holds no stacks, and has no input or output."""
    stacks = any(isinstance(x.type, StackType) for x in xs)
    return not stacks and Effect.IO not in cond.effects | body.effects


def _repeatable(
    ctx: Any, xs: Sequence[Any], active: Sequence[bool], memory: int, *, cond: Program, body: Program, cond_consts: int,
    body_consts: int,
) -> Linearized:  # fmt: skip
    """Linearise in bounded memory: the linear part reruns the loop from its operands, as does its transpose."""
    from tracer.primitives.control.reverse.bounded_reverse import loop_push_p  # noqa: PLC0415  # a cycle of two: loops of sweeps, sweeps of loops

    flags = _split(active, cond_consts, body_consts)
    split, moving = _split_moving(ctx, body, flags)
    symmetric = not any(e.primitive.name in ("custom_jvp", "custom_vjp") for e in equations(body))
    loop = split_body(split, body_consts, counted=False)
    tangents = (*flags.body_consts, *moving)
    sweep = split_sweep(loop, cond, cond_consts, body_consts, tangents, memory, symmetric)
    params = {"cond": cond, "body": body, "cond_consts": cond_consts, "body_consts": body_consts, "memory": memory}
    results = bind_all(while_p, xs, params)
    types, carry_types = [x.type for x in xs], [y.type for y in results]

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        given = _split(spread(dxs, active, types), cond_consts, body_consts)
        d_carry = [ctx.instantiate(t) for t, on in zip(given.carry, moving, strict=True) if on]
        operands = [*residuals, *nonzero(given.body_consts), *d_carry]
        return spread(bind_all(loop_push_p, operands, sweep.params), moving, carry_types)

    return Linearized(results, list(xs), apply)


def _split_moving(ctx: Any, body: Program, flags: _Parts) -> tuple[Any, tuple[bool, ...]]:
    """Return the body split for reverse mode, and which carries move."""

    def step(moving: tuple[bool, ...]) -> tuple[Any, Sequence[bool]]:
        split = ctx.transform(body, (*flags.body_consts, *moving), moving, nested=True)
        return split, split.active_outputs

    split, moving = fixpoint(tuple(flags.carry), step)
    at_hand = [True] * len(flags.body_consts) + [False] * len(moving)
    return economical(split, len(moving), at_hand), moving


def _stacked(
    ctx: Any, xs: Sequence[Any], active: Sequence[bool], *, cond: Program, body: Program, cond_consts: int,
    body_consts: int,
) -> Linearized:  # fmt: skip
    parts, flags = _split(xs, cond_consts, body_consts), _split(active, cond_consts, body_consts)
    split, moving = _split_moving(ctx, body, flags)
    loop = split_body(split, body_consts, counted=False)
    pushing, carries = pushing_body(loop), len(parts.carry)
    counting = _counting(pushing)
    start = as_literal(0, dtypes.I64)
    entry = [*parts.carry, *empty_stacks(loop), start]
    unread = tuple(Var(t) for t in counting.input_types[body_consts + carries :])
    longer = Program(cond.inputs + unread, cond.equations, cond.outputs, cond.name)
    results = while_program(longer, counting, parts.cond_consts, parts.body_consts, entry)
    types, const_types = [x.type for x in parts.carry], [x.type for x in parts.body_consts]
    xs_types = [x.type for x in xs]

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        tangents = spread(dxs, active, xs_types)
        parted = _split(tangents, cond_consts, body_consts)
        d_carry = [ctx.instantiate(t) for t, on in zip(parted.carry, moving, strict=True) if on]
        moved = [*nonzero(parted.body_consts), *d_carry]
        fixed, stacks, count = residuals[: len(const_types)], residuals[len(const_types) : -1], residuals[-1]
        return spread(linear_loop(loop, fixed, stacks, count, moved, len(d_carry), False), moving, types)

    return Linearized(results[:carries], [*parts.body_consts, *results[carries:]], apply)


def _counting(body: Program) -> Program:
    """Return the body with a step counter as its last carry."""

    def run(inputs: list[Array]) -> list[Operand]:
        return [*evaluate(body, inputs[:-1]), add(inputs[-1], 1)]

    return stage(run, [*body.input_types, array_type(dtypes.I64, ())], name=body.name).program


def _transpose(
    ctx: Any, cts: Sequence[Any], xs: Sequence[Any], *, cond: Program, body: Program, cond_consts: int, **params: Any
) -> list[Any]:
    """Transpose as many linear steps as the loop takes. Raises NoRuleError if its condition reads linear values."""
    given = _split([is_linear(x) for x in xs], cond_consts, params["body_consts"])
    carry = linear_carries(body, given.body_consts, given.carry)
    if any(reached_outputs(cond, (*given.cond_consts, *carry))):
        raise NoRuleError(
            message(
                f"transpose of while_loop{here()}: while_loop is not linear",
                "its condition reads transposed values",
                help="vjp differentiates functions that are not linear",
            )
        )
    rule = partial(_linearize, cond=cond, body=body, cond_consts=cond_consts, **params)
    return transpose_parts(ctx, cts, xs, rule)


def _batch(
    ctx: Any, xs: Sequence[Any], axes: Axes, *, cond: Program, body: Program, cond_consts: int, body_consts: int,
    **limit: int,
) -> Any:  # fmt: skip
    flags = _split(batched_of(axes), cond_consts, body_consts)
    parts = _split(move_to_front(ctx, xs, axes), cond_consts, body_consts)
    in_cond, in_body = tuple(flags.cond_consts), tuple(flags.body_consts)

    def step(carry: tuple[bool, ...]) -> tuple[Any, Sequence[bool]]:
        new_body = ctx.transform(body, in_body + carry, ctx.size, ctx.axis_name, carry)
        new_cond = ctx.transform(cond, in_cond + carry, ctx.size, ctx.axis_name)
        divergent = new_cond.batched_outputs[0]
        return (new_body, new_cond, divergent), (True,) * len(carry) if divergent else new_body.batched_outputs

    (new_body, new_cond, divergent), carry = fixpoint(tuple(flags.carry), step)
    entry = [
        x if was or not now else ctx.to_front(x, None)
        for x, was, now in zip(parts.carry, flags.carry, carry, strict=True)
    ]
    if divergent:
        places = range(body_consts, len(body.inputs))
        still = [n == k and not on for n, k, on in zip(handed_on(body), places, flags.carry, strict=True)]
        if any(still):
            return _batch_moving(ctx, xs, axes, still, cond=cond, body=body, cond_consts=cond_consts, **limit)
        parts = parts._replace(carry=entry)
        mask = mask_position({"cond": cond, "body": body, "cond_consts": cond_consts, "body_consts": body_consts})
        if mask is None:
            return _batch_lanes(ctx, cond, body, parts, in_cond, in_body, limit), [0] * len(entry)
        return _more_lanes(mask, new_body.program, parts, limit), [0] * len(entry)
    operands = [*parts.cond_consts, *parts.body_consts, *entry]
    params = {"cond": new_cond.program, "body": new_body.program, "cond_consts": cond_consts, **limit}
    return bind_all(while_p, operands, {**params, "body_consts": body_consts}), front_axes(carry)


def _batch_moving(
    ctx: Any, xs: Sequence[Any], axes: Axes, still: Sequence[bool], *, cond: Program, body: Program, cond_consts: int,
    **limit: Any,
) -> Any:  # fmt: skip
    """Batch a loop with the carries that it hands on unchanged, which all lanes share, as constants."""
    body_consts = len(body.inputs) - len(still)
    moving = [not on for on in still]

    def constants_first(program: Program, count: int) -> tuple[Var, ...]:
        carry = program.inputs[count:]
        return (*program.inputs[:count], *pick(carry, still), *pick(carry, moving))

    def placed(values: Sequence[Any]) -> list[Any]:
        given = _split(values, cond_consts, body_consts)
        held = pick(given.carry, still)
        return [*given.cond_consts, *held, *given.body_consts, *held, *pick(given.carry, moving)]

    results, found = _batch(
        ctx, placed(xs), placed(axes), cond=replace(cond, inputs=constants_first(cond, cond_consts)),
        body=replace(body, inputs=constants_first(body, body_consts), outputs=tuple(pick(body.outputs, moving))),
        cond_consts=cond_consts + sum(still), body_consts=body_consts + sum(still), **limit,
    )  # fmt: skip
    entry = _split(xs, cond_consts, body_consts).carry
    given = iter(zip(results, found, strict=True))
    rows = [(x, None) if on else next(given) for x, on in zip(entry, still, strict=True)]
    return [y for y, _ in rows], [axis for _, axis in rows]


def _batch_lanes(
    ctx: Any, cond: Program, body: Program, parts: _Parts, in_cond: tuple[bool, ...], in_body: tuple[bool, ...],
    limit: Mapping[str, int],
) -> list[Any]:  # fmt: skip
    """Run the loop while any lane lives, with the mask of live lanes among the carries."""
    lanes = (True,) * len(parts.carry)
    parts, in_body = _spread_scalars(ctx, parts, in_body)
    step = batched_function(ctx, body, in_body + lanes)
    test = batched_function(ctx, cond, in_cond + lanes)
    everyone = broadcast_in_dim(True, (ctx.size,), ())
    (alive,) = test(everyone, parts.cond_consts + parts.carry)
    consts = parts.cond_consts + parts.body_consts
    first, second = len(parts.cond_consts), len(consts)

    def run(inputs: list[Array]) -> list[Operand]:
        mask, carry = inputs[second], list(inputs[second + 1 :])
        stepped = step(mask, in_live_lanes(mask, [*inputs[first:second], *carry], in_body + lanes, body))
        carry = [where_live(mask, y, x) for x, y in zip(carry, stepped, strict=True)]
        (going,) = test(mask, [*inputs[:first], *carry])
        return [and_(mask, going), *carry]

    new_carry = [alive, *parts.carry]
    new_body = stage(run, [x.type for x in [*consts, *new_carry]], name=body.name).program
    new_cond = stage(lambda inputs: [reduce_or(inputs[0], (0,))], [x.type for x in new_carry], name=cond.name).program
    params = {"cond": new_cond, "body": new_body, "cond_consts": 0, "body_consts": len(consts), **limit}
    return bind_all(while_p, [*consts, *new_carry], params)[1:]


def _more_lanes(mask: int, body: Program, parts: _Parts, limit: Mapping[str, int]) -> list[Any]:
    """Batch a divergent loop: it runs on more lanes, while any of them lives."""
    axes = tuple(range(len(parts.carry[mask].type.shape)))
    types = [x.type for x in parts.carry]
    cond = stage(lambda inputs: [reduce_or(inputs[mask], axes)], types, name=body.name).program
    params = {"cond": cond, "body": body, "cond_consts": 0, "body_consts": len(parts.body_consts), **limit}
    return bind_all(while_p, [*parts.body_consts, *parts.carry], params)


def _spread_scalars(ctx: Any, parts: _Parts, in_body: tuple[bool, ...]) -> tuple[_Parts, tuple[bool, ...]]:
    """Copy scalars that all lanes share for each lane, so that finished lanes drop out of their gradients."""
    shared = shared_scalars(parts.body_consts, in_body)
    consts = [ctx.to_front(x, None) if new else x for x, new in zip(parts.body_consts, shared, strict=True)]
    return parts._replace(body_consts=consts), either(in_body, shared)


while_p = Primitive(
    name="while_loop", infer=_infer, reference=_reference,
    jvp=Joint(_jvp), linearize=_linearize,
    transpose=_transpose, batch=_batch,
    lower=Structured("while"), effects=effects_of("cond", "body"), multiple=True, eager=Eager.COMPILED,
)  # fmt: skip


def while_program(
    cond: Program, body: Program, cond_consts: Sequence[Operand], body_consts: Sequence[Operand],
    carry: Sequence[Operand], *, memory: int = 0,
) -> list[Array]:  # fmt: skip
    """Run body(*body_consts, *carry) on the carries while cond(*cond_consts, *carry) holds.

    memory: bytes that its reverse derivative may use for residuals of the steps; 0 for no limit.
    """
    params = {"cond": cond, "body": body, "cond_consts": len(cond_consts), "body_consts": len(body_consts)}
    if memory:
        params["memory"] = memory
    return bind_all(while_p, [*cond_consts, *body_consts, *carry], params)


LOOPS = (while_p,)
