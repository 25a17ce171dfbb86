"""The user's derivative rules as functions on lists of operands, forward and reverse."""

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
from tracer.trace.array import Array, described, is_recorded
from tracer.trace.captures import captured_arrays
from tracer.trace.custom_rule_scope import closure_error, enclosed, opened_last
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import Staged, stage
from tracer.trace.state import named_axis, standing_in, state
from tracer.trace.trace import Operand, stood_in

Operands = Sequence[Operand]


class Held(NamedTuple):
    """Operand that stands for an array which a function closes over.

    array: a description of the array. by_rule: whether only the function's rule closes over it.
    """

    array: str
    by_rule: bool


Closure = tuple[Held | None, ...]  # of the first operands; None for one that has no derivative anyway


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class UserRule:
    """The user's rule, as a parameter of an equation. It prints as its name, and equals only itself."""

    name: str
    serial: int = field(default_factory=itertools.count().__next__, kw_only=True, repr=False)

    def __tracer_digest__(self) -> str:
        """Tell rules of equal names apart."""
        return f"{self._transform}#{self.serial}"

    def __repr__(self) -> str:
        return f"<{self._transform} of {self.name}>"

    @property
    def _transform(self) -> str:
        return type(self).__name__.removesuffix("Rule").lower()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JvpRule(UserRule):
    """Forward rule: rule(xs, dxs) -> (ys, dys), with dxs dense or Zero. closure: the first of the xs."""

    rule: Callable[[Operands, Sequence[Any]], tuple[list[Any], list[Any]]]
    closure: Closure = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VjpRule(UserRule):
    """Reverse rule: forward(xs, active) -> (ys, residuals), backward(residuals, cts, active) -> cotangents of xs.

    active: which of the xs are differentiated; the residuals may depend on it. Cotangents may be Zero. closure: the
    first of the xs. transpose: `transpose_program`, to run `backward` forwards.
    """

    forward: Callable[[Operands, tuple[bool, ...]], tuple[list[Any], list[Any]]]
    backward: Callable[[Operands, Sequence[Any], tuple[bool, ...]], list[Any]]
    transpose: Callable[[Program, tuple[bool, ...]], Any]
    closure: Closure = ()


def is_moved(caller: str, closure: Closure, active: Sequence[bool]) -> bool:
    """Return whether arguments of a function are differentiated. active: the flags of its operands.

    Raises ClosureError if an array is that the function closes over, or that its rule does beside such an argument.
    """
    arguments = any(active[len(closure) :])
    for held, on in zip(closure, active, strict=False):
        if on and held is not None and (arguments or not held.by_rule):
            raise closure_error(caller, held.array)
    return arguments


class Closing(NamedTuple):
    """Function staged with its closure: a program of (*operands, *arguments).

    named: arrays that its rule closes over, represented by the first operands. closure: of all operands.
    """

    program: Program
    operands: list[Operand]
    named: list[Array]
    closure: Closure

    def stand_ins(self, operands: Operands) -> dict[int, Operand]:
        """Map the ids of the arrays that the rule closes over to operands, for while it runs."""
        return {id(array): x for array, x in zip(self.named, operands, strict=False)}


def closing_over(
    flat: Callable[[list[Array]], Sequence[Operand]], types: Sequence[Type], name: str, functions: Sequence[Any]
) -> Closing:
    """Stage a function. functions: the user's functions, which its rule calls."""
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
    """Describe an array that a function closes over, if it may be differentiated or batched."""
    return Held(described(x), by_rule) if isinstance(x, Array) and is_recorded(x) else None


def closed_over(rule: JvpRule | VjpRule, closing: Closing) -> JvpRule | VjpRule:
    """Return the rule of a function that takes its closure as more operands, at the front."""
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


def enclosing(rule: JvpRule | VjpRule, caller: str, level: int | None) -> JvpRule | VjpRule:
    """Wrap a rule to raise if it closes over differentiated arrays.

    caller, level: see `tracer.trace.custom_rule_scope`.

    A rule may run after later scopes were opened, for one as a batched pullback, and may use their arrays.
    """
    since = opened_last()

    def within(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            with enclosed(caller, level, since):
                return function(*args)

        return run

    if isinstance(rule, JvpRule):
        return JvpRule(rule.name, within(rule.rule))
    return VjpRule(rule.name, within(rule.forward), within(rule.backward), rule.transpose)


def stage_forward(rule: VjpRule, types: Sequence[Type], active: tuple[bool, ...]) -> Staged:
    """Stage the forward function as a program of xs -> (ys..., residuals...)."""
    return stage(
        lambda inputs: [y for part in rule.forward(inputs, active) for y in part], types, name=f"{rule.name}.forward"
    )


def stage_backward(
    rule: VjpRule, residuals: Sequence[Type], cotangents: Sequence[Type], present: Sequence[bool],
    active: tuple[bool, ...],
) -> tuple[Staged, list[bool]]:  # fmt: skip
    """Stage the backward function as a program of (residuals..., present cotangents...) -> nonzero results.

    Returns it with the flags of these. active: of the forward function that gave the residuals.
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
    """Run the backward function on a batch. Results are batched along axis 0, as the cotangents are; None for zeros.

    batched: flags of the residuals. ctx: the context of the calling batch rule. active: see `stage_backward`.
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
