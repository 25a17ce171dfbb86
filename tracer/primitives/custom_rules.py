"""Rules of the user's own, as functions on lists of operands: forward derivatives and reverse ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from tracer.ir.primitive import Zero
from tracer.ir.program import Program
from tracer.ir.types import Type, tangent_type, with_shape
from tracer.primitives.nested import nonzero
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import Staged, stage
from tracer.trace.state import named_axis, standing_in
from tracer.trace.trace import Operand

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

    active: which of the xs are differentiated. transpose: as `transpose_program`, for what wants `backward` forwards.
    """

    name: str
    forward: Callable[[Operands, tuple[bool, ...]], tuple[list[Any], list[Any]]]
    backward: Callable[[Operands, Sequence[Any]], list[Any]]
    transpose: Callable[[Program, tuple[bool, ...]], Any]
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

    return VjpRule(vjp.name, forward, backward, vjp.transpose)


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


def batched_backward(
    rule: VjpRule, ctx: Any, residuals: Operands, batched: Sequence[bool], cotangents: Sequence[Any]
) -> list[Any]:
    """What the backward function gives in a batch, batched along axis 0 as the cotangents are; None for zeros.

    batched: which residuals are. ctx: of the batch rule that wants it.
    """
    lanes = [with_shape(x.type, x.type.shape[1:]) if on else x.type for x, on in zip(residuals, batched, strict=True)]
    arriving = [with_shape(c.type, c.type.shape[1:]) for c in cotangents]
    present = [not isinstance(c, Zero) for c in cotangents]
    with named_axis(ctx.axis_name, ctx.size):
        staged, kept = stage_backward(rule, lanes, arriving, present)
    flags = (False,) * len(staged.constants) + (*batched, *[True] * sum(present))
    mapped = ctx.transform(staged.program, flags, ctx.size, ctx.axis_name, True).program
    given = iter(evaluate(mapped, [*staged.constants, *residuals, *nonzero(cotangents)]))
    return [next(given) if on else None for on in kept]
