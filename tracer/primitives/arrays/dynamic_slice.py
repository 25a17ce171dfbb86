"""Slices at computed indices: dynamic_slice and dynamic_update_slice. Gather and scatter have their own files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import DTypeError, ShapeError, message
from tracer.ir import dtypes, shape
from tracer.ir.primitive import Gather, Onto, Primitive, Scatter
from tracer.ir.program import Literal
from tracer.ir.types import ArrayType, Shape, Type, same_up_to_weakness, with_shape
from tracer.primitives.arrays.indexing.checked_indices import checked_indices_p
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers as GatherDimensionNumbers
from tracer.primitives.arrays.indexing.dimension_numbers import GatherScatterMode as GatherScatterMode
from tracer.primitives.arrays.indexing.dimension_numbers import ScatterDimensionNumbers as ScatterDimensionNumbers
from tracer.primitives.arrays.indexing.dimension_numbers import out_of_bounds_message as out_of_bounds_message
from tracer.primitives.arrays.indexing.gather import batch_scatter, gather_batch, gather_p, scatter_add_p
from tracer.primitives.arrays.indexing.gather import gather as gather
from tracer.primitives.arrays.indexing.gather import scatter_add as scatter_add
from tracer.primitives.arrays.indexing.gather import take_along as take_along
from tracer.primitives.arrays.indexing.scatter import scatter as scatter
from tracer.primitives.arrays.indexing.scatter import scatter_max as scatter_max
from tracer.primitives.arrays.indexing.scatter import scatter_max_p, scatter_min_p, scatter_p
from tracer.primitives.arrays.indexing.scatter import scatter_min as scatter_min
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, split
from tracer.primitives.base.broadcasting import full_like
from tracer.primitives.base.rules import is_linear, operand_of
from tracer.primitives.base.shapes import Batched, align, broadcast_in_dim, squeeze
from tracer.primitives.elementwise.arithmetic import add
from tracer.primitives.elementwise.arithmetic import min as min_
from tracer.primitives.elementwise.comparison import lt, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace.array import Array
from tracer.trace.integers import integers
from tracer.trace.source import here
from tracer.trace.trace import Operand, as_literal, bind

# dynamic_slice


def _check_starts(name: str, operand: Type, starts: Sequence[Type], window: Shape) -> None:
    if not all(isinstance(s, ArrayType) and dtypes.is_integer(s.dtype) and s.shape == () for s in starts):
        raise DTypeError(
            message(
                f"{name}{here()}: start indices must be scalar integers",
                f"got {', '.join(map(str, starts))}",
                help="gather takes arrays of indices",
            )
        )
    fits = len(starts) == len(window) == len(operand.shape)
    if not fits or any(not 0 <= taken <= n for taken, n in zip(window, operand.shape, strict=True)):
        raise ShapeError(
            message(
                f"{name}{here()}: expected one start per axis, and a slice no larger than the operand",
                f"got {operand}, {len(starts)} starts and a slice of {shape.show(window)}",
                help="pad the operand or take a smaller slice",
            )
        )


def _dynamic_slice_infer(operand: Type, *starts: Type, slice_sizes: Shape) -> Type:
    _check_starts("dynamic_slice", operand, starts, slice_sizes)
    return with_shape(operand, slice_sizes)


def _places(operand: Any, starts: Sequence[Any], window: Sequence[int]) -> tuple[Any, ...]:
    """Return NumPy slices of a window, moved inside the operand."""
    clamped = [min(max(int(s), 0), n - taken) for s, taken, n in zip(starts, window, operand.shape, strict=False)]
    return tuple(np.s_[start : start + taken] for start, taken in zip(clamped, window, strict=True))


def _dynamic_slice_jvp(ctx: Any, xs: Any, dxs: Any, *, slice_sizes: Shape) -> list[Any]:
    return [bind(dynamic_slice_p, ctx.instantiate(dxs[0]), *xs[1:], slice_sizes=slice_sizes)]


def _dynamic_slice_transpose(ctx: Any, cts: Any, xs: Any, *, slice_sizes: Shape) -> list[Any]:
    (ct,), (operand, *starts) = cts, xs

    def add_to(total: Any) -> Any:
        there = bind(dynamic_slice_p, total, *starts, slice_sizes=slice_sizes)
        return bind(dynamic_update_slice_p, total, ctx.add(there, ct), *starts)

    return [Onto(operand.type, add_to), *[None] * len(starts)]


def _dynamic_slice_batch(ctx: Any, xs: Any, axes: Any, *, slice_sizes: Shape) -> Batched:
    (operand, *starts), (axis, *start_axes) = xs, axes
    if all(a is None for a in start_axes):
        starts.insert(axis, as_literal(0, dtypes.I64))
        sizes = (*slice_sizes[:axis], ctx.size, *slice_sizes[axis:])
        return [bind(dynamic_slice_p, operand, *starts, slice_sizes=sizes)], [axis]
    indices, index_axis = _start_vectors(ctx, starts, start_axes)
    every = tuple(range(len(slice_sizes)))
    return gather_batch(
        ctx, [operand, indices, as_literal(True)], [axis, index_axis, None],
        dimension_numbers=GatherDimensionNumbers(every, (), every), slice_sizes=slice_sizes,
        mode=GatherScatterMode.CLIP, fill_value=None, unique_indices=True,
    )  # fmt: skip


def _start_vectors(ctx: Any, starts: Sequence[Any], axes: Sequence[int | None]) -> tuple[Any, int]:
    """Return batched start indices as the index vectors of a gather, [batch, rank], and their batch axis."""
    columns = []
    for start, axis in zip(starts, axes, strict=True):
        column = broadcast_in_dim(start, (ctx.size, 1), () if axis is None else (0,))
        columns.append(as_signed(column))
    return concatenate(columns, 1), 0


def as_signed(indices: Any) -> Any:
    """Convert integer indices to i64. Values beyond its range become its maximum, which no array reaches."""
    if indices.type.dtype == dtypes.U64:
        indices = min_(indices, as_literal(2**63 - 1, dtypes.U64))
    return convert_element_type(indices, dtypes.I64)


dynamic_slice_p = Primitive(
    name="dynamic_slice", infer=_dynamic_slice_infer,
    reference=lambda x, *starts, slice_sizes: x[_places(x, starts, slice_sizes)].copy(),
    jvp=_dynamic_slice_jvp, transpose=_dynamic_slice_transpose, batch=_dynamic_slice_batch, lower=Gather("slice"),
)  # fmt: skip


def dynamic_slice(operand: Operand, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """Read a slice of static size at a computed index, moved inside the operand if it would stick out.

    operand: an array [*s]; start_indices: an integer or integer array [] per axis, negative ones counted from the end;
    slice_sizes: an integer per axis, at most its size. Returns the operand's dtype, [*slice_sizes]. Raises ShapeError
    if lengths or sizes do not fit, DTypeError if the starts are not integers.

    >>> dynamic_slice(tnp.asarray([1, 2, 3, 4]), [3], [2])
    Array([3, 4], i64)
    """
    starts = start_operands("dynamic_slice", operand, start_indices)
    return bind(dynamic_slice_p, operand, *starts, slice_sizes=integers("dynamic_slice", "slice_sizes", slice_sizes))


def start_operands(name: str, operand: Operand, start_indices: Any) -> list[Operand]:
    """Return start indices as scalars counted from the front."""
    if isinstance(start_indices, Array):
        parts = split(start_indices, (1,) * start_indices.size)
        each: list[Operand] = [squeeze(part, (0,)) for part in parts]
    else:
        each = [operand_of(name, start) for start in start_indices]
    sizes = operand.type.shape
    if len(each) != len(sizes):
        _check_starts(name, operand.type, [start.type for start in each], sizes)
    return [_from_front(start, n) for start, n in zip(each, sizes, strict=True)]


def _from_front(start: Operand, size: int) -> Operand:
    """Count a negative index from the front."""
    type = start.type
    if not isinstance(type, ArrayType) or not dtypes.is_signed(type.dtype):
        return start
    if isinstance(start, Literal):
        return as_literal(int(start.value) + size, dtypes.I64) if start.value < 0 else start
    if size > np.iinfo(type.dtype).max:
        start = convert_element_type(start, dtypes.I64)
    return select(lt(start, 0), add(start, size), start)  # type: ignore[no-any-return]


# dynamic_update_slice


def _update_infer(operand: Type, update: Type, *starts: Type) -> Type:
    _check_starts("dynamic_update_slice", operand, starts, update.shape)
    if not same_up_to_weakness(with_shape(operand, ()), with_shape(update, ())):
        raise DTypeError(
            message(
                f"dynamic_update_slice{here()}: the update must have the operand's dtype",
                f"got {operand} and {update}",
                help="cast the update with .astype(...)",
            )
        )
    return operand


def _update_reference(operand: Any, update: Any, *starts: Any) -> Any:
    result = operand.copy()
    result[_places(operand, starts, update.shape[: len(starts)])] = update
    return result


def _update_jvp(ctx: Any, xs: Any, dxs: Any) -> list[Any]:
    dx, dupdate, *_ = dxs
    return [bind(dynamic_update_slice_p, ctx.instantiate(dx), ctx.instantiate(dupdate), *xs[2:])]


def _update_transpose(ctx: Any, cts: Any, xs: Any) -> list[Any]:
    (ct,), (operand, update, *starts) = cts, xs
    doperand = dupdate = None
    if is_linear(update):  # read before ct is overwritten, or ct would be copied
        dupdate = bind(dynamic_slice_p, ct, *starts, slice_sizes=update.type.shape)
    if is_linear(operand):
        doperand = bind(dynamic_update_slice_p, ct, full_like(update, 0), *starts)
    return [doperand, dupdate, *[None] * len(starts)]


def _update_batch(ctx: Any, xs: Any, axes: Any) -> Batched:
    (operand, update, *starts), (axis, update_axis, *start_axes) = xs, axes
    if all(a is None for a in start_axes):
        (operand, update), place = align(ctx, [operand, update], [axis, update_axis])
        starts.insert(place, as_literal(0, dtypes.I64))
        return [bind(dynamic_update_slice_p, operand, update, *starts)], [place]
    indices, index_axis = _start_vectors(ctx, starts, start_axes)
    every = tuple(range(len(starts)))
    return batch_scatter(
        scatter_p, ctx, [operand, indices, update, as_literal(True)], [axis, index_axis, update_axis, None],
        dimension_numbers=ScatterDimensionNumbers(every, (), every), mode=GatherScatterMode.CLIP, unique_indices=True,
    )  # fmt: skip


dynamic_update_slice_p = Primitive(
    name="dynamic_update_slice", infer=_update_infer, reference=_update_reference,
    jvp=_update_jvp, transpose=_update_transpose, batch=_update_batch, lower=Scatter(kind="slice"),
)  # fmt: skip


def dynamic_update_slice(operand: Operand, update: Operand, start_indices: Any) -> Any:
    """Return a copy of the operand with a slice overwritten at a computed index, moved inside if it sticks out.

    operand: an array [*s]; update: of its dtype and rank, no axis longer; start_indices: an integer or integer array []
    per axis, negative ones counted from the end. Returns the operand's type, [*s]. Raises ShapeError if lengths or
    sizes do not fit, DTypeError if the dtypes differ.

    >>> dynamic_update_slice(tnp.asarray([1, 2, 3]), tnp.asarray([7, 8]), [2])
    Array([1, 7, 8], i64)
    """
    starts = start_operands("dynamic_update_slice", operand, start_indices)
    return bind(dynamic_update_slice_p, operand, update, *starts)


SLICING: tuple[Primitive, ...] = (
    dynamic_slice_p, dynamic_update_slice_p, checked_indices_p, gather_p,
    scatter_p, scatter_add_p, scatter_min_p, scatter_max_p,
)  # fmt: skip
