"""Gather and scatter_add, each the transpose of the other, and the batch rules of the whole family.

Operands are gather(operand, indices, predicate) and scatter_*(operand, indices, updates, predicate). Where the
predicate is false, nothing is read, written or faults, and a gather gives zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import FAULTS, NO_EFFECTS, Effect, Gather, Onto, Params, Primitive, Scatter, Zero
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, Shape, Type, same_up_to_weakness, with_shape
from tracer.primitives.arrays.indexing.checked_indices import checked_indices
from tracer.primitives.arrays.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    bounds_of,
    window_shape,
)
from tracer.primitives.arrays.indexing.reference import gather_prepared, gather_reference, scatter_reference
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.rules import Value, check_kinds, is_linear, operand_of, shift_axes
from tracer.primitives.base.shapes import Batched, expand_dims, moveaxis
from tracer.trace.integers import integers
from tracer.trace.source import here
from tracer.trace.trace import Operand, bind

Mode = GatherScatterMode | str | None


def window_effects(params: Params) -> frozenset[Effect]:
    """Return the effects of an access: only checked indices may fault."""
    return FAULTS if params["mode"] is GatherScatterMode.CHECKED else NO_EFFECTS


def _settled(
    operand: Any, indices: Any, predicate: Any, numbers: GatherDimensionNumbers, sizes: Sequence[int]
) -> tuple[Any, GatherScatterMode]:
    """Return checked indices and the mode for them. Where a window never fits, there is nothing to clip."""
    bounds = bounds_of(operand.type.shape, numbers, sizes)
    mode = GatherScatterMode.CLIP if all(bound.last >= 0 for bound in bounds) else GatherScatterMode.FILL_OR_DROP
    return checked_indices(indices, predicate, bounds), mode


def settle_scatter(xs: Any, *, dimension_numbers: ScatterDimensionNumbers, **params: Any) -> tuple[list[Any], Params]:
    """Replace the bounds check of a scatter by checked indices: the `settle` rule of the family."""
    operand, indices, updates, predicate = xs
    sizes = window_sizes(dimension_numbers, operand, updates)
    indices, mode = _settled(operand, indices, predicate, dimension_numbers.as_gather, sizes)
    params.update(dimension_numbers=dimension_numbers, mode=mode)
    return [operand, indices, updates, predicate], params


# gather


def _gather_settle(xs: Any, *, slice_sizes: Shape, **params: Any) -> tuple[list[Any], Params]:
    operand, indices, predicate = xs
    indices, mode = _settled(operand, indices, predicate, params["dimension_numbers"], slice_sizes)
    params.update(slice_sizes=slice_sizes, mode=mode, fill_value=_fill(mode, 0))
    return [operand, indices, predicate], params


def _gather_infer(
    operand: Type, indices: Type, predicate: Type, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    mode: GatherScatterMode, **params: Any,
) -> Type:  # fmt: skip
    sizes = window_shape("gather", operand, indices, predicate, dimension_numbers, slice_sizes, mode)
    return with_shape(operand, sizes)


def _gather_jvp(ctx: Any, xs: Any, dxs: Any, *, mode: GatherScatterMode, fill_value: Any, **params: Any) -> list[Any]:
    _, indices, predicate = xs
    dx = ctx.instantiate(dxs[0])
    return [bind(gather_p, dx, indices, predicate, mode=mode.settled, fill_value=_fill(mode, 0), **params)]


def _fill(mode: GatherScatterMode, value: Any) -> Any:
    """Return the fill value as a parameter: None if the mode does not fill, so that equal gathers compare equal."""
    return value if mode is GatherScatterMode.FILL_OR_DROP else None


def _gather_transpose(
    ctx: Any, cts: Any, xs: Any, *, dimension_numbers: GatherDimensionNumbers, mode: Mode, unique_indices: bool,
    **params: Any,
) -> list[Any]:  # fmt: skip
    (ct,), (operand, indices, predicate), numbers = cts, xs, dimension_numbers.as_scatter

    def add_to(total: Any) -> Any:
        return bind_scatter(scatter_add_p, total, indices, ct, numbers, mode, unique_indices, predicate)

    return [Onto(operand.type, add_to), None, None]


def gather_batch(
    ctx: Any, xs: Any, axes: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape, **params: Any
) -> Batched:
    """Batch a gather, or a primitive that becomes a gather once it is batched."""
    (operand, indices, predicate), (axis, index_axis, mask_axis), numbers = xs, axes, dimension_numbers
    if index_axis is None and mask_axis is None:
        numbers, out = window_axis_added(numbers, axis, len(numbers.offset_dims) + indices.ndim - 1)
        sizes = (*slice_sizes[:axis], ctx.size, *slice_sizes[axis:])
    else:
        indices, predicate = batched_indices(ctx, indices, predicate, index_axis, mask_axis)
        numbers, out, sizes = batching_axis_added(numbers, axis), 0, slice_sizes
        if axis is not None:
            sizes = (*slice_sizes[:axis], 1, *slice_sizes[axis:])
        params["unique_indices"] = params["unique_indices"] and axis is not None
    return [bind(gather_p, operand, indices, predicate, dimension_numbers=numbers, slice_sizes=sizes, **params)], [out]


def window_axis_added(
    numbers: GatherDimensionNumbers, axis: int, result_rank: int
) -> tuple[GatherDimensionNumbers, int]:
    """Add the operand's batch axis as a window axis; also return its index in the result or the updates.

    The operand's axes stay where they are. The new axis keeps its order among the window axes.
    """
    before = sum(numbers.is_window(other) for other in range(axis))
    offsets = numbers.offset_dims
    if before < len(offsets):
        place = offsets[before]
    else:
        place = 0 if not offsets and axis == 0 else result_rank
    moved = shift_axes(offsets, place)
    return replace(
        numbers,
        offset_dims=(*moved[:before], place, *moved[before:]),
        collapsed_slice_dims=shift_axes(numbers.collapsed_slice_dims, axis),
        start_index_map=shift_axes(numbers.start_index_map, axis),
        operand_batching_dims=shift_axes(numbers.operand_batching_dims, axis),
        reported_axes=_reported(numbers),
    ), place


def batching_axis_added(numbers: GatherDimensionNumbers, axis: int | None) -> GatherDimensionNumbers:
    """Add the batch axis at the front of the indices and the result, paired with the operand's if any."""
    offsets = tuple(d + 1 for d in numbers.offset_dims)
    paired = [d + 1 for d in numbers.start_indices_batching_dims]
    if axis is None:
        return replace(numbers, offset_dims=offsets, start_indices_batching_dims=tuple(paired))
    batching = [*shift_axes(numbers.operand_batching_dims, axis)]
    position = sum(d < axis for d in batching)
    batching.insert(position, axis)
    paired.insert(position, 0)
    return GatherDimensionNumbers(
        offset_dims=offsets,
        collapsed_slice_dims=shift_axes(numbers.collapsed_slice_dims, axis),
        start_index_map=shift_axes(numbers.start_index_map, axis),
        operand_batching_dims=tuple(batching),
        start_indices_batching_dims=tuple(paired),
        reported_axes=_reported(numbers),
    )


def _reported(numbers: GatherDimensionNumbers) -> tuple[int, ...]:
    return numbers.start_index_map if numbers.reported_axes is None else numbers.reported_axes


def batched_indices(
    ctx: Any, indices: Any, predicate: Any, index_axis: int | None, mask_axis: int | None
) -> tuple[Any, Any]:
    """Move the batch of the indices to the front, with a predicate to match: [] or one per index vector."""
    indices = ctx.to_front(indices, index_axis)
    batch = indices.shape[:-1]
    if mask_axis is None and not predicate.type.shape:
        return indices, predicate
    mask = ctx.to_front(predicate, mask_axis)
    return indices, broadcast_in_dim(mask, batch, range(mask.ndim))


gather_p = Primitive(
    name="gather", infer=_gather_infer, reference=gather_reference,
    jvp=_gather_jvp, settle=_gather_settle, transpose=_gather_transpose, batch=gather_batch, lower=Gather(),
    effects=window_effects, guard=2, prepared=gather_prepared,
)  # fmt: skip


def gather(
    operand: Operand, start_indices: Operand, dimension_numbers: GatherDimensionNumbers, slice_sizes: Sequence[int], *,
    unique_indices: bool = False, indices_are_sorted: bool = False, mode: Mode = None, fill_value: Any = None,
    predicate: Value = True,
) -> Any:  # fmt: skip
    """Read one window of the operand for each index vector, the last axis of `start_indices`.

    mode: a GatherScatterMode or its name; by default, an index out of bounds raises OutOfBoundsError. fill_value: for
    mode "fill"; by default NaN, the lowest integer, the highest unsigned integer, True. predicate: bool, [] or one per
    index vector; where it is false, nothing is read and the result is zero. `indices_are_sorted` has no effect.

    operand: an array [*s]; start_indices: integers [*batch, k]; slice_sizes: an integer per axis of the operand.
    Returns the operand's dtype, [*batch and window axes] as `dimension_numbers` place them. Raises ShapeError or
    DTypeError if these do not fit.

    >>> rows = GatherDimensionNumbers((1,), (0,), (0,))
    >>> gather(tnp.asarray([[1, 2], [3, 4]]), tnp.asarray([[1], [1]]), rows, (1, 2))
    Array([[3, 4],
           [3, 4]], i64)
    """
    chosen = GatherScatterMode.from_any(mode)
    if fill_value is None:
        fill_value = default_fill(operand.type)
    return bind(
        gather_p, operand, start_indices, operand_of("gather", predicate), dimension_numbers=dimension_numbers,
        slice_sizes=integers("gather", "slice_sizes", slice_sizes), mode=chosen, fill_value=_fill(chosen, fill_value),
        unique_indices=unique_indices,
    )  # fmt: skip


def default_fill(type: Type) -> Any:
    """Return the value of a gather out of bounds, as JAX chooses it. Keys get zero words."""
    if not isinstance(type, ArrayType):
        return 0
    if dtypes.is_inexact(type.dtype):
        return float("nan")
    if dtypes.is_bool(type.dtype):
        return True
    limits = dtypes.iinfo(type.dtype)
    return int(limits.min if dtypes.is_signed(type.dtype) else limits.max)


def take_along(operand: Operand, indices: Any, axis: int, *, unique_indices: bool = False) -> Any:
    """Return y[..., j, ...] = operand[..., indices[..., j, ...], ...] along one axis. Indices are clipped."""
    rank = len(operand.type.shape)
    others = tuple(d for d in range(rank) if d != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return gather(
        operand, expand_dims(indices, (rank,)), numbers, (1,) * rank, mode="clip", unique_indices=unique_indices
    )


# scatter_add


def scatter_infer(name: str, kinds: str) -> Any:
    """Make the `infer` rule of a scatter: the operand's type, if indices, updates and predicate fit it."""

    def infer(
        operand: Type, indices: Type, updates: Type, predicate: Type, *, dimension_numbers: ScatterDimensionNumbers,
        mode: GatherScatterMode, unique_indices: bool,
    ) -> Type:  # fmt: skip
        if kinds:
            check_kinds(name, [operand], kinds)
        if not same_up_to_weakness(with_shape(operand, ()), with_shape(updates, ())):
            raise DTypeError(
                message(
                    f"{name}{here()}: the updates must have the operand's dtype",
                    f"got {operand} and {updates}",
                    help="x.at[i].set(v) casts; here, cast the updates with .astype(...)",
                )
            )
        expected = _updates_shape(name, operand, indices, updates, predicate, dimension_numbers, mode)
        if expected != updates.shape:
            raise ShapeError(
                message(
                    f"{name}{here()}: the updates must hold one window for each index vector",
                    f"got {updates} for {operand}, indices {indices}, {dimension_numbers}"
                    + (f"; expected shape {expected}" if expected is not None else ""),
                    help="broadcast the updates; x.at[i].set(v) does",
                )
            )
        return operand

    return infer


def _updates_shape(
    name: str, operand: Type, indices: Type, updates: Type, predicate: Type, numbers: Any, mode: GatherScatterMode
) -> Shape | None:  # fmt: skip
    """Return the shape that updates must have, or None if their window axes do not fit the operand's."""
    if not isinstance(numbers, ScatterDimensionNumbers):
        kind = type(numbers).__name__
        raise ArgumentError(message(f"{name}{here()}: dimension_numbers is a ScatterDimensionNumbers", f"got {kind}"))
    rank, window_dims, gathered = len(operand.shape), numbers.update_window_dims, numbers.as_gather
    if any(not 0 <= axis < len(updates.shape) for axis in window_dims):
        return None
    if sum(map(gathered.is_window, range(rank))) != len(window_dims):
        return None
    sizes = numbers.slice_sizes(rank, updates.shape)
    return window_shape(name, operand, indices, predicate, gathered, sizes, mode)


def window_sizes(numbers: ScatterDimensionNumbers, operand: Any, updates: Any) -> Shape:
    """Return the sizes of the windows that a scatter writes, along every axis of the operand."""
    return numbers.slice_sizes(len(operand.type.shape), updates.type.shape)


def gather_back(
    x: Any, operand: Any, indices: Any, updates: Any, predicate: Any, numbers: ScatterDimensionNumbers, mode: Mode
) -> Any:
    """Read x, of the operand's shape, where a scatter writes. Zero where it drops the update."""
    sizes = window_sizes(numbers, operand, updates)
    return gather(x, indices, numbers.as_gather, sizes, mode=mode, fill_value=0, predicate=predicate)


def scatter_batch(ctx: Any, xs: Any, axes: Any, **params: Any) -> Batched:
    """Batch a scatter."""
    return batch_scatter(ctx.primitive, ctx, xs, axes, **params)


def batch_scatter(
    primitive: Primitive, ctx: Any, xs: Any, axes: Any, *, dimension_numbers: ScatterDimensionNumbers, **params: Any
) -> Batched:
    """Batch a primitive that becomes the scatter `primitive` once it is batched."""
    operand, indices, updates, predicate = xs
    axis, index_axis, update_axis, mask_axis = axes
    if axis is None:
        operand, axis = ctx.to_front(operand, None), 0
    numbers = dimension_numbers.as_gather
    if index_axis is None and mask_axis is None:
        rank = len(numbers.offset_dims) + indices.ndim - 1
        numbers, place = window_axis_added(numbers, axis, rank)
    else:
        indices, predicate = batched_indices(ctx, indices, predicate, index_axis, mask_axis)
        numbers, place = batching_axis_added(numbers, axis), 0
    if update_axis is None:
        sizes = updates.type.shape
        kept = shift_axes(range(len(sizes)), place)
        updates = broadcast_in_dim(updates, (*sizes[:place], ctx.size, *sizes[place:]), kept)
    else:
        updates = moveaxis(updates, update_axis, place)
    params["dimension_numbers"] = numbers.as_scatter
    return [bind(primitive, operand, indices, updates, predicate, **params)], [axis]


def _scatter_add_jvp(ctx: Any, xs: Any, dxs: Any, *, mode: GatherScatterMode, **params: Any) -> list[Any]:
    (_, indices, _, predicate), (dx, _, dupdates, _) = xs, dxs
    if isinstance(dupdates, Zero):
        return [dx]
    return [bind(scatter_add_p, ctx.instantiate(dx), indices, dupdates, predicate, mode=mode.settled, **params)]


def _scatter_add_transpose(
    ctx: Any, cts: Any, xs: Any, *, dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode, **params: Any
) -> list[Any]:
    (ct,), (operand, indices, updates, predicate) = cts, xs
    dupdates = None
    if is_linear(updates):
        dupdates = gather_back(ct, operand, indices, updates, predicate, dimension_numbers, mode)
    return [ct if is_linear(operand) else None, None, dupdates, None]


scatter_add_p = Primitive(
    name="scatter_add", infer=scatter_infer("scatter_add", "bifc"), reference=scatter_reference(np.add),
    jvp=_scatter_add_jvp, settle=settle_scatter, transpose=_scatter_add_transpose, batch=scatter_batch,
    lower=Scatter(ScalarOp.ADD), effects=window_effects, guard=3,
)  # fmt: skip


def bind_scatter(
    primitive: Primitive, operand: Operand, indices: Operand, updates: Operand, numbers: ScatterDimensionNumbers,
    mode: Mode, unique_indices: bool, predicate: Value,
) -> Any:  # fmt: skip
    """Bind a primitive of the scatter family."""
    return bind(
        primitive, operand, indices, updates, operand_of(primitive.name, predicate), dimension_numbers=numbers,
        mode=GatherScatterMode.from_any(mode), unique_indices=unique_indices,
    )  # fmt: skip


def scatter_add(
    operand: Operand, scatter_indices: Operand, updates: Operand, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Mode = None, predicate: Value = True,
) -> Any:  # fmt: skip
    """Add windows of `updates` at computed indices, in order. Repeated indices accumulate.

    operand: an array [*s]; scatter_indices: integers [*batch, k], the last axis an index vector; updates: [*batch and
    window axes] of the operand's dtype, as `dimension_numbers` place them. mode, predicate: as for `gather`.
    unique_indices: promises that no two windows overlap. Returns the operand's type, [*s]. Raises ShapeError or
    DTypeError if the updates do not fit, OutOfBoundsError if an index is out of bounds, by default.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_add(tnp.asarray([1, 2, 3]), tnp.asarray([[2], [2]]), tnp.asarray([5, 6]), numbers)
    Array([ 1,  2, 14], i64)
    """
    return bind_scatter(
        scatter_add_p, operand, scatter_indices, updates, dimension_numbers, mode, unique_indices, predicate
    )
