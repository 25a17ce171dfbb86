"""Rules of the user's own, as functions on lists of operands: forward derivatives and reverse ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tracer.ir.primitive import Zero
from tracer.ir.program import Program
from tracer.ir.types import Type, tangent_type, with_shape
from tracer.primitives.base.nested_programs import nonzero
from tracer.trace.array import Array, described
from tracer.trace.captures import captured_arrays
from tracer.trace.custom_rule_scope import closure_error, enclosed, opened_last
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import Staged, stage
from tracer.trace.state import named_axis, standing_in, state
from tracer.trace.trace import Operand, stood_in

Operands = Sequence[Operand]


class Held(NamedTuple):
    """An operand that stands for an array which a function closes over. array: it, in words. by_rule: its rule alone
    does, not the function itself."""

    array: str
    by_rule: bool


Closure = tuple[Held | None, ...]  # of the first operands; None for one that has no derivative anyway


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class UserRule:
    """A rule of the user's as a parameter of an equation. Printed by name, and equal to itself alone."""

    name: str
    serial: int = field(default_factory=itertools.count().__next__, kw_only=True)

    def __tracer_digest__(self) -> str:
        """Tell rules of one name apart."""
        return f"{self._transform}#{self.serial}"

    def __repr__(self) -> str:
        return f"<{self._transform} of {self.name}>"

    @property
    def _transform(self) -> str:
        return type(self).__name__.removesuffix("Rule").lower()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JvpRule(UserRule):
    """rule(xs, dxs) -> (ys, dys), the dxs dense or Zero. closure: the first of the xs."""

    rule: Callable[[Operands, Sequence[Any]], tuple[list[Any], list[Any]]]
    closure: Closure = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VjpRule(UserRule):
    """forward(xs, active) -> (ys, residuals). backward(residuals, cotangents, active) -> those of xs, or Zero.

    active: which of the xs are differentiated; the residuals may differ with it. closure: the first of them. transpose:
    as `transpose_program`, for what wants `backward` forwards.
    """

    forward: Callable[[Operands, tuple[bool, ...]], tuple[list[Any], list[Any]]]
    backward: Callable[[Operands, Sequence[Any], tuple[bool, ...]], list[Any]]
    transpose: Callable[[Program, tuple[bool, ...]], Any]
    closure: Closure = ()


def is_moved(what: str, closure: Closure, active: Sequence[bool]) -> bool:
    """Whether arguments of a function are differentiated. active: which of its operands are.

    Raises ClosureError if an array that it closes over is, or with its arguments one that its rule does.
    """
    arguments = any(active[len(closure) :])
    for held, on in zip(closure, active, strict=False):
        if on and held is not None and (arguments or not held.by_rule):
            raise closure_error(what, held.array)
    return arguments


class Closing(NamedTuple):
    """A function staged with what it closes over: a program of (*operands, *arguments).

    named: arrays that its rule closes over, for which the first operands stand in. closure: of all operands.
    """

    program: Program
    operands: list[Operand]
    named: list[Array]
    closure: Closure

    def stand_ins(self, operands: Operands) -> dict[int, Operand]:
        """By id, for what the rule closes over, while it runs on such operands."""
        return {id(array): x for array, x in zip(self.named, operands, strict=False)}


def closing_over(
    flat: Callable[[list[Array]], Sequence[Operand]], types: Sequence[Type], name: str, functions: Sequence[Any]
) -> Closing:
    """Stage a function. functions: the user's, of which its rule is made."""
    staged = stage(flat, types, name=name)
    named = captured_arrays(*functions)
    if not named:
        closure = tuple(_held(x, by_rule=False) for x in staged.constants)
        return Closing(staged.program, list(staged.constants), named, closure)
    captured = [state.stand_ins.get(id(array), array) for array in named]
    wide = [*(x.type for x in captured), *staged.program.input_types]
    program = stage(lambda xs: evaluate(staged.program, xs[len(captured) :]), wide, name=name).program
    closure = (*(_held(x, by_rule=True) for x in captured), *(_held(x, by_rule=False) for x in staged.constants))
    return Closing(program, [*captured, *staged.constants], named, closure)


def _held(x: Operand, *, by_rule: bool) -> Held | None:
    """What errors say of an array that a function closes over, if it may be differentiated or batched."""
    return Held(described(x), by_rule) if isinstance(x, Array) and x._trace is not None else None


def closed_over(rule: JvpRule | VjpRule, closing: Closing) -> JvpRule | VjpRule:
    """The rule of a function that takes what it closes over as operands more, at the front."""
    count, closure = len(closing.closure), closing.closure

    def stand_ins(operands: Operands) -> AbstractContextManager[None]:
        return standing_in(closing.stand_ins(operands))

    if isinstance(rule, JvpRule):
        jvp = rule

        def tangents(xs: Operands, dxs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            with stand_ins(xs):
                ys, dys = jvp.rule(xs[count:], dxs[count:])
                return [stood_in(y) for y in ys], [dy if isinstance(dy, Zero) else stood_in(dy) for dy in dys]

        return JvpRule(jvp.name, tangents, closure)
    vjp = rule

    def forward(xs: Operands, active: tuple[bool, ...]) -> tuple[list[Any], list[Any]]:
        with stand_ins(xs):
            results = vjp.forward(xs[count:], active[count:])
            ys, residuals = ([stood_in(y) for y in part] for part in results)
        return ys, [*residuals, *xs[:count]]

    def backward(residuals: Operands, cts: Sequence[Any], active: tuple[bool, ...]) -> list[Any]:
        split = len(residuals) - count
        gone = [Zero(tangent_type(x.type)) for x in residuals[split:]]
        with stand_ins(residuals[split:]):
            found = vjp.backward(residuals[:split], cts, active[count:])
            return [*gone, *(ct if isinstance(ct, Zero) else stood_in(ct) for ct in found)]

    return VjpRule(vjp.name, forward, backward, vjp.transpose, closure)


def enclosing(rule: JvpRule | VjpRule, what: str, level: int | None) -> JvpRule | VjpRule:
    """The rule, seen to close over nothing that is differentiated. what, level: see `tracer.trace.custom_rule_scope`.

    What is opened after this call may be met by a rule that runs later: a pullback that is batched, for one.
    """
    since = opened_last()

    def within(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            with enclosed(what, level, since):
                return function(*args)

        return run

    if isinstance(rule, JvpRule):
        return JvpRule(rule.name, within(rule.rule))
    return VjpRule(rule.name, within(rule.forward), within(rule.backward), rule.transpose)


def stage_forward(rule: VjpRule, types: Sequence[Type], active: tuple[bool, ...]) -> Staged:
    """The forward function as a program of xs -> (ys..., residuals...)."""
    return stage(
        lambda inputs: [y for part in rule.forward(inputs, active) for y in part], types, name=f"{rule.name}.forward"
    )


def stage_backward(
    rule: VjpRule, residuals: Sequence[Type], cotangents: Sequence[Type], present: Sequence[bool],
    active: tuple[bool, ...],
) -> tuple[Staged, list[bool]]:  # fmt: skip
    """The backward function as a program of (residuals..., present cotangents...), and which results are not zero.

    active: of the forward function that gave such residuals.
    """
    kept: list[bool] = []

    def run(inputs: list[Any]) -> list[Operand]:
        given = iter(inputs[len(residuals) :])
        full = [next(given) if on else Zero(t) for on, t in zip(present, cotangents, strict=True)]
        results = rule.backward(inputs[: len(residuals)], full, active)
        kept.extend(not isinstance(r, Zero) for r in results)
        return nonzero(results)

    types = [*residuals, *(t for t, on in zip(cotangents, present, strict=True) if on)]
    return stage(run, types, name=f"{rule.name}.backward"), kept


def batched_backward(
    rule: VjpRule, ctx: Any, residuals: Operands, batched: Sequence[bool], cotangents: Sequence[Any],
    active: tuple[bool, ...],
) -> list[Any]:  # fmt: skip
    """What the backward function gives in a batch, batched along axis 0 as the cotangents are; None for zeros.

    batched: which residuals are. ctx: of the batch rule that wants it. active: see `stage_backward`.
    """
    lanes = [with_shape(x.type, x.type.shape[1:]) if on else x.type for x, on in zip(residuals, batched, strict=True)]
    arriving = [with_shape(c.type, c.type.shape[1:]) for c in cotangents]
    present = [not isinstance(c, Zero) for c in cotangents]
    with named_axis(ctx.axis_name, ctx.size):
        staged, kept = stage_backward(rule, lanes, arriving, present, active)
    flags = (False,) * len(staged.constants) + (*batched, *[True] * sum(present))
    mapped = ctx.transform(staged.program, flags, ctx.size, ctx.axis_name, True).program
    given = iter(evaluate(mapped, [*staged.constants, *residuals, *nonzero(cotangents)]))
    return [next(given) if on else None for on in kept]
