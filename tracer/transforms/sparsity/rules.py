"""Rules of index sets for primitives, as data. They run on programs that are linear in tangents.

Primitives that move elements run their reference on row numbers. Other rules take unions: at each element over
operands, over summed axes, over the matrices that a factorisation mixes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tracer.errors import TracerError
from tracer.ir.primitive import IndexMap, Join, NoRule, Pointwise, Primitive, Reduce, Scan
from tracer.ir.types import Type
from tracer.primitives.arrays.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from tracer.primitives.arrays.indexing.dimension_numbers import GatherScatterMode
from tracer.primitives.arrays.indexing.gather import gather_p, scatter_add_p
from tracer.primitives.arrays.indexing.scatter import scatter_max_p, scatter_min_p, scatter_p
from tracer.primitives.arrays.reductions.reductions import REDUCTIONS
from tracer.primitives.arrays.sorting import sort_p
from tracer.primitives.base.reference import reference_of
from tracer.primitives.base.shapes import copy_p, optimization_barrier_p
from tracer.primitives.catalogue import CATALOGUE, ELEMENTWISE
from tracer.primitives.control.linear_solve import linear_solve_p
from tracer.primitives.control.reverse.remat_partition import checkpoint_name_p
from tracer.primitives.control.reverse.residual_stacks import (
    add_at_p,
    add_stacks_p,
    empty_p,
    item_p,
    pop_p,
    push_p,
    put_p,
    spread_p,
)
from tracer.primitives.control.safe_operands import stand_in_p
from tracer.primitives.control.scatter_mul import scatter_mul_p
from tracer.primitives.elementwise.arithmetic import mul_p
from tracer.primitives.elementwise.comparison import select_n_p, select_p
from tracer.primitives.elementwise.stop_gradient import live_p, masked_p, stop_gradient_p
from tracer.primitives.linalg.dot_general import dot_general_p
from tracer.primitives.linalg.fourier import fft_p
from tracer.primitives.linalg.matvec_strategies import free_axes
from tracer.primitives.linalg.row_products import by_entries, row_products_p
from tracer.primitives.linalg.solve import solve_p
from tracer.primitives.linalg.triangular import triangular_solve_p
from tracer.primitives.linalg.tridiagonal_solve import tridiagonal_solve_p
from tracer.transforms.sparsity.index_sets import (
    IndexSets,
    Integers,
    joined,
    numbered,
    reduced,
    smeared,
    union,
    without_axes,
)
from tracer.transforms.sparsity.propagation import (
    Propagation,
    Rule,
    Value,
    depend_on_all,
    union_of,
)

Params = Mapping[str, Any]
Values = Sequence[Value]
Found = Sequence[IndexSets | None]
_MAX_PRODUCTS = 1 << 24  # of elements of two matrices, of which one is concrete


# Elementwise


def _full(sets: IndexSets | None, count: int) -> IndexSets | None:
    """Return the sets of a scalar operand at every element."""
    if sets is None or sets.rows == count:
        return sets
    return sets.take(np.zeros(count, np.int64))


def _pointwise(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    found = []
    for type in types:
        count = Value(type).size
        found.append(union_of([_full(value.sets, count) for value in values]))
    return found


def _mul(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    x, y = values
    count = Value(types[0]).size
    parts = [_where_nonzero(_full(value.sets, count), other.known, types[0].shape) for value, other in ((x, y), (y, x))]
    return [union_of(parts)]


def _where_nonzero(sets: IndexSets | None, factor: Any, shape: Sequence[int]) -> IndexSets | None:
    if sets is None or factor is None:
        return sets
    kept = np.broadcast_to(np.asarray(factor) != 0, shape).ravel()
    return sets if kept.all() else sets.where(kept)


def _select(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    which, *cases = values
    shape, count = types[0].shape, Value(types[0]).size
    parts = [_full(case.sets, count) for case in cases]
    if which.known is not None:
        places = np.broadcast_to(which.known, shape).ravel()
        is_mask = places.dtype == bool
        for position, part in enumerate(parts):
            chosen = places != bool(position) if is_mask else np.clip(places, 0, len(parts) - 1) == position
            parts[position] = None if part is None else part.where(chosen)
    return [union_of(parts)]


def _each(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    """Return the sets of operands that pass through; masks come first."""
    return [value.sets for value in values[len(values) - len(types) :]]


# Elements that move


def _moved(p: Propagation, values: Values, types: Sequence[Type], params: Params, primitive: Primitive) -> Found:
    """Run the reference on row numbers: row 0 stands for filled-in elements, operand rows follow."""
    numbers, start, parts = [], 1, []
    for value in values:
        moving = value.sets is not None
        numbers.append(numbered(value.shape, start) if moving else np.zeros(value.shape, np.int64))
        if value.sets is not None:
            parts.append(value.sets)
            start += value.size
    rows = np.asarray(reference_of(primitive)(*numbers, **params)).ravel() - 1
    return [joined(parts).take(rows)]


def _mover(primitive: Primitive) -> Rule:
    return lambda p, values, types, params: _moved(p, values, types, params, primitive)


def _dynamic_slice(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    operand, *starts = values
    assert operand.sets is not None
    unknown = [axis for axis, start in enumerate(starts) if start.known is None]
    sets = smeared(operand.sets, operand.shape, unknown)
    numbers = [np.asarray(0) if start.known is None else start.known for start in starts]
    rows = reference_of(dynamic_slice_p)(numbered(operand.shape), *numbers, **params)
    return [sets.take(rows.ravel())]


def _dynamic_update_slice(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    operand, update, *starts = values
    unknown = [axis for axis, start in enumerate(starts) if start.known is None]
    numbers = [np.asarray(0) if start.known is None else start.known for start in starts]
    # an update at an unknown place may reach any element along these axes, and may leave the operand there
    written = np.zeros(operand.shape, np.int64)
    rows = reference_of(dynamic_update_slice_p)(written, numbered(update.shape, 1), *numbers, **params).ravel() - 1
    put = None if update.sets is None else update.sets.take(rows)
    kept = operand.sets
    if unknown:
        put = None if put is None else smeared(put, operand.shape, unknown)
    elif kept is not None:
        kept = kept.where(rows < 0)
    return [union_of([kept, put])]


def _gather(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    operand, indices, predicate = values
    assert operand.sets is not None
    given = {**params, "fill_value": None}
    sets = operand.sets
    try:
        rows = reference_of(gather_p)(
            numbered(operand.shape, 1), _or_zero(indices), _or_true(predicate), **_inside(given, indices)
        )
    except TracerError:  # an index that is out of bounds: a fault where it is read
        return depend_on_all(p, values, types, params)
    if indices.known is None:
        sets = smeared(sets, operand.shape, params["dimension_numbers"].start_index_map)
    return [sets.take(np.asarray(rows).ravel() - 1)]


def _or_zero(indices: Value) -> Any:
    return np.zeros(indices.shape, np.int64) if indices.known is None else indices.known


def _or_true(predicate: Value) -> Any:
    return np.ones(predicate.shape, bool) if predicate.known is None else predicate.known


def _inside(params: Params, indices: Value) -> Params:
    """Return the parameters; indices that are not concrete lie in bounds."""
    return {**params, "mode": GatherScatterMode.CLIP} if indices.known is None else params


def _targets(operand: Value, indices: Value, updates: Value, predicate: Value, params: Params) -> Integers:
    """Return the operand row that each element of the updates is written to, -1 for none."""
    numbers = params["dimension_numbers"]
    rows = reference_of(gather_p)(
        numbered(operand.shape, 1), _or_zero(indices), _or_true(predicate), dimension_numbers=numbers.as_gather,
        slice_sizes=numbers.slice_sizes(len(operand.shape), updates.shape), fill_value=None,
        mode=_inside(params, indices)["mode"], unique_indices=params["unique_indices"],
    )  # fmt: skip
    return np.asarray(rows).ravel() - 1


def _scatter(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    operand, indices, updates, predicate = values
    if not operand.size:
        return [operand.sets]
    try:
        targets = _targets(operand, indices, updates, predicate, params)
    except TracerError:
        return depend_on_all(p, values, types, params)
    put = None if updates.sets is None else updates.sets.merged(targets, operand.size)
    if indices.known is None and put is not None:
        put = smeared(put, operand.shape, params["dimension_numbers"].scatter_dims_to_operand_dims)
    return [union_of([operand.sets, put])]


def _overwrite(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    operand, indices, updates, predicate = values
    (both,) = _scatter(p, values, types, params)
    if indices.known is None or predicate.known is None or operand.sets is None:
        return [both]
    written = np.zeros(operand.size, bool)
    targets = _targets(operand, indices, updates, predicate, params)
    written[targets[targets >= 0]] = True
    put = None if updates.sets is None else updates.sets.merged(targets, operand.size)
    return [union_of([operand.sets.where(~written), put])]


# Sums


def _reduce(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    (x,) = values
    assert x.sets is not None
    return [reduced(x.sets, x.shape, params["axes"])]


def _cumulative(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    """Return unions of prefixes, by doubling their length."""
    (x,) = values
    sets, axis, length = x.sets, params["axis"], 1
    assert sets is not None
    rows = numbered(x.shape, 1)
    rows = np.flip(rows, axis) if params["reverse"] else rows
    while length < x.shape[axis]:
        shifted = np.zeros_like(rows)
        into, out = [slice(None)] * rows.ndim, [slice(None)] * rows.ndim
        into[axis], out[axis] = slice(length, None), slice(None, -length)
        shifted[tuple(into)] = rows[tuple(out)]
        shifted = np.flip(shifted, axis) if params["reverse"] else shifted
        sets = union(sets, sets.take(shifted.ravel() - 1))
        length *= 2
    return [sets]


def _along(axis_of: str) -> Rule:
    """Make the rule of a primitive that mixes all elements along one axis, whose length it may change."""

    def rule(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
        axis = params[axis_of] % len(types[0].shape)
        parts = [reduced(v.sets, v.shape, [axis]) for v in values if v.sets is not None]
        total = union_of(parts)
        assert total is not None
        return [total.take(without_axes(type.shape, [axis])) for type in types]

    return rule


def _dot_general(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    (left, right), (left_batch, right_batch) = params["dimension_numbers"]
    lhs, rhs = values
    left_free = free_axes(len(lhs.shape), left, left_batch)
    right_free = free_axes(len(rhs.shape), right, right_batch)
    count = [math.prod(lhs.shape[a] for a in left_batch), math.prod(lhs.shape[a] for a in left_free)]
    count += [math.prod(lhs.shape[a] for a in left), math.prod(rhs.shape[a] for a in right_free)]
    batch, rows, inner, columns = count
    x = _arranged(lhs, (*left_batch, *left_free, *left), (batch, rows, inner))
    y = _arranged(rhs, (*right_batch, *right_free, *right), (batch, columns, inner))
    place = numbered((batch, rows, columns))
    parts = [
        _product(x, y, place, (batch, rows, columns, inner)),
        _product(y, x, place.transpose(0, 2, 1), (batch, columns, rows, inner)),
    ]
    return [union_of(parts)]


def _arranged(value: Value, order: Sequence[int], shape: tuple[int, ...]) -> Value:
    """Return an operand with its axes in order, as [batch, free, contracted]."""
    rows = numbered(value.shape).transpose(order).ravel()
    known = None if value.known is None else np.broadcast_to(value.known, value.shape).transpose(order).reshape(shape)
    return Value(value.type, None if value.sets is None else value.sets.take(rows), known)


def _product(x: Value, other: Value, place: Integers, sizes: tuple[int, int, int, int]) -> IndexSets | None:
    """Return the part of a product's sets that comes from x: [batch, rows, inner] with other [batch, columns, inner].

    place: [batch, rows, columns], the row of each result.
    """
    batch, rows, columns, inner = sizes
    if x.sets is None:
        return None
    if other.known is not None and batch * rows * other.known.size <= _MAX_PRODUCTS * max(batch, 1):
        lane, column, k = np.nonzero(other.known)
        if len(k) < other.known.size:
            number = numbered((batch, rows, inner))
            return x.sets.take(number[lane, :, k].ravel()).merged(place[lane, :, column].ravel(), place.size)
    summed = reduced(x.sets, (batch, rows, inner), [2])
    source = np.broadcast_to(numbered((batch, rows, 1)), (batch, rows, columns))
    back = np.empty(place.size, np.int64)
    back[place.ravel()] = source.ravel()
    return summed.take(back)


def _matrices(*ranks: int) -> Rule:
    """Make the rule of a primitive on stacks of matrices. ranks: the axes of each operand that are mixed."""

    def rule(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
        stack = math.prod(values[0].shape[: len(values[0].shape) - ranks[0]])
        parts = []
        for value in values:
            if value.sets is not None and value.size:
                each = value.size // max(stack, 1)
                parts.append(value.sets.merged(np.repeat(np.arange(stack), each), stack))
        total = union_of(parts)
        if total is None:
            return [None for _ in types]
        return [total.take(np.repeat(np.arange(stack), Value(t).size // max(stack, 1))) for t in types]

    return rule


def _row_products(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    return [value.sets for value in p.written_as(lambda xs: [by_entries(*xs)], values, "row_products")]


# Stacks: the sets of an item are the union over all of them


def _stack_union(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    return [union_of([v.sets for v in values if v.sets is not None])] * len(types)


def _stack_spread(p: Propagation, values: Values, types: Sequence[Type], params: Params) -> Found:
    (stack,) = values
    assert stack.sets is not None
    return [stack.sets.take(without_axes(Value(types[0]).shape, [params["axis"]]))]


def _by_lowering() -> dict[Primitive, Rule]:
    table: dict[Primitive, Rule] = {}
    for primitive in CATALOGUE:
        match primitive.lower:
            case IndexMap() | Join():
                table[primitive] = _mover(primitive)
            case Pointwise():
                table[primitive] = _pointwise
            case Reduce() if primitive in REDUCTIONS:
                table[primitive] = _reduce
            case Scan():
                table[primitive] = _cumulative
            case _:
                pass
    return table


RULES: Final[dict[Primitive, Rule]] = {
    **_by_lowering(),
    **dict.fromkeys((x for x in ELEMENTWISE if not isinstance(x.reference, NoRule)), _pointwise),
    **dict.fromkeys(
        (copy_p, optimization_barrier_p, checkpoint_name_p, masked_p, live_p, stand_in_p, stop_gradient_p), _each
    ),
    mul_p: _mul,
    **dict.fromkeys((select_p, select_n_p), _select),
    dynamic_slice_p: _dynamic_slice,
    dynamic_update_slice_p: _dynamic_update_slice,
    gather_p: _gather,
    **dict.fromkeys((scatter_add_p, scatter_mul_p, scatter_min_p, scatter_max_p), _scatter),
    scatter_p: _overwrite,
    sort_p: _along("dimension"),
    fft_p: _along("axis"),
    dot_general_p: _dot_general,
    **dict.fromkeys((solve_p, triangular_solve_p), _matrices(2)),
    tridiagonal_solve_p: _matrices(1),
    linear_solve_p: depend_on_all,
    row_products_p: _row_products,
    **dict.fromkeys((empty_p, push_p, pop_p, item_p, put_p, add_stacks_p), _stack_union),
    add_at_p: _stack_union,
    spread_p: _stack_spread,
}
