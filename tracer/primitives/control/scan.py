"""`scan`: a body repeated along the leading axis of arrays, with carries and stacked outputs.

Operands are (constants, carries, xs). The body maps (constants, carries, slices of xs) to (carries, slices of ys). Its
linear part is a scan, and the transpose of that is a scan in the other direction. Residuals are stacked unless they are
the same at every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import CarryTypeError, ShapeError, message
from tracer.ir.linearized import LinearizedProgram
from tracer.ir.primitive import Eager, Effect, Joint, Linearized, Primitive, Structured
from tracer.ir.program import Atom, Program
from tracer.ir.types import Type, storage_type, with_shape
from tracer.ir.visit import live_equations
from tracer.primitives.base.nested_programs import (
    Axes,
    active_of,
    batched_of,
    effects_of,
    fixpoint,
    linear_carries,
    nonzero,
    pick,
    spread,
)
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.rules import is_linear
from tracer.primitives.base.shapes import moveaxis
from tracer.primitives.control.reverse.partial_evaluation import split_linear
from tracer.primitives.control.reverse.rematerialization import economical
from tracer.primitives.control.reverse.residual_stacks import claimed
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.trace import Operand, bind_all


class Parts(NamedTuple):
    """Values by role."""

    consts: Any
    carry: Any
    xs: Any


def split_parts(values: Sequence[Any], consts: int, carries: int) -> Parts:
    values = tuple(values)
    return Parts(values[:consts], values[consts : consts + carries], values[consts + carries :])


def slice_type(type: Type) -> Type:
    return with_shape(type, type.shape[1:])


def stacked_type(type: Type, length: int) -> Type:
    return with_shape(type, (length, *type.shape))


def _infer(
    *types: Type, body: Program, length: int, reverse: bool, consts: int, carries: int, unroll: int = 1
) -> tuple[Type, ...]:
    parts = split_parts(types, consts, carries)
    for type in parts.xs:
        if not type.shape or type.shape[0] != length:
            raise ShapeError(message(f"scan{here()}: xs must have {length} steps along axis 0", f"got {type}"))
    if body.output_types[:carries] != parts.carry:
        raise CarryTypeError(
            message(
                f"scan{here()}: the body must return the carries it takes",
                f"takes ({', '.join(map(str, parts.carry))})",
                f"returns ({', '.join(map(str, body.output_types[:carries]))})",
                help="cast the carries so that they keep their types",
            )
        )
    return (*parts.carry, *(stacked_type(t, length) for t in body.output_types[carries:]))


def _reference(
    *values: Any, body: Program, length: int, reverse: bool, consts: int, carries: int, unroll: int = 1
) -> list[Any]:
    parts = split_parts(values, consts, carries)
    carry = list(parts.carry)
    rows: list[list[Any]] = []
    for step in reversed(range(length)) if reverse else range(length):
        outputs = run_reference(body, [*parts.consts, *carry, *(np.asarray(x[step]) for x in parts.xs)])
        carry = outputs[:carries]
        rows.append(outputs[carries:])
    if reverse:
        rows.reverse()
    if rows:
        return carry + [np.stack(column) for column in zip(*rows, strict=True)]
    empty = [storage_type(stacked_type(t, 0)) for t in body.output_types[carries:]]
    return carry + [np.zeros(t.shape, t.dtype) for t in empty]


def _active_fixpoint(ctx: Any, body: Program, parts: Parts, **options: Any) -> tuple[Any, tuple[bool, ...]]:
    """Return the transformed body and which carries move, on entry or by the body."""
    active = parts.carry
    ys = len(body.outputs) - len(active)

    def step(flags: tuple[bool, ...]) -> tuple[Any, Sequence[bool]]:
        derived = ctx.transform(body, parts.consts + flags + parts.xs, flags + (False,) * ys, **options)
        return derived, derived.active_outputs[: len(flags)]

    return fixpoint(active, step)


def _jvp(
    ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], *, body: Program, consts: int, carries: int, **params: Any
) -> Any:
    tangents = split_parts(dxs, consts, carries)
    primals = split_parts(xs, consts, carries)
    derived, active = _active_fixpoint(ctx, body, split_parts(active_of(dxs), consts, carries))
    d_consts, d_xs = nonzero(tangents.consts), nonzero(tangents.xs)
    d_carry = [ctx.instantiate(t) for t, on in zip(tangents.carry, active, strict=True) if on]
    inputs, count = derived.program.inputs, len(body.inputs)
    old = split_parts(inputs[:count], consts, carries)
    new = split_parts(inputs[count:], len(d_consts), len(d_carry))
    outputs, total = derived.program.outputs, len(body.outputs)
    moved = total + len(d_carry)
    program = Program(
        (*old.consts, *new.consts, *old.carry, *new.carry, *old.xs, *new.xs),
        derived.program.equations,
        (*outputs[:carries], *outputs[total:moved], *outputs[carries:total], *outputs[moved:]),
        body.name,
    )  # fmt: skip
    operands = [*primals.consts, *d_consts, *primals.carry, *d_carry, *primals.xs, *d_xs]
    counts = {"consts": consts + len(d_consts), "carries": carries + len(d_carry)}
    results = bind_all(scan_p, operands, {"body": program, **counts, **params})
    a, b, c = carries, carries + len(d_carry), total + len(d_carry)
    ys = [*results[:a], *results[b:c]]
    return ys, spread([*results[a:b], *results[c:]], derived.active_outputs, [y.type for y in ys])


def _linearize(
    ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], *, body: Program, consts: int, carries: int, **params: Any
) -> Linearized:
    flags = split_parts(active, consts, carries)
    split, moving = _active_fixpoint(ctx, body, flags, nested=True)
    at_hand = [True] * consts + [False] * carries + [True] * len(flags.xs)
    split = economical(split, carries, at_hand)
    forward, total = split.forward, len(body.outputs)
    fixed, stacked, extra = _place_residuals(split, body, consts, carries)
    extended = Program(forward.inputs, forward.equations, (*forward.outputs[:total], *extra), forward.name)
    results = bind_all(scan_p, xs, {"body": extended, "consts": consts, "carries": carries, **params})
    available = {"const": xs[:consts], "x": xs[consts + carries :], "y": results[carries:]}
    residuals = [available[kind][i] for kind, i, _ in (*fixed, *stacked)]
    linear = _linear_body(split.linear, fixed, stacked, flags, moving)
    operand_types, types = [x.type for x in xs], [y.type for y in results[:total]]

    def apply(values: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        tangents = spread(dxs, active, operand_types)
        parts = split_parts(tangents, consts, carries)
        d_carry = [ctx.instantiate(t) for t, on in zip(parts.carry, moving, strict=True) if on]
        operands = [*values[: len(fixed)], *nonzero(parts.consts), *d_carry, *values[len(fixed) :], *nonzero(parts.xs)]
        counts = {"consts": len(fixed) + sum(flags.consts), "carries": len(d_carry)}
        return spread(bind_all(scan_p, operands, {"body": linear, **counts, **params}), split.active_outputs, types)

    return Linearized(results[:total], residuals, apply)


Place = tuple[str, int, int]  # location of the value after the forward scan, its index there, the residual's number


def _place_residuals(
    split: LinearizedProgram, body: Program, consts: int, carries: int
) -> tuple[list[Place], list[Place], list[Atom]]:
    """Return residuals that never change, residuals of each step, and the atoms the forward body must return."""
    fixed: list[Place] = []
    stacked: list[Place] = []
    extra: list[Atom] = []
    ys = len(body.outputs) - carries
    forward = split.forward
    for number, (kind, position) in enumerate(split.sources):
        if kind == "input" and position < consts:
            fixed.append(("const", position, number))
        elif kind == "input" and position >= consts + carries:
            stacked.append(("x", position - consts - carries, number))
        elif kind == "output" and position >= carries:
            stacked.append(("y", position - carries, number))
        else:
            atom: Atom = (
                forward.inputs[position]
                if kind == "input"
                else forward.outputs[position if kind == "output" else len(body.outputs) + position]
            )
            stacked.append(("y", ys + len(extra), number))
            extra.append(atom)
    return fixed, stacked, extra


def _linear_body(
    linear: Program, fixed: Sequence[Place], stacked: Sequence[Place], flags: Parts, moving: Sequence[bool]
) -> Program:
    """Reorder the inputs to (fixed residuals, tangents of constants, of carries, stacked residuals, tangents of xs)."""
    count = len(fixed) + len(stacked)
    residuals, tangents = linear.inputs[:count], linear.inputs[count:]
    parts = split_parts(tangents, sum(flags.consts), sum(moving))
    inputs = (
        *(residuals[number] for _, _, number in fixed), *parts.consts, *parts.carry,
        *(residuals[number] for _, _, number in stacked), *parts.xs,
    )  # fmt: skip
    return Program(inputs, linear.equations, linear.outputs, linear.name)


def _transpose(
    ctx: Any, cts: Sequence[Any], xs: Sequence[Any], *, body: Program, consts: int, carries: int, reverse: bool,
    **params: Any,
) -> list[Any]:  # fmt: skip
    """Scan the other way: carry the cotangents of the constants and carries, and yield the cotangents of the xs."""
    given = split_parts(tuple(map(is_linear, xs)), consts, carries)
    flags = given._replace(carry=linear_carries(body, given.consts, given.carry, given.xs))
    if not all(flags.carry):
        return _transpose_beside_known(ctx, cts, xs, flags, body=body, consts=consts, reverse=reverse, **params)
    linear = (*flags.consts, *flags.carry, *flags.xs)
    known = split_parts([None if on else x for x, on in zip(xs, linear, strict=True)], consts, carries)
    known_consts = pick(known.consts, [not on for on in flags.consts])
    known_xs = pick(known.xs, [not on for on in flags.xs])
    active = (True,) * carries + active_of(cts[carries:])
    summed = (*[True] * sum(flags.consts), *[False] * (carries + sum(flags.xs)))
    derived = ctx.transform(body, linear, active, True, summed).program
    ct_consts = claimed(ctx, range(consts), xs)
    ct_carry = [ctx.instantiate(ct) for ct in cts[:carries]]
    ct_ys = nonzero(cts[carries:])
    a, b = len(known_consts), len(ct_consts)
    fixed, slices, rest = derived.inputs[:a], derived.inputs[a : a + len(known_xs)], derived.inputs[a + len(known_xs) :]
    inputs = (*fixed, *rest[: b + carries], *slices, *rest[b + carries :])
    program = replace(derived, inputs=inputs)
    operands = [*known_consts, *ct_consts, *ct_carry, *known_xs, *ct_ys]
    new = {"body": program, "consts": a, "carries": b + carries, "reverse": not reverse, **params}
    results = iter(bind_all(scan_p, operands, new))
    found = [next(results) if on else None for on in linear]
    return [ct if is_linear(x) else None for ct, x in zip(found, xs, strict=True)]


def _at(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """Return the values where the flags are set, None elsewhere."""
    given = iter(values)
    return [next(given) if on else None for on in flags]


def _transpose_beside_known(
    ctx: Any, cts: Sequence[Any], xs: Sequence[Any], flags: Parts, *, body: Program, consts: int, **params: Any
) -> list[Any]:
    """Transpose a scan with carries that depend on nothing linear, such as counters: they run first, and come as xs."""
    carries = len(flags.carry)
    known = [not on for on in flags.carry]
    inputs, outputs = split_parts(body.inputs, consts, carries), body.outputs
    operands, arriving = split_parts(xs, consts, carries), split_parts(cts, 0, carries)
    linear = (*flags.consts, *flags.carry, *flags.xs)
    told = split_parts([not on for on in linear], consts, carries)
    forward = split_linear(body, linear, nested=False).forward
    entering = split_parts(forward.inputs, consts, carries)
    counting = Program(
        (*pick(entering.consts, told.consts), *pick(entering.carry, known), *pick(entering.xs, told.xs)),
        forward.equations, (*pick(forward.outputs[:carries], known), *pick(entering.carry, known)), body.name,
    )  # fmt: skip
    counting = replace(counting, equations=live_equations(counting, lambda e: Effect.IO in e.effects))
    before = scan_program(
        counting, pick(operands.consts, told.consts), pick(operands.carry, known), pick(operands.xs, told.xs), **params
    )[sum(known) :]
    rest = Program(
        (*inputs.consts, *pick(inputs.carry, flags.carry), *inputs.xs, *pick(inputs.carry, known)),
        body.equations, (*pick(outputs[:carries], flags.carry), *outputs[carries:]), body.name,
    )  # fmt: skip
    found = _transpose(
        ctx, [*pick(arriving.carry, flags.carry), *arriving.xs],
        [*operands.consts, *pick(operands.carry, flags.carry), *operands.xs, *before],
        body=replace(rest, equations=live_equations(rest)), consts=consts, carries=sum(flags.carry), **params,
    )  # fmt: skip
    parts = split_parts(found, consts, sum(flags.carry))
    return [*parts.consts, *_at(parts.carry, flags.carry), *parts.xs[: len(operands.xs)]]


def _batch(ctx: Any, xs: Sequence[Any], axes: Axes, *, body: Program, consts: int, carries: int, **params: Any) -> Any:
    flags = split_parts(batched_of(axes), consts, carries)
    ys = len(body.outputs) - carries

    def step(carry: tuple[bool, ...]) -> tuple[Any, Sequence[bool]]:
        given = flags.consts + carry + flags.xs
        derived = ctx.transform(body, given, ctx.size, ctx.axis_name, carry + (False,) * ys)
        return derived, derived.batched_outputs[:carries]

    derived, carry = fixpoint(flags.carry, step)
    parts, part_axes = split_parts(xs, consts, carries), split_parts(axes, consts, carries)
    operands = [
        x if axis is None else ctx.to_front(x, axis) for x, axis in zip(parts.consts, part_axes.consts, strict=True)
    ]
    operands += [
        ctx.to_front(x, axis) if on else x for x, axis, on in zip(parts.carry, part_axes.carry, carry, strict=True)
    ]
    operands += [x if axis is None else moveaxis(x, axis, 1) for x, axis in zip(parts.xs, part_axes.xs, strict=True)]
    results = bind_all(scan_p, operands, {"body": derived.program, "consts": consts, "carries": carries, **params})
    out_axes = [0 if on else None for on in derived.batched_outputs[:carries]]
    return results, out_axes + [1 if on else None for on in derived.batched_outputs[carries:]]


scan_p = Primitive(
    name="scan", infer=_infer, reference=_reference,
    jvp=Joint(_jvp), linearize=_linearize, transpose=_transpose, batch=_batch,
    lower=Structured("scan"), effects=effects_of("body"), multiple=True, eager=Eager.COMPILED,
)  # fmt: skip


def scan_program(
    body: Program, consts: Sequence[Operand], carry: Sequence[Operand], xs: Sequence[Operand], *, length: int,
    reverse: bool = False, unroll: int = 1,
) -> list[Array]:  # fmt: skip
    """Run body(*consts, *carry, *slices) along axis 0 of xs. Returns the last carries and the stacked ys.

    unroll: the number of steps per iteration of the compiled loop.
    """
    params = {"body": body, "length": length, "reverse": reverse, "consts": len(consts), "carries": len(carry)}
    if unroll > 1:
        params["unroll"] = unroll
    return bind_all(scan_p, [*consts, *carry, *xs], params)


SCAN = (scan_p,)
