"""`select_and_scatter`: the gradient of pooling, each value added to the element that its window selected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Primitive
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import array_type
from tracer.lax.bodies import stage_body
from tracer.lax.reducing import operation_of, pads_of
from tracer.primitives.arrays.indexing import gather
from tracer.primitives.arrays.indexing import scatter as scattering
from tracer.primitives.arrays.indexing.dimension_numbers import GatherScatterMode, ScatterDimensionNumbers
from tracer.primitives.arrays.reductions import reductions
from tracer.primitives.arrays.reductions.pooling import neutral
from tracer.primitives.arrays.sliding_windows import padded, sliding_windows
from tracer.primitives.base.broadcasting import broadcast_in_dim, reduce_sum
from tracer.primitives.base.shapes import broadcasted_iota, iota, reshape, rev
from tracer.primitives.control.scatter_mul import scatter_mul
from tracer.primitives.elementwise.arithmetic import add_p, max_p, min_p, mul_p, sub
from tracer.primitives.elementwise.comparison import eq, ge_p, gt_p, le_p, lt_p
from tracer.primitives.elementwise.comparison import select as choose
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.integers import integers
from tracer.trace.source import here
from tracer.trace.trace import as_literal


def _last(locate: Callable[..., Any]) -> Callable[..., Any]:
    """Return the index of the last selected element of each window."""

    def located(x: Any, axis: int, index_dtype: DType) -> Any:
        return sub(x.shape[axis] - 1, locate(rev(x, (axis,)), axis, index_dtype))

    return located


_CHOOSING: Final[dict[Primitive, tuple[ScalarOp, Callable[..., Any]]]] = {
    ge_p: (ScalarOp.MAX, reductions.argmax), gt_p: (ScalarOp.MAX, _last(reductions.argmax)),
    le_p: (ScalarOp.MIN, reductions.argmin), lt_p: (ScalarOp.MIN, _last(reductions.argmin)),
}  # fmt: skip
_SCATTERING: Final[dict[Primitive, Callable[..., Any]]] = {
    add_p: gather.scatter_add, mul_p: scatter_mul, min_p: scattering.scatter_min,
    max_p: scattering.scatter_max,
}  # fmt: skip
_OUTSIDE: Final = -1  # the index of padding


def select_and_scatter(
    operand: Any, select: Callable[[Any, Any], Any], window_dimensions: Sequence[int], window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]], source: Any, init_value: Any, scatter: Callable[[Any, Any], Any],
) -> Array:  # fmt: skip
    """Scatter every value of `source` to the element of `operand` selected in its window.

    operand: an array [*s]; source: [*windows], of its dtype, as `reduce_window` with these settings would return.
    select: `lax.ge` for the largest element of a window, `lax.le` for the smallest: the first of equal ones, or the
    first NaN; `lax.gt` and `lax.lt` for the last. scatter: how values combine, `lax.add`, `mul`, `min` or `max`, from
    `init_value` everywhere. Padding is never selected. The result has the operand's shape. With ge and add this is the
    gradient of max pooling. window_dimensions, window_strides: an integer an axis; padding: a pair for each, or a name.
    Raises ShapeError for a source of another shape, ArgumentError for other functions and settings of other lengths.

    The operation SelectAndScatter of XLA (https://openxla.org/xla/operation_semantics#selectandscatter).

    >>> lax = tracer.lax
    >>> x = tnp.asarray([1.0, 5.0, 2.0, 3.0])
    >>> lax.select_and_scatter(x, lax.ge, (2,), (2,), "VALID", tnp.asarray([10.0, 20.0]), 0.0, lax.add)
    Array([ 0., 10.,  0., 20.], f64)
    """
    x, values = as_array(operand), as_array(source)
    dtype, rank = x.dtype, x.ndim
    window = integers("select_and_scatter", "window_dimensions", window_dimensions)
    strides = integers("select_and_scatter", "window_strides", window_strides)
    op, locate = _known(select, _CHOOSING, dtype, "select", "ge or le")
    join = _known(scatter, _SCATTERING, dtype, "scatter", "add, mul, min or max")
    ones = (1,) * rank
    pads = pads_of("select_and_scatter", x.shape, window, strides, padding, ones, ones)

    def windows(y: Any, outside: Any) -> Any:
        grown = padded(y, outside, pads, ones)
        found = sliding_windows(grown, tuple(range(rank)), window, strides, ones)
        return reshape(found, (*found.shape[:rank], shapes.size(window)))

    candidates = windows(x, as_literal(neutral(op, dtype), dtype))
    _check_source(values, candidates.shape[:rank], dtype)
    indices = windows(reshape(iota(dtypes.I64, x.size), x.shape), as_literal(_OUTSIDE, dtypes.I64))
    start = broadcast_in_dim(convert_element_type(as_array(init_value), dtype), (x.size,), ())
    if not values.size:
        empty: Array = reshape(start, x.shape)
        return empty
    first = broadcast_in_dim(locate(candidates, rank, dtypes.I64), indices.shape, tuple(range(rank)))
    chosen = eq(first, broadcasted_iota(dtypes.I64, indices.shape, rank))
    index = reshape(reduce_sum(choose(chosen, indices, 0), (rank,)), (values.size, 1))
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    mode = GatherScatterMode.FILL_OR_DROP
    result: Array = reshape(join(start, index, reshape(values, (values.size,)), numbers, mode=mode), x.shape)
    return result


def _known(function: Any, table: Any, dtype: Any, role: str, wanted: str) -> Any:
    """Return the entry of `known` for a function of two scalars. Raises ArgumentError for unsupported operations."""
    _, pair = trees.flatten((0, 0))
    body = stage_body(function, pair, [array_type(dtype, ())] * 2, f"{role} of select_and_scatter")
    found = table.get(operation_of(body.program))
    if found is None:
        raise ArgumentError(
            message(f"select_and_scatter{here()}: {role} is not a supported operation", help=f"lax.{wanted}")
        )
    return found


def _check_source(source: Array, wanted: shapes.Shape, dtype: Any) -> None:
    if source.shape != wanted or source.dtype != dtype:
        raise ShapeError(
            message(
                f"select_and_scatter{here()}: source has one value for every window",
                f"expected {array_type(dtype, wanted)}, got {source.type}",
                help="it must have the shape of reduce_window's result",
            )
        )
