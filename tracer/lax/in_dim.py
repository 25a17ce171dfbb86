"""Slices of one axis, and other functions that JAX's `lax` adds to the primitives."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.ir import shape
from tracer.lax.face import public
from tracer.primitives.arrays.dynamic_slice import dynamic_slice, dynamic_update_slice
from tracer.primitives.arrays.slice_pad_concatenate import slice_in_dim
from tracer.primitives.arrays.sorting import sort
from tracer.primitives.base.broadcasting import axis_of, broadcast_in_dim
from tracer.primitives.base.rules import Value, operand_of
from tracer.primitives.base.shapes import expand_dims, squeeze
from tracer.trace.array import Array
from tracer.trace.integers import integers
from tracer.trace.source import here


@public
def index_in_dim(operand: Array, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Return the slice of an axis at a concrete index, without the axis unless `keepdims`.

    operand: [*s]; index: an integer, negative from the end; axis: by default the first. Returns the same dtype, [...,
    1, ...] or [*s minus axis]. Raises AxisError if there is no such axis or the index is out of bounds.

    >>> tracer.lax.index_in_dim(tnp.asarray([1, 2, 3]), 1)
    Array([2], i64)
    """
    along = axis_of("index_in_dim", axis, operand.ndim)
    position = axis_of("index_in_dim", index, operand.shape[along])
    part = slice_in_dim(operand, position, position + 1, axis=along)
    return part if keepdims else squeeze(part, (along,))


@public
def dynamic_slice_in_dim(operand: Array, start_index: Any, slice_size: int, axis: int = 0) -> Array:
    """Return a slice of one axis of a fixed size, from a traced start that is clamped to fit.

    operand: [*s]; start_index: an integer or an integer array []; slice_size: at most the axis's; axis: by default the
    first. Returns the same dtype, [..., slice_size, ...]. Raises ShapeError for a larger size, AxisError if there is no
    such axis, DTypeError for a non-integer start.

    >>> tracer.lax.dynamic_slice_in_dim(tnp.asarray([1, 2, 3]), 1, 2)
    Array([2, 3], i64)
    """
    along = axis_of("dynamic_slice_in_dim", axis, operand.ndim)
    starts = [start_index if d == along else 0 for d in range(operand.ndim)]
    return dynamic_slice(operand, starts, [slice_size if d == along else n for d, n in enumerate(operand.shape)])


@public
def dynamic_index_in_dim(operand: Array, index: Any, axis: int = 0, keepdims: bool = True) -> Array:
    """Return the slice of an axis at a traced, clamped index, without the axis unless `keepdims`.

    operand: [*s]; index: an integer or an integer array []; axis: by default the first. Returns the same dtype, [...,
    1, ...] or [*s minus axis]. Raises AxisError if there is no such axis, DTypeError for an index that is not an
    integer.

    >>> tracer.lax.dynamic_index_in_dim(tnp.asarray([1, 2, 3]), 1, keepdims=False)
    Array(2, i64)
    """
    part = dynamic_slice_in_dim(operand, index, 1, axis)
    return part if keepdims else squeeze(part, (axis,))


@public
def dynamic_update_slice_in_dim(operand: Array, update: Any, start_index: Any, axis: int) -> Array:
    """Return a copy with a slice of one axis overwritten, from a traced start that is clamped to fit.

    operand: [*s]; update: of its dtype and as many axes, none longer; start_index: an integer or an integer array [].
    Returns the operand's type, [*s]. Raises ShapeError or DTypeError for another update, AxisError if there is no such
    axis.

    >>> tracer.lax.dynamic_update_slice_in_dim(tnp.asarray([1, 2, 3]), tnp.asarray([7]), 1, 0)
    Array([1, 7, 3], i64)
    """
    along = axis_of("dynamic_update_slice_in_dim", axis, operand.ndim)
    return dynamic_update_slice(operand, update, [start_index if d == along else 0 for d in range(operand.ndim)])


@public
def dynamic_update_index_in_dim(operand: Array, update: Any, index: Any, axis: int) -> Array:
    """Return a copy with the slice of an axis at a traced index overwritten; the update may lack the axis.

    operand: [*s]; update: of its dtype, [..., 1, ...] or [*s minus axis]; index: an integer or an integer array [].
    Returns the operand's type, [*s]. Raises ShapeError or DTypeError for another update, AxisError if there is no such
    axis.

    >>> tracer.lax.dynamic_update_index_in_dim(tnp.asarray([1, 2, 3]), tnp.asarray(7), 1, 0)
    Array([1, 7, 3], i64)
    """
    along = axis_of("dynamic_update_index_in_dim", axis, operand.ndim)
    part = operand_of("dynamic_update_index_in_dim", update, operand.dtype)
    if len(part.type.shape) < operand.ndim:
        part = expand_dims(part, (along,))
    return dynamic_update_slice_in_dim(operand, part, index, along)


@public
def broadcast(operand: Value, sizes: Sequence[int]) -> Array:
    """Add axes of the given sizes in front.

    operand: an array [*s]. Returns its dtype, [*sizes, *s]. Raises ShapeError for a negative size.

    >>> tracer.lax.broadcast(tnp.asarray([1, 2]), (2,))
    Array([[1, 2],
           [1, 2]], i64)
    """
    x = operand_of("broadcast", operand)
    own, new = x.type.shape, integers("broadcast", "sizes", sizes)
    return broadcast_in_dim(x, (*new, *own), range(len(new), len(new) + len(own)))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which shapes broadcast.

    shapes: tuples of integers, aligned at their ends. Returns one, [*s]. Raises ShapeError where sizes differ and none
    is 1.

    >>> tracer.lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    given = [integers("broadcast_shapes", "a shape", sizes) for sizes in shapes]
    return shape.broadcast(*given, operation=f"broadcast_shapes{here()}")


@public
def sort_key_val(keys: Array, values: Array, dimension: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """Sort keys in ascending order, and values in the order of their keys.

    keys: numbers or bool [*s]; values: any dtype [*s]; dimension: the axis; is_stable: no effect, the sort is always
    stable. Returns both, [*s]. Raises ShapeError where the shapes differ, AxisError if there is no such axis.

    >>> tracer.lax.sort_key_val(tnp.asarray([2, 1]), tnp.asarray([20, 10]))
    (Array([1, 2], i64), Array([10, 20], i64))
    """
    return sort((keys, values), dimension, is_stable)
