"""Shape and memory: iota, reshape, transpose, rev, squeeze, copy, optimization_barrier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import DTypeError, ShapeError, message
from tracer.ir import dtypes, shape
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Alias, Generate, IndexMap, NoRule, Primitive, Rule, Zero
from tracer.ir.types import ArrayType, Shape, Type, array_type, with_shape
from tracer.primitives.base.broadcasting import axes_of, axis_of, broadcast_in_dim_p, shape_of
from tracer.primitives.base.broadcasting import broadcast_in_dim as broadcast_in_dim
from tracer.primitives.base.broadcasting import expand_dims as expand_dims
from tracer.primitives.base.broadcasting import full as full
from tracer.primitives.base.broadcasting import full_like as full_like
from tracer.primitives.base.rules import Value, axis_after_drop, linear_jvp, operand_of, shift_axes, zero_jvp
from tracer.trace.array import Array
from tracer.trace.integers import integers
from tracer.trace.source import here
from tracer.trace.trace import Operand, bind, bind_all

Batched = tuple[list[Any], list[int | None]]

# iota


def _iota_infer(*, dtype: DType, shape: Shape, dimension: int) -> Type:
    if not 0 <= dimension < len(shape):
        raise ShapeError(
            message(
                f"iota{here()}: dimension must be an axis of the shape",
                f"got dimension {dimension} for {_show(shape)}",
                help="an iota has at least one axis",
            )
        )
    if dtypes.is_bool(dtype) or dtype not in dtypes.SHORT_NAMES:
        raise DTypeError(
            message(f"iota{here()} gives numbers", f"got {dtype}", help="count in integers and compare them")
        )
    return array_type(dtype, shape)


_show = shape.show


def _iota_reference(*, dtype: DType, shape: Shape, dimension: int) -> Any:
    counted = np.arange(shape[dimension]).astype(dtype, copy=False)
    if len(shape) == 1:  # no view, whose memory could not be donated
        return counted
    inner = [1] * len(shape)
    inner[dimension] = shape[dimension]
    return np.asarray(np.broadcast_to(counted.reshape(inner), shape), order="C")


iota_p = Primitive(
    name="iota", infer=_iota_infer, reference=_iota_reference,
    jvp=zero_jvp, transpose=NoRule("iota has no operands"), batch=NoRule("iota has no operands"), lower=Generate(),
)  # fmt: skip


def broadcasted_iota(dtype: DType, shape: Sequence[int], dimension: int) -> Array:
    """Count 0, 1, 2, ... along one axis of the shape, repeated along all other axes.

    dtype: a numeric dtype; shape: [*s]; dimension: the axis that counts. Returns that dtype, [*s]. Raises ShapeError
    for a negative size, AxisError if the axis is out of range, DTypeError for bool.

    >>> broadcasted_iota(np.dtype("int32"), (2, 3), 1)
    Array([[0, 1, 2], [0, 1, 2]], i32)
    """
    sizes = shape_of("iota", shape)
    return bind(iota_p, dtype=np.dtype(dtype), shape=sizes, dimension=axis_of("iota", dimension, len(sizes)))


def iota(dtype: DType, size: int) -> Array:
    """Count 0, 1, 2, ... up to size - 1.

    dtype: a numeric dtype; size: an integer >= 0. Returns that dtype, [size]. Raises ShapeError for a negative size,
    DTypeError for bool.

    >>> iota(np.dtype("float32"), 3)
    Array([0., 1., 2.], f32)
    """
    return broadcasted_iota(dtype, (size,), 0)


# reshape


def _reshape_infer(x: Type, *, new_sizes: Shape) -> Type:
    if shape.size(x.shape) != shape.size(new_sizes):
        raise ShapeError(
            message(
                f"reshape{here()}: a reshape keeps the number of elements",
                f"got {x}, {shape.size(x.shape)} elements, to {_show(new_sizes)}, {shape.size(new_sizes)}",
                help="pad or slice the operand, or correct the sizes",
            )
        )
    return with_shape(x, new_sizes)


def _reshape_reference(x: Any, *, new_sizes: Shape) -> Any:
    hidden = (2,) if x.size != shape.size(new_sizes) else ()  # the two words of a key
    return x.reshape((*new_sizes, *hidden)).copy()


def _reshape_prepared(x: Type, *, new_sizes: Shape) -> Rule | None:
    return (lambda x: x.reshape(new_sizes).copy()) if isinstance(x, ArrayType) else None


def _reshape_batch(ctx: Any, xs: Any, axes: Any, *, new_sizes: Shape) -> Batched:
    """Keep the batch axis in place if the axes before it are reshaped among themselves.

    Otherwise move it to the front.
    """
    (x,), (axis,) = xs, axes
    before, product = shape.size(x.shape[:axis]), 1
    for position, n in enumerate((*new_sizes, 1)):
        if product == before and before * ctx.size:
            return [reshape(x, (*new_sizes[:position], ctx.size, *new_sizes[position:]))], [position]
        product *= n
    return [reshape(ctx.to_front(x, axis), (ctx.size, *new_sizes))], [0]


reshape_p = Primitive(
    name="reshape", infer=_reshape_infer, reference=_reshape_reference,
    jvp=linear_jvp, transpose=lambda ctx, cts, xs, new_sizes: [reshape(cts[0], xs[0].type.shape)],
    batch=_reshape_batch, lower=IndexMap("reshape"), prepared=_reshape_prepared,
)  # fmt: skip


def reshape(operand: Value, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Any:
    """Rearrange the elements, in row-major order, into another shape of equal size. `dimensions` transposes them first.

    operand: an array [*s]; new_sizes: with as many elements; dimensions: every axis once. Returns the same dtype,
    [*new_sizes]. Raises ShapeError if the number of elements differs.

    >>> reshape(iota(np.dtype("int64"), 6), (2, 3))
    Array([[0, 1, 2], [3, 4, 5]], i64)
    """
    x = operand_of("reshape", operand)
    if dimensions is not None:
        x = transpose(x, dimensions)
    sizes = shape_of("reshape", new_sizes)
    return x if isinstance(x, Array) and x.shape == sizes else bind(reshape_p, x, new_sizes=sizes)


# transpose


def _transpose_infer(x: Type, *, permutation: tuple[int, ...]) -> Type:
    if sorted(permutation) != list(range(len(x.shape))):
        raise ShapeError(
            message(
                f"transpose{here()}: the permutation must name every axis once",
                f"got permutation={permutation} for {x}",
                help=f"reorder {tuple(range(len(x.shape)))}",
            )
        )
    return with_shape(x, tuple(x.shape[axis] for axis in permutation))


def _transpose_reference(x: Any, *, permutation: tuple[int, ...]) -> Any:
    hidden = range(len(permutation), x.ndim)
    return x.transpose((*permutation, *hidden)).copy(order="C")


def _transpose_batch(ctx: Any, xs: Any, axes: Any, *, permutation: tuple[int, ...]) -> Batched:
    (x,), (axis,) = xs, axes
    inner = shift_axes(permutation, axis)
    return [transpose(x, (*inner[:axis], axis, *inner[axis:]))], [axis]


transpose_p = Primitive(
    name="transpose", infer=_transpose_infer, reference=_transpose_reference,
    jvp=linear_jvp, transpose=lambda ctx, cts, xs, permutation: [transpose(cts[0], shape.inverse(permutation))],
    batch=_transpose_batch, lower=IndexMap("transpose"),
)  # fmt: skip


def transpose(operand: Value, permutation: Sequence[int]) -> Any:
    """Reorder the axes: axis i of the result is axis `permutation[i]` of the operand.

    operand: an array [*s]; permutation: every axis once. Returns the same dtype. Raises ShapeError if an axis is
    missing or repeats.

    >>> transpose(tnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = operand_of("transpose", operand)
    axes = integers("transpose", "permutation", permutation)
    if isinstance(x, Array) and axes == tuple(range(x.ndim)):
        return x
    return bind(transpose_p, x, permutation=axes)


def moveaxis(x: Operand, source: int, destination: int) -> Any:
    """Move one axis, and keep the order of the other axes.

    >>> moveaxis(tnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    rank = len(x.type.shape)
    source, destination = axis_of("moveaxis", source, rank), axis_of("moveaxis", destination, rank)
    if source == destination:
        return x
    order = [axis for axis in range(rank) if axis != source]
    order.insert(destination, source)
    return transpose(x, order)


def align(ctx: Any, xs: Sequence[Any], axes: Sequence[int | None]) -> tuple[list[Any], int]:
    """Move the batch axes of all operands to the first one among them. Broadcast unbatched operands along it."""
    axis = next(axis for axis in axes if axis is not None)
    return [_with_batch_axis(ctx, x, own, axis) for x, own in zip(xs, axes, strict=True)], axis


def _with_batch_axis(ctx: Any, x: Operand, own: int | None, axis: int) -> Any:
    if own is not None:
        return moveaxis(x, own, axis)
    sizes = x.type.shape
    kept = shift_axes(range(len(sizes)), axis)
    return broadcast_in_dim(x, (*sizes[:axis], ctx.size, *sizes[axis:]), kept)


# rev and squeeze


def _rev_infer(x: Type, *, dimensions: tuple[int, ...]) -> Type:
    return x


def _squeeze_infer(x: Type, *, dimensions: tuple[int, ...]) -> Type:
    if any(x.shape[axis] != 1 for axis in dimensions):
        raise ShapeError(
            message(
                f"squeeze{here()}: only axes of size 1 can be dropped",
                f"got {x}, dimensions {dimensions}",
                help="index or reduce the axis instead",
            )
        )
    return with_shape(x, shape.drop(x.shape, dimensions))


def _rev_batch(ctx: Any, xs: Any, axes: Any, *, dimensions: tuple[int, ...]) -> Batched:
    return [rev(xs[0], shift_axes(dimensions, axes[0]))], [axes[0]]


def _squeeze_batch(ctx: Any, xs: Any, axes: Any, *, dimensions: tuple[int, ...]) -> Batched:
    shifted = shift_axes(dimensions, axes[0])
    return [squeeze(xs[0], shifted)], [axis_after_drop(axes[0], shifted)]


rev_p = Primitive(
    name="rev", infer=_rev_infer, reference=lambda x, dimensions: np.flip(x, dimensions).copy(),
    jvp=linear_jvp, transpose=lambda ctx, cts, xs, dimensions: [rev(cts[0], dimensions)],
    batch=_rev_batch, lower=IndexMap("reverse"),
)  # fmt: skip

squeeze_p = Primitive(
    name="squeeze", infer=_squeeze_infer, reference=lambda x, dimensions: np.squeeze(x, dimensions).copy(),
    jvp=linear_jvp, transpose=lambda ctx, cts, xs, dimensions: [expand_dims(cts[0], dimensions)],
    batch=_squeeze_batch, lower=IndexMap("squeeze"),
)  # fmt: skip


def rev(operand: Value, dimensions: Sequence[int]) -> Any:
    """Reverse the order of the elements along `dimensions`.

    operand: an array [*s]; dimensions: axes, counted from either end. Returns the same type, [*s]. Raises AxisError if
    an axis is out of range or repeats.

    >>> rev(iota(np.dtype("int64"), 3), (0,))
    Array([2, 1, 0], i64)
    """
    x = operand_of("rev", operand)
    axes = axes_of("rev", dimensions, len(x.type.shape))
    return bind(rev_p, x, dimensions=axes) if axes else x


def squeeze(array: Value, dimensions: Sequence[int]) -> Any:
    """Drop axes of size 1.

    array: [*s]; dimensions: axes, counted from either end. Returns the same dtype, [*s minus dimensions]. Raises
    ShapeError for an axis of another size, AxisError if one is out of range or repeats.

    >>> squeeze(tnp.zeros((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    x = operand_of("squeeze", array)
    axes = axes_of("squeeze", dimensions, len(x.type.shape))
    return bind(squeeze_p, x, dimensions=axes) if axes else x


# copy and optimization_barrier


def _barrier_batch(ctx: Any, xs: Any, axes: Any) -> Batched:
    return bind_all(ctx.primitive, xs, {}), list(axes)


def _wait_together(primitive: Primitive, values: Sequence[Any]) -> list[Any]:
    """Bind a barrier over tangents or cotangents. Symbolic zeros pass by."""
    present = [value for value in values if not isinstance(value, Zero)]
    waited = iter(bind_all(primitive, present, {}) if present else [])
    return [value if isinstance(value, Zero) else next(waited) for value in values]


copy_p = Primitive(
    name="copy", infer=lambda x: x, reference=lambda x: x.copy(),
    jvp=linear_jvp, transpose=lambda ctx, cts, xs: [cts[0]],
    batch=lambda ctx, xs, axes: ([copy(xs[0])], [axes[0]]), lower=Alias(),
)  # fmt: skip

optimization_barrier_p = Primitive(
    name="optimization_barrier", infer=lambda *xs: xs, reference=lambda *xs: xs,
    jvp=lambda ctx, xs, dxs: _wait_together(ctx.primitive, dxs),
    transpose=lambda ctx, cts, xs: _wait_together(ctx.primitive, cts),
    batch=_barrier_batch, lower=Alias(), multiple=True,
)  # fmt: skip


def copy(operand: Value) -> Any:
    """Copy the operand into a new array."""
    return bind(copy_p, operand_of("copy", operand))


def optimization_barrier(operands: Sequence[Value]) -> list[Any]:
    """Return the operands unchanged. None is available before all are computed, and no pass moves work across.

    >>> optimization_barrier([tnp.asarray([1.0]), tnp.asarray([2])])
    [Array([1.], f64), Array([2], i64)]
    """
    return bind_all(optimization_barrier_p, [operand_of("optimization_barrier", x) for x in operands], {})


SHAPES: tuple[Primitive, ...] = (
    iota_p, broadcast_in_dim_p, reshape_p, transpose_p, rev_p, squeeze_p, copy_p, optimization_barrier_p,
)  # fmt: skip
