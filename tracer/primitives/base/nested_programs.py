"""What the rules of primitives with nested programs share: bookkeeping of active, batched and linear operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.ir.primitive import Alias, Effect, Linear, Structured, Zero
from tracer.ir.program import Equation, Program, Var
from tracer.ir.types import Type, tangent_type
from tracer.trace.memo import remembered
from tracer.trace.trace import Operand

Axes = Sequence[int | None]


def active_of(dxs: Sequence[Any]) -> tuple[bool, ...]:
    """Which tangents or cotangents are not zero by construction."""
    return tuple(not isinstance(dx, Zero) for dx in dxs)


def nonzero(dxs: Sequence[Any]) -> list[Any]:
    return [dx for dx in dxs if not isinstance(dx, Zero)]


def spread(values: Sequence[Any], active: Sequence[bool], types: Sequence[Type]) -> list[Any]:
    """Put values at the active positions, and zero tangents at the others."""
    given = iter(values)
    return [next(given) if on else Zero(tangent_type(type)) for on, type in zip(active, types, strict=True)]


def pick(values: Sequence[Any], chosen: Sequence[bool]) -> list[Any]:
    """The values at the chosen positions."""
    return [value for value, on in zip(values, chosen, strict=True) if on]


def either(*flags: Sequence[bool]) -> tuple[bool, ...]:
    """Position by position: whether any of the sequences says so."""
    return tuple(any(column) for column in zip(*flags, strict=True))


def move_to_front(ctx: Any, xs: Sequence[Operand], axes: Axes) -> list[Operand]:
    """Batched operands with their batch axis first; the others as they are."""
    return [x if axis is None else ctx.to_front(x, axis) for x, axis in zip(xs, axes, strict=True)]


def batched_of(axes: Axes) -> tuple[bool, ...]:
    return tuple(axis is not None for axis in axes)


def front_axes(batched: Sequence[bool]) -> list[int | None]:
    return [0 if on else None for on in batched]


def reached_results(equation: Equation, flags: Sequence[bool]) -> list[bool]:
    """Which results depend on the flagged operands: all of them, but of what holds programs those that these say.

    Where each result is one operand's, it depends on that.
    """
    params = equation.params
    if Effect.IO in equation.effects:
        return [True] * len(equation.outputs)
    if equation.primitive.part is not None and not flags[0]:
        return list(flags[1:])
    match equation.primitive.lower:
        case Alias():
            return list(flags)
        case Structured("call" | "custom_jvp" | "custom_vjp"):
            return list(reached_outputs(params["program"], tuple(flags)))
        case Structured("cond") if not flags[0]:
            each = [reached_outputs(branch, tuple(flags[1:])) for branch in params["branches"]]
            return [any(found) for found in zip(*each, strict=True)]
        case Structured("scan"):
            body, consts, carries = params["body"], params["consts"], params["carries"]
            before, after = flags[:consts], flags[consts + carries :]
            carry = linear_carries(body, before, flags[consts : consts + carries], after)
            return [*carry, *reached_outputs(body, (*before, *carry, *after))[carries:]]
        case Structured("for"):
            split = 1 + params["consts"]
            return list(linear_carries(params["body"], (False, *flags[1:split]), flags[split:]))
        case Structured("while"):
            first, second = params["cond_consts"], params["cond_consts"] + params["body_consts"]
            carry = linear_carries(params["body"], flags[first:second], flags[second:])
            counted = not any(reached_outputs(params["cond"], (*flags[:first], *carry)))
            return list(carry) if counted else [True] * len(carry)
        case _:
            return [True] * len(equation.outputs)


@remembered
def reached_outputs(program: Program, flags: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which outputs depend on the flagged inputs."""
    found = {v for v, on in zip(program.inputs, flags, strict=True) if on}
    for equation in program.equations:
        inner = [isinstance(atom, Var) and atom in found for atom in equation.inputs]
        if any(inner):
            found.update(v for v, on in zip(equation.outputs, reached_results(equation, inner), strict=True) if on)
    return tuple(isinstance(atom, Var) and atom in found for atom in program.outputs)


def claims(ctx: Any, xs: Sequence[Any]) -> list[Any]:
    """What else reaches the linear operands, by position, for a program that adds to it; None for nothing."""
    return [ctx.claim(i) if isinstance(x, Linear) and x.type.shape else None for i, x in enumerate(xs)]


def linear_carries(
    body: Program, before: Sequence[bool], carries: Sequence[bool], after: Sequence[bool] = ()
) -> tuple[bool, ...]:
    """Which carries of a linear body are linear: those that enter so, and those that the body makes so.

    The latter enter with a value that does not depend on what is transposed: the zero tangent of their entry value.
    """
    linear = tuple(carries)
    while True:
        reached = reached_outputs(body, (*before, *linear, *after))[: len(linear)]
        grown = either(linear, reached)
        if grown == linear:
            return linear
        linear = grown
