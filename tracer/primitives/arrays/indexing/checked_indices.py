"""checked_indices: bounds-checked indices, which an access and its derivatives share.

A compiled gradient drops a read that only feeds a linear function, and with it the read's own bounds check. So the
check is an equation of its own, which every use of the indices keeps alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.errors import ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import FAULTS, Checked, NoRule, Primitive
from tracer.ir.types import ArrayType, Type
from tracer.primitives.arrays.indexing.dimension_numbers import COUNTED_FROM_0, Bound, raise_first_fault
from tracer.primitives.base.rules import operand_of, zero_jvp
from tracer.primitives.base.shapes import broadcast_in_dim, expand_dims, squeeze
from tracer.primitives.elementwise.arithmetic import clamp
from tracer.settings import config
from tracer.trace.source import here
from tracer.trace.trace import Operand, bind


def _infer(indices: Type, predicate: Type, *, bounds: tuple[Bound, ...]) -> Type:
    fits = isinstance(indices, ArrayType) and dtypes.is_integer(indices.dtype)
    if not fits or not indices.shape or indices.shape[-1] != len(bounds):
        raise ShapeError(
            message(
                f"checked_indices{here()} takes integers whose last axis is an index vector",
                f"got {indices} for {len(bounds)} bounds",
                help="one bound for each component",
            )
        )
    is_mask = isinstance(predicate, ArrayType) and dtypes.is_bool(predicate.dtype)
    if not is_mask or predicate.shape not in ((), indices.shape[:-1]):
        raise ShapeError(
            message(
                f"checked_indices{here()}: the predicate must be a bool, or one for each index vector",
                f"got {predicate} for indices {indices}",
                help="broadcast it",
            )
        )
    return indices


def _reference(indices: Any, predicate: Any, *, bounds: tuple[Bound, ...]) -> Any:
    raise_first_fault(indices, predicate, bounds)
    return indices


def _batch(ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
    (indices, predicate), (index_axis, mask_axis) = xs, axes
    if mask_axis is None and index_axis is not None and not predicate.type.shape:
        return [bind(checked_indices_p, ctx.to_front(indices, index_axis), predicate, **params)], [0]
    indices, mask = ctx.to_front(indices, index_axis), ctx.to_front(predicate, mask_axis)
    mask = broadcast_in_dim(mask, indices.shape[:-1], range(mask.ndim))
    return [bind(checked_indices_p, indices, mask, **params)], [0]


checked_indices_p = Primitive(
    name="checked_indices", infer=_infer, reference=_reference,
    jvp=zero_jvp, transpose=NoRule("indices are integers, without cotangents"), batch=_batch, lower=Checked(),
    effects=FAULTS, guard=1,
)  # fmt: skip


def checked_indices(indices: Operand, predicate: Operand, bounds: tuple[Bound, ...]) -> Any:
    """Return the indices [*batch, k], k = len(bounds), checked to be in bounds where the predicate holds.

    predicate: bool, [] or [*batch]. Raises OutOfBoundsError with the user's line, also from compiled code.

    >>> checked_indices(tnp.asarray([[2], [0]]), tnp.asarray(True), (Bound(2, 0, 3),))
    Array([[2],
           [0]], i64)
    """
    return bind(checked_indices_p, indices, predicate, bounds=bounds)


def counted_from_0(indices: Operand, axis: int, size: int) -> Any:
    """Return integers [*s], checked to be from 0 up to `size`: negative ones do not count from the end.

    Raises OutOfBoundsError for an index along `axis`, with the user's line, also from compiled code. Without
    `config.index_errors`, indices are clamped.

    >>> counted_from_0(tnp.asarray([2, 0]), 0, 3)
    Array([2, 0], i64)
    """
    if not config.index_errors:
        return clamp(0, indices, size - 1)
    rank = len(indices.type.shape)
    bound = Bound(size - 1, axis, size, COUNTED_FROM_0)
    return squeeze(checked_indices(expand_dims(indices, (rank,)), operand_of("indexing", True), (bound,)), (rank,))
