"""`for_loop`: a body repeated a number of times that is known at run time; and the reverse derivative of loops.

Operands are (count, constants, carries). The body maps (step, constants, carries) to carries. A loop whose trip count
is known only at run time keeps the residuals of its steps on stacks (`residual_stacks`). Its linear part is a
`for_loop` of as many steps, which reads them; the transpose of that runs the steps backwards.

Residuals must have a fixed size inside other loops, branches, and compiled calls. There the linear part reruns the loop
instead. Its residuals are the loop's own operands, and the stacks live only while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import CarryTypeError, message
from tracer.ir import dtypes
from tracer.ir.linearized import LinearizedProgram
from tracer.ir.primitive import Eager, Joint, Linearized, Primitive, Structured, Zero
from tracer.ir.program import Atom, Program
from tracer.ir.types import StackType, Type, array_type, tangent_type
from tracer.primitives.arrays.reductions.reductions import reduce_max
from tracer.primitives.base.nested_programs import (
    Axes,
    active_of,
    batched_of,
    effects_of,
    fixpoint,
    linear_carries,
    move_to_front,
    nonzero,
    spread,
)
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.rules import is_linear
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.primitives.control.calls import call
from tracer.primitives.control.predication import guarded_program, wants_guard
from tracer.primitives.control.reverse.partial_evaluation import transpose_parts
from tracer.primitives.control.reverse.rematerialization import economical
from tracer.primitives.control.reverse.residual_stacks import claimed, empty, item, item_p, push, put
from tracer.primitives.control.reverse.without_effects import silent
from tracer.primitives.control.safe_operands import in_live_lanes
from tracer.primitives.elementwise.comparison import lt, select
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.trace import Operand, as_literal, bind_all

_STEP = array_type(dtypes.I64, ())


class _Parts(NamedTuple):
    consts: tuple[Any, ...]
    carry: tuple[Any, ...]


def _split(values: Sequence[Any], consts: int) -> _Parts:
    """Return operands after the count, by role."""
    return _Parts(tuple(values[1 : 1 + consts]), tuple(values[1 + consts :]))


def _infer(*types: Type, body: Program, consts: int, reverse: bool) -> tuple[Type, ...]:
    carry = tuple(types[1 + consts :])
    if types[0] != _STEP or body.output_types != carry:
        raise CarryTypeError(
            message(
                f"for_loop{here()}: the body must return what it takes",
                f"takes ({', '.join(map(str, carry))}), {types[0]} times",
                f"returns ({', '.join(map(str, body.output_types))})",
                help="cast the carries so that they keep their types",
            )
        )
    return carry


def _reference(count: Any, *values: Any, body: Program, consts: int, reverse: bool) -> list[Any]:
    fixed, carry = list(values[:consts]), list(values[consts:])
    steps = range(int(count))
    for step in reversed(steps) if reverse else steps:
        carry = run_reference(body, [np.asarray(step, dtypes.I64), *fixed, *carry])
    return carry


def _moving(ctx: Any, body: Program, consts: Sequence[bool], carry: tuple[bool, ...], **options: Any) -> Any:
    """Return the transformed body and which carries move, on entry or by the body."""

    def step(flags: tuple[bool, ...]) -> tuple[Any, Sequence[bool]]:
        derived = ctx.transform(body, (False, *consts, *flags), flags, **options)
        return derived, derived.active_outputs

    return fixpoint(carry, step)


def _jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], *, body: Program, consts: int, reverse: bool) -> Any:
    parts, tangents = _split(xs, consts), _split(dxs, consts)
    active = active_of(tangents.consts)
    derived, moving = _moving(ctx, body, active, active_of(tangents.carry))
    d_carry = [ctx.instantiate(t) for t, on in zip(tangents.carry, moving, strict=True) if on]
    inputs, total = derived.program.inputs, len(body.inputs)
    old, new = inputs[:total], inputs[total:]
    split = sum(active)
    program = Program(
        (*old[: 1 + consts], *new[:split], *old[1 + consts :], *new[split:]),
        derived.program.equations, derived.program.outputs, body.name,
    )  # fmt: skip
    operands = [xs[0], *parts.consts, *nonzero(tangents.consts), *parts.carry, *d_carry]
    results = for_program(program, operands, consts=consts + split, reverse=reverse)
    count = len(parts.carry)
    return results[:count], spread(results[count:], moving, [y.type for y in results[:count]])


# Reverse mode, for loops counted at run time and for `while_loop`


class LoopSplit(NamedTuple):
    """Loop body split for reverse mode: the atoms pushed at every step, and the location of each residual."""

    split: LinearizedProgram  # of the body
    pushed: tuple[Atom, ...]
    places: tuple[tuple[str, int], ...]  # per residual: ("step", 0), ("const", i) or ("stack", i)


def split_body(split: LinearizedProgram, consts: int, *, counted: bool) -> LoopSplit:
    """Choose the residuals that a split body pushes. Constants need no keeping; equal residuals are pushed once.

    counted: whether the body's first input is the step.
    """
    first_const = 1 if counted else 0
    pushed: list[Atom] = []
    places: list[tuple[str, int]] = []
    for (kind, position), atom in zip(split.sources, split.residual_atoms(), strict=True):
        if kind == "input" and position < first_const + consts:
            places.append(("const", position - first_const) if position >= first_const else ("step", 0))
            continue
        if atom not in pushed:
            pushed.append(atom)
        places.append(("stack", pushed.index(atom)))
    return LoopSplit(split, tuple(pushed), tuple(places))


def pushing_body(parts: LoopSplit, *, backwards: bool = False) -> Program:
    """Return the forward body with stacks as more carries at the end, where every step leaves its residuals.

    backwards: for a counted loop that starts with its last step, so that the step is the stack index to write.
    """
    forward, count = parts.split.forward, len(parts.split.active_outputs)
    kept = Program(forward.inputs, forward.equations, (*forward.outputs[:count], *parts.pushed), forward.name)

    def run(inputs: list[Array]) -> list[Operand]:
        split = len(forward.inputs)
        results = evaluate(kept, inputs[:split])
        pairs = zip(inputs[split:], results[count:], strict=True)
        stacks = [put(s, inputs[0], x) if backwards else push(s, x) for s, x in pairs]
        return [*results[:count], *stacks]

    types = [*forward.input_types, *(StackType(a.type) for a in parts.pushed)]  # type: ignore[arg-type]
    return stage(run, types, name=forward.name).program


def empty_stacks(parts: LoopSplit) -> list[Array]:
    return [empty(atom.type) for atom in parts.pushed]


def linear_loop(
    parts: LoopSplit, consts: Sequence[Any], stacks: Sequence[Any], count: Any, dxs: Sequence[Any], carries: int,
    reverse: bool,
) -> list[Any]:  # fmt: skip
    """Run the linear part: `count` steps on tangents of (constants..., carries...), reading the stacks."""
    linear = parts.split.linear
    tangent_types = linear.input_types[len(parts.places) :]
    first, second = len(consts), len(consts) + len(stacks)

    def run(inputs: list[Any]) -> list[Operand]:
        step, *rest = inputs
        available = {"step": [step], "const": rest[:first], "stack": [item(s, step) for s in rest[first:second]]}
        residuals = [available[kind][i] for kind, i in parts.places]
        return evaluate(linear, [*residuals, *rest[second:]])

    types = [_STEP, *(c.type for c in (*consts, *stacks)), *tangent_types]
    body = stage(run, types, name=linear.name).program
    moving_consts = len(dxs) - carries
    operands = [count, *consts, *stacks, *dxs]
    return for_program(body, operands, consts=second + moving_consts, reverse=reverse)


def repeated(
    xs: Sequence[Any], active: Sequence[bool], outputs: Sequence[Any], again: Callable[[Sequence[Any]], Linearized]
) -> Linearized:
    """Return a linearisation whose residuals are the operands: its linear part runs the loop `again`."""
    xs_types = [x.type for x in xs]
    moving = [tangent_type(t) for t, on in zip(xs_types, active, strict=True) if on]
    reached: list[bool] = []

    def run(inputs: list[Any]) -> list[Operand]:
        linearized = again(inputs[: len(xs_types)])
        dys = linearized.apply(linearized.residuals, inputs[len(xs_types) :])
        reached[:] = [not isinstance(dy, Zero) for dy in dys]
        return nonzero(dys)

    program = silent(stage(run, [*xs_types, *moving], name="repeat").program)
    types = [y.type for y in outputs]

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        return spread(call(program, *residuals, *dxs), reached, types)

    return Linearized(outputs, list(xs), apply)


def _linearize(
    ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], *, body: Program, consts: int, reverse: bool
) -> Linearized:
    if ctx.nested:
        outputs = for_program(body, xs, consts=consts, reverse=reverse)
        return repeated(xs, active, outputs, lambda again: _stacked(ctx, again, active, body, consts, reverse))
    return _stacked(ctx, xs, active, body, consts, reverse)


def _stacked(
    ctx: Any, xs: Sequence[Any], active: Sequence[bool], body: Program, consts: int, reverse: bool
) -> Linearized:
    parts, flags = _split(xs, consts), _split(active, consts)
    split, moving = _moving(ctx, body, flags.consts, flags.carry, nested=True)
    split = economical(split, len(moving), [True] * (1 + consts) + [False] * len(moving))
    loop = split_body(split, consts, counted=True)
    stacks = empty_stacks(loop)
    results = for_program(pushing_body(loop, backwards=reverse), [*xs, *stacks], consts=consts, reverse=reverse)
    count = len(parts.carry)
    types, given = [x.type for x in parts.carry], [x.type for x in xs[1:]]

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        tangents = spread(dxs, active[1:], given)
        d_carry = [ctx.instantiate(t) for t, on in zip(tangents[consts:], moving, strict=True) if on]
        d_all = [*nonzero(tangents[:consts]), *d_carry]
        trips, fixed, kept = residuals[0], residuals[1 : 1 + consts], residuals[1 + consts :]
        return spread(linear_loop(loop, fixed, kept, trips, d_all, len(d_carry), reverse), moving, types)

    return Linearized(results[:count], [xs[0], *parts.consts, *results[count:]], apply)


# Transposition and batching


def _transpose(
    ctx: Any, cts: Sequence[Any], xs: Sequence[Any], *, body: Program, consts: int, reverse: bool
) -> list[Any]:
    """Run the steps backwards. Carries are the cotangents of the linear constants and of the carries."""
    given = tuple(map(is_linear, xs))
    constants, entering = _split(given, consts)
    carries = linear_carries(body, (False, *constants), entering)
    if not all(carries):
        rule = partial(_linearize, body=body, consts=consts, reverse=reverse)
        return transpose_parts(ctx, cts, xs, rule)
    linear = (*given[: 1 + consts], *carries)
    summed = (*[True] * sum(constants), *[False] * len(carries))
    derived = ctx.transform(body, linear, None, True, summed).program
    known = [x for x in xs[1 : 1 + consts] if not is_linear(x)]
    sums = claimed(ctx, range(1, 1 + consts), xs)
    arriving = [ctx.instantiate(ct) for ct in cts]
    results = iter(for_program(derived, [xs[0], *known, *sums, *arriving], consts=len(known), reverse=not reverse))
    found = [next(results) if on else None for on in linear]
    return [ct if on else None for ct, on in zip(found, given, strict=True)]


def _batch(ctx: Any, xs: Sequence[Any], axes: Axes, *, body: Program, consts: int, reverse: bool) -> Any:
    operands, flags = move_to_front(ctx, xs, axes), _split(batched_of(axes), consts)
    lanes_count = axes[0] is not None

    def step(carry: tuple[bool, ...]) -> tuple[Any, Sequence[bool]]:
        derived = ctx.transform(body, (False, *flags.consts, *carry), ctx.size, ctx.axis_name, carry)
        return derived, derived.batched_outputs

    derived, carry = fixpoint((True,) * len(flags.carry) if lanes_count else flags.carry, step)
    parts = _split(operands, consts)
    entry = [
        x if was or not now else ctx.to_front(x, None)
        for x, was, now in zip(parts.carry, flags.carry, carry, strict=True)
    ]
    out_axes = [0 if on else None for on in carry]
    if not lanes_count:
        full = [operands[0], *parts.consts, *entry]
        return for_program(derived.program, full, consts=consts, reverse=reverse), out_axes
    return _batch_lanes(ctx, operands[0], parts.consts, entry, flags.consts, body, reverse), out_axes


def _batch_lanes(
    ctx: Any, counts: Any, consts: Sequence[Any], entry: Sequence[Any], in_consts: tuple[bool, ...], body: Program,
    reverse: bool,
) -> list[Any]:  # fmt: skip
    """Take as many steps as the longest lane. Finished lanes stay unchanged."""
    guarded = wants_guard(body)
    inner = guarded_program(body) if guarded else body
    flags = ((True,) if guarded else ()) + (False, *in_consts) + (True,) * len(entry)
    reads, rest = _reads_first(ctx.transform(inner, flags, ctx.size, ctx.axis_name, True).program)
    split = len(consts)

    def run(inputs: list[Any]) -> list[Operand]:
        step, limits, given = inputs[0], inputs[1], inputs[2:]
        mask = lt(broadcast_in_dim(step, limits.shape, ()), limits)
        leading = [*([mask] if guarded else []), step]
        read = evaluate(reads, [*leading, *given])
        batched = (*in_consts, *[True] * (len(entry) + len(read)))
        results = evaluate(rest, [*leading, *in_live_lanes(mask, [*given, *read], batched, body)])
        return [where_live(mask, y, x) for y, x in zip(results, given[split:], strict=True)]

    operands = [counts, *consts, *entry]
    program = stage(run, [_STEP, *(x.type for x in operands)], name=body.name).program
    longest = reduce_max(counts, (0,)) if ctx.size else as_literal(0, dtypes.I64)
    return for_program(program, [longest, *operands], consts=1 + split, reverse=reverse)


def _reads_first(program: Program) -> tuple[Program, Program]:
    """Split a body in two programs: reads of its stacks, and all other equations, with the values read as inputs."""
    given = set(program.inputs)
    first = tuple(e for e in program.equations if e.primitive is item_p and given.issuperset(e.inputs))
    read = tuple(variable for equation in first for variable in equation.outputs)
    chosen = set(first)
    others = tuple(equation for equation in program.equations if equation not in chosen)
    reads = Program(program.inputs, first, read, program.name)
    return reads, Program((*program.inputs, *read), others, program.outputs, program.name)


def where_live(live: Any, new: Any, old: Any) -> Any:
    """Select the new value where the lane lives. Stacks grow for all lanes: none is read beyond its own steps."""
    if new is old or isinstance(new.type, StackType):
        return new
    return select(broadcast_in_dim(live, new.shape, (0,)), new, old)


def batched_function(ctx: Any, program: Program, batched: tuple[bool, ...]) -> Callable[[Any, Sequence[Any]], Any]:
    """Return a function (mask of live lanes, operands) that runs the program on batches. Every output is batched."""
    guarded = wants_guard(program)
    if guarded:
        program, batched = guarded_program(program), (True, *batched)
    derived = ctx.transform(program, batched, ctx.size, ctx.axis_name, True).program
    return lambda mask, operands: evaluate(derived, [mask, *operands] if guarded else operands)


for_p = Primitive(
    name="for_loop", infer=_infer, reference=_reference,
    jvp=Joint(_jvp), linearize=_linearize, transpose=_transpose, batch=_batch,
    lower=Structured("for"), effects=effects_of("body"), multiple=True, eager=Eager.COMPILED,
)  # fmt: skip


def for_program(body: Program, operands: Sequence[Operand], *, consts: int, reverse: bool = False) -> list[Array]:
    """Run body(step, *consts, *carry) for step in range(count), backwards if `reverse`.

    operands: (count i64[], constants..., carries...).
    """
    return bind_all(for_p, operands, {"body": body, "consts": consts, "reverse": reverse})


COUNTED = (for_p,)
