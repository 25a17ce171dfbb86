"""Broadcasting and summation. Each is the transpose of the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tracer.errors import AxisError, ShapeError, message
from tracer.ir import dtypes, shape
from tracer.ir.dtypes import DType
from tracer.ir.primitive import IndexMap, Linear, Primitive, Reduce, Rule
from tracer.ir.program import Literal
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, Shape, Type, array_type, with_shape
from tracer.primitives.base.rules import (
    Scalar,
    Value,
    axis_after_drop,
    check_kinds,
    linear_jvp,
    operand_of,
    shift_axes,
)
from tracer.trace.array import Array
from tracer.trace.integers import integers
from tracer.trace.source import here
from tracer.trace.trace import as_literal, bind

# Axes as arguments


def axis_of(name: str, axis: int, rank: int) -> int:
    """Return `axis`, counted from either end, as an index in [0, rank). Raises AxisError if it is out of range."""
    if type(axis) is int and 0 <= axis < rank:
        return axis
    return shape.axis_index(axis, rank, f"{name}{here()}")


def axes_of(name: str, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return `axes`, counted from either end, as indices in [0, rank). Raises AxisError if one repeats."""
    result = tuple(axis_of(name, axis, rank) for axis in axes)
    if len(set(result)) != len(result):
        raise AxisError(message(f"{name}{here()}: repeated axis in {tuple(axes)}", help="name every axis once"))
    return result


def shape_of(name: str, sizes: Sequence[int]) -> Shape:
    """Return a shape argument as a tuple of Python ints. Raises ShapeError if a size is negative."""
    result = integers(name, "a shape", sizes)
    if result and min(result) < 0:
        raise ShapeError(
            message(f"{name}{here()}: sizes must not be negative", f"got {shape.show(result)}", help="pass sizes >= 0")
        )
    return result


# broadcast_in_dim


def _broadcast_infer(x: Type, *, shape: Shape, broadcast_dimensions: tuple[int, ...]) -> Type:
    dims = broadcast_dimensions
    fits = len(dims) == len(x.shape) and all(0 <= d < len(shape) for d in dims)
    if not fits or any(a >= b for a, b in pairwise(dims)):
        raise ShapeError(
            message(
                f"broadcast_in_dim{here()}: expected an axis of the result for every axis of the operand, increasing",
                f"got broadcast_dimensions={dims} for {x} to {_show(shape)}",
                help="transpose the operand first to reorder its axes",
            )
        )
    if any(n != 1 and n != shape[d] for n, d in zip(x.shape, dims, strict=True)):
        raise ShapeError(
            message(
                f"broadcast_in_dim{here()}: sizes must be 1 or equal to the result's",
                f"got {x} to {_show(shape)} with broadcast_dimensions={dims}",
                help="reshape or slice the operand",
            )
        )
    return with_shape(x, shape)


_show = shape.show


def _broadcast_reference(x: Any, *, shape: Shape, broadcast_dimensions: tuple[int, ...]) -> Any:
    return _broadcaster(x.shape, x.dtype, shape, broadcast_dimensions)(x)


def _broadcaster(of: Shape, dtype: Any, shape: Shape, broadcast_dimensions: tuple[int, ...]) -> Any:
    """Return the function that broadcasts NumPy's arrays of a shape and dtype. Further axes of theirs stay behind."""
    hidden = of[len(broadcast_dimensions) :]
    inner = [1] * len(shape)
    for n, d in zip(of, broadcast_dimensions, strict=False):
        inner[d] = n
    between, full = (*inner, *hidden), (*shape, *hidden)

    def broadcast(x: Any) -> Any:
        result = np.empty(full, dtype)
        result[...] = x.reshape(between)
        return result

    return broadcast


def _broadcast_prepared(x: Type, *, shape: Shape, broadcast_dimensions: tuple[int, ...]) -> Any:
    if not isinstance(x, ArrayType):
        return None
    return _broadcaster(x.shape, x.dtype, shape, broadcast_dimensions)


def _broadcast_transpose(ctx: Any, cts: Any, xs: Any, *, shape: Shape, broadcast_dimensions: tuple[int, ...]) -> Any:
    (ct,), sizes = cts, xs[0].type.shape
    kept = [d for n, d in zip(sizes, broadcast_dimensions, strict=True) if n == shape[d]]
    summed = reduce_sum(ct, [d for d in range(len(shape)) if d not in kept])
    back = [axis for axis, (n, d) in enumerate(zip(sizes, broadcast_dimensions, strict=True)) if n == shape[d]]
    return [broadcast_in_dim(summed, sizes, back)]


def _broadcast_batch(
    ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], *, shape: Shape, broadcast_dimensions: tuple[int, ...]
) -> tuple[list[Any], list[int | None]]:
    """Keep the batch axis in order among the operand's axes, so that nothing is transposed."""
    (x,), (axis,), dims = xs, axes, broadcast_dimensions
    assert axis is not None
    if axis < len(dims):
        out = dims[axis]
    else:
        out = dims[-1] + 1 if dims else 0
    new_dims = shift_axes(dims, out)
    result = broadcast_in_dim(x, (*shape[:out], ctx.size, *shape[out:]), (*new_dims[:axis], out, *new_dims[axis:]))
    return [result], [out]


broadcast_in_dim_p = Primitive(
    name="broadcast_in_dim", infer=_broadcast_infer, reference=_broadcast_reference,
    jvp=linear_jvp, transpose=_broadcast_transpose, batch=_broadcast_batch, lower=IndexMap("broadcast"),
    prepared=_broadcast_prepared,
)  # fmt: skip


def broadcast_in_dim(operand: Value, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
    """Broadcast `operand` to `shape`. Its axis i becomes axis `broadcast_dimensions[i]`, of equal size or expanded.

    Only axes of size 1 are expanded, and the dimensions increase strictly. Returns the operand itself if it already has
    the shape.

    operand: an array [*s]; returns the same dtype, [*shape]. Raises ShapeError if a size or the order of the dimensions
    does not fit.

    >>> broadcast_in_dim(tnp.asarray([1.0, 2.0]), (2, 3), (0,))
    Array([[1., 1., 1.], [2., 2., 2.]], f64)
    """
    x = operand_of("broadcast_in_dim", operand)
    sizes = shape_of("broadcast_in_dim", shape)
    dims = integers("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    if isinstance(x, Array) and x.shape == sizes and dims == tuple(range(len(sizes))):
        return x
    return bind(broadcast_in_dim_p, x, shape=sizes, broadcast_dimensions=dims)


def full(shape: Sequence[int], fill_value: Value, dtype: DType | None = None) -> Any:
    """Return an array filled with one value, of the value's dtype unless another is given.

    shape: sizes >= 0; fill_value: a scalar or an array []; dtype: a dtype or its name. Returns [*shape]. Raises
    ShapeError for a negative size, DTypeError if the dtype cannot hold a Python scalar.

    >>> full((2,), 7, np.dtype("float32"))
    Array([7., 7.], f32)
    """
    if isinstance(fill_value, bool | int | float | complex | np.generic):
        fill_value = as_literal(fill_value, None if dtype is None else np.dtype(dtype))
    return broadcast_in_dim(fill_value, shape, ())


def full_like(
    x: Value | Linear, fill_value: Scalar, dtype: DType | None = None, shape: Sequence[int] | None = None
) -> Any:
    """Return an array filled with one value, by default in the shape and dtype of `x`.

    x: an array [*s] or a scalar; fill_value: a scalar; dtype, shape: override x's. Returns [*s] or [*shape], weak if
    `x` is weak and no dtype is given. Raises DTypeError if the dtype cannot hold a Python scalar, ShapeError for a
    negative size.

    >>> full_like(tnp.asarray([1.5, 2.5]), 3)
    Array([3., 3.], f64)
    """
    like = (x if isinstance(x, Linear) else operand_of("full_like", x)).type
    chosen = like.dtype if dtype is None else np.dtype(dtype)  # type: ignore[union-attr]
    value = as_literal(fill_value, chosen)
    if dtype is None and isinstance(like, ArrayType) and like.weak:
        value = Literal(value.value, array_type(chosen, (), True))
    return full(like.shape if shape is None else shape, value)


def expand_dims(array: Value, dimensions: Sequence[int]) -> Any:
    """Insert axes of size 1 at the positions that `dimensions` have in the result.

    array: [*s]; dimensions: axes of the result, counted from either end. Returns the same dtype, [*s with an axis of
    size 1 at each dimension]. Raises AxisError if an axis is out of range or repeats.

    >>> expand_dims(tnp.zeros(3), (0, 2)).shape
    (1, 3, 1)
    """
    x = operand_of("expand_dims", array)
    inner = () if isinstance(x, Literal) else x.shape
    rank = len(inner) + len(dimensions)
    new = set(axes_of("expand_dims", dimensions, rank))
    rest = tuple(axis for axis in range(rank) if axis not in new)
    sizes = [1] * rank
    for n, axis in zip(inner, rest, strict=True):
        sizes[axis] = n
    return broadcast_in_dim(x, sizes, rest)


# Parts of reductions over several axes


def reduce_infer(name: str, kinds: str, *, of_nothing: bool = True) -> Rule:
    """Make an `infer` rule that drops `axes`. of_nothing: whether reducing over no elements has a value."""

    def infer(x: Type, *, axes: tuple[int, ...]) -> Type:
        check_kinds(name, [x], kinds)
        if not all(0 <= axis < len(x.shape) for axis in axes):
            raise AxisError(
                message(f"{name}{here()}: an axis of {axes} is out of range", f"got {x}", help="see x.ndim")
            )
        if not of_nothing:
            check_not_empty(name, x, axes)
        return with_shape(x, shape.drop(x.shape, axes))

    return infer


def check_not_empty(name: str, x: Type, axes: Sequence[int]) -> None:
    """Raise ShapeError if a reduction without an identity runs over an axis of size zero."""
    if any(x.shape[axis] == 0 for axis in axes):
        raise ShapeError(
            message(
                f"{name}{here()}: a reduction over no elements has no value",
                f"got {x}, reduced over axes {tuple(axes)}",
                help="give it an initial value by concatenating one, or test x.size first",
            )
        )


def reduce_batch(
    ctx: Any, xs: Sequence[Any], batch_axes: Sequence[int | None], *, axes: tuple[int, ...]
) -> tuple[list[Any], list[int | None]]:
    """Batch a reduction: the batch axis stays where it is, the reduced axes shift past it."""
    (axis,) = batch_axes
    assert axis is not None
    shifted = shift_axes(axes, axis)
    return ctx.bind_all(ctx.primitive, xs, {"axes": shifted}), [axis_after_drop(axis, shifted)]


def accumulated(function: Callable[..., Any]) -> Rule:
    """Make a reference from a NumPy reduction, in the operand's dtype. f16 and bf16 accumulate in float32."""

    def reference(x: Any, *, axes: tuple[int, ...]) -> Any:
        wide = dtypes.accumulator_dtype(x.dtype)
        result = function(x, axis=axes, dtype=wide)
        return result if wide is x.dtype else result.astype(x.dtype)

    return reference


def accumulated_prepared(function: Callable[..., Any]) -> Rule:
    """Make the `prepared` rule of a primitive with the reference `accumulated(function)`."""

    def prepared(x: Type, *, axes: tuple[int, ...]) -> Rule | None:
        if not isinstance(x, ArrayType) or dtypes.accumulator_dtype(x.dtype) is not x.dtype:
            return None
        dtype = x.dtype
        return lambda x: np.asarray(function(x, axis=axes, dtype=dtype), order="C")

    return prepared


def reduce_over(primitive: Primitive, operand: Value, axes: Sequence[int]) -> Any:
    """Bind a reduction over axes counted from either end. Returns the operand itself if there are no axes."""
    x = operand_of(primitive.name, operand)
    named = tuple(sorted(axes_of(primitive.name, axes, len(x.type.shape))))
    if named:
        return bind(primitive, x, axes=named)
    primitive.infer(x.type, axes=())
    return x


# reduce_sum


def _sum_transpose(ctx: Any, cts: Any, xs: Any, *, axes: tuple[int, ...]) -> list[Any]:
    inner = xs[0].type.shape
    kept = [axis for axis in range(len(inner)) if axis not in axes]
    return [broadcast_in_dim(cts[0], inner, kept)]


reduce_sum_p = Primitive(
    name="reduce_sum", infer=reduce_infer("reduce_sum", "ifc"), reference=accumulated(np.add.reduce),
    jvp=linear_jvp, transpose=_sum_transpose, batch=reduce_batch, lower=Reduce(ScalarOp.ADD),
    prepared=accumulated_prepared(np.add.reduce),
)  # fmt: skip


def reduce_sum(operand: Value, axes: Sequence[int]) -> Any:
    """Sum over `axes`, in the operand's dtype. Integers wrap, f16 and bf16 accumulate in f32, an empty sum is 0.

    operand: numbers [*s]; axes: counted from either end. Returns the same dtype, [*s minus axes]. Raises DTypeError for
    bool, AxisError if an axis is out of range or repeats.

    >>> reduce_sum(tnp.asarray([[1, 2], [3, 4]]), (0,))
    Array([4, 6], i64)
    """
    return reduce_over(reduce_sum_p, operand, axes)
