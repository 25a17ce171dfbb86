"""Collectives: operations across the lanes of a named batch axis, `vmap(f, axis_name="i")`.

Several names, as a tuple, make one axis of all their lanes; `axis_index_groups` keeps a collective within groups.
Collectives over one name are primitives; any other collective gathers the participating lanes.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Primitive
from tracer.lax.in_dim import dynamic_index_in_dim, dynamic_slice_in_dim
from tracer.lax.lanes import (
    Groups,
    Names,
    axis_index,
    axis_size,
    by_lane,
    checked_groups,
    index_in_group,
    names_of,
    own_group,
)
from tracer.primitives.arrays.reductions.reductions import reduce_max, reduce_min
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.broadcasting import axis_of, reduce_sum
from tracer.primitives.base.shapes import moveaxis, reshape
from tracer.primitives.control.collective_permute import all_to_all_p, ppermute_p
from tracer.primitives.control.collectives import all_gather_p, pmax_p, pmin_p, psum_p, size_of_axis
from tracer.primitives.elementwise.arithmetic import div, mul
from tracer.primitives.elementwise.comparison import ge, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.settings import config
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.integers import integer, integers, pairs
from tracer.trace.source import here
from tracer.trace.trace import bind

# Reductions


def _reduced(primitive: Primitive, reduce: Callable[..., Any], x: Any, axis_name: Names, groups: Groups) -> Any:
    names = names_of(axis_name)
    for name in names:
        size_of_axis(primitive.name, name)
    parts = None if groups is None else checked_groups(primitive.name, axis_name, groups)

    def reduced(leaf: Any) -> Any:
        array = as_array(leaf, primitive.name)
        if primitive is psum_p and array.dtype == dtypes.BOOL:
            array = convert_element_type(array, dtypes.I32)
        if parts is not None:
            return reduce(own_group(array, axis_name, parts), (0,))
        for name in names:
            array = bind(primitive, array, axis_name=name)
        return array

    return trees.tree_map(reduced, x)


def psum(x: Any, axis_name: Names, *, axis_index_groups: Groups = None) -> Any:
    """Sum every leaf over the lanes of one or several named batch axes.

    A Python number is multiplied by the lanes. Booleans are counted, in int32.

    x: a tree of numbers or bool [*s] in each lane. Returns the same tree, [*s]. Raises ArgumentError for an unknown
    axis_name.

    >>> tracer.vmap(lambda x: x / tracer.lax.psum(x, "i"), axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([0.25, 0.75], f64)
    """
    if isinstance(x, int | float | complex):
        return x * len(checked_groups("psum", axis_name, axis_index_groups)[0])
    return _reduced(psum_p, reduce_sum, x, axis_name, axis_index_groups)


def pmean(x: Any, axis_name: Names, *, axis_index_groups: Groups = None) -> Any:
    """Average every leaf over the lanes of a named batch axis; integers give floats.

    x: a tree of arrays [*s] in each lane; axis_name: of a vmap around. Returns the same tree, [*s]. Raises
    ArgumentError for an unknown axis_name.

    >>> tracer.vmap(lambda x: x - tracer.lax.pmean(x, "i"), axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([-1.,  1.], f64)
    """
    size = len(checked_groups("pmean", axis_name, axis_index_groups)[0])

    def mean(leaf: Any) -> Any:
        array = as_array(leaf, "pmean")
        if not dtypes.is_inexact(array.dtype):
            array = convert_element_type(array, config.default_float)
        return div(psum(array, axis_name, axis_index_groups=axis_index_groups), size)

    return trees.tree_map(mean, x)


def pmax(x: Any, axis_name: Names, *, axis_index_groups: Groups = None) -> Any:
    """Return the maximum of every leaf over the lanes of a named batch axis.

    x: a tree of arrays [*s] in each lane; axis_name: of a vmap around. Returns the same tree, [*s]. Raises
    ArgumentError for an unknown axis_name.

    >>> tracer.vmap(lambda x: tracer.lax.pmax(x, "i") - x, axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([2., 0.], f64)
    """
    return _reduced(pmax_p, reduce_max, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Names, *, axis_index_groups: Groups = None) -> Any:
    """Return the minimum of every leaf over the lanes of a named batch axis.

    x: a tree of arrays [*s] in each lane; axis_name: of a vmap around. Returns the same tree, [*s]. Raises
    ArgumentError for an unknown axis_name.

    >>> tracer.vmap(lambda x: x - tracer.lax.pmin(x, "i"), axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([0., 2.], f64)
    """
    return _reduced(pmin_p, reduce_min, x, axis_name, axis_index_groups)


# Exchanges


def all_gather(
    x: Any, axis_name: Names, *, axis_index_groups: Groups = None, axis: int = 0, tiled: bool = False
) -> Any:
    """Gather the values of all lanes of a named batch axis along a new axis, or concatenate them if `tiled`.

    x: a tree of arrays [*s] in each lane; axis_name: of a vmap around; axis: position of the lanes in the result.
    Returns the tree with [..., lanes, ...]. Raises ArgumentError for an unknown axis_name.

    >>> tracer.vmap(lambda x: tracer.lax.all_gather(x, "i"), axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([[1., 3.],
           [1., 3.]], f64)
    """
    name = _single(axis_name, axis_index_groups)
    groups = checked_groups("all_gather", axis_name, axis_index_groups)
    size = len(groups[0])

    def gathered(leaf: Any) -> Any:
        array = as_array(leaf, "all_gather")
        position = axis_of("all_gather", axis, array.ndim + (not tiled))
        if name is not None:
            result = bind(all_gather_p, array, axis_name=name[0], axis_size=size, axis=position)
        else:
            result = moveaxis(own_group(array, axis_name, groups), 0, position)
        if not tiled:
            return result
        return reshape(result, (*array.shape[:position], size * array.shape[position], *array.shape[position + 1 :]))

    return trees.tree_map(gathered, x)


def ppermute(x: Any, axis_name: Names, perm: Sequence[tuple[int, int]]) -> Any:
    """Send every leaf's values between lanes: perm holds pairs (source, target). Other lanes receive zeros.

    Raises ArgumentError where a lane sends or receives twice, or does not exist.

    x: a tree of arrays [*s] in each lane; axis_name: of a vmap around. Returns the same tree, [*s].

    >>> shift = lambda x: tracer.lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> tracer.vmap(shift, axis_name="i")(tnp.asarray([1.0, 2.0, 3.0]))
    Array([0., 1., 2.], f64)
    """
    size = axis_size(axis_name)
    sent = pairs("ppermute", "perm", perm)
    for role, lanes in (("sends", [p[0] for p in sent]), ("receives", [p[1] for p in sent])):
        if len(set(lanes)) != len(lanes) or not all(0 <= lane < size for lane in lanes):
            raise ArgumentError(
                message(
                    f"ppermute{here()}: each of the {size} lanes {role} once at most",
                    f"got {list(sent)}",
                    help="perm holds pairs (source, target) of different lanes, counted from 0",
                )
            )
    name = _single(axis_name, None)

    def permuted(leaf: Any) -> Any:
        array = as_array(leaf, "ppermute")
        if name is not None:
            return bind(ppermute_p, array, axis_name=name[0], perm=sent)
        every = own_group(array, axis_name, checked_groups("ppermute", axis_name, None))
        source = by_lane(axis_name, dict.fromkeys(range(size), -1) | {target: s for s, target in sent})
        value = dynamic_index_in_dim(every, source, 0, keepdims=False)
        return select(ge(source, 0), value, zeros(value.type))

    return trees.tree_map(permuted, x)


def pshuffle(x: Any, axis_name: Names, perm: Sequence[int]) -> Any:
    """Give lane i the values of lane perm[i], for every leaf.

    x: a tree of arrays [*s] in each lane; axis_name: of a vmap around; perm: a permutation of the lanes. Returns the
    same tree, [*s]. Raises ArgumentError for an unknown axis_name.

    >>> tracer.vmap(lambda x: tracer.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(tnp.asarray([1.0, 2.0, 3.0]))
    Array([3., 1., 2.], f64)
    """
    size = axis_size(axis_name)
    sources = integers("pshuffle", "perm", perm)
    if sorted(sources) != list(range(size)):
        raise ArgumentError(
            message(f"pshuffle{here()}: perm is a permutation of the {size} lanes", f"got {list(sources)}")
        )
    return ppermute(x, axis_name, [(source, target) for target, source in enumerate(sources)])


def pbroadcast(x: Any, axis_name: Names, source: int) -> Any:
    """Copy the values of one lane to all lanes, for every leaf.

    x: a tree of arrays [*s] in each lane; axis_name: of a vmap around; source: index of a lane. Returns the same tree,
    [*s]. Raises ArgumentError for an unknown axis_name.

    >>> tracer.vmap(lambda x: tracer.lax.pbroadcast(x, "i", 1), axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([3., 3.], f64)
    """
    size, source = axis_size(axis_name), integer("pbroadcast", "source", source)
    if not 0 <= source < size:
        raise ArgumentError(
            message(f"pbroadcast{here()}: source is one of the {size} lanes", f"got {source!r}", help="count from 0")
        )
    every = all_gather(x, axis_name)
    return trees.tree_map(lambda leaf: dynamic_index_in_dim(leaf, np.int32(source), 0, keepdims=False), every)


def all_to_all(
    x: Any, axis_name: Names, split_axis: int, concat_axis: int, *, axis_index_groups: Groups = None,
    tiled: bool = False,
) -> Any:  # fmt: skip
    """Send the i-th slice along `split_axis` of every lane to lane i, and stack the received ones along `concat_axis`.

    split_axis has the size of the batch axis and is removed; concat_axis is new. With `tiled`, split_axis is split into
    one block a lane and stays, and the blocks are concatenated along concat_axis.

    x: a tree of arrays [*s] in each lane; axis_name: of a vmap around. Returns the tree, each leaf with as many
    elements. Raises ArgumentError for an unknown axis_name.

    >>> x = tnp.arange(4.0).reshape(2, 2)
    >>> tracer.vmap(lambda row: tracer.lax.all_to_all(row, "i", 0, 0), axis_name="i")(x)
    Array([[0., 2.],
           [1., 3.]], f64)
    """
    groups = checked_groups("all_to_all", axis_name, axis_index_groups)
    size, name = len(groups[0]), _single(axis_name, axis_index_groups)

    def swapped(array: Array, split: int, concat: int) -> Array:
        if name is not None:
            params = {"axis_size": size, "split_axis": split, "concat_axis": concat}
            return bind(all_to_all_p, array, axis_name=name[0], **params)
        sent = moveaxis(own_group(array, axis_name, groups), split + 1, 0)
        own = dynamic_index_in_dim(sent, index_in_group(axis_name, groups), 0, keepdims=False)
        return moveaxis(own, 0, concat)

    def exchanged(leaf: Any) -> Any:
        array = as_array(leaf, "all_to_all")
        split = axis_of("all_to_all", split_axis, array.ndim)
        concat = axis_of("all_to_all", concat_axis, array.ndim)
        shape = array.shape
        _check_split("all_to_all", array, split, size, tiled)
        if not tiled:
            return swapped(array, split, concat)
        result = swapped(
            reshape(array, (*shape[:split], size, shape[split] // size, *shape[split + 1 :])), split, concat
        )
        merged = result.shape
        return reshape(result, (*merged[:concat], size * merged[concat + 1], *merged[concat + 2 :]))

    return trees.tree_map(exchanged, x)


def pswapaxes(x: Any, axis_name: Names, axis: int, *, axis_index_groups: Groups = None) -> Any:
    """Exchange a named batch axis with an array axis of equal size.

    x: a tree of arrays [*s] in each lane; axis_name: of a vmap around. Returns the same tree, [*s]. Raises
    ArgumentError for an unknown axis_name.

    >>> x = tnp.arange(4.0).reshape(2, 2)
    >>> tracer.vmap(lambda row: tracer.lax.pswapaxes(row, "i", 0), axis_name="i")(x)
    Array([[0., 2.],
           [1., 3.]], f64)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def psum_scatter(
    x: Any, axis_name: Names, *, scatter_dimension: int = 0, axis_index_groups: Groups = None, tiled: bool = False
) -> Any:
    """Sum over the lanes; every lane keeps its own slice along `scatter_dimension`.

    scatter_dimension has the size of the batch axis and is removed; with `tiled` it is split into one block a lane and
    stays.

    x: a tree of arrays [*s] in each lane; axis_name: of a vmap around. Returns the same tree of [*s minus
    scatter_dimension]. Raises ArgumentError for an unknown axis_name.

    >>> x = tnp.arange(4.0).reshape(2, 2)
    >>> tracer.vmap(lambda row: tracer.lax.psum_scatter(row, "i"), axis_name="i")(x)
    Array([2., 4.], f64)
    """
    groups = checked_groups("psum_scatter", axis_name, axis_index_groups)
    size = len(groups[0])

    def scattered(leaf: Any) -> Any:
        array = as_array(leaf, "psum_scatter")
        axis = axis_of("psum_scatter", scatter_dimension, array.ndim)
        _check_split("psum_scatter", array, axis, size, tiled)
        total = psum(array, axis_name, axis_index_groups=axis_index_groups)
        own_index = axis_index(axis_name) if axis_index_groups is None else index_in_group(axis_name, groups)
        block = array.shape[axis] // size
        own = dynamic_slice_in_dim(total, mul(own_index, own_index.dtype.type(block)), block, axis)
        return own if tiled else reshape(own, tuple(n for d, n in enumerate(array.shape) if d != axis))

    return trees.tree_map(scattered, x)


def _single(axis_name: Names, groups: Groups) -> tuple[Any] | None:
    """Return the name, if a collective spans the lanes of one name without groups, else None."""
    names = names_of(axis_name)
    return (names[0],) if len(names) == 1 and groups is None else None


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
