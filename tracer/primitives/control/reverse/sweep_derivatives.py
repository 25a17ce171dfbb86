"""Derivatives of sweeps, which are sweeps: of the loop that carries tangents along, and the transpose of that.

Pulling back (`backward`) is linear in cotangents u. With tangents v of constants and carries, its derivative is

    du <- B du + G v        going back, where        v <- A v        went forwards.

`pushed_forward` makes that a sweep of (x, v), and `adjoint` its transpose. Tangents and cotangents may have different
types: if only cotangents are batched, the tangents are shared by all lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tracer.ir.program import Program
from tracer.ir.types import Type, tangent_type
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.nested_programs import either, fixpoint, pick
from tracer.primitives.control.reverse.sweeps import Sweep
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage
from tracer.trace.trace import Operand

Jvp = Callable[..., Any]  # as `jvp_program`: (program, active, instantiate) -> program, active outputs


def keeping_carries(sweep: Sweep) -> Sweep:
    """Return the sweep with the carries as residuals of a step; the step's own residuals are recomputed from them."""
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


def is_square(sweep: Sweep, tangents: Sequence[Type]) -> bool:
    """Return whether tangents have the types of the cotangents. They do not if only the cotangents are batched."""
    assert sweep.backward is not None
    return list(tangents) == list(sweep.backward.output_types)


def adjoint(sweep: Sweep, d_forward: Program, d_backward: Program, transpose: Callable[..., Any]) -> Sweep:
    """Return the transpose of `d_forward` and `d_backward` with respect to tangents, as a sweep. `sweep` keeps carries.

    A, B and G are as in the module's docstring. v are the tangents of constants, which stay as they are, and carries:

        v <- A v             forwards         dual t of the cotangents' tangents:    t <- B^T t
        du <- B du + G v     back             dual w of v:                           w <- A^T w + G^T t

    So it is a sweep of equal form, with t for v and w for du. `linear` is B^T.
    """
    assert sweep.backward is not None
    backward, c, x = sweep.backward, sweep.consts, sweep.carries
    m, n = sum(sweep.moving_consts), sum(sweep.moving_carries)
    steps = replace(d_forward, outputs=d_forward.outputs[x : x + n])
    pulls = replace(d_backward, outputs=(*d_backward.outputs[:m], *d_backward.outputs[2 * m : 2 * m + n]))
    moving = (*[False] * c, *[True] * m, *[False] * x, *[True] * n)
    cotangents = (*[True] * m, *[False] * m, *[True] * n, *[False] * n)
    added = (*[True] * (m + n), *[False] * (m + n))
    # (c, x, w) -> w; (c, x, u, w, t) -> w, t
    step_back = transpose(steps, moving, None, True, (*[True] * m, *[False] * n)).program
    pull_back = transpose(pulls, (*moving, *cotangents), None, True, added).program
    own, u = sweep.forward.input_types, backward.output_types
    w = (*d_forward.input_types[c : c + m], *steps.output_types)
    carried = [*own[:c], *u[:m], *own[c:], *u[m:]]

    def push(inputs: list[Any]) -> list[Operand]:
        nothing = [zeros(type) for type in (*u, *w)]
        return evaluate(pull_back, [*inputs[: c + x], *nothing, *inputs[c + x :]])[2 * m + n :]

    pushing = stage(push, [*own, *u], name=sweep.linear.name).program

    def forward(inputs: list[Any]) -> list[Operand]:
        consts, tc, carry, tx = inputs[:c], inputs[c : c + m], inputs[c + m : c + m + x], inputs[c + m + x :]
        new = evaluate(sweep.forward, [*consts, *carry])[:x]
        return [*new, *evaluate(pushing, [*consts, *carry, *tc, *tx]), *carry, *tx]

    def back(inputs: list[Any]) -> list[Operand]:
        consts, tc, carry, rest = inputs[:c], inputs[c : c + m], inputs[c + m : c + m + x], inputs[c + m + x :]
        tx, rest = rest[:n], rest[n:]
        dual, ct = [*rest[:m], *rest[2 * m : 2 * m + n]], [*rest[m : 2 * m], *rest[2 * m + n :]]
        pulled = evaluate(step_back, [*consts, *carry, *dual])
        total = evaluate(pull_back, [*consts, *carry, *ct, *pulled, *tc, *tx])
        before = evaluate(backward, [*consts, *carry, *ct])
        return [*total[:m], *before[:m], *total[m : m + n], *before[m:]]

    return replace(
        sweep,
        forward=stage(forward, carried, name=d_forward.name).program,
        linear=pushing,
        backward=stage(back, [*carried, *w[:m], *u[:m], *w[m:], *u[m:]], name=d_backward.name).program,
    )


def widened(sweep: Sweep, active: Sequence[bool], jvp: Jvp) -> Sweep:
    """Return the sweep in which the flagged constants and carries move too, and the carries that they move.

    Nothing is pulled back to the added constants and carries: their cotangents pass through steps unchanged. So second
    derivatives in variables that the first held fixed have sums and carries of their own.
    """
    moving = either(sweep.moving, active)
    if moving == sweep.moving:
        return sweep
    residuals = [False] * len(sweep.residual_types)

    def step(flags: tuple[bool, ...]) -> tuple[None, Sequence[bool]]:
        derived = jvp(sweep.forward, flags, (*flags[sweep.consts :], *residuals))
        return None, (*flags[: sweep.consts], *derived.active_outputs[: sweep.carries])

    _, moving = fixpoint(moving, step)
    wider = replace(sweep, moving=moving, symmetric=False)
    others = [tangent_type(t) for t, on in zip(sweep.forward.input_types, moving, strict=True) if on]

    def padded(program: Program, constants: bool) -> Program:
        """Return the linear program on all that moves. constants: whether cotangents of the constants are results."""
        known = len(program.inputs) - sum(sweep.moving)
        own = program.input_types[known:]

        def run(inputs: list[Any]) -> list[Operand]:
            given = inputs[known:]
            results = evaluate(program, [*inputs[:known], *own_of(wider, sweep, given)])
            kept = [] if constants else own_of(wider, sweep, given)[: sum(sweep.moving_consts)]
            total = among(wider, sweep, [*kept, *results], given)
            return total if constants else total[sum(wider.moving_consts) :]

        return stage(run, [*program.input_types[:known], *among(wider, sweep, own, others)], name=program.name).program

    assert sweep.backward is not None
    return replace(wider, linear=padded(sweep.linear, False), backward=padded(sweep.backward, True))


def own_of(wider: Sweep, sweep: Sweep, values: Sequence[Any]) -> list[Any]:
    """Pick the moving values of `sweep` from the moving values of `wider`."""
    return pick(values, pick(sweep.moving, wider.moving))


def among(wider: Sweep, sweep: Sweep, own: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Merge moving values of `sweep` (`own`) into moving values of `wider` (`others`)."""
    given = iter(own)
    return [next(given) if on else x for x, on in zip(others, pick(sweep.moving, wider.moving), strict=True)]


def pushed_forward(sweep: Sweep, jvp: Jvp) -> Sweep:
    """Return the sweep of the loop that carries (x, dx), with constants (c, dc).

    Its cotangents are the cotangents of (dc, c) and (dx, x), in this order: (d ct c, ct c, d ct x, ct x). So pulling
    them back is the derivative of `backward`.
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
    """Return the jvp of a program made of its linearisation, for rules that have only that."""
    split = linearize(program, active, instantiate)
    count = len(program.inputs)

    def run(inputs: list[Any]) -> list[Operand]:
        results = evaluate(split.forward, inputs[:count])
        residuals = split.residuals(inputs[:count], results)
        return [*results[: len(program.outputs)], *evaluate(split.linear, [*residuals, *inputs[count:]])]

    tangents = [tangent_type(t) for t, on in zip(program.input_types, active, strict=True) if on]
    return _Derived(stage(run, [*program.input_types, *tangents], name=program.name).program, split.active_outputs)


class _Derived(NamedTuple):
    """Program and its active outputs, as `jvp_program` gives them."""

    program: Program
    active_outputs: tuple[bool, ...]


def _reordered(program: Program, inputs: Sequence[int], outputs: Sequence[int] | None = None) -> Program:
    assert len(inputs) == len(program.inputs)
    chosen = range(len(program.outputs)) if outputs is None else outputs
    return Program(
        tuple(program.inputs[i] for i in inputs), program.equations, tuple(program.outputs[i] for i in chosen),
        program.name,
    )  # fmt: skip


def _longer(cond: Program, types: Sequence[Type]) -> Program:
    """Return the condition with more carries, which it does not read."""

    def run(inputs: list[Any]) -> list[Operand]:
        return evaluate(cond, inputs[: len(cond.inputs)])

    return stage(run, [*cond.input_types, *types], name=cond.name).program
