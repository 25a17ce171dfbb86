"""Reductions over axes: sum, prod, max, min, and, or, xor; and argmax and argmin along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes, shape
from tracer.ir.dtypes import DType
from tracer.ir.primitive import ArgReduce, NoRule, Primitive, Reduce, Zero
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import Type, array_type, tangent_type
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim, split
from tracer.primitives.base.broadcasting import (
    accumulated,
    axis_of,
    broadcast_in_dim,
    check_not_empty,
    full_like,
    reduce_batch,
    reduce_infer,
    reduce_over,
    reduce_sum_p,
)
from tracer.primitives.base.broadcasting import reduce_sum as reduce_sum
from tracer.primitives.base.rules import Value, axis_after_drop, check_kinds, kind_of, operand_of, zero_jvp
from tracer.primitives.base.shapes import Batched, reshape, rev, transpose
from tracer.primitives.elementwise.arithmetic import div, mul
from tracer.primitives.elementwise.bits import and_, not_, or_
from tracer.primitives.elementwise.comparison import eq, gt, lt, ne, select
from tracer.primitives.elementwise.complex import imag, real
from tracer.primitives.elementwise.conversion import convert_element_type, dtype_of
from tracer.primitives.elementwise.float_order import exact_extreme
from tracer.trace.source import here
from tracer.trace.trace import bind

# reduce_prod


def _prod_jvp(ctx: Any, xs: Any, dxs: Any, *, axes: tuple[int, ...]) -> list[Any]:
    """Multiply by halves, (p, dp)(q, dq) = (pq, dp q + p dq). Nothing is divided, so zeros are exact to every order."""
    product, tangent = (_reduced_last(value, axes) for value in (xs[0], dxs[0]))
    axis = product.ndim - 1
    n = product.shape[axis]
    if n == 0:
        return [Zero(tangent_type(ctx.outputs[0].type))]
    while n > 1:
        half = n // 2
        rest: list[Any] = []
        if n % 2:
            (product, *rest), (tangent, *d_rest) = (split(x, (2 * half, 1), axis) for x in (product, tangent))
            rest += d_rest
        pair, d_pair = (reshape(x, (*x.shape[:-1], 2, half)) for x in (product, tangent))
        tangent = reduce_sum(mul(d_pair, rev(pair, (axis,))), (axis,))
        product = mul(slice_in_dim(product, 0, half, axis=-1), slice_in_dim(product, half, 2 * half, axis=-1))
        if rest:
            product, tangent = (concatenate(ends, axis) for ends in zip((product, tangent), rest, strict=True))
        n -= half
    return [reshape(tangent, tangent.shape[:-1])]


def _reduced_last(x: Any, axes: tuple[int, ...]) -> Any:
    """Merge the reduced axes into one, the last."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    sizes = [x.shape[axis] for axis in kept]
    return reshape(transpose(x, (*kept, *axes)), (*sizes, shape.size([x.shape[axis] for axis in axes])))


def _prod_reference(x: Any, *, axes: tuple[int, ...]) -> Any:
    """Compute NumPy's product. A single element stays as it is: a factor of 1 would change complex infinities."""
    if shape.size([x.shape[axis] for axis in axes]) == 1:
        return x.reshape(shape.drop(x.shape, axes)).copy()
    return accumulated(np.prod)(x, axes=axes)


reduce_prod_p = Primitive(
    name="reduce_prod", infer=reduce_infer("reduce_prod", "ifc"), reference=_prod_reference,
    jvp=_prod_jvp, transpose=NoRule("reduce_prod is not linear"), batch=reduce_batch, lower=Reduce(ScalarOp.MUL),
)  # fmt: skip


def reduce_prod(operand: Value, axes: Sequence[int]) -> Any:
    """Multiply over `axes`, in the operand's dtype. f16 and bf16 accumulate in f32, an empty product is 1.

    operand: numbers [*s]; axes: counted from either end. Returns the same dtype, [*s minus axes]. Raises DTypeError for
    bool, AxisError if an axis is out of range or repeats.

    >>> reduce_prod(tnp.asarray([[1, 2], [3, 4]]), (1,))
    Array([ 2, 12], i64)
    """
    return reduce_over(reduce_prod_p, operand, axes)


# reduce_max and reduce_min


def _extreme_jvp(ctx: Any, xs: Any, dxs: Any, *, axes: tuple[int, ...]) -> list[Any]:
    """Share the tangent among the elements that attain the extreme. It is NaN where the extreme is."""
    (x,), (dx,), (y,) = xs, dxs, ctx.outputs
    extreme = broadcast_in_dim(y, x.shape, [axis for axis in range(x.ndim) if axis not in axes])
    if dtypes.is_complex(y.dtype):
        attains = or_(eq(x, extreme), ne(extreme, extreme))
    else:  # none is behind NaN
        attains = not_((lt if ctx.primitive is reduce_max_p else gt)(x, extreme))
    count = reduce_sum(convert_element_type(attains, y.dtype), axes)
    total = reduce_sum(select(attains, dx, full_like(dx, 0)), axes)
    return [div(total, select(eq(y, y), count, full_like(count, np.nan)))]


def _over_axes(function: Callable[..., Any], *, is_max: bool) -> Callable[..., Any]:
    """Make a reference of NumPy's max or min over axes. Of equal complex numbers the first in row-major order wins."""
    extreme = exact_extreme(function, is_max=is_max)

    def reference(x: Any, *, axes: tuple[int, ...]) -> Any:
        if dtypes.is_complex(x.dtype):
            kept = [axis for axis in range(x.ndim) if axis not in axes]
            count = shape.size([x.shape[axis] for axis in axes])
            x, axes = x.transpose((*kept, *axes)).reshape((*(x.shape[a] for a in kept), count)), (len(kept),)
        return extreme(x, axis=axes)

    return reference


reduce_max_p, reduce_min_p = (
    Primitive(
        name=name, infer=reduce_infer(name, "bifc", of_nothing=False),
        reference=_over_axes(function, is_max=op is ScalarOp.MAX),
        jvp=_extreme_jvp, transpose=NoRule(f"{name} is not linear"), batch=reduce_batch, lower=Reduce(op),
    )
    for name, function, op in (("reduce_max", np.max, ScalarOp.MAX), ("reduce_min", np.min, ScalarOp.MIN))
)  # fmt: skip


def reduce_max(operand: Value, axes: Sequence[int]) -> Any:
    """Take the maximum over `axes`. NaN if any element is. Complex numbers compare by real, then by imaginary part.

    operand: numbers or bool [*s]; axes: counted from either end. Returns the same dtype, [*s minus axes]. Equal
    elements share the derivative. Raises ShapeError for no elements, AxisError if an axis is out of range or repeats.

    >>> reduce_max(tnp.asarray([[1, 5], [3, 4]]), (0,))
    Array([3, 5], i64)
    """
    return reduce_over(reduce_max_p, operand, axes)


def reduce_min(operand: Value, axes: Sequence[int]) -> Any:
    """Take the minimum over `axes`. NaN if any element is. Complex numbers compare by real, then by imaginary part.

    operand: numbers or bool [*s]; axes: counted from either end. Returns the same dtype, [*s minus axes]. Equal
    elements share the derivative. Raises ShapeError for no elements, AxisError if an axis is out of range or repeats.

    >>> reduce_min(tnp.asarray([[1, 5], [3, 4]]), (0,))
    Array([1, 4], i64)
    """
    return reduce_over(reduce_min_p, operand, axes)


# reduce_and, reduce_or, reduce_xor


def _of_bits(function: np.ufunc) -> Callable[..., Any]:
    """Make the reference of a bitwise reduction over axes, with its identity: NumPy's is a signed -1."""
    ones = function is np.bitwise_and

    def reference(x: Any, *, axes: tuple[int, ...]) -> Any:
        identity = ~x.dtype.type(0) if ones else x.dtype.type(0)
        return np.asarray(function.reduce(x, axis=axes, initial=identity), x.dtype)

    return reference


reduce_and_p, reduce_or_p, reduce_xor_p = (
    Primitive(
        name=name, infer=reduce_infer(name, "bi"), reference=_of_bits(function),
        jvp=zero_jvp, transpose=NoRule(f"{name} is not linear"), batch=reduce_batch, lower=Reduce(op),
    )
    for name, function, op in (
        ("reduce_and", np.bitwise_and, ScalarOp.AND),
        ("reduce_or", np.bitwise_or, ScalarOp.OR),
        ("reduce_xor", np.bitwise_xor, ScalarOp.XOR),
    )
)  # fmt: skip


def reduce_and(operand: Value, axes: Sequence[int]) -> Any:
    """Combine by bitwise `and` over `axes`; for bool, whether all are true. No elements give all bits set.

    operand: bool or integers [*s]; axes: counted from either end. Returns the same dtype, [*s minus axes]. Raises
    DTypeError for other dtypes, AxisError if an axis is out of range or repeats.

    >>> reduce_and(tnp.asarray([True, False]), (0,))
    Array(False, bool)
    """
    return reduce_over(reduce_and_p, operand, axes)


def reduce_or(operand: Value, axes: Sequence[int]) -> Any:
    """Combine by bitwise `or` over `axes`; for bool, whether any is true. No elements give zero.

    operand: bool or integers [*s]; axes: counted from either end. Returns the same dtype, [*s minus axes]. Raises
    DTypeError for other dtypes, AxisError if an axis is out of range or repeats.

    >>> reduce_or(tnp.asarray([True, False]), (0,))
    Array(True, bool)
    """
    return reduce_over(reduce_or_p, operand, axes)


def reduce_xor(operand: Value, axes: Sequence[int]) -> Any:
    """Combine by bitwise exclusive `or` over `axes`: the parity of every bit. No elements give zero.

    operand: bool or integers [*s]; axes: counted from either end. Returns the same dtype, [*s minus axes]. Raises
    DTypeError for other dtypes, AxisError if an axis is out of range or repeats.

    >>> reduce_xor(tnp.asarray([6, 3]), (0,))
    Array(5, i64)
    """
    return reduce_over(reduce_xor_p, operand, axes)


# argmax and argmin


def _arg_infer(name: str) -> Callable[..., Type]:
    def infer(x: Type, *, axis: int, index_dtype: DType) -> Type:
        check_kinds(name, [x], "bif")
        check_not_empty(name, x, (axis,))
        if not dtypes.is_integer(index_dtype):
            raise DTypeError(
                message(
                    f"{name}{here()} gives an index",
                    f"got index_dtype={dtypes.short_name(index_dtype)}",
                    help="ask for an integer dtype",
                )
            )
        return array_type(index_dtype, shape.drop(x.shape, (axis,)))

    return infer


def _arg_reference(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a reference of NumPy's argmax or argmin, which take the first NaN."""

    def reference(x: Any, *, axis: int, index_dtype: DType) -> Any:
        wide = x.astype(dtypes.accumulator_dtype(x.dtype))
        return np.asarray(function(wide, axis=axis)).astype(index_dtype)

    return reference


def _arg_batch(ctx: Any, xs: Any, axes: Any, *, axis: int, index_dtype: DType) -> Batched:
    shifted = axis + (axis >= axes[0])
    outputs = ctx.bind_all(ctx.primitive, xs, {"axis": shifted, "index_dtype": index_dtype})
    return outputs, [axis_after_drop(axes[0], (shifted,))]


argmax_p, argmin_p = (
    Primitive(
        name=name, infer=_arg_infer(name), reference=_arg_reference(function),
        jvp=zero_jvp, transpose=NoRule(f"{name} is not linear"), batch=_arg_batch, lower=ArgReduce(op),
    )
    for name, function, op in (("argmax", np.argmax, ScalarOp.MAX), ("argmin", np.argmin, ScalarOp.MIN))
)  # fmt: skip


def argmax(operand: Value, axis: int, index_dtype: DType = dtypes.I64) -> Any:
    """Find the index of the maximum along an axis: the first of equal ones, or the first NaN.

    Complex numbers compare by real, then by imaginary part.

    operand: numbers or bool [*s]; axis: counted from either end, of size 1 or more; index_dtype: the result's. Returns
    [*s minus axis]. Raises ShapeError for no elements, AxisError if the axis is out of range, DTypeError if index_dtype
    is no integer dtype.

    >>> argmax(tnp.asarray([1.0, 3.0, 3.0]), 0)
    Array(1, i64)
    """
    return _arg(argmax_p, operand, axis, index_dtype)


def argmin(operand: Value, axis: int, index_dtype: DType = dtypes.I64) -> Any:
    """Find the index of the minimum along an axis: the first of equal ones, or the first NaN.

    Complex numbers compare by real, then by imaginary part.

    operand: numbers or bool [*s]; axis: counted from either end, of size 1 or more; index_dtype: the result's. Returns
    [*s minus axis]. Raises ShapeError for no elements, AxisError if the axis is out of range, DTypeError if index_dtype
    is no integer dtype.

    >>> argmin(tnp.asarray([1.0, 3.0, 1.0]), 0)
    Array(0, i64)
    """
    return _arg(argmin_p, operand, axis, index_dtype)


def _arg(primitive: Primitive, operand: Value, axis: int, index_dtype: DType) -> Any:
    x = operand_of(primitive.name, operand)
    named = axis_of(primitive.name, axis, len(x.type.shape))
    if kind_of(dtype_of(x)) == "c":
        check_not_empty(primitive.name, x.type, (named,))
        x, primitive = _attains_lexicographic(x, named, is_max=primitive is argmax_p), argmax_p
    return bind(primitive, x, axis=named, index_dtype=np.dtype(index_dtype))


def _attains_lexicographic(x: Any, axis: int, *, is_max: bool) -> Any:
    """Return 1 where a complex number is the extreme, by real, then imaginary part, or where it is NaN; else 0."""
    extreme, kept = reduce_max if is_max else reduce_min, [a for a in range(x.ndim) if a != axis]

    def is_extreme(part: Any, among: Any) -> Any:
        considered = select(among, part, full_like(part, -np.inf if is_max else np.inf))
        return and_(among, eq(part, broadcast_in_dim(extreme(considered, (axis,)), x.shape, kept)))

    first, second = real(x), imag(x)
    number = and_(eq(first, first), eq(second, second))
    all_numbers = broadcast_in_dim(reduce_and(number, (axis,)), x.shape, kept)
    found = is_extreme(second, is_extreme(first, number))
    return convert_element_type(select(all_numbers, found, not_(number)), dtypes.I8)


REDUCTIONS: tuple[Primitive, ...] = (
    reduce_sum_p, reduce_prod_p, reduce_max_p, reduce_min_p, reduce_and_p, reduce_or_p, reduce_xor_p,
    argmax_p, argmin_p,
)  # fmt: skip
