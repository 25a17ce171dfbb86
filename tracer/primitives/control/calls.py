"""`call`: a nested program run as one equation."""

from __future__ import annotations

from collections.abc import Sequence
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
    spread,
    transpose_nested,
)
from tracer.primitives.base.reference import run_reference
from tracer.trace.array import Array
from tracer.trace.trace import Operand, bind_all


def _jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], *, program: Program, inline: bool) -> Any:
    derived = ctx.transform(program, active_of(dxs))
    results = call(derived.program, *xs, *nonzero(dxs), inline=inline)
    count = len(program.outputs)
    return results[:count], spread(results[count:], derived.active_outputs, program.output_types)


def _linearize(ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], *, program: Program, inline: bool) -> Linearized:
    split = ctx.transform(program, active)
    results = call(split.forward, *xs, inline=inline)

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        dys = call(split.linear, *residuals, *dxs, inline=inline)
        return spread(dys, split.active_outputs, program.output_types)

    return Linearized(results[: len(program.outputs)], split.residuals(xs, results), apply)


def transpose_call(ctx: Any, cts: Sequence[Any], xs: Sequence[Any], *, program: Program, inline: bool) -> list[Any]:
    """Bind a call of the transposed program."""
    return transpose_nested(ctx, cts, xs, program, lambda derived, operands: call(derived, *operands, inline=inline))


def _batch(ctx: Any, xs: Sequence[Any], axes: Axes, *, program: Program, inline: bool) -> Any:
    derived = ctx.transform(program, batched_of(axes), ctx.size, ctx.axis_name)
    outputs = call(derived.program, *move_to_front(ctx, xs, axes), inline=inline)
    return outputs, front_axes(derived.batched_outputs)


call_p = Primitive(
    name="call",
    infer=lambda *types, program, inline: program.output_types,
    reference=lambda *values, program, inline: run_reference(program, values),
    jvp=Joint(_jvp), linearize=_linearize, transpose=transpose_call, batch=_batch,
    lower=Structured("call"), effects=effects_of("program"), multiple=True, eager=Eager.COMPILED,
)  # fmt: skip


def call(program: Program, *operands: Operand, inline: bool = True) -> list[Array]:
    """Run a nested program. inline: whether the optimiser may put its equations in place of the call."""
    return bind_all(call_p, operands, {"program": program, "inline": inline})


CALLS = (call_p,)
