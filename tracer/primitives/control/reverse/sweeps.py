"""Sweeps: a loop in the form its derivative needs, one pass forwards and one back; and their batching.

With x the carries, c the constants and r a step's residuals, all of a sweep's programs are closed:

    cond(cond_consts, x) -> bool[]              forward(c, x) -> x, r
    linear(c, r, dc, dx) -> dx                  backward(c, r, ct c, ct x) -> ct c, ct x

`backward` is the transpose of `linear` that adds to the cotangents of the constants. So a step that reads one element
of an array adds to this element's cotangent. Only the constants and carries flagged in `moving` have tangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracer.ir.program import Program
from tracer.ir.types import Type, with_shape
from tracer.primitives.arrays.reductions.reductions import reduce_or
from tracer.primitives.base.nested_programs import fixpoint
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.primitives.control.for_loop import LoopSplit, batched_function, where_live
from tracer.primitives.elementwise.bits import and_
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage
from tracer.trace.trace import Operand

Flags = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Loop in the form of the module's docstring. `backward` is None before transposition.

    moving: flags of the constants and the carries. memory: bytes for residuals and checkpoints. symmetric: whether
    second derivatives are known to be symmetric, as they are without custom rules; otherwise `adjoint` transposes them.
    """

    cond: Program
    forward: Program
    linear: Program
    backward: Program | None
    cond_consts: int
    consts: int
    moving: Flags
    memory: int
    symmetric: bool

    @property
    def carries(self) -> int:
        return len(self.moving) - self.consts

    @property
    def moving_consts(self) -> Flags:
        return self.moving[: self.consts]

    @property
    def moving_carries(self) -> Flags:
        return self.moving[self.consts :]

    @property
    def residual_types(self) -> tuple[Type, ...]:
        return self.forward.output_types[self.carries :]

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of an equation. `backward` is absent if it is None."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in found.items() if value is not None}

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Return operands by role: constants of the condition, constants, carries, and further operands."""
        first, second = self.cond_consts, self.cond_consts + self.consts
        third = second + self.carries
        return list(values[:first]), list(values[first:second]), list(values[second:third]), list(values[third:])


def sweep_of(params: dict[str, Any]) -> Sweep:
    """Return the sweep that an equation's parameters describe."""
    return Sweep(**{"backward": None, **params})


def split_sweep(
    loop: LoopSplit, cond: Program, cond_consts: int, consts: int, moving: Flags, memory: int, symmetric: bool
) -> Sweep:
    """Return the sweep of a while_loop whose body is split for reverse mode."""
    split, count = loop.split, len(loop.split.active_outputs)
    forward = split.forward
    kept = Program(forward.inputs, forward.equations, (*forward.outputs[:count], *loop.pushed), forward.name)
    fixed = list(forward.input_types[:consts])
    pushed = [atom.type for atom in loop.pushed]

    def run(inputs: list[Any]) -> list[Operand]:
        available = {"const": inputs[:consts], "stack": inputs[consts : consts + len(pushed)]}
        residuals = [available[kind][i] for kind, i in loop.places]
        return evaluate(split.linear, [*residuals, *inputs[consts + len(pushed) :]])

    tangents = split.linear.input_types[len(loop.places) :]
    linear = stage(run, [*fixed, *pushed, *tangents], name=split.linear.name).program
    return Sweep(cond, kept, linear, None, cond_consts, consts, moving, memory, symmetric)


def batched_sweep(ctx: Any, sweep: Sweep, operands: Sequence[Any], batched: Flags) -> tuple[Sweep, list[Any]]:
    """Return the sweep over batches, all tangents batched, and its operands.

    operands, batched: constants of the condition, constants, carries; batch axes in front. If lanes diverge, a mask of
    live lanes is the first carry, and steps of dead lanes change nothing.
    """
    cc, cs, carry = (tuple(part) for part in sweep.split(batched)[:3])
    residuals = [False] * len(sweep.residual_types)

    def step(carry: Flags) -> tuple[Any, Sequence[bool]]:
        stepped = ctx.transform(sweep.forward, cs + carry, ctx.size, ctx.axis_name, (*carry, *residuals))
        test = ctx.transform(sweep.cond, cc + carry, ctx.size, ctx.axis_name)
        divergent = test.batched_outputs[0]
        return (stepped, test, divergent), (True,) * len(carry) if divergent else stepped.batched_outputs[: len(carry)]

    (stepped, test, divergent), carry = fixpoint(carry, step)
    cond_consts, consts, entry, _ = sweep.split(operands)
    was = sweep.split(batched)[2]
    entry = [ctx.to_front(x, None) if on and not old else x for x, old, on in zip(entry, was, carry, strict=True)]
    if not divergent:
        flags = cs + stepped.batched_outputs[len(carry) :]
        wide = replace(
            sweep,
            cond=test.program,
            forward=stepped.program,
            linear=_linear_batch(ctx, sweep.linear, flags),
            backward=_linear_batch(ctx, sweep.backward, flags) if sweep.backward is not None else None,
        )
        return wide, [*cond_consts, *consts, *entry]
    return _batched_lanes(ctx, sweep, cond_consts, consts, entry, cc, cs)


def _linear_batch(ctx: Any, program: Program, known: Flags) -> Program:
    tangents = (True,) * (len(program.inputs) - len(known))
    batched: Program = ctx.transform(program, known + tangents, ctx.size, ctx.axis_name, True).program
    return batched


def _batched_lanes(
    ctx: Any, sweep: Sweep, cond_consts: list[Any], consts: list[Any], entry: list[Any], cc: Flags, cs: Flags
) -> tuple[Sweep, list[Any]]:
    lanes = (True,) * len(entry)
    step = batched_function(ctx, sweep.forward, cs + lanes)
    test = batched_function(ctx, sweep.cond, cc + lanes)
    (alive,) = test(broadcast_in_dim(True, (ctx.size,), ()), [*cond_consts, *entry])
    first, second, x = len(cond_consts), len(cond_consts) + len(consts), len(entry)
    fixed = [v.type for v in (*cond_consts, *consts)]
    residuals = len(sweep.residual_types)

    def forward(inputs: list[Any]) -> list[Operand]:
        mask, carry = inputs[second], inputs[second + 1 :]
        results = step(mask, [*inputs[first:second], *carry])
        new = [where_live(mask, y, old) for y, old in zip(results[:x], carry, strict=True)]
        (going,) = test(mask, [*inputs[:first], *new])
        return [and_(mask, going), *new, *results[x:], mask]

    carried = [alive.type, *(v.type for v in entry)]
    program = stage(forward, [*fixed, *carried], name=sweep.forward.name).program
    cond = stage(lambda inputs: [reduce_or(inputs[0], (0,))], carried, name=sweep.cond.name).program
    kept = list(program.output_types[1 + x :])

    def masked(original: Program, tangents: int, unchanged: Callable[[list[Any]], list[Any]]) -> Program:
        """Return the linear program for live lanes; dead lanes get `unchanged`."""
        moved = batched_function(ctx, original, cs + (True,) * (residuals + tangents))

        def run(inputs: list[Any]) -> list[Operand]:
            known, mask = inputs[first : second + residuals], inputs[second + residuals]
            given = inputs[second + residuals + 1 :]
            results = moved(mask, [*known, *given])
            return [where_live(mask, y, old) for y, old in zip(results, unchanged(given), strict=True)]

        wide = [with_shape(t, (ctx.size, *t.shape)) for t in original.input_types[len(original.inputs) - tangents :]]
        return stage(run, [*fixed, *kept, *wide], name=original.name).program

    m, n = sum(sweep.moving_consts), sum(sweep.moving_carries)
    wide = replace(
        sweep,
        cond=cond,
        forward=program,
        linear=masked(sweep.linear, m + n, lambda given: given[m:]),
        backward=masked(sweep.backward, m + n, list) if sweep.backward is not None else None,
        cond_consts=0,
        consts=second,
        moving=(*[False] * first, *sweep.moving_consts, False, *sweep.moving_carries),
    )
    return wide, [*cond_consts, *consts, alive, *entry]
