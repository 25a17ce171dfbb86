"""Sort, by several keys at once, and top_k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Composite, Joint, Library, NoRule, Primitive, Zero
from tracer.ir.types import ArrayType, Type, array_type, size, tangent_type, with_shape
from tracer.primitives.arrays.indexing.gather import take_along
from tracer.primitives.arrays.slice_pad_concatenate import slice_in_dim
from tracer.primitives.base.broadcasting import axis_of
from tracer.primitives.base.rules import Value, check_kinds, operand_of
from tracer.primitives.base.shapes import Batched, align, broadcasted_iota, rev
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.trace import Operand, bind_all

# sort


def _sort_infer(*xs: Type, dimension: int, is_stable: bool, num_keys: int) -> tuple[Type, ...]:
    if any(x.shape != xs[0].shape for x in xs):
        raise ShapeError(
            message(
                f"sort{here()}: operands must have equal shapes",
                f"got {', '.join(map(str, xs))}",
                help="broadcast them first",
            )
        )
    if not 1 <= num_keys <= len(xs):
        raise ArgumentError(
            message(
                f"sort{here()}: num_keys must lie between 1 and the number of operands",
                f"got num_keys={num_keys} for {len(xs)}",
                help="the first num_keys operands are compared, all other operands follow",
            )
        )
    check_kinds("sort", xs[:num_keys], "bifc")
    return xs


def _sort_reference(*xs: Any, dimension: int, is_stable: bool, num_keys: int) -> tuple[Any, ...]:
    """Sort by NumPy's stable sorts, which put NaN last and treat -0 and +0 as equal."""
    keys = [x.astype(dtypes.accumulator_dtype(x.dtype)) for x in xs[:num_keys]]
    if num_keys == 1:
        order = np.argsort(keys[0], axis=dimension, kind="stable")
    else:
        order = np.lexsort(keys[::-1], axis=dimension)
    return tuple(np.take_along_axis(x, _with_hidden(order, x), dimension) for x in xs)


def _with_hidden(order: Any, x: Any) -> Any:
    """Return the order for a payload of random keys, whose words are one more axis."""
    return order if x.ndim == order.ndim else order[..., None]


def _sort_jvp(
    ctx: Any, xs: Any, dxs: Any, *, dimension: int, is_stable: bool, num_keys: int
) -> tuple[list[Any], list[Any]]:
    """Gather tangents in the order of their primals, found by sorting positions along."""
    positions = broadcasted_iota(dtypes.I64, xs[0].shape, dimension)
    params = {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}
    *ys, order = bind_all(sort_p, [*xs, positions], params)
    dys = [
        Zero(tangent_type(y.type)) if isinstance(dx, Zero) else take_along(dx, order, dimension, unique_indices=True)
        for y, dx in zip(ys, dxs, strict=True)
    ]
    return ys, dys


def _sort_batch(ctx: Any, xs: Any, axes: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Batched:
    aligned, axis = align(ctx, xs, axes)
    shifted = dimension + (dimension >= axis)
    params = {"dimension": shifted, "is_stable": is_stable, "num_keys": num_keys}
    return bind_all(sort_p, aligned, params), [axis] * len(xs)


sort_p: Primitive = Primitive(
    name="sort", infer=_sort_infer, reference=_sort_reference,
    jvp=Joint(_sort_jvp), transpose=NoRule("sort is not linear; its derivative is a gather"), batch=_sort_batch,
    lower=Library("sort"), multiple=True,
)  # fmt: skip


def sort(operand: Operand | Sequence[Operand], dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort along an axis by the first `num_keys` operands, the first counting most, and reorder all operands alike.

    Ascending, NaN last, -0 equal to +0, complex numbers by real, then imaginary part. One array gives an array, a
    sequence gives a tuple.

    operand: an array [*s] with an axis, or several of one shape; keys are numbers or bool; dimension: the axis;
    is_stable: has no effect, equal keys stay in order. Returns the same types. Raises ShapeError if shapes differ, and
    ArgumentError for scalars or num_keys out of range. Raises AxisError if the axis is out of range.

    >>> sort((tnp.asarray([2, 1, 2]), tnp.asarray([0.5, 0.25, 0.125])), num_keys=2)
    (Array([1, 2, 2], i64), Array([0.25 , 0.125, 0.5  ], f64))
    """
    xs = list(operand) if isinstance(operand, Sequence) else [operand]
    if not xs or not all(isinstance(x, Array) and x.ndim for x in xs):
        raise ArgumentError(
            message(
                f"sort{here()}: expected one array or more, each with an axis",
                f"got {', '.join(str(getattr(x, 'type', type(x).__name__)) for x in xs) or 'none'}",
                help="a scalar is sorted already",
            )
        )
    axis, num_keys = axis_of("sort", dimension, len(xs[0].type.shape)), integer("sort", "num_keys", num_keys)
    ys = bind_all(sort_p, xs, {"dimension": axis, "is_stable": is_stable, "num_keys": num_keys})
    return tuple(ys) if isinstance(operand, Sequence) else ys[0]


# top_k


def _top_k_infer(x: Type, *, k: int, axis: int) -> tuple[Type, Type]:
    check_kinds("top_k", [x], "bif")
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(
            message(
                f"top_k{here()}: k must lie between 0 and the size of the axis",
                f"got k={k} for axis {axis} of {x}",
                help="pad the operand, or take a smaller k",
            )
        )
    sizes = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return with_shape(x, sizes), array_type(dtypes.I32, sizes)


def _top_k_reference(x: Any, *, k: int, axis: int) -> tuple[Any, Any]:
    backwards = np.flip(x.astype(dtypes.accumulator_dtype(x.dtype)), axis)
    order = np.flip(np.argsort(backwards, axis=axis, kind="stable"), axis).take(range(k), axis)
    indices = x.shape[axis] - 1 - order
    return np.take_along_axis(x, indices, axis), indices.astype(np.int32)


def _top_k_expand(x: Any, *, k: int, axis: int) -> list[Any]:
    """Sort everything backwards, stably ascending, so that the largest come last, the first of equals at the end."""
    n = x.shape[axis]
    positions = broadcasted_iota(dtypes.I32, x.shape, axis)
    values = sort((rev(x, (axis,)), rev(positions, (axis,))), axis)
    return [rev(slice_in_dim(y, n - k, n, axis=axis), (axis,)) for y in values]


_MAX_K, _MIN_SIZE = 16, 64
_KEPT_DTYPES = (
    dtypes.I8, dtypes.I16, dtypes.I32, dtypes.I64, dtypes.U8, dtypes.U16, dtypes.U32, dtypes.U64, dtypes.F32,
    dtypes.F64,
)  # fmt: skip


def _top_k_has_nest(x: Type, *, k: int, axis: int) -> bool:
    """Return whether k is small and the elements contiguous. Then a loop nest finds the k largest in one pass."""
    few = 1 <= k <= _MAX_K and x.shape[axis] >= _MIN_SIZE
    contiguous = size(x) > 0 and all(n == 1 for n in x.shape[axis + 1 :])
    return few and contiguous and isinstance(x, ArrayType) and x.dtype in _KEPT_DTYPES


def _top_k_jvp(ctx: Any, xs: Any, dxs: Any, *, k: int, axis: int) -> list[Any]:
    _, indices = ctx.outputs
    return [take_along(dxs[0], indices, axis, unique_indices=True), Zero(tangent_type(indices.type))]


def _top_k_batch(ctx: Any, xs: Any, axes: Any, *, k: int, axis: int) -> Batched:
    return top_k(xs[0], k, axis=axis + (axis >= axes[0])), [axes[0]] * 2


top_k_p = Primitive(
    name="top_k", infer=_top_k_infer, reference=_top_k_reference,
    jvp=_top_k_jvp, transpose=NoRule("top_k is not linear; its derivative is a gather"), batch=_top_k_batch,
    lower=Composite(_top_k_expand, _top_k_has_nest, "top_k", computes=True), multiple=True,
)  # fmt: skip


def top_k(operand: Value, k: int, *, axis: int = -1) -> list[Any]:
    """Find the k largest elements along an axis, in descending order, and their indices (int32). NaN is largest.

    Of equal elements the first comes first.

    operand: real numbers or bool [*s, n], k <= n; axis: counted from either end. Returns [*s, k] of the operand's dtype
    and of i32. Raises ShapeError for a larger k, DTypeError for complex numbers, AxisError if the axis is out of range.

    >>> top_k(tnp.asarray([3, 1, 3, 2]), 2)
    [Array([3, 3], i64), Array([0, 2], i32)]
    """
    x = operand_of("top_k", operand)
    return bind_all(top_k_p, [x], {"k": integer("top_k", "k", k), "axis": axis_of("top_k", axis, len(x.type.shape))})


SORTING: tuple[Primitive, ...] = (sort_p, top_k_p)
