"""Collectives that move values between the lanes of a named batch axis: ppermute, all_to_all, psum_scatter.

Batching by that axis turns a permutation into slices put together anew, and an exchange into a transposition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import NoRule, Primitive
from tracer.ir.types import Type, with_shape
from tracer.primitives.broadcasting import axis_of
from tracer.primitives.collectives import axis_index, psum, size_of_axis
from tracer.primitives.joining import concatenate, slice_in_dim
from tracer.primitives.rules import linear_jvp
from tracer.primitives.shapes import Batched, moveaxis, reshape
from tracer.primitives.slicing import dynamic_slice
from tracer.primitives.zeros import zeros
from tracer.trace import trees
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.trace.trace import as_literal, bind

Pairs = tuple[tuple[int, int], ...]

_ONLY_BATCHED = "a collective is an operation across the lanes of vmap, which batching has replaced before it would run"
_LAWS = {"all": "it stands in programs until vmap batches them by its axis, and is never executed"}


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
    """Lanes that come from neighbours, in order, as (first source, count); -1 for lanes that get zeros."""
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
    name="ppermute", infer=lambda x, *, axis_name, perm: x, reference=NoRule(_ONLY_BATCHED), jvp=linear_jvp,
    transpose=lambda ctx, cts, xs, *, axis_name, perm: [
        bind(ctx.primitive, cts[0], axis_name=axis_name, perm=tuple((target, source) for source, target in perm))
    ],
    batch=_permute_batch, lower=NoRule(_ONLY_BATCHED), laws=_LAWS,
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
    name="all_to_all", infer=_exchange_infer, reference=NoRule(_ONLY_BATCHED), jvp=linear_jvp,
    transpose=lambda ctx, cts, xs, *, split_axis, concat_axis, **params: [
        bind(ctx.primitive, cts[0], split_axis=concat_axis, concat_axis=split_axis, **params)
    ],
    batch=_exchange_batch, lower=NoRule(_ONLY_BATCHED), laws=_LAWS,
)  # fmt: skip


# Public twins


def ppermute(x: Any, axis_name: object, perm: Sequence[tuple[int, int]]) -> Any:
    """Send every leaf's values between lanes: perm holds pairs (source, target). Lanes that receive nothing get zeros.

    Raises ArgumentError where a lane sends or receives twice, or is not there.

    >>> shift = lambda x: tracer.lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> tracer.vmap(shift, axis_name="i")(tnp.asarray([1.0, 2.0, 3.0]))
    Array([0., 1., 2.], f64)
    """
    size = size_of_axis("ppermute", axis_name)
    pairs = tuple((int(source), int(target)) for source, target in perm)
    for role, lanes in (("sends", [p[0] for p in pairs]), ("receives", [p[1] for p in pairs])):
        if len(set(lanes)) != len(lanes) or not all(0 <= lane < size for lane in lanes):
            raise ArgumentError(
                message(
                    f"ppermute{here()}: each of the {size} lanes {role} once at most",
                    f"got {list(pairs)}",
                    help="perm holds pairs (source, target) of different lanes, counted from 0",
                )
            )
    return trees.tree_map(lambda leaf: bind(ppermute_p, as_array(leaf, "ppermute"), axis_name=axis_name, perm=pairs), x)


def pshuffle(x: Any, axis_name: object, perm: Sequence[int]) -> Any:
    """Lane i gets the values of lane perm[i], of every leaf.

    >>> tracer.vmap(lambda x: tracer.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(tnp.asarray([1.0, 2.0, 3.0]))
    Array([3., 1., 2.], f64)
    """
    size = size_of_axis("pshuffle", axis_name)
    if sorted(perm) != list(range(size)):
        raise ArgumentError(
            message(f"pshuffle{here()}: perm is a permutation of the {size} lanes", f"got {list(perm)}")
        )
    return ppermute(x, axis_name, [(source, target) for target, source in enumerate(perm)])


def all_to_all(x: Any, axis_name: object, split_axis: int, concat_axis: int, *, tiled: bool = False) -> Any:
    """Every lane sends its i-th slice along `split_axis` to lane i, and stacks what it gets along `concat_axis`.

    split_axis has the size of the batch axis and goes; concat_axis is new. With `tiled` the first is cut into as many
    blocks as there are lanes and stays, and the blocks are put end to end along the other.

    >>> x = tnp.arange(4.0).reshape(2, 2)
    >>> tracer.vmap(lambda row: tracer.lax.all_to_all(row, "i", 0, 0), axis_name="i")(x)
    Array([[0., 2.],
           [1., 3.]], f64)
    """
    size = size_of_axis("all_to_all", axis_name)

    def exchanged(leaf: Any) -> Any:
        array = as_array(leaf, "all_to_all")
        split = axis_of("all_to_all", split_axis, array.ndim)
        concat = axis_of("all_to_all", concat_axis, array.ndim)
        shape = array.shape
        _check_split("all_to_all", array, split, size, tiled)
        if tiled:
            array = reshape(array, (*shape[:split], size, shape[split] // size, *shape[split + 1 :]))
            result = bind(
                all_to_all_p, array, axis_name=axis_name, axis_size=size, split_axis=split, concat_axis=concat
            )
            merged = result.shape
            return reshape(result, (*merged[:concat], size * merged[concat + 1], *merged[concat + 2 :]))
        return bind(all_to_all_p, array, axis_name=axis_name, axis_size=size, split_axis=split, concat_axis=concat)

    return trees.tree_map(exchanged, x)


def psum_scatter(x: Any, axis_name: object, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """The sums over the lanes, of which every lane keeps its own slice along `scatter_dimension`.

    That axis has the size of the batch axis and goes; with `tiled` it is cut into as many blocks and stays.

    >>> x = tnp.arange(4.0).reshape(2, 2)
    >>> tracer.vmap(lambda row: tracer.lax.psum_scatter(row, "i"), axis_name="i")(x)
    Array([2., 4.], f64)
    """
    size = size_of_axis("psum_scatter", axis_name)

    def scattered(leaf: Any) -> Any:
        array = as_array(leaf, "psum_scatter")
        axis = axis_of("psum_scatter", scatter_dimension, array.ndim)
        _check_split("psum_scatter", array, axis, size, tiled)
        block = array.shape[axis] // size
        total = psum(array, axis_name)
        here_first = axis_index(axis_name) * np.int32(block)
        starts = [here_first if d == axis else as_literal(0, dtypes.I32) for d in range(array.ndim)]
        sizes = [block if d == axis else n for d, n in enumerate(array.shape)]
        own = dynamic_slice(total, starts, sizes)
        return own if tiled else reshape(own, tuple(n for d, n in enumerate(array.shape) if d != axis))

    return trees.tree_map(scattered, x)


def _check_split(name: str, array: Any, axis: int, size: int, tiled: bool) -> None:
    length = array.shape[axis]
    if length % size if tiled else length != size:
        raise ShapeError(
            message(
                f"{name}{here()}: axis {axis} must {'be a multiple of' if tiled else 'have'} the batch axis' size",
                f"got {array.type}, and {size} lanes",
                help="pad it" if tiled else "tiled=True cuts longer axes into blocks",
            )
        )


EXCHANGES = (ppermute_p, all_to_all_p)
