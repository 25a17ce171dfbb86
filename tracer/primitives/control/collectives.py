"""Collectives: operations across the lanes of a named batch axis. `tracer.lax.collectives` has the public functions.

Batching by that axis turns them into ordinary reductions. Batching by another axis keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir.primitive import NoRule, Primitive, Rule
from tracer.ir.types import Shape, Type, array_type, with_shape
from tracer.primitives.arrays.dynamic_slice import dynamic_slice
from tracer.primitives.arrays.reductions.reductions import reduce_max, reduce_min
from tracer.primitives.base.broadcasting import broadcast_in_dim, reduce_sum
from tracer.primitives.base.rules import linear_jvp
from tracer.primitives.base.shapes import Batched, iota, moveaxis, reshape
from tracer.primitives.elementwise.arithmetic import mul
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.trace import as_literal, bind

ONLY_BATCHED = "a collective is an operation across the lanes of vmap, which batching has replaced before it would run"
LAWS = {"all": "it stands in programs until vmap batches them by its axis, and is never executed"}


def size_of_axis(operation: str, name: object) -> int:
    """Return the size of a named batch axis. Raises ArgumentError outside of it."""
    size = state.axes.get(name)
    if size is None:
        known = ", ".join(map(repr, state.axes)) or "none"
        raise ArgumentError(
            message(
                f"{operation}{here()}: no batch axis is called {name!r}",
                f"there are {known}",
                help=f"map the function by vmap(f, axis_name={name!r})",
            )
        )
    return size


def _across(reduce: Callable[..., Any], unbatched: Callable[[Any, int], Any]) -> Rule:
    """Make the batch rule of a reduction: over the batch axis if it has the name, else lane by lane."""

    def batch(ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], *, axis_name: object) -> Batched:
        (x,), (axis,) = xs, axes
        if ctx.axis_name != axis_name:
            return ctx.bind_all(ctx.primitive, xs, {"axis_name": axis_name}), [axis]
        return [unbatched(x, ctx.size) if axis is None else reduce(x, (axis,))], [None]

    return batch


def _sum_transpose(ctx: Any, cts: Any, xs: Any, *, axis_name: object) -> list[Any]:
    return [bind(ctx.primitive, cts[0], axis_name=axis_name)]


psum_p = Primitive(
    name="psum", infer=lambda x, *, axis_name: x, reference=NoRule(ONLY_BATCHED),
    jvp=linear_jvp, transpose=_sum_transpose,
    batch=_across(reduce_sum, lambda x, size: mul(x, x.type.dtype.type(size))),
    lower=NoRule(ONLY_BATCHED), laws=LAWS,
)  # fmt: skip

pmax_p, pmin_p = (
    Primitive(
        name=name, infer=lambda x, *, axis_name: x, reference=NoRule(ONLY_BATCHED),
        jvp=NoRule(f"{name} has no derivative; all_gather and a maximum have"),
        transpose=NoRule(f"{name} is not linear"),
        batch=_across(reduce, lambda x, size: x), lower=NoRule(ONLY_BATCHED), laws=LAWS,
    )
    for name, reduce in (("pmax", reduce_max), ("pmin", reduce_min))
)  # fmt: skip


def _gather_infer(x: Type, *, axis_name: object, axis_size: int, axis: int) -> Type:
    return with_shape(x, (*x.shape[:axis], axis_size, *x.shape[axis:]))


def _gather_batch(
    ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], *, axis_name: object, axis_size: int, axis: int
) -> Batched:
    (x,), (lane,) = xs, axes
    if ctx.axis_name != axis_name:
        params = {"axis_name": axis_name, "axis_size": axis_size, "axis": axis + 1}
        return ctx.bind_all(ctx.primitive, [ctx.to_front(x, lane)], params), [0]
    if lane is not None:
        return [moveaxis(x, lane, axis)], [None]
    shape: Shape = x.type.shape
    kept = [d + (d >= axis) for d in range(len(shape))]
    return [broadcast_in_dim(x, (*shape[:axis], ctx.size, *shape[axis:]), kept)], [None]


def _gather_transpose(ctx: Any, cts: Any, xs: Any, *, axis_name: object, axis_size: int, axis: int) -> list[Any]:
    """Return each lane's own slice of the sum of all cotangents."""
    total = bind(psum_p, cts[0], axis_name=axis_name)
    starts = [
        bind(axis_index_p, axis_name=axis_name) if d == axis else as_literal(0, dtypes.I64) for d in range(total.ndim)
    ]
    sizes = [1 if d == axis else n for d, n in enumerate(total.shape)]
    return [reshape(dynamic_slice(total, starts, sizes), xs[0].type.shape)]


all_gather_p = Primitive(
    name="all_gather", infer=_gather_infer, reference=NoRule(ONLY_BATCHED),
    jvp=linear_jvp, transpose=_gather_transpose, batch=_gather_batch, lower=NoRule(ONLY_BATCHED), laws=LAWS,
)  # fmt: skip


def _index_batch(ctx: Any, xs: Any, axes: Any, *, axis_name: object) -> Batched:
    if ctx.axis_name != axis_name:
        return [bind(axis_index_p, axis_name=axis_name)], [None]
    return [iota(dtypes.I32, ctx.size)], [0]


axis_index_p = Primitive(
    name="axis_index", infer=lambda *, axis_name: array_type(dtypes.I32, ()), reference=NoRule(ONLY_BATCHED),
    jvp=NoRule("axis_index has no operands"), transpose=NoRule("axis_index has no operands"), batch=_index_batch,
    lower=NoRule(ONLY_BATCHED), laws=LAWS,
)  # fmt: skip


COLLECTIVES = (psum_p, pmax_p, pmin_p, all_gather_p, axis_index_p)
