"""Contractions: dot_general, the primitive of every matrix product, inner product and einsum.

    dimension_numbers = ((lhs contracted, rhs contracted), (lhs batch, rhs batch))     tuples of axes
    result axes       = batch axes, then lhs's free axes, then rhs's free axes

Products and sums are computed in `accumulation_dtype` and rounded once: float32 for the short floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes, shape
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Library, Primitive, Rule, Zero
from tracer.ir.types import ArrayType, Shape, Type, array_type, tangent_type
from tracer.primitives.base.rules import (
    Value,
    check_kinds,
    check_same_dtype,
    coerce,
    is_linear,
    kind_of,
    operand_of,
    per_operand,
    shift_axes,
)
from tracer.primitives.base.shapes import transpose
from tracer.primitives.elementwise.conversion import convert_element_type, converted, dtype_named
from tracer.primitives.linalg.matvec_strategies import Axes, DimensionNumbers, added_up, free_axes, summed_axis, way_of
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.trace import Operand, bind


class Precision(Enum):
    """Precision of products of float32 on a device. The CPU always computes in full precision.

    >>> Precision("highest")
    <Precision.HIGHEST: 'highest'>
    """

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


_PRECISIONS = {
    "default": None, "fastest": None, "bfloat16": None,
    "high": "high", "bfloat16_3x": "high", "tensorfloat32": "high",
    "highest": "highest", "float32": "highest",
}  # fmt: skip


def canonical_precision(precision: object, operation: str) -> str | None:
    """Return None (the default), "high" or "highest" for any precision of lax; of a pair, the higher one.

    Raises ArgumentError for an unknown precision.
    """
    if isinstance(precision, tuple | list):
        parts = [canonical_precision(part, operation) for part in precision]
        return max(parts, key=(None, "high", "highest").index, default=None)
    name = precision.value if isinstance(precision, Precision) else precision
    if name is None or name in _PRECISIONS:
        return None if name is None else _PRECISIONS[str(name)]
    raise ArgumentError(
        message(
            f"{operation}{here()}: unknown precision {precision!r}",
            help=f"one of {', '.join(map(repr, _PRECISIONS))}, a lax.Precision, a pair of them, or None",
        )
    )


def accumulation_dtype(operand: DType, result: DType) -> DType:
    """Return the dtype of products and sums: the wider of the operands' and the result's, f32 for short floats.

    It is of the operands' kind, unless that is exact and the result's is not.
    """
    if not dtypes.is_inexact(operand):
        wider = kind_of(operand) == kind_of(result) and operand.itemsize >= result.itemsize
        return dtypes.accumulator_dtype(operand if wider else dtypes.real_dtype(result))
    part, wanted = dtypes.real_dtype(operand), dtypes.real_dtype(result)
    wide = dtypes.accumulator_dtype(wanted if dtypes.is_float(wanted) and wanted.itemsize > part.itemsize else part)
    return dtypes.complex_dtype(wide) if dtypes.is_complex(operand) else wide


def check_preferred(operation: str, operand: DType, preferred: DType) -> DType:
    """Return the preferred dtype. Raises DTypeError if it is narrower than operands of another kind than floats."""
    widths = [dtypes.real_dtype(dtype).itemsize - dtypes.is_bool(dtype) for dtype in (preferred, operand)]
    if preferred != operand and not dtypes.is_float(operand) and widths[0] < widths[1]:
        raise DTypeError(
            message(
                f"{operation}{here()}: preferred_element_type is narrower than the operands",
                f"got {dtypes.short_name(preferred)} for products of {dtypes.short_name(operand)}",
                help="cast the result with .astype(...); only floats are rounded to narrower ones here",
            )
        )
    return preferred


# Axes


def _sizes(type: Type, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(type.shape[axis] for axis in axes)


def _check_axes(lhs: Type, rhs: Type, dimension_numbers: DimensionNumbers) -> None:
    contracted, batch = dimension_numbers
    for role, (left, right) in (("contracted", contracted), ("batch", batch)):
        if _sizes(lhs, left) != _sizes(rhs, right):
            raise ShapeError(
                message(
                    f"dot_general{here()}: {role} axes must have equal sizes",
                    f"got {lhs} and {rhs}",
                    f"axes {left} of the first have sizes {_sizes(lhs, left)}, "
                    f"axes {right} of the second {_sizes(rhs, right)}",
                    help="x @ y contracts the last axis of x with the last but one of y; transpose one of them",
                )
            )


def _dot_infer(
    lhs: Type, rhs: Type, *, dimension_numbers: DimensionNumbers, precision: str | None, preferred_element_type: DType
) -> Type:
    check_kinds("dot_general", (lhs, rhs), "bifc")
    assert isinstance(lhs, ArrayType)
    assert isinstance(rhs, ArrayType)
    check_same_dtype("dot_general", (lhs, rhs))
    _check_axes(lhs, rhs, dimension_numbers)
    (left, right), (left_batch, right_batch) = dimension_numbers
    left_free = free_axes(len(lhs.shape), left, left_batch)
    right_free = free_axes(len(rhs.shape), right, right_batch)
    result = _sizes(lhs, left_batch) + _sizes(lhs, left_free) + _sizes(rhs, right_free)
    return array_type(preferred_element_type, result, lhs.weak and rhs.weak)


# Value


def _dot_reference(
    lhs: Any, rhs: Any, *, dimension_numbers: DimensionNumbers, precision: str | None, preferred_element_type: DType
) -> Any:
    return _contraction(lhs.shape, lhs.dtype, rhs.shape, rhs.dtype, dimension_numbers, preferred_element_type)(lhs, rhs)


def _contraction(
    left_shape: Shape, left_dtype: DType, right_shape: Shape, right_dtype: DType, dimension_numbers: DimensionNumbers,
    result: DType,
) -> Rule:  # fmt: skip
    """Return the function that contracts NumPy arrays of these shapes and dtypes."""
    compute = accumulation_dtype(left_dtype, result)
    way = way_of(left_shape, right_shape, dimension_numbers)
    left, right = way.left, way.right
    is_cast = compute != left_dtype or compute != right_dtype
    axis = summed_axis(way, compute) if compute == result else None

    def contract(lhs: Any, rhs: Any) -> Any:
        x = lhs if left is None else lhs.transpose(left[0]).reshape(left[1])
        y = rhs if right is None else rhs.transpose(right[0]).reshape(right[1])
        if is_cast:
            x, y = x.astype(compute, copy=False), y.astype(compute, copy=False)
        product = x @ y if axis is None else added_up(x, y, axis)
        if product.shape != way.result:
            product = product.reshape(way.result)
        return product if product.dtype == result else converted(product, result)

    return contract


def _dot_prepared(lhs: ArrayType, rhs: ArrayType, *, dimension_numbers: DimensionNumbers, **params: Any) -> Rule | None:
    """Return the contraction of contiguous operands of wide floats or complex numbers.

    It is `np.dot` for vectors and matrices of real floats: faster than `x @ y`, and equal to the bit.
    """
    result = params["preferred_element_type"]
    if lhs.dtype not in (dtypes.F32, dtypes.F64, dtypes.C64, dtypes.C128) or lhs.dtype != result:
        return None
    contract = _contraction(lhs.shape, lhs.dtype, rhs.shape, rhs.dtype, dimension_numbers, result)
    rank = max(len(lhs.shape), len(rhs.shape))
    plain = rank <= 2 and dimension_numbers == (((len(lhs.shape) - 1,), (0,)), ((), ()))
    summed = summed_axis(way_of(lhs.shape, rhs.shape, dimension_numbers), lhs.dtype)
    if not plain or summed is not None or dtypes.is_complex(result):
        return lambda x, y: np.asarray(contract(x, y), order="C")
    return np.dot if rank > 1 else lambda x, y: np.asarray(np.dot(x, y))


# Derivatives


def in_dtype(x: Any, dtype: DType) -> Any:
    """Return the operand, cast if its dtype differs."""
    return x if x.type.dtype == dtype else convert_element_type(x, dtype)


def cotangent_operands(ct: Any, other: Any) -> tuple[Any, Any]:
    """Cast a cotangent and the other operand to the wider of their dtypes."""
    promoted = dtypes.promote((ct.type.dtype, False), (other.type.dtype, False))
    assert promoted is not None
    return in_dtype(ct, promoted[0]), in_dtype(other, promoted[0])


def _operand_cotangent(
    ct: Any, other: Any, type: ArrayType, own: tuple[Axes, Axes], others: tuple[Axes, Axes], ct_other: Axes,
    precision: str | None,
) -> Any:  # fmt: skip
    """Return an operand's cotangent.

    own, others: (contracted, batch) axes of this and the other operand; ct_other: the other operand's free axes in ct.
    """
    (contracted, batch), (other_contracted, other_batch) = own, others
    other_free = free_axes(len(other.type.shape), other_contracted, other_batch)
    ct, other = cotangent_operands(ct, operand_of("dot_general", other))
    numbers = ((ct_other, other_free), (tuple(range(len(batch))), other_batch))
    result = contract(ct, other, numbers, precision, type.dtype)
    by_other = tuple(contracted[i] for i in np.argsort(other_contracted))
    order = batch + free_axes(len(type.shape), contracted, batch) + by_other
    return transpose(result, shape.inverse(order))


def contract(lhs: Any, rhs: Any, dimension_numbers: DimensionNumbers, precision: str | None, dtype: DType) -> Any:
    """Bind dot_general with parameters that are known to fit, and a result of any dtype."""
    return bind(
        dot_general_p, lhs, rhs, dimension_numbers=dimension_numbers, precision=precision, preferred_element_type=dtype
    )


def products_jvp(multiply: Callable[..., Any]) -> Rule:
    """Make the jvp of a product that is linear in both operands. Integer results have zero tangents."""
    tangents = per_operand(
        lambda ctx, dx, x, y, **params: multiply(dx, y, **params),
        lambda ctx, dy, x, y, **params: multiply(x, dy, **params),
    )

    def jvp(ctx: Any, xs: Any, dxs: Any, **params: Any) -> Any:
        exact = not dtypes.is_inexact(params["preferred_element_type"])
        return [Zero(tangent_type(ctx.outputs[0].type))] if exact else tangents(ctx, xs, dxs, **params)

    return jvp


def _dot_transpose(ctx: Any, cts: Any, xs: Any, *, dimension_numbers: Any, precision: Any, **_: Any) -> list[Any]:
    (ct,), (lhs, rhs) = cts, xs
    (left, right), (left_batch, right_batch) = dimension_numbers
    left_end = len(lhs.type.shape) - len(left)  # batch axes and lhs's free axes come first in ct
    ct_left, ct_right = tuple(range(len(left_batch), left_end)), tuple(range(left_end, len(ct.type.shape)))
    of_lhs, of_rhs = (left, left_batch), (right, right_batch)
    return [
        _operand_cotangent(ct, rhs, lhs.type, of_lhs, of_rhs, ct_right, precision) if is_linear(lhs) else None,
        _operand_cotangent(ct, lhs, rhs.type, of_rhs, of_lhs, ct_left, precision) if is_linear(rhs) else None,
    ]


# Batching


def _dot_batch(
    ctx: Any, xs: Sequence[Operand], axes: Sequence[int | None], *, dimension_numbers: DimensionNumbers, **params: Any
) -> tuple[list[Any], list[int | None]]:
    """Add a batch axis if both operands are batched, else a free axis where the batched operand has it."""
    (left, right), (left_batch, right_batch) = dimension_numbers
    (lhs, rhs), (lhs_axis, rhs_axis) = xs, axes
    lhs_free = len(lhs.type.shape) - len(left) - len(left_batch)
    if lhs_axis is not None:
        left, left_batch = shift_axes(left, lhs_axis), shift_axes(left_batch, lhs_axis)
    if rhs_axis is not None:
        right, right_batch = shift_axes(right, rhs_axis), shift_axes(right_batch, rhs_axis)
    if lhs_axis is not None and rhs_axis is not None:
        out = 0
        left_batch, right_batch = (lhs_axis, *left_batch), (rhs_axis, *right_batch)
    elif lhs_axis is not None:
        out = len(left_batch) + lhs_axis - sum(axis < lhs_axis for axis in left + left_batch)
    else:
        assert rhs_axis is not None
        out = len(right_batch) + lhs_free + rhs_axis - sum(axis < rhs_axis for axis in right + right_batch)
    numbers = ((left, right), (left_batch, right_batch))
    return [bind(dot_general_p, lhs, rhs, dimension_numbers=numbers, **params)], [out]


dot_general_p: Primitive = Primitive(
    name="dot_general", infer=_dot_infer, reference=_dot_reference,
    jvp=products_jvp(lambda x, y, **params: bind(dot_general_p, x, y, **params)), transpose=_dot_transpose,
    batch=_dot_batch, lower=Library("dot"), prepared=_dot_prepared,
)  # fmt: skip

CONTRACTIONS = (dot_general_p,)


# Public twins


def contraction_operands(operation: str, lhs: Value, rhs: Value) -> tuple[Operand, Operand, DType]:
    """Return the operands and their dtype, promoted if their dtypes differ."""
    x, y = coerce(operation, (lhs, rhs))
    check_kinds(operation, (x.type, y.type), "bifc")
    pairs = [(a.type.dtype, a.type.weak) for a in (x, y) if isinstance(a.type, ArrayType)]
    if pairs[0][0] == pairs[1][0]:
        return x, y, pairs[0][0]
    promoted = dtypes.promote(*pairs)
    if promoted is None:
        raise DTypeError(
            message(
                f"{operation}{here()}: the operands have no common dtype",
                f"got {x.type} and {y.type}",
                help="cast one operand with .astype(...)",
            )
        )
    return in_dtype(x, promoted[0]), in_dtype(y, promoted[0]), promoted[0]


def _canonical_axes(operation: str, lhs: Operand, rhs: Operand, dimension_numbers: Any) -> DimensionNumbers:
    (left, right), (left_batch, right_batch) = dimension_numbers
    ranks = len(lhs.type.shape), len(rhs.type.shape)
    canonical = [
        tuple(shape.axis_index(axis, rank, f"{operation}{here()}") for axis in axes)
        for axes, rank in zip((left, right, left_batch, right_batch), ranks * 2, strict=True)
    ]
    for side, side_axes in (("first", canonical[0] + canonical[2]), ("second", canonical[1] + canonical[3])):
        if len(set(side_axes)) != len(side_axes):
            raise ShapeError(
                message(
                    f"{operation}{here()}: an axis of the {side} operand is named twice",
                    f"contracted and batch axes are {side_axes}",
                    help="an axis is contracted, or a batch axis, or neither",
                )
            )
    if len(canonical[0]) != len(canonical[1]) or len(canonical[2]) != len(canonical[3]):
        raise ShapeError(
            message(
                f"{operation}{here()}: the operands must name equally many axes",
                f"contracted axes {canonical[0]} and {canonical[1]}, batch axes {canonical[2]} and {canonical[3]}",
                help="dimension_numbers = ((lhs contracted, rhs contracted), (lhs batch, rhs batch))",
            )
        )
    return (canonical[0], canonical[1]), (canonical[2], canonical[3])


def dot_general(
    lhs: Value, rhs: Value, dimension_numbers: Any, precision: object = None, preferred_element_type: Any = None
) -> Array:
    """Sum products over the contracted axes, for every index of the batch axes.

    lhs: [*s], rhs: [*t]; dimension_numbers: ((lhs contracted, rhs contracted), (lhs batch, rhs batch)), axes by index.
    Returns [batch axes, lhs's free axes, rhs's free axes], of the operands' dtype or `preferred_element_type`. Inexact
    sums are converted to it at the end, integer sums are computed in it. Integers wrap, bool is `or` of `and`. f16 and
    bf16 accumulate in f32 and round once. Some processors flush subnormals of bf16 to zero unless `precision` is
    "highest". Raises ShapeError if paired axes differ, DTypeError if dtypes do not fit.

    >>> dot_general(tnp.ones((2, 3)), tnp.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    x, y, dtype = contraction_operands("dot_general", lhs, rhs)
    numbers = _canonical_axes("dot_general", x, y, dimension_numbers)
    preferred = dtype if preferred_element_type is None else dtype_named("dot_general", preferred_element_type)
    checked: Array = contract(
        x, y, numbers, canonical_precision(precision, "dot_general"), check_preferred("dot_general", dtype, preferred)
    )
    return checked


def dot(
    lhs: Value, rhs: Value, *, dimension_numbers: Any = None, precision: object = None,
    preferred_element_type: Any = None,
) -> Array:  # fmt: skip
    """Multiply vectors and matrices: contract the last axis of `lhs` with the first of `rhs`.

    lhs: [n] or [m, n]; rhs: [n] or [n, k]; dimension_numbers: of `dot_general`, for other axes. Returns [], [m], [k] or
    [m, k], of the operands' dtype. Raises as `dot_general`, and ShapeError for more axes.

    >>> float(dot(tnp.asarray([1.0, 2.0]), tnp.asarray([3.0, 4.0])))
    11.0
    """
    x, y = (operand_of("dot", operand) for operand in (lhs, rhs))
    if dimension_numbers is None:
        ranks = len(x.type.shape), len(y.type.shape)
        if not (ranks[0] in (1, 2) and ranks[1] in (1, 2)):
            raise ShapeError(
                message(
                    f"dot{here()} takes vectors and matrices",
                    f"got {x.type} and {y.type}",
                    help="tracer.numpy.matmul takes stacks of matrices; lax.dot_general takes any axes",
                )
            )
        dimension_numbers = (((ranks[0] - 1,), (0,)), ((), ()))
    return dot_general(x, y, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Value, rhs: Value, precision: object = None) -> Array:
    """Multiply matrices over equal leading axes: [*b, m, k] with [*b, k, n] gives [*b, m, n].

    lhs, rhs: arrays of one dtype. Raises ShapeError if sizes differ, DTypeError if dtypes do not fit.

    >>> batch_matmul(tnp.ones((5, 2, 3)), tnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    x, y = (operand_of("batch_matmul", operand) for operand in (lhs, rhs))
    rank = len(x.type.shape)
    if rank < 2 or len(y.type.shape) != rank:
        raise ShapeError(
            message(
                f"batch_matmul{here()} takes two stacks of matrices with equally many axes, at least two",
                f"got {x.type} and {y.type}",
                help="tracer.numpy.matmul broadcasts the leading axes",
            )
        )
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)
