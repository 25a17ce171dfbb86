"""Derivative of a while_loop in bounded memory: primitives on sweeps (`sweeps`), linear in their last operands.

    loop_push(cond_consts, c, x, dc, dx) -> dx                 the tangents after the loop
    loop_pull(cond_consts, c, x, ct c, ct x) -> ct c, ct x     its transpose, by checkpoints (`checkpoint_schedule`)
    loop_bend(cond_consts, c, x, ct, dc, dx, d ct) -> d ct     the derivative of loop_pull, ct for both cotangents

loop_pull adds to the cotangents of the constants that it is given. Only the loop's operands are kept between the loop
and its derivative. The derivative of pulling back through a loop is pulling back through the loop that also carries
tangents. Its dependence on dc and dx is a Hessian, its own transpose. So derivatives of every order are sweeps, within
the same memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tracer.ir.primitive import Composite, Eager, Joint, Linearized, Primitive, Zero
from tracer.ir.program import Program
from tracer.ir.types import Type, tangent_type
from tracer.primitives.base.nested_programs import Axes, active_of, batched_of, effects_of, move_to_front, pick
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.rules import is_linear
from tracer.primitives.control.reverse.checkpoint_schedule import pull_in_memory
from tracer.primitives.control.reverse.sweep_derivatives import (
    Jvp,
    adjoint,
    among,
    is_square,
    jvp_of_split,
    keeping_carries,
    own_of,
    pushed_forward,
    widened,
)
from tracer.primitives.control.reverse.sweeps import Sweep, batched_sweep, sweep_of
from tracer.primitives.control.while_loop import while_p
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage
from tracer.trace.trace import Operand, bind_all

_EFFECTS = effects_of("cond", "forward")


def _more_moving(sweep: Sweep, active: Sequence[bool], jvp: Jvp) -> Sweep:
    """Widen the sweep: constants and carries move that are flagged among the operands."""
    _, consts, carry, _ = sweep.split(active)
    return widened(sweep, (*consts, *carry), jvp)


def _tangents(ctx: Any, sweep: Sweep, wider: Sweep, dxs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return tangents of the constants and carries that move in `wider`, and of all their cotangents."""
    _, consts, carry, moved = sweep.split(dxs)
    tangents = [ctx.instantiate(dx) for dx in pick([*consts, *carry], wider.moving)]
    return tangents, _with_zeros(ctx, sweep, wider, [ctx.instantiate(dx) for dx in moved])


def _with_zeros(ctx: Any, sweep: Sweep, wider: Sweep, cotangents: Sequence[Any]) -> list[Any]:
    """Return cotangents of all that moves in `wider`, zeros where `sweep` pulls nothing back."""
    assert wider.backward is not None
    if wider is sweep:
        return list(cotangents)
    return among(wider, sweep, cotangents, [ctx.zeros(type) for type in wider.backward.output_types])


def _operands(ctx: Any, sweep: Sweep, wider: Sweep, xs: Sequence[Any]) -> list[Any]:
    """Convert the operands of `loop_pull` on `sweep` to operands on `wider`."""
    cond_consts, consts, carry, cotangents = sweep.split(xs)
    return [*cond_consts, *consts, *carry, *_with_zeros(ctx, sweep, wider, cotangents)]


def _batched(ctx: Any, xs: Sequence[Any], axes: Axes, sweep: Sweep) -> tuple[Sweep, list[Any], list[Any]]:
    """Return the batched sweep, its operands, and the remaining operands, batched."""
    known = sweep.cond_consts + len(sweep.moving)
    operands = move_to_front(ctx, xs[:known], axes[:known])
    wide, operands = batched_sweep(ctx, sweep, operands, batched_of(axes[:known]))
    return wide, operands, [ctx.to_front(x, axis) for x, axis in zip(xs[known:], axes[known:], strict=True)]


def _reordering(order: list[int], active: Sequence[bool]) -> tuple[list[int], list[int]]:
    """Return `order`, positions of operands in another primitive, and where each active one's tangent is given."""
    positions = [i for i, on in enumerate(active) if on]
    return order, [positions.index(i) for i in order if active[i]]


def _kept(*, memory: int, **params: Any) -> int:
    return memory


# loop_push


def _push_loop(sweep: Sweep) -> tuple[Program, Program]:
    """Return the condition and body of the loop that carries (x, dx), with constants (c, dc)."""
    c, x, m = sweep.consts, sweep.carries, sum(sweep.moving_consts)
    tangents = sweep.linear.input_types[c + len(sweep.residual_types) :]
    dc, dx = tangents[:m], tangents[m:]

    def body(inputs: list[Any]) -> list[Operand]:
        consts, d_consts, carry, d_carry = (
            inputs[:c], inputs[c : c + m], inputs[c + m : c + m + x], inputs[c + m + x :],
        )  # fmt: skip
        results = evaluate(sweep.forward, [*consts, *carry])
        return [*results[:x], *evaluate(sweep.linear, [*consts, *results[x:], *d_consts, *d_carry])]

    def cond(inputs: list[Any]) -> list[Operand]:
        return evaluate(sweep.cond, inputs[: len(sweep.cond.inputs)])

    types = [*sweep.forward.input_types[:c], *dc, *sweep.forward.input_types[c:], *dx]
    longer = stage(cond, [*sweep.cond.input_types, *dx], name=sweep.cond.name).program
    return longer, stage(body, types, name=sweep.forward.name).program


def _push_params(sweep: Sweep) -> dict[str, Any]:
    """Return the parameters of `_push_loop` as a while_loop."""
    cond, body = _push_loop(sweep)
    consts = sweep.consts + sum(sweep.moving_consts)
    return {
        "cond": cond, "body": body, "cond_consts": sweep.cond_consts, "body_consts": consts, "memory": sweep.memory,
    }  # fmt: skip


def _push_operands(sweep: Sweep, values: Sequence[Any]) -> list[Any]:
    """Return the operands of `loop_push` in the order of `_push_loop`."""
    cond_consts, consts, carry, tangents = sweep.split(values)
    m = sum(sweep.moving_consts)
    return [*cond_consts, *consts, *tangents[:m], *carry, *tangents[m:]]


def _push_expand(*operands: Any, **params: Any) -> list[Any]:
    sweep = sweep_of(params)
    return bind_all(while_p, _push_operands(sweep, operands), _push_params(sweep))[sweep.carries :]


def _push_jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], **params: Any) -> Any:
    sweep = sweep_of(params)
    assert isinstance(while_p.jvp, Joint)
    operands, tangents = _push_operands(sweep, xs), _push_operands(sweep, dxs)
    ys, dys = while_p.jvp.rule(ctx, operands, tangents, **_push_params(sweep))
    return ys[sweep.carries :], dys[sweep.carries :]


def _push_linearize(ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], **params: Any) -> Linearized:
    sweep = sweep_of(params)
    assert while_p.linearize is not None
    order, given = _reordering(_push_operands(sweep, range(len(xs))), active)
    moved = tuple(active[i] for i in order)
    linearized: Linearized = while_p.linearize(ctx, [xs[i] for i in order], moved, **_push_params(sweep))

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> Sequence[Any]:
        return linearized.apply(residuals, [dxs[i] for i in given])[sweep.carries :]

    return Linearized(linearized.outputs[sweep.carries :], linearized.residuals, apply)


def _push_transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any], **params: Any) -> list[Any]:
    sweep = sweep_of(params)
    known = sweep.cond_consts + len(sweep.moving)
    tangents = sum(sweep.moving)
    flags = (False,) * (len(sweep.linear.inputs) - tangents) + (True,) * tangents
    backward = ctx.transform(sweep.linear, flags, None, True, _constants_first(sweep)).program
    arriving = [*_sums(ctx, xs, range(known, known + sum(sweep.moving_consts))), *(ctx.instantiate(ct) for ct in cts)]
    results = bind_all(loop_pull_p, [*xs[:known], *arriving], {**params, "backward": backward})
    return [None] * known + [ct if is_linear(x) else None for ct, x in zip(results, xs[known:], strict=True)]


def _constants_first(sweep: Sweep) -> tuple[bool, ...]:
    """Return flags of the constants, among all that moves."""
    return (*[True] * sum(sweep.moving_consts), *[False] * sum(sweep.moving_carries))


def _sums(ctx: Any, xs: Sequence[Any], positions: Sequence[int]) -> list[Any]:
    """Return the sums that already reach the operands at these positions, or zeros."""
    totals = [ctx.claim(i) if is_linear(xs[i]) else None for i in positions]
    return [
        ctx.zeros(tangent_type(xs[i].type)) if total is None else total
        for i, total in zip(positions, totals, strict=True)
    ]


def _push_batch(ctx: Any, xs: Sequence[Any], axes: Axes, **params: Any) -> Any:
    wide, operands, tangents = _batched(ctx, xs, axes, sweep_of(params))
    results = bind_all(loop_push_p, [*operands, *tangents], wide.params)
    return results, [0] * len(results)


def _push_reference(*values: Any, **params: Any) -> list[Any]:
    sweep = sweep_of(params)
    cond_consts, consts, carry, tangents = sweep.split(values)
    m = sum(sweep.moving_consts)
    d_consts, d_carry = tangents[:m], tangents[m:]
    while bool(run_reference(sweep.cond, [*cond_consts, *carry])[0]):
        results = run_reference(sweep.forward, [*consts, *carry])
        carry, residuals = results[: sweep.carries], results[sweep.carries :]
        d_carry = run_reference(sweep.linear, [*consts, *residuals, *d_consts, *d_carry])
    return d_carry


loop_push_p = Primitive(
    name="loop_push", infer=lambda *types, linear, **params: linear.output_types,
    reference=_push_reference, jvp=Joint(_push_jvp), linearize=_push_linearize, transpose=_push_transpose,
    batch=_push_batch, lower=Composite(_push_expand, keeps=_kept), effects=_EFFECTS, multiple=True,
    eager=Eager.COMPILED,
)  # fmt: skip


# loop_pull


def _pull_reference(*values: Any, **params: Any) -> list[Any]:
    sweep = sweep_of(params)
    assert sweep.backward is not None
    cond_consts, consts, carry, cotangents = sweep.split(values)
    kept = []
    while bool(run_reference(sweep.cond, [*cond_consts, *carry])[0]):
        results = run_reference(sweep.forward, [*consts, *carry])
        carry = results[: sweep.carries]
        kept.append(results[sweep.carries :])
    for residuals in reversed(kept):
        cotangents = run_reference(sweep.backward, [*consts, *residuals, *cotangents])
    return cotangents


def _pushed_operands(sweep: Sweep, xs: Sequence[Any], tangents: Sequence[Any], moved: Sequence[Any]) -> list[Any]:
    """Convert the operands of `loop_pull` on this loop to operands on the loop that carries tangents."""
    cond_consts, consts, carry, cts = sweep.split(xs)
    m = sum(sweep.moving_consts)
    arriving = [*moved[:m], *cts[:m], *moved[m:], *cts[m:]]
    return [*cond_consts, *consts, *tangents[:m], *carry, *tangents[m:], *arriving]


def _halves(sweep: Sweep, results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Split results of `loop_pull` on the loop that carries tangents: this loop's results, and their derivatives."""
    m, n = sum(sweep.moving_consts), sum(sweep.moving_carries)
    a, b, c = m, 2 * m, 2 * m + n
    return [*results[a:b], *results[c:]], [*results[:a], *results[b:c]]


def _pull_jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], **params: Any) -> Any:
    sweep = sweep_of(params)
    wider = _more_moving(sweep, active_of(dxs), ctx.transform)
    wide = pushed_forward(wider, ctx.transform)
    tangents, moved = _tangents(ctx, sweep, wider, dxs)
    operands = _pushed_operands(wider, _operands(ctx, sweep, wider, xs), tangents, moved)
    results = bind_all(loop_pull_p, operands, wide.params)
    ys, dys = _halves(wider, results)
    return own_of(wider, sweep, ys), own_of(wider, sweep, dys)


def _pull_linearize(ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], **params: Any) -> Linearized:
    sweep = sweep_of(params)

    def jvp(*args: Any) -> Any:
        return jvp_of_split(ctx.transform, *args)

    wider = _more_moving(sweep, active, jvp)
    tangent_types = map(tangent_type, pick(wider.forward.input_types, wider.moving))
    base = wider if wider.symmetric and is_square(wider, list(tangent_types)) else keeping_carries(wider)
    wide = pushed_forward(base, jvp)
    bend = {**base.params, "d_forward": wide.forward, "d_linear": wide.linear, "d_backward": wide.backward}
    types = [tangent_type(x.type) for x in xs]

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        given = iter(dxs)
        full = [next(given) if on else Zero(t) for on, t in zip(active, types, strict=True)]
        tangents, moved = _tangents(ctx, sweep, wider, full)
        operands = [*_operands(ctx, sweep, wider, residuals), *tangents, *moved]
        return own_of(wider, sweep, bind_all(loop_bend_p, operands, bend))

    return Linearized(bind_all(loop_pull_p, xs, params), list(xs), apply)


def _pull_transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any], **params: Any) -> list[Any]:
    sweep = sweep_of(params)
    known = sweep.cond_consts + len(sweep.moving)
    without = {name: value for name, value in params.items() if name != "backward"}
    results = bind_all(loop_push_p, [*xs[:known], *(ctx.instantiate(ct) for ct in cts)], without)
    given = [*cts[: sum(sweep.moving_consts)], *results]
    return [None] * known + [ct if is_linear(x) else None for ct, x in zip(given, xs[known:], strict=True)]


def _pull_batch(ctx: Any, xs: Sequence[Any], axes: Axes, **params: Any) -> Any:
    """Batch all that moves along with its cotangents, so that second derivatives stay square, and in bounded memory."""
    sweep = sweep_of(params)
    moving = (*[False] * sweep.cond_consts, *sweep.moving, *[False] * sum(sweep.moving))
    spread = [ctx.to_front(x, axis) if on else x for x, axis, on in zip(xs, axes, moving, strict=True)]
    wide, operands, cotangents = _batched(
        ctx, spread, [0 if on else axis for axis, on in zip(axes, moving, strict=True)], sweep
    )
    results = bind_all(loop_pull_p, [*operands, *cotangents], wide.params)
    return results, [0] * len(results)


loop_pull_p = Primitive(
    name="loop_pull", infer=lambda *types, backward, **params: backward.output_types, reference=_pull_reference,
    jvp=Joint(_pull_jvp), linearize=_pull_linearize, transpose=_pull_transpose, batch=_pull_batch,
    lower=Composite(lambda *operands, **params: pull_in_memory(sweep_of(params), operands), keeps=_kept),
    effects=_EFFECTS, multiple=True, eager=Eager.COMPILED,
)  # fmt: skip


# loop_bend


def _sweeps_of(params: Mapping[str, Any]) -> tuple[Sweep, Sweep]:
    """Return the sweep, and the sweep of the loop which carries tangents."""
    own = {name: value for name, value in params.items() if not name.startswith("d_")}
    sweep = sweep_of(own)
    m = sum(sweep.moving_consts)
    dx = params["d_forward"].input_types[len(sweep.moving) + m :]

    def cond(inputs: list[Any]) -> list[Operand]:
        return evaluate(sweep.cond, inputs[: len(sweep.cond.inputs)])

    wide = {
        **own, "cond": stage(cond, [*sweep.cond.input_types, *dx], name=sweep.cond.name).program,
        "forward": params["d_forward"], "linear": params["d_linear"], "backward": params["d_backward"],
        "consts": sweep.consts + m,
        "moving": (
            *sweep.moving_consts, *[True] * m, *sweep.moving_carries, *[True] * sum(sweep.moving_carries)
        ),
    }  # fmt: skip
    return sweep, sweep_of(wide)


def _bend_operands(sweep: Sweep, values: Sequence[Any]) -> list[Any]:
    """Convert the operands of `loop_bend` to operands of the wider `loop_pull`."""
    tangents = sum(sweep.moving)
    known = sweep.cond_consts + len(sweep.moving) + tangents
    return _pushed_operands(sweep, values[:known], values[known : known + tangents], values[known + tangents :])


def _bend_expand(*operands: Any, **params: Any) -> list[Any]:
    sweep, wide = _sweeps_of(params)
    return _halves(sweep, bind_all(loop_pull_p, _bend_operands(sweep, operands), wide.params))[1]


def _bend_infer(*types: Type, **params: Any) -> tuple[Type, ...]:
    sweep, wide = _sweeps_of(params)
    assert wide.backward is not None
    return tuple(_halves(sweep, wide.backward.output_types)[1])


def _bend_reference(*values: Any, **params: Any) -> list[Any]:
    sweep, wide = _sweeps_of(params)
    return _halves(sweep, _pull_reference(*_bend_operands(sweep, values), **wide.params))[1]


def _bend_jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], **params: Any) -> Any:
    sweep, wide = _sweeps_of(params)
    operands, tangents = _bend_operands(sweep, xs), _bend_operands(sweep, dxs)
    ys, dys = _pull_jvp(ctx, operands, tangents, **wide.params)
    return _halves(sweep, ys)[1], _halves(sweep, dys)[1]


def _bend_linearize(ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], **params: Any) -> Linearized:
    sweep, wide = _sweeps_of(params)
    order, given = _reordering(_bend_operands(sweep, range(len(xs))), active)
    linearized = _pull_linearize(ctx, [xs[i] for i in order], tuple(active[i] for i in order), **wide.params)

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> Sequence[Any]:
        return _halves(sweep, linearized.apply(residuals, [dxs[i] for i in given]))[1]

    return Linearized(_halves(sweep, linearized.outputs)[1], linearized.residuals, apply)


def _bend_transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any], **params: Any) -> list[Any]:
    """Transpose a Hessian, which is symmetric except under custom rules. Cotangents' tangents are pushed forward."""
    sweep, wide = _sweeps_of(params)
    own = {name: v for name, v in params.items() if not name.startswith("d_") and name != "backward"}
    first, second = sweep.consts, len(sweep.moving) + sum(sweep.moving_consts)
    types = wide.forward.input_types
    moved = [*types[first : first + sum(sweep.moving_consts)], *types[second:]]
    if not (sweep.symmetric and is_square(sweep, moved)):
        assert wide.backward is not None
        other = adjoint(sweep, wide.forward, wide.backward, ctx.transform)
        assert other.backward is not None
        cotangents = 2 * sum(sweep.moving)
        flags = (*[False] * (len(other.backward.inputs) - cotangents), *[True] * cotangents)
        pushed = ctx.transform(other.backward, flags).program
        pushed = replace(pushed, outputs=pushed.outputs[2 * sum(sweep.moving_consts) :])
        params = {**params, "d_forward": other.forward, "d_linear": pushed, "d_backward": other.backward}
        own["linear"] = other.linear
    tangents, constants = sum(sweep.moving), sum(sweep.moving_consts)
    known = len(xs) - 2 * tangents
    arriving = [ctx.instantiate(ct) for ct in cts]
    found: list[Any] = [None] * len(xs)
    if any(map(is_linear, xs[known : known + tangents])):
        sums = _sums(ctx, xs, range(known, known + constants))
        rest = [*sums, *(ctx.zeros(x.type) for x in xs[known + constants : known + tangents])]
        found[known : known + tangents] = bind_all(loop_bend_p, [*xs[:known], *arriving, *rest], params)
    if any(map(is_linear, xs[known + tangents :])):
        entry = xs[: sweep.cond_consts + len(sweep.moving)]
        found[known + tangents :] = [*arriving[:constants], *bind_all(loop_push_p, [*entry, *arriving], own)]
    return [ct if is_linear(x) else None for ct, x in zip(found, xs, strict=True)]


def _bend_batch(ctx: Any, xs: Sequence[Any], axes: Axes, **params: Any) -> Any:
    sweep, wide = _sweeps_of(params)
    narrow, operands, others = _batched(ctx, xs, axes, sweep)
    known = len(xs) - len(others)
    every, places = [*xs[:known], *others], [*axes[:known], *[0] * len(others)]
    above, _, _ = _batched(ctx, _bend_operands(sweep, every), _bend_operands(sweep, places), wide)
    derived = {"d_forward": above.forward, "d_linear": above.linear, "d_backward": above.backward}
    results = bind_all(loop_bend_p, [*operands, *others], {**narrow.params, **derived})
    return results, [0] * len(results)


loop_bend_p = Primitive(
    name="loop_bend", infer=_bend_infer, reference=_bend_reference, jvp=Joint(_bend_jvp), linearize=_bend_linearize,
    transpose=_bend_transpose, batch=_bend_batch, lower=Composite(_bend_expand, keeps=_kept), effects=_EFFECTS,
    multiple=True, eager=Eager.COMPILED,
)  # fmt: skip

REVERSAL = (loop_push_p, loop_pull_p, loop_bend_p)
