"""`stand_in`: operands for the dead lanes of a batch, where arrays that all lanes share are differentiated.

A batch also computes dead lanes, which are done or took another branch. Slopes may be infinite there. For a lane's own
operands, `live` drops that gradient. The gradient of a shared array is a sum over lanes. One product of zero and
infinity turns it to NaN. So once such an array moves, dead lanes compute on the operands of a live lane, where slopes
are finite. A program that is not differentiated computes as if `stand_in` were the identity.

With masks of several axes (batches of batches) an operand has the first `lanes` axes of the mask. It has none if all
lanes share it, all if each lane has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

from tracer.ir.primitive import Composite, Joint, Linearized, Primitive, Zero
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.types import ArrayType, is_differentiable
from tracer.ir.visit import equations
from tracer.primitives.arrays.dynamic_slice import dynamic_slice
from tracer.primitives.arrays.indexing.gather import take_along
from tracer.primitives.arrays.reductions.reductions import argmax, reduce_or
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.nested_programs import Axes
from tracer.primitives.base.rules import is_linear
from tracer.primitives.elementwise.comparison import select
from tracer.primitives.elementwise.stop_gradient import live, masked
from tracer.trace.array import Array
from tracer.trace.trace import bind_all

Lanes = tuple[int, ...]


def in_live_lanes(mask: Any, xs: Sequence[Any], batched: Sequence[bool], *programs: Program) -> list[Any]:
    """Return the operands of programs that run in all lanes of a batch, although only lanes in the mask count.

    mask: bool [lanes]. xs: [lanes, ...] where batched, else shared by all lanes. Programs with collectives get the
    operands unchanged: their live lanes read values of dead ones.
    """
    if any(map(_reaches_across, programs)):
        return list(xs)
    values = [live(mask, x) if on else x for x, on in zip(xs, batched, strict=True)]
    if not any(_is_shared(x) and not on for x, on in zip(xs, batched, strict=True)):
        return values
    positions = [i for i, x in enumerate(values) if isinstance(x.type, ArrayType) and isinstance(x, Array)]
    lanes = tuple(int(batched[i]) for i in positions)
    results = bind_all(stand_in_p, [mask, *(values[i] for i in positions)], {"lanes": lanes})
    for i, y in zip(positions, results, strict=True):
        values[i] = y
    return values


def _reaches_across(program: Program) -> bool:
    """Return whether the program has collectives over a batch axis that is still to be added."""
    return any("axis_name" in equation.params and equation.inputs for equation in equations(program))


def _is_shared(x: Any) -> bool:
    return isinstance(x, Array) and isinstance(x.type, ArrayType) and is_differentiable(x.type)


def unchanged(tape: Sequence[Equation]) -> dict[Var, Atom]:
    """Map the outputs of operands that all lanes share to these operands, which pass through as they are."""
    return {
        y: x
        for equation in tape
        if equation.primitive is stand_in_p
        for x, y, lanes in zip(equation.inputs[1:], equation.outputs, equation.params["lanes"], strict=True)
        if not lanes
    }


def _reached(mask: Any, lanes: int) -> Any:
    """Return which indices along the first axes of the mask have a live lane: bool [the first `lanes` axes]."""
    rank = len(mask.type.shape)
    return mask if lanes == rank else reduce_or(mask, tuple(range(lanes, rank)))


def _where_reached(mask: Any, x: Any, lanes: int) -> Any:
    """Return a tangent or cotangent where a live lane needs it, else zero."""
    if 0 in mask.type.shape:
        return x
    return masked(_reached(mask, lanes), x)


def _filled(mask: Any, x: Any, lanes: int) -> Any:
    """Return the operand with a live lane's values in dead lanes.

    They come from a live lane of the same row if there is one, else from any live lane.
    """
    shape = x.type.shape
    if 0 in mask.type.shape:
        return x
    for axis in reversed(range(lanes)):
        here = _reached(mask, axis + 1)
        first = argmax(here, axis)
        if axis:
            single = (*shape[:axis], 1, *shape[axis + 1 :])
            picked = take_along(x, broadcast_in_dim(first, single, tuple(range(axis))), axis)
        else:
            picked = dynamic_slice(x, [first, *[0] * (len(shape) - 1)], (1, *shape[1:]))
        every = tuple(range(len(shape)))
        x = select(broadcast_in_dim(here, shape, every[: axis + 1]), x, broadcast_in_dim(picked, shape, every))
    return x


def _stood_in(xs: Sequence[Any], active: Sequence[bool], lanes: Lanes) -> Sequence[Any]:
    """Return the outputs if the flagged operands move."""
    mask, values = xs[0], list(xs[1:])
    if any(on and n < len(mask.type.shape) for on, n in zip(active[1:], lanes, strict=True)):
        values = [_filled(mask, x, n) for x, n in zip(values, lanes, strict=True)]
    return bind_all(stand_in_p, [mask, *values], {"lanes": lanes})


def _moved(mask: Any, dxs: Sequence[Any], lanes: Lanes) -> list[Any]:
    return [dx if isinstance(dx, Zero) else _where_reached(mask, dx, n) for dx, n in zip(dxs, lanes, strict=True)]


def _jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], *, lanes: Lanes) -> Any:
    active = [not isinstance(dx, Zero) for dx in dxs]
    return _stood_in(xs, active, lanes), _moved(xs[0], dxs[1:], lanes)


def _linearize(ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], *, lanes: Lanes) -> Linearized:
    outputs = _stood_in(xs, active, lanes)
    zeros = [None if on else Zero(y.type) for on, y in zip(active[1:], outputs, strict=True)]

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        given = iter(dxs)
        return _moved(residuals[0], [next(given) if zero is None else zero for zero in zeros], lanes)

    return Linearized(outputs, [xs[0]], apply)


def _transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any], *, lanes: Lanes) -> list[Any]:
    moved = _moved(xs[0], cts, lanes)
    return [None, *(ct if is_linear(x) else None for ct, x in zip(moved, xs[1:], strict=True))]


def _batch(ctx: Any, xs: Sequence[Any], axes: Axes, *, lanes: Lanes) -> Any:
    own = tuple(bool(n) or axis is not None for n, axis in zip(lanes, axes[1:], strict=True))
    fronted = [ctx.to_front(x, axis) if on else x for x, axis, on in zip(xs, axes, (True, *own), strict=True)]
    results = bind_all(stand_in_p, fronted, {"lanes": tuple(n + on for n, on in zip(lanes, own, strict=True))})
    return results, [0 if on else None for on in own]


def _part(equation: Equation, chosen: Sequence[bool]) -> Equation:
    """Return the equation of the flagged operands alone: each output belongs to one operand."""
    mask, *operands = equation.inputs
    inputs, outputs = tuple(compress(operands, chosen)), tuple(compress(equation.outputs, chosen))
    lanes = tuple(compress(equation.params["lanes"], chosen))
    return replace(equation, inputs=(mask, *inputs), params={"lanes": lanes}, outputs=outputs)


stand_in_p = Primitive(
    name="stand_in", infer=lambda mask, *xs, lanes: xs, reference=lambda mask, *xs, lanes: [x.copy() for x in xs],
    jvp=Joint(_jvp), linearize=_linearize, transpose=_transpose,
    batch=_batch, lower=Composite(lambda mask, *xs, lanes: xs), multiple=True, part=_part,
    laws={
        "jvp": "dead lanes have no derivative on purpose",
        "transpose": "it is the identity forward, and drops the cotangents of dead lanes",
    },
)  # fmt: skip

STAND_INS = (stand_in_p,)
