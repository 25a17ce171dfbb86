"""Scatters that overwrite, or take the minimum or maximum. Updates apply in order, so the last one overwrites."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir import dtypes, shape
from tracer.ir.primitive import NoRule, Primitive, Scatter
from tracer.ir.scalar import ScalarOp
from tracer.primitives.arrays.indexing.dimension_numbers import GatherScatterMode, ScatterDimensionNumbers
from tracer.primitives.arrays.indexing.gather import (
    Mode,
    bind_scatter,
    gather_back,
    scatter_add,
    scatter_batch,
    scatter_infer,
    settle_scatter,
    window_effects,
)
from tracer.primitives.arrays.indexing.reference import scatter_reference
from tracer.primitives.base.broadcasting import full, full_like
from tracer.primitives.base.rules import Value, is_linear
from tracer.primitives.base.shapes import broadcast_in_dim, iota, reshape
from tracer.primitives.elementwise.arithmetic import div
from tracer.primitives.elementwise.bits import or_
from tracer.primitives.elementwise.comparison import eq, ne, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.float_order import ordered, unordered
from tracer.trace.trace import Operand, bind

# scatter


def _scatter_jvp(ctx: Any, xs: Any, dxs: Any, *, mode: GatherScatterMode, **params: Any) -> list[Any]:
    (_, indices, _, predicate), (dx, _, dupdates, _) = xs, dxs
    operands = (ctx.instantiate(dx), indices, ctx.instantiate(dupdates), predicate)
    return [bind(scatter_p, *operands, mode=mode.settled, **params)]


def _scatter_transpose(
    ctx: Any, cts: Any, xs: Any, *, dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode,
    unique_indices: bool,
) -> list[Any]:  # fmt: skip
    (ct,), (operand, indices, updates, predicate), numbers = cts, xs, dimension_numbers
    doperand = dupdates = None
    if is_linear(updates):  # read before ct is overwritten, or ct would be copied
        dupdates = gather_back(ct, operand, indices, updates, predicate, numbers, mode)
        if not unique_indices and shape.size(indices.type.shape[:-1]) > 1:
            wins = _winners(operand, indices, updates, predicate, numbers, mode.settled)
            dupdates = select(wins, dupdates, full_like(dupdates, 0))
    if is_linear(operand):
        nothing = full_like(updates, 0)
        doperand = bind_scatter(scatter_p, ct, indices, nothing, numbers, mode, unique_indices, predicate)
    return [doperand, None, dupdates, None]


def _winners(
    operand: Any, indices: Any, updates: Any, predicate: Any, numbers: ScatterDimensionNumbers, mode: GatherScatterMode
) -> Any:
    """Return which elements of the updates remain: scatter the windows' serial numbers and read them back."""
    sizes = updates.type.shape
    batch = [axis for axis in range(len(sizes)) if axis not in numbers.update_window_dims]
    count = int(np.prod([sizes[axis] for axis in batch], dtype=np.int64))
    serials = reshape(iota(dtypes.I64, count), [sizes[axis] for axis in batch])
    serials = broadcast_in_dim(serials, sizes, batch)
    nobody = full(operand.type.shape, -1, dtypes.I64)
    last = bind_scatter(scatter_p, nobody, indices, serials, numbers, mode, False, predicate)
    return eq(serials, gather_back(last, operand, indices, updates, predicate, numbers, mode))


scatter_p = Primitive(
    name="scatter", infer=scatter_infer("scatter", ""), reference=scatter_reference(None),
    jvp=_scatter_jvp, settle=settle_scatter, transpose=_scatter_transpose, batch=scatter_batch, lower=Scatter(),
    effects=window_effects, guard=3,
)  # fmt: skip


def scatter(
    operand: Operand, scatter_indices: Operand, updates: Operand, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Mode = None, predicate: Value = True,
) -> Any:  # fmt: skip
    """Overwrite windows at computed indices. Where several overlap, the last in row-major order stays.

    operand: [*s]; scatter_indices, updates, dimension_numbers, mode, predicate, unique_indices, indices_are_sorted: as
    for `scatter_add`. Returns the operand's type, [*s]. Raises as `scatter_add`.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter(tnp.asarray([1, 2, 3]), tnp.asarray([[2], [2]]), tnp.asarray([5, 6]), numbers)
    Array([1, 2, 6], i64)
    """
    return bind_scatter(
        scatter_p, operand, scatter_indices, updates, dimension_numbers, mode, unique_indices, predicate
    )


# scatter_min and scatter_max


def _extreme_jvp(
    ctx: Any, xs: Any, dxs: Any, *, dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode, **params: Any
) -> list[Any]:
    """Share the result's tangent among operand and updates that equal it. An operand that is NaN stays NaN."""
    (operand, indices, updates, predicate), (dx, _, dupdates, _) = xs, dxs
    (y,), numbers, settled = ctx.outputs, dimension_numbers, mode.settled
    stayed = or_(eq(operand, y), ne(operand, operand))
    took = eq(updates, gather_back(y, operand, indices, updates, predicate, numbers, settled))

    def total(base: Any, added: Any) -> Any:
        return scatter_add(base, indices, added, numbers, mode=settled, predicate=predicate)

    dtype = y.dtype
    count = total(convert_element_type(stayed, dtype), convert_element_type(took, dtype))
    dx, dupdates = ctx.instantiate(dx), ctx.instantiate(dupdates)
    shared = total(select(stayed, dx, full_like(dx, 0)), select(took, dupdates, full_like(dupdates, 0)))
    return [div(shared, count)]


def _extreme_reference(function: np.ufunc, *, is_max: bool) -> Any:
    """Make the reference of a minimum or maximum. Floats compare as ordered integers: -0 stays below +0."""
    combine = scatter_reference(function)

    def reference(operand: Any, indices: Any, updates: Any, predicate: Any, **params: Any) -> Any:
        base, added = ordered(operand, nan_above=is_max), ordered(updates, nan_above=is_max)
        return unordered(combine(base, indices, added, predicate, **params), operand.dtype)

    return reference


scatter_min_p, scatter_max_p = (
    Primitive(
        name=name, infer=scatter_infer(name, "bifc"),
        reference=_extreme_reference(function, is_max=op is ScalarOp.MAX),
        jvp=_extreme_jvp, settle=settle_scatter, transpose=NoRule(f"{name} is not linear"), batch=scatter_batch,
        lower=Scatter(op), effects=window_effects, guard=3,
    )
    for name, function, op in (
        ("scatter_min", np.minimum, ScalarOp.MIN),
        ("scatter_max", np.maximum, ScalarOp.MAX),
    )
)  # fmt: skip


def scatter_min(
    operand: Operand, scatter_indices: Operand, updates: Operand, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Mode = None, predicate: Value = True,
) -> Any:  # fmt: skip
    """Take the minimum of the operand and the updates at computed indices. NaN wins; equal values share the derivative.

    operand: [*s]; scatter_indices, updates, dimension_numbers, mode, predicate, unique_indices, indices_are_sorted: as
    for `scatter_add`. Returns the operand's type, [*s]. Raises as `scatter_add`.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_min(tnp.asarray([1, 2, 3]), tnp.asarray([[2], [2]]), tnp.asarray([5, 1]), numbers)
    Array([1, 2, 1], i64)
    """
    return bind_scatter(
        scatter_min_p, operand, scatter_indices, updates, dimension_numbers, mode, unique_indices, predicate
    )


def scatter_max(
    operand: Operand, scatter_indices: Operand, updates: Operand, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Mode = None, predicate: Value = True,
) -> Any:  # fmt: skip
    """Take the maximum of the operand and the updates at computed indices. NaN wins; equal values share the derivative.

    operand: [*s]; scatter_indices, updates, dimension_numbers, mode, predicate, unique_indices, indices_are_sorted: as
    for `scatter_add`. Returns the operand's type, [*s]. Raises as `scatter_add`.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_max(tnp.asarray([1, 2, 3]), tnp.asarray([[2], [2]]), tnp.asarray([5, 6]), numbers)
    Array([1, 2, 6], i64)
    """
    return bind_scatter(
        scatter_max_p, operand, scatter_indices, updates, dimension_numbers, mode, unique_indices, predicate
    )
