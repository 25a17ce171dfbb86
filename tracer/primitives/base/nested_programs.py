"""Rules of nested programs: active, batched and linear operands, fixpoints over carries, effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tracer.ir.primitive import Alias, Effect, Structured, Zero
from tracer.ir.program import Equation, Program, Var
from tracer.ir.types import Type, tangent_type
from tracer.primitives.base.rules import is_linear
from tracer.trace.memo import remembered
from tracer.trace.trace import Operand

Axes = Sequence[int | None]
R = TypeVar("R")


def active_of(dxs: Sequence[Any]) -> tuple[bool, ...]:
    """Return which tangents or cotangents are not symbolic zeros."""
    return tuple(not isinstance(dx, Zero) for dx in dxs)


def nonzero(dxs: Sequence[Any]) -> list[Any]:
    return [dx for dx in dxs if not isinstance(dx, Zero)]


def spread(values: Sequence[Any], active: Sequence[bool], types: Sequence[Type]) -> list[Any]:
    """Return `values` at the active positions and symbolic zeros of `types` at all other positions."""
    given = iter(values)
    return [next(given) if on else Zero(tangent_type(type)) for on, type in zip(active, types, strict=True)]


def pick(values: Sequence[Any], chosen: Sequence[bool]) -> list[Any]:
    """Return the values at the chosen positions."""
    return [value for value, on in zip(values, chosen, strict=True) if on]


def either(*flags: Sequence[bool]) -> tuple[bool, ...]:
    """Return the elementwise `or` of several sequences of flags."""
    return tuple(any(column) for column in zip(*flags, strict=True))


def fixpoint(
    flags: tuple[bool, ...], step: Callable[[tuple[bool, ...]], tuple[R, Sequence[bool]]]
) -> tuple[R, tuple[bool, ...]]:
    """Grow `flags` until `step(flags) -> (result, flags)` sets no more; return the last result and the flags.

    Used for the carries of loops. A carry moves if its entry value does, or if the body makes it move.
    """
    while True:
        result, found = step(flags)
        grown = either(flags, found)
        if grown == flags:
            return result, flags
        flags = grown


def move_to_front(ctx: Any, xs: Sequence[Operand], axes: Axes) -> list[Operand]:
    """Move the batch axis of every batched operand to the front. Unbatched operands stay as they are."""
    return [x if axis is None else ctx.to_front(x, axis) for x, axis in zip(xs, axes, strict=True)]


def batched_of(axes: Axes) -> tuple[bool, ...]:
    return tuple(axis is not None for axis in axes)


def front_axes(batched: Sequence[bool]) -> list[int | None]:
    return [0 if on else None for on in batched]


def reached_results(equation: Equation, flags: Sequence[bool]) -> list[bool]:
    """Return which results of an equation depend on the flagged operands.

    An equation without nested programs counts as all or nothing, unless each result is one operand's.
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
    """Return which outputs of a program depend on the flagged inputs."""
    found = {v for v, on in zip(program.inputs, flags, strict=True) if on}
    for equation in program.equations:
        inner = [isinstance(atom, Var) and atom in found for atom in equation.inputs]
        if any(inner):
            found.update(v for v, on in zip(equation.outputs, reached_results(equation, inner), strict=True) if on)
    return tuple(isinstance(atom, Var) and atom in found for atom in program.outputs)


@remembered
def handed_on(program: Program) -> tuple[int | None, ...]:
    """Return the index of the input that each output is, unchanged; None for computed outputs.

    Looks through calls, branches that agree, and loops that hand a carry on.
    """
    place = {v: n for n, v in enumerate(program.inputs)}
    for equation in program.equations:
        for result, number in zip(equation.outputs, _handed_operands(equation), strict=True):
            atom = None if number is None else equation.inputs[number]
            if isinstance(atom, Var) and atom in place and atom.type == result.type:
                place[result] = place[atom]
    return tuple(place.get(atom) if isinstance(atom, Var) else None for atom in program.outputs)


def _handed_operands(equation: Equation) -> Sequence[int | None]:
    params, count = equation.params, len(equation.outputs)
    match equation.primitive.lower:
        case Structured("call") if "rule" not in params:  # a custom batching rule may compute another result
            return handed_on(params["program"])
        case Structured("cond"):
            return [None if n is None else 1 + n for n in agreeing(params["branches"])]
        case Structured("scan"):
            first, found = params["consts"], handed_on(params["body"])
            carries = [first + k if found[k] == first + k else None for k in range(params["carries"])]
            return carries + [None] * (count - len(carries))
        case Structured("while"):
            first, found = params["body_consts"], handed_on(params["body"])
            return [params["cond_consts"] + first + k if found[k] == first + k else None for k in range(count)]
        case _:
            return [None] * count


def agreeing(branches: Sequence[Program]) -> list[int | None]:
    """Return the index of the input that every branch hands on, by output; None for other outputs."""
    columns = zip(*map(handed_on, branches), strict=True)
    return [column[0] if all(place == column[0] for place in column) else None for column in columns]


def summed_operands(ctx: Any, xs: Sequence[Any]) -> tuple[tuple[bool, ...], list[Any], tuple[bool, ...]]:
    """Return which operands are linear, the sums that some of these already have, and which linear operands have one.

    The rule's own cotangents of these operands must contain the sums.
    """
    linear = tuple(map(is_linear, xs))
    sums = [ctx.claim(i) if on and x.type.shape else None for i, (x, on) in enumerate(zip(xs, linear, strict=True))]
    summed = tuple(s is not None for s, on in zip(sums, linear, strict=True) if on)
    return linear, [s for s in sums if s is not None], summed


def linear_carries(
    body: Program, before: Sequence[bool], carries: Sequence[bool], after: Sequence[bool] = ()
) -> tuple[bool, ...]:
    """Return which carries of a linear body are linear: on entry, or because the body makes them so.

    A carry of the second sort enters as the zero tangent of its entry value.
    """
    return fixpoint(
        tuple(carries), lambda linear: (None, reached_outputs(body, (*before, *linear, *after))[: len(linear)])
    )[1]


def effects_of(*names: str) -> Callable[[Mapping[str, Any]], frozenset[Effect]]:
    """Make the `effects` rule of a primitive. names: parameters that are programs, or tuples of programs."""

    def effects(params: Mapping[str, Any]) -> frozenset[Effect]:
        values = [params[name] for name in names]
        programs = [p for value in values for p in (value if isinstance(value, tuple) else (value,))]
        return frozenset(effect for program in programs if program is not None for effect in program.effects)

    return effects


def transpose_nested(
    ctx: Any, cts: Sequence[Any], xs: Sequence[Any], program: Program, run: Callable[..., Sequence[Any]]
) -> list[Any]:
    """Transpose a primitive that runs `program` once. `run(transposed, operands)` binds the transposed program."""
    linear, sums, summed = summed_operands(ctx, xs)
    derived = ctx.transform(program, linear, active_of(cts), False, summed)
    known = [x for x in xs if not is_linear(x)]
    results = iter(run(derived.program, [*known, *sums, *nonzero(cts)]))
    reached = iter(derived.active_inputs)
    return [next(results) if on and next(reached) else None for on in linear]
