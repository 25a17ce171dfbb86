"""`cond`: one of several programs, chosen at run time by an index.

The derivative and the transpose of a `cond` are `cond`s. So is its batch if all lanes share the index. Else all
branches run, each guarded by the mask of its lanes, and their results are selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import CarryTypeError, message
from tracer.ir import dtypes
from tracer.ir.linearized import LinearizedProgram
from tracer.ir.primitive import Eager, Joint, Linearized, Primitive, Structured
from tracer.ir.program import Program
from tracer.ir.types import ArrayType, Type, array_type, same_up_to_weakness
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.nested_programs import (
    Axes,
    active_of,
    agreeing,
    batched_of,
    effects_of,
    either,
    front_axes,
    move_to_front,
    nonzero,
    spread,
    summed_operands,
)
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.rules import is_linear
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.primitives.control.predication import guarded_program, wants_guard
from tracer.primitives.control.safe_operands import in_live_lanes
from tracer.primitives.elementwise.arithmetic import clamp
from tracer.primitives.elementwise.comparison import eq, select
from tracer.primitives.elementwise.stop_gradient import shared_scalars
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.trace import Operand, as_literal, bind_all

Branches = tuple[Program, ...]


def _infer(index: Type, *operands: Type, branches: Branches) -> tuple[Type, ...]:
    if index != array_type(dtypes.I32, ()):
        raise CarryTypeError(message(f"cond{here()}: the branch index must be i32[]", f"got {index}"))
    first = branches[0].output_types
    for number, branch in enumerate(branches[1:], start=1):
        if len(branch.output_types) != len(first) or not all(map(same_up_to_weakness, branch.output_types, first)):
            raise CarryTypeError(
                message(
                    f"cond{here()}: branches must return equal types",
                    f"branch 0 returns ({', '.join(map(str, first))})",
                    f"branch {number} returns ({', '.join(map(str, branch.output_types))})",
                    help="cast or reshape the results of one branch",
                )
            )
    return tuple(_strongest(column) for column in zip(*(branch.output_types for branch in branches), strict=True))


def _strongest(types: Sequence[Type]) -> Type:
    """Return, of types that are equal up to weakness, one that is not weak, if there is one."""
    return next((t for t in types if not (isinstance(t, ArrayType) and t.weak)), types[0])


def _reference(index: Any, *operands: Any, branches: Branches) -> list[Any]:
    return run_reference(branches[int(np.clip(index, 0, len(branches) - 1))], operands)


def _jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], *, branches: Branches) -> Any:
    active = active_of(dxs[1:])
    reached = either(*(ctx.transform(branch, active).active_outputs for branch in branches))
    derived = tuple(ctx.transform(branch, active, reached).program for branch in branches)
    results = cond_branches(xs[0], derived, *xs[1:], *nonzero(dxs[1:]))
    count = len(reached)
    return results[:count], spread(results[count:], reached, branches[0].output_types)


def _linearize(ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], *, branches: Branches) -> Linearized:
    """Linearise every branch. Each returns the residuals of all, its own filled in. Equal types share a slot."""
    index, operands = xs[0], xs[1:]
    reached = either(*(ctx.transform(branch, active[1:], nested=True).active_outputs for branch in branches))
    splits = [ctx.transform(branch, active[1:], reached, nested=True) for branch in branches]
    slots: list[Type] = []
    places = [_place_residuals(split, slots) for split in splits]
    count = len(reached)
    forward = tuple(_forward_branch(s, p, slots, count) for s, p in zip(splits, places, strict=True))
    results = cond_branches(index, forward, *operands)
    known_types = [*slots, *branches[0].input_types]
    linear = tuple(_linear_branch(s, p, known_types, len(slots)) for s, p in zip(splits, places, strict=True))

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        dys = cond_branches(residuals[0], linear, *residuals[1:], *dxs)
        return spread(dys, reached, branches[0].output_types)

    return Linearized(results[:count], [index, *results[count:], *operands], apply)


def _place_residuals(split: LinearizedProgram, slots: list[Type]) -> list[tuple[str, int, Any]]:
    """Return for each residual of a branch ("input", i, None), or ("slot", n, the atom that fills it).

    Appends missing slots to `slots`.
    """
    taken: set[int] = set()
    places: list[tuple[str, int, Any]] = []
    for role, position in split.sources:
        if role == "input":
            places.append(("input", position, None))
            continue
        atom = split.forward.outputs[position if role == "output" else len(split.active_outputs) + position]
        slot = next((n for n, type in enumerate(slots) if type == atom.type and n not in taken), len(slots))
        if slot == len(slots):
            slots.append(atom.type)
        taken.add(slot)
        places.append(("slot", slot, atom))
    return places


def _forward_branch(
    split: LinearizedProgram, places: Sequence[tuple[str, int, Any]], slots: Sequence[Type], count: int
) -> Program:
    """Return the branch with results (outputs..., every slot), zeros in the slots that only other branches use."""
    forward = split.forward
    mine = {n: atom for kind, n, atom in places if kind == "slot"}
    trimmed = Program(forward.inputs, forward.equations, (*forward.outputs[:count], *mine.values()), forward.name)

    def run(inputs: list[Array]) -> list[Operand]:
        results = evaluate(trimmed, inputs)
        filled = dict(zip(mine, results[count:], strict=True))
        return results[:count] + [filled[n] if n in filled else zeros(type) for n, type in enumerate(slots)]

    return stage(run, forward.input_types, name=forward.name).program


def _linear_branch(
    split: LinearizedProgram, places: Sequence[tuple[str, int, Any]], known_types: Sequence[Type], slots: int
) -> Program:
    """Return the branch's linear program on (every slot..., operands..., tangents...)."""
    linear = split.linear
    tangent_types = linear.input_types[len(split.sources) :]

    def run(inputs: list[Array]) -> list[Operand]:
        residuals = [inputs[n if kind == "slot" else slots + n] for kind, n, _ in places]
        return evaluate(linear, [*residuals, *inputs[len(known_types) :]])

    return stage(run, [*known_types, *tangent_types], name=linear.name).program


def _transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any], *, branches: Branches) -> list[Any]:
    (_, *linear), sums, summed = summed_operands(ctx, xs)
    derived = tuple(ctx.transform(branch, tuple(linear), active_of(cts), True, summed).program for branch in branches)
    known = [x for x in xs[1:] if not is_linear(x)]
    results = iter(cond_branches(xs[0], derived, *known, *sums, *nonzero(cts)))
    return [None] + [next(results) if on else None for on in linear]


def _batch(ctx: Any, xs: Sequence[Any], axes: Axes, *, branches: Branches) -> Any:
    operands, batched = move_to_front(ctx, xs[1:], axes[1:]), batched_of(axes[1:])
    if axes[0] is not None:
        return _batch_select(ctx, ctx.to_front(xs[0], axes[0]), operands, batched, branches)
    reached = either(*(ctx.transform(b, batched, ctx.size, ctx.axis_name).batched_outputs for b in branches))
    derived = tuple(ctx.transform(b, batched, ctx.size, ctx.axis_name, reached).program for b in branches)
    return cond_branches(xs[0], derived, *operands), front_axes(reached)


def _batch_select(
    ctx: Any, index: Array, operands: Sequence[Operand], batched: tuple[bool, ...], branches: Branches
) -> Any:
    """Run every branch for all lanes, guarded by the mask of its own, and select each lane's results."""
    index = clamp(0, index, len(branches) - 1)
    entering = [(x, 0 if on else None) for x, on in zip(operands, batched, strict=True)]
    shared = shared_scalars(operands, batched)
    operands = [ctx.to_front(x, None) if new else x for x, new in zip(operands, shared, strict=True)]
    batched = either(batched, shared)
    results: list[Any] = []
    for number in reversed(range(len(branches))):
        mask = eq(index, as_literal(number, dtypes.I32))
        branch, given_batched = branches[number], batched
        given = in_live_lanes(mask, operands, batched, branch)
        if wants_guard(branch):
            branch, given, given_batched = guarded_program(branch), [mask, *given], (True, *batched)
        program = ctx.transform(branch, given_batched, ctx.size, ctx.axis_name, True).program
        outputs = evaluate(program, given)
        results = [_select_lanes(mask, y, z) for y, z in zip(outputs, results, strict=True)] if results else outputs
    rows = [(y, 0) if n is None else entering[n] for y, n in zip(results, agreeing(branches), strict=True)]
    return [y for y, _ in rows], [axis for _, axis in rows]


def _select_lanes(mask: Array, chosen: Any, other: Any) -> Any:
    """Select lane by lane, along axis 0."""
    return select(broadcast_in_dim(mask, chosen.shape, (0,)), chosen, other)


cond_p = Primitive(
    name="cond", infer=_infer, reference=_reference,
    jvp=Joint(_jvp), linearize=_linearize, transpose=_transpose, batch=_batch,
    lower=Structured("cond"), effects=effects_of("branches"), multiple=True, eager=Eager.COMPILED,
)  # fmt: skip


def cond_branches(index: Operand, branches: Branches, *operands: Operand) -> list[Array]:
    """Run branches[index], with the index clamped. All branches take the operands, and return equal types."""
    return bind_all(cond_p, (index, *operands), {"branches": branches})


BRANCHES = (cond_p,)
