"""Lanes of named batch axes: their indices, their groups, and the values of a lane's group.

Several names count like the digits of an integer, the last one fastest. Groups partition the lanes into sets of one
size; a collective stays within a group.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.lax.in_dim import dynamic_index_in_dim
from tracer.primitives.arrays.dynamic_slice import GatherDimensionNumbers, GatherScatterMode, gather
from tracer.primitives.base.shapes import reshape
from tracer.primitives.control.collectives import all_gather_p, axis_index_p, size_of_axis
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.integers import integers
from tracer.trace.source import here
from tracer.trace.trace import bind

Names = Any  # a hashable name, or a tuple of them
Groups = Sequence[Sequence[int]] | None


def names_of(axis_name: Names) -> tuple[Any, ...]:
    """Return one or several names as a tuple."""
    return tuple(axis_name) if isinstance(axis_name, list | tuple) else (axis_name,)


def axis_size(axis_name: Names) -> int:
    """Return the size of a named batch axis; for several names, the product.

    Raises ArgumentError for an unknown axis_name. Returns a Python integer.

    >>> tracer.vmap(lambda x: x / tracer.lax.axis_size("i"), axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([0.5, 1.5], f64)
    """
    result = 1
    for name in names_of(axis_name):
        result *= size_of_axis("axis_size", name)
    return result


def axis_index(axis_name: Names) -> Array:
    """Return the index of the lane along a named batch axis: int32 []. Of several names, the last counts fastest.

    Raises ArgumentError for an unknown axis_name.

    >>> tracer.vmap(lambda x: x * tracer.lax.axis_index("i"), axis_name="i")(tnp.asarray([5, 5]))
    Array([0, 5], i64)
    """
    number: Any = None
    for name in names_of(axis_name):
        size = size_of_axis("axis_index", name)
        digit = bind(axis_index_p, axis_name=name)
        number = digit if number is None else add(mul(number, np.int32(size)), digit)
    return as_array(np.int32(0)) if number is None else number


def checked_groups(operation: str, axis_name: Names, groups: Groups) -> tuple[tuple[int, ...], ...]:
    """Return the groups as tuples; by default one group of all lanes.

    Raises ArgumentError unless they partition the lanes.
    """
    total = axis_size(axis_name)
    if groups is None:
        return (tuple(range(total)),)
    parts = tuple(integers(operation, "axis_index_groups", group) for group in groups)
    if sorted(lane for part in parts for lane in part) != list(range(total)) or len(set(map(len, parts))) > 1:
        raise ArgumentError(
            message(
                f"{operation}{here()}: axis_index_groups partition the {total} lanes into groups of one size",
                f"got {[list(part) for part in parts]}",
                help="name every lane once, counted from 0",
            )
        )
    return parts


def own_group(x: Array, axis_name: Names, groups: tuple[tuple[int, ...], ...]) -> Array:
    """Return the values of all lanes of the lane's group, in group order: [group, *s]."""
    every = x
    for name in reversed(names_of(axis_name)):
        size = size_of_axis("all_gather", name)
        every = bind(all_gather_p, every, axis_name=name, axis_size=size, axis=0)
    every = reshape(every, (axis_size(axis_name), *x.shape))
    if len(groups) == 1 and list(groups[0]) == sorted(groups[0]):
        return every
    return rows(every, by_lane(axis_name, {lane: group for group in groups for lane in group}))


def rows(every: Array, positions: Array) -> Array:
    """Return the rows of [n, *s] at an array of indices [k]: [k, *s]."""
    numbers = GatherDimensionNumbers(tuple(range(1, every.ndim)), (0,), (0,))
    indices = reshape(positions, (*positions.shape, 1))
    mode = GatherScatterMode.PROMISE_IN_BOUNDS
    return gather(every, indices, numbers, (1, *every.shape[1:]), mode=mode)


def index_in_group(axis_name: Names, groups: tuple[tuple[int, ...], ...]) -> Array:
    """Return the index of the lane in its group: int64 []."""
    return by_lane(axis_name, {lane: index for group in groups for index, lane in enumerate(group)})


def by_lane(axis_name: Names, table: dict[int, Any]) -> Array:
    """Return the lane's entry of a table of integers, or of rows of integers."""
    entries = as_array(np.asarray([table[lane] for lane in range(len(table))], dtypes.I64))
    return dynamic_index_in_dim(entries, axis_index(axis_name), 0, keepdims=False)
