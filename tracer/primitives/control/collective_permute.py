"""Collectives that move values between the lanes of a named batch axis: ppermute, all_to_all.

Batching by that axis turns a permutation into a concatenation of slices, and an exchange into a transposition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.ir.primitive import NoRule, Primitive
from tracer.ir.types import Type, with_shape
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.rules import linear_jvp
from tracer.primitives.base.shapes import Batched, moveaxis
from tracer.primitives.control.collectives import LAWS, ONLY_BATCHED
from tracer.trace.trace import bind

Pairs = tuple[tuple[int, int], ...]


# ppermute


def _permute_batch(
    ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], *, axis_name: object, perm: Pairs
) -> Batched:
    (x,), (axis,) = xs, axes
    if ctx.axis_name != axis_name:
        return ctx.bind_all(ctx.primitive, xs, {"axis_name": axis_name, "perm": perm}), [axis]
    lanes = ctx.to_front(x, axis)
    sources = [-1] * ctx.size
    for source, target in perm:
        sources[target] = source
    return [concatenate([_run(lanes, *run) for run in _runs(sources)], 0)], [0]


def _runs(sources: Sequence[int]) -> list[tuple[int, int]]:
    """Return runs of lanes that come from consecutive lanes, as (first source, count); -1 for lanes that get zeros."""
    runs: list[tuple[int, int]] = []
    for source in sources:
        if runs:
            first, count = runs[-1]
            if source == (-1 if first < 0 else first + count):
                runs[-1] = (first, count + 1)
                continue
        runs.append((source, 1))
    return runs


def _run(lanes: Any, first: int, count: int) -> Any:
    if first < 0:
        return zeros(with_shape(lanes.type, (count, *lanes.shape[1:])))
    return slice_in_dim(lanes, first, first + count)


ppermute_p = Primitive(
    name="ppermute", infer=lambda x, *, axis_name, perm: x, reference=NoRule(ONLY_BATCHED), jvp=linear_jvp,
    transpose=lambda ctx, cts, xs, *, axis_name, perm: [
        bind(ctx.primitive, cts[0], axis_name=axis_name, perm=tuple((target, source) for source, target in perm))
    ],
    batch=_permute_batch, lower=NoRule(ONLY_BATCHED), laws=LAWS,
)  # fmt: skip


# all_to_all


def _exchange_infer(x: Type, *, axis_name: object, axis_size: int, split_axis: int, concat_axis: int) -> Type:
    shape = [n for d, n in enumerate(x.shape) if d != split_axis]
    return with_shape(x, (*shape[:concat_axis], axis_size, *shape[concat_axis:]))


def _exchange_batch(
    ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], *, axis_name: object, axis_size: int, split_axis: int,
    concat_axis: int,
) -> Batched:  # fmt: skip
    (x,), (axis,) = xs, axes
    lanes = ctx.to_front(x, axis)
    if ctx.axis_name != axis_name:
        params = {"axis_name": axis_name, "axis_size": axis_size, "split_axis": split_axis + 1,
                  "concat_axis": concat_axis + 1}  # fmt: skip
        return ctx.bind_all(ctx.primitive, [lanes], params), [0]
    swapped = moveaxis(lanes, split_axis + 1, 0)  # [lane that receives, lane that sends, ...]
    return [moveaxis(swapped, 1, concat_axis + 1)], [0]


all_to_all_p = Primitive(
    name="all_to_all", infer=_exchange_infer, reference=NoRule(ONLY_BATCHED), jvp=linear_jvp,
    transpose=lambda ctx, cts, xs, *, split_axis, concat_axis, **params: [
        bind(ctx.primitive, cts[0], split_axis=concat_axis, concat_axis=split_axis, **params)
    ],
    batch=_exchange_batch, lower=NoRule(ONLY_BATCHED), laws=LAWS,
)  # fmt: skip


EXCHANGES = (ppermute_p, all_to_all_p)
