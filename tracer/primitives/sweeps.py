"""A loop as its derivative needs it: a sweep forwards, and one back. How sweeps are differentiated and batched.

With x the carries, c the constants and r the residuals of a step, all of a sweep's programs are closed:

    cond(cond_consts, x) -> bool[]              forward(c, x) -> x, r
    linear(c, r, dc, dx) -> dx                  backward(c, r, ct c, ct x) -> ct c, ct x

`backward` is the transpose of `linear` that adds to the cotangents of the constants, so that a step which reads one
element of an array adds to that one. Only those constants and carries have tangents that `moving` flags.
Differentiating each program gives the sweep of the loop that carries (x, dx): what pulls back through that loop is the
derivative of what pulls back through this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracer.ir.program import Program
from tracer.ir.types import Type, tangent_type, with_shape
from tracer.primitives.bits import and_
from tracer.primitives.counted import LoopSplit, batched_function, where_live
from tracer.primitives.nested import either, pick
from tracer.primitives.reductions import reduce_or
from tracer.primitives.shapes import broadcast_in_dim
from tracer.primitives.zeros import zeros
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage
from tracer.trace.trace import Operand

Flags = tuple[bool, ...]
Jvp = Callable[..., Any]  # as `jvp_program`: (program, active, instantiate) -> program, active outputs


@dataclass(frozen=True, slots=True)
class Sweep:
    """See the module's docstring. moving: of the constants and the carries. `backward` is None before transposition.

    memory: bytes that residuals and checkpoints may take. symmetric: whether second derivatives are known to be, as
    they are but for rules of the user's own; others are transposed by `adjoint`.
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
        """As an equation's parameters: no `backward` where there is none."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in found.items() if value is not None}

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Operands by role: constants of the condition, constants, carries, and the rest."""
        first, second = self.cond_consts, self.cond_consts + self.consts
        third = second + self.carries
        return list(values[:first]), list(values[first:second]), list(values[second:third]), list(values[third:])


def sweep_of(params: dict[str, Any]) -> Sweep:
    """The sweep that an equation's parameters describe."""
    return Sweep(**{"backward": None, **params})


def split_sweep(
    loop: LoopSplit, cond: Program, cond_consts: int, consts: int, moving: Flags, memory: int, symmetric: bool
) -> Sweep:
    """The sweep of a while_loop whose body is split for reverse mode."""
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


def keeping_carries(sweep: Sweep) -> Sweep:
    """The same sweep with the carries as the residuals of a step, from which the others are computed again."""
    assert sweep.backward is not None
    c, x = sweep.consts, sweep.carries

    def forward(inputs: list[Any]) -> list[Operand]:
        return [*evaluate(sweep.forward, inputs)[:x], *inputs[c:]]

    def again(program: Program) -> Program:
        def run(inputs: list[Any]) -> list[Operand]:
            residuals = evaluate(sweep.forward, inputs[: c + x])[x:]
            return evaluate(program, [*inputs[:c], *residuals, *inputs[c + x :]])

        moved = program.input_types[c + len(sweep.residual_types) :]
        return stage(run, [*sweep.forward.input_types, *moved], name=program.name).program

    kept = stage(forward, sweep.forward.input_types, name=sweep.forward.name).program
    return replace(sweep, forward=kept, linear=again(sweep.linear), backward=again(sweep.backward))


def adjoint(sweep: Sweep, d_forward: Program, d_backward: Program, transpose: Callable[..., Any]) -> Sweep:
    """The sweep which transposes what `d_forward` and `d_backward` make of tangents, in a sweep that keeps carries.

    With A, B and G the derivatives of a step, of its transpose by cotangents, and of that by what moves, dx the
    tangents of constants and carries, which are kept and stepped:

        dx <- A dx            forwards        dual t of the cotangents' tangents:   t <- B^T t
        dct <- B dct + G dx   back            dual u of dx:                         u <- A^T u + G^T t

    So it is one of the same form, linear in t in place of dx and in u in place of dct. `linear` is B^T.
    """
    assert sweep.backward is not None
    backward, c, x = sweep.backward, sweep.consts, sweep.carries
    m, n = sum(sweep.moving_consts), sum(sweep.moving_carries)
    steps = replace(d_forward, outputs=d_forward.outputs[x : x + n])
    pulls = replace(d_backward, outputs=(*d_backward.outputs[:m], *d_backward.outputs[2 * m : 2 * m + n]))
    moving = (*[False] * c, *[True] * m, *[False] * x, *[True] * n)
    cotangents = (*[True] * m, *[False] * m, *[True] * n, *[False] * n)
    added = (*[True] * (m + n), *[False] * (m + n))
    # (c, x, u) -> u; (c, x, ct, u, t) -> u, t
    step_back = transpose(steps, moving, None, True, (*[True] * m, *[False] * n)).program
    pull_back = transpose(pulls, (*moving, *cotangents), None, True, added).program
    own, tangents = sweep.forward.input_types, list(d_forward.input_types[c : c + m]) + list(steps.output_types)

    def push(inputs: list[Any]) -> list[Operand]:
        nothing = [zeros(type) for type in (*backward.input_types[c + x :], *backward.output_types)]
        return evaluate(pull_back, [*inputs[: c + x], *nothing, *inputs[c + x :]])[2 * m + n :]

    pushing = stage(push, [*own, *tangents], name=sweep.linear.name).program

    def forward(inputs: list[Any]) -> list[Operand]:
        consts, dc, carry, dx = inputs[:c], inputs[c : c + m], inputs[c + m : c + m + x], inputs[c + m + x :]
        new = evaluate(sweep.forward, [*consts, *carry])[:x]
        return [*new, *evaluate(pushing, [*consts, *carry, *dc, *dx]), *carry, *dx]

    def back(inputs: list[Any]) -> list[Operand]:
        consts, dc, carry, rest = inputs[:c], inputs[c : c + m], inputs[c + m : c + m + x], inputs[c + m + x :]
        tx, rest = rest[:n], rest[n:]
        u, ct = [*rest[:m], *rest[2 * m : 2 * m + n]], [*rest[m : 2 * m], *rest[2 * m + n :]]
        pulled = evaluate(step_back, [*consts, *carry, *u])
        total = evaluate(pull_back, [*consts, *carry, *ct, *pulled, *dc, *tx])
        before = evaluate(backward, [*consts, *carry, *ct])
        return [*total[:m], *before[:m], *total[m : m + n], *before[m:]]

    return replace(
        sweep,
        forward=stage(forward, d_forward.input_types, name=d_forward.name).program,
        linear=pushing,
        backward=stage(back, d_backward.input_types, name=d_backward.name).program,
    )


def pushed_forward(sweep: Sweep, jvp: Jvp) -> Sweep:
    """The sweep of the loop that carries (x, dx), with constants (c, dc).

    Its cotangents are those of (dc, c) and (dx, x), in this order: (d ct c, ct c, d ct x, ct x), so that pulling them
    back is the derivative of `backward`.
    """
    assert sweep.backward is not None
    c, x, m = sweep.consts, sweep.carries, sum(sweep.moving_consts)
    n = sum(sweep.moving_carries)
    forward = jvp(sweep.forward, sweep.moving, (*sweep.moving_carries, *[False] * len(sweep.residual_types)))
    assert tuple(forward.active_outputs[:x]) == sweep.moving_carries
    varying = tuple(forward.active_outputs[x:])
    r, v = len(varying), sum(varying)
    linear = jvp(sweep.linear, (*sweep.moving_consts, *varying, *[True] * (m + n)), True).program
    backward = jvp(sweep.backward, (*sweep.moving_consts, *varying, *[True] * (m + n)), True).program
    consts, residuals = range(c), range(c, c + r)
    forward_inputs = [*consts, *range(c + x, c + x + m), *range(c, c + x), *range(c + x + m, c + x + m + n)]
    forward_outputs = [*range(x), *range(x + r, x + r + n), *range(x, x + r), *range(x + r + n, x + r + n + v)]
    given = c + r + m + n  # of `linear`'s inputs, before their tangents
    own = [*consts, *range(given, given + m), *residuals, *range(given + m, given + m + v)]
    dc, dx = range(c + r, c + r + m), range(c + r + m, given)
    tangents = [*dc, *(given + m + v + i for i in range(m)), *dx, *(given + m + v + m + i for i in range(n))]
    back = [*own, *(given + m + v + i for i in range(m)), *dc, *(given + m + v + m + i for i in range(n)), *dx]
    a, b = range(m), range(m, m + n)
    results = [*(m + n + i for i in a), *a, *(m + n + i for i in b), *b]
    return replace(
        sweep,
        cond=_longer(sweep.cond, pick(sweep.cond.input_types[sweep.cond_consts :], sweep.moving_carries)),
        forward=_reordered(forward.program, forward_inputs, forward_outputs),
        linear=_reordered(linear, [*own, *tangents]),
        backward=_reordered(backward, back, results),
        consts=c + m,
        moving=(*sweep.moving_consts, *[True] * m, *sweep.moving_carries, *[True] * n),
    )


def jvp_of_split(linearize: Jvp, program: Program, active: tuple[bool, ...], instantiate: Any) -> Any:
    """The jvp of a program made of its linearisation, for rules that have only that."""
    split = linearize(program, active, instantiate)
    count = len(program.inputs)

    def run(inputs: list[Any]) -> list[Operand]:
        results = evaluate(split.forward, inputs[:count])
        residuals = split.residuals(inputs[:count], results)
        return [*results[: len(program.outputs)], *evaluate(split.linear, [*residuals, *inputs[count:]])]

    tangents = [tangent_type(t) for t, on in zip(program.input_types, active, strict=True) if on]
    return _Derived(stage(run, [*program.input_types, *tangents], name=program.name).program, split.active_outputs)


class _Derived:
    """A program and its active outputs, as `jvp_program` gives them."""

    __slots__ = ("active_outputs", "program")

    def __init__(self, program: Program, active_outputs: tuple[bool, ...]) -> None:
        self.program = program
        self.active_outputs = active_outputs


def _reordered(program: Program, inputs: Sequence[int], outputs: Sequence[int] | None = None) -> Program:
    assert len(inputs) == len(program.inputs)
    chosen = range(len(program.outputs)) if outputs is None else outputs
    return Program(
        tuple(program.inputs[i] for i in inputs), program.equations, tuple(program.outputs[i] for i in chosen),
        program.name,
    )  # fmt: skip


def _longer(cond: Program, types: Sequence[Type]) -> Program:
    """The condition with more carries, which it does not read."""

    def run(inputs: list[Any]) -> list[Operand]:
        return evaluate(cond, inputs[: len(cond.inputs)])

    return stage(run, [*cond.input_types, *types], name=cond.name).program


def batched_sweep(ctx: Any, sweep: Sweep, operands: Sequence[Any], batched: Flags) -> tuple[Sweep, list[Any]]:
    """The sweep over batches, all tangents batched, and its operands.

    operands, batched: constants of the condition, constants, carries; batch axes in front. Where lanes stop on their
    own a mask of those that live is the first carry, and steps of the others change nothing.
    """
    cc, cs, carry = (tuple(part) for part in sweep.split(batched)[:3])
    residuals = len(sweep.residual_types)
    while True:
        stepped = ctx.transform(sweep.forward, cs + carry, ctx.size, ctx.axis_name, (*carry, *[False] * residuals))
        test = ctx.transform(sweep.cond, cc + carry, ctx.size, ctx.axis_name)
        alone = test.batched_outputs[0]
        grown = (True,) * len(carry) if alone else either(carry, stepped.batched_outputs[: len(carry)])
        if grown == carry:
            break
        carry = grown
    cond_consts, consts, entry, _ = sweep.split(operands)
    was = sweep.split(batched)[2]
    entry = [ctx.to_front(x, None) if on and not old else x for x, old, on in zip(entry, was, carry, strict=True)]
    if not alone:
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
        """The linear program for the lanes that live; what it gives for the others is `unchanged`."""
        moved = batched_function(ctx, original, cs + (True,) * (residuals + tangents))

        def run(inputs: list[Any]) -> list[Operand]:
            known, mask = inputs[first : second + residuals], inputs[second + residuals]
            given = inputs[second + residuals + 1 :]
            results = moved(mask, [*known, *given])
            olds = unchanged(given)
            pairs = zip(results, [None] * (len(results) - len(olds)) + olds, strict=True)
            return [where_live(mask, y, zeros(y.type) if old is None else old) for y, old in pairs]

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
