"""Products of a sparse matrix by rows with a dense array: row_products, a loop over the entries of each row."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Composite, Primitive
from tracer.ir.types import Type, with_shape
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers, GatherScatterMode
from tracer.primitives.arrays.indexing.gather import gather, scatter_add
from tracer.primitives.arrays.reductions.reductions import reduce_or
from tracer.primitives.arrays.slice_pad_concatenate import pad, slice_in_dim
from tracer.primitives.base.broadcasting import broadcast_in_dim, expand_dims, full, reduce_sum
from tracer.primitives.base.rules import check_kinds, check_same_dtype, is_linear, operand_of, per_operand
from tracer.primitives.base.shapes import broadcasted_iota, moveaxis, reshape
from tracer.primitives.control.cumulative import cumsum
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add, clamp, mul, sub
from tracer.primitives.elementwise.bits import and_
from tracer.primitives.elementwise.comparison import ge, lt, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.trace import bind

_FILL, _INSIDE = GatherScatterMode.FILL_OR_DROP, GatherScatterMode.PROMISE_IN_BOUNDS


def _infer(data: Type, columns: Type, starts: Type, x: Type) -> Type:
    check_kinds("row_products", (data, x), "ifc")
    check_kinds("row_products", (columns, starts), "i")
    check_same_dtype("row_products", (data, x))
    ranks = [len(t.shape) for t in (data, columns, starts)]
    if ranks != [1, 1, 1] or data.shape != columns.shape or not starts.shape[0] or not x.shape:
        raise ShapeError(
            message(
                f"row_products{here()}: the sizes of the operands do not fit",
                f"got {data}, {columns}, {starts} and {x}",
                help="values and columns are [nse], starts of rows [rows + 1], and the array [columns, ...]",
            )
        )
    return with_shape(data, (starts.shape[0] - 1, *x.shape[1:]))


def _reference(data: Any, columns: Any, starts: Any, x: Any) -> Any:
    result = np.zeros((len(starts) - 1, *x.shape[1:]), data.dtype)
    ends = np.clip(starts.astype(np.int64), 0, len(data))
    for row, (start, end) in enumerate(pairwise(ends)):
        for k in range(start, end):
            if 0 <= columns[k] < len(x):
                result[row] += data[k] * x[columns[k]]
    return result


# The loop


def _expand(data: Any, columns: Any, starts: Any, x: Any) -> Any:
    """Run one lane for each element of the result, which adds up its row's entries in order."""
    nse, n, rows = data.type.shape[0], x.type.shape[0], starts.type.shape[0] - 1
    rest = x.type.shape[1:]
    shape = (rows, math.prod(rest)) if rest else (rows,)
    if not math.prod(shape) or not nse or not n:
        return full((rows, *rest), 0, data.type.dtype)
    bounds = clamp(0, convert_element_type(starts, dtypes.I64), nse)
    first, last = (broadcast_in_dim(slice_in_dim(bounds, k, rows + k), shape, (0,)) for k in (0, 1))
    width = math.prod(rest)
    flat, lane = reshape(x, (n * width,)), broadcasted_iota(dtypes.I64, shape, len(shape) - 1)

    def body(inputs: list[Any]) -> list[Any]:
        data, columns, flat, lane, last, alive, place, total = inputs
        column = convert_element_type(_at(columns, place, alive), dtypes.I64)
        element = add(mul(column, width), lane) if rest else column
        inside = and_(alive, and_(ge(column, 0), lt(column, n)))
        term = mul(_at(data, place, alive), _at(flat, element, inside))
        following = select(alive, add(place, 1), place)
        return [and_(alive, lt(following, last)), following, select(inside, add(total, term), total)]

    carry = [lt(first, last), first, full(shape, 0, data.type.dtype)]
    consts = [data, columns, flat, lane, last]
    step = stage(body, [v.type for v in (*consts, *carry)], name="row_products").program
    axes = tuple(range(len(shape)))
    test = stage(lambda inputs: [reduce_or(inputs[0], axes)], [v.type for v in carry], name="row_products").program
    return reshape(while_program(test, step, [], consts, carry)[2], (rows, *rest))


def _at(x: Any, places: Any, alive: Any) -> Any:
    """Return the elements of a vector at places that are in bounds where `alive` holds, else 0."""
    index = expand_dims(places, (len(places.type.shape),))
    return gather(x, index, GatherDimensionNumbers((), (0,), (0,)), (1,), mode=_INSIDE, predicate=alive)


# Rules


def _lines(starts: Any, nse: int) -> Any:
    """Return the row of each entry, int64 [nse]; a row out of bounds for padding."""
    places = expand_dims(convert_element_type(starts, dtypes.I64), (1,))
    ones = full(starts.type.shape, 1, dtypes.I64)
    numbers = GatherDimensionNumbers((), (0,), (0,)).as_scatter
    begun = scatter_add(full((nse,), 0, dtypes.I64), places, ones, numbers, mode=_FILL)
    return sub(cumsum(begun), 1)


def _taken(x: Any, rows: Any) -> Any:
    """Return the rows of an array, 0 for rows out of bounds: [nse, *rest]."""
    rest = x.type.shape[1:]
    numbers = GatherDimensionNumbers(tuple(range(1, len(rest) + 1)), (0,), (0,))
    return gather(x, expand_dims(rows, (1,)), numbers, (1, *rest), mode=_FILL, fill_value=0)


def _summed(rows: Any, values: Any, count: int) -> Any:
    """Add up values [nse, *rest] at their rows; values whose rows are out of bounds are dropped."""
    rest = values.type.shape[1:]
    numbers = GatherDimensionNumbers(tuple(range(1, len(rest) + 1)), (0,), (0,)).as_scatter
    zeros = full((count, *rest), 0, values.type.dtype)
    return scatter_add(zeros, expand_dims(rows, (1,)), values, numbers, mode=_FILL)


def _scaled(data: Any, values: Any) -> Any:
    return mul(broadcast_in_dim(data, values.type.shape, (0,)), values)


def by_entries(data: Any, columns: Any, starts: Any, x: Any) -> Any:
    """Return the product by a gather and a scatter of all entries, for rules that know these."""
    lines = _lines(starts, data.type.shape[0])
    return _summed(lines, _scaled(data, _taken(x, columns)), starts.type.shape[0] - 1)


def _transpose(ctx: Any, cts: Any, xs: Any) -> list[Any]:
    """Return the cotangents of data or of x.

    Rows of the result's cotangent are multiplied by rows of x and summed, or scaled and added up at the columns.
    """
    data, columns, starts, x = xs
    nse = columns.type.shape[0]
    rows = _taken(cts[0], _lines(operand_of("row_products", starts), nse))
    if not is_linear(data):
        return [None, None, None, _summed(columns, _scaled(data, rows), x.type.shape[0])]
    products = mul(rows, _taken(x, columns))
    return [reduce_sum(products, tuple(range(1, len(products.type.shape)))), None, None, None]


def _batch(ctx: Any, xs: Any, axes: Any) -> Any:
    """Batch the array along its last axis, or place the matrices of a batch along one diagonal."""
    if all(axis is None for axis in axes[:3]):
        data, columns, starts, x = xs
        last = len(x.type.shape) - 1
        result = row_products(data, columns, starts, moveaxis(x, axes[3], last))
        return [result], [len(result.type.shape) - 1]
    data, columns, starts = (ctx.to_front(x, axis) for x, axis in zip(xs[:3], axes[:3], strict=True))
    (size, nse), rows = data.type.shape, starts.type.shape[1] - 1
    columns, starts = (convert_element_type(x, dtypes.I64) for x in (columns, starts))
    x = xs[3]
    if axes[3] is not None:
        x = ctx.to_front(x, axes[3])
        n = x.type.shape[1]
        good = and_(ge(columns, 0), lt(columns, n))
        columns = select(good, add(columns, mul(broadcasted_iota(dtypes.I64, columns.type.shape, 0), n)), -1)
        x = reshape(x, (size * n, *x.type.shape[2:]))
    starts = add(clamp(0, starts, nse), mul(broadcasted_iota(dtypes.I64, starts.type.shape, 0), nse))
    # between the last row of a matrix and the first one of the next stands one more row, of padding
    all_rows = size * (rows + 1)
    found = row_products(reshape(data, (size * nse,)), reshape(columns, (size * nse,)), reshape(starts, (all_rows,)), x)
    rest = found.type.shape[1:]
    zero = full((), 0, found.type.dtype)
    padded = pad(found, zero, [(0, 1, 0), *[(0, 0, 0)] * len(rest)])
    return [slice_in_dim(reshape(padded, (size, rows + 1, *rest)), 0, rows, axis=1)], [0]


row_products_p: Primitive = Primitive(
    name="row_products", infer=_infer, reference=_reference,
    jvp=per_operand(
        lambda ctx, dd, data, columns, starts, x: row_products(dd, columns, starts, x), None, None,
        lambda ctx, dx, data, columns, starts, x: row_products(data, columns, starts, dx),
    ),
    transpose=_transpose, batch=_batch, lower=Composite(_expand),
)  # fmt: skip


def row_products(data: Any, columns: Any, starts: Any, x: Any) -> Any:
    """Return A @ x for the matrix of values data[k] at columns[k], k from starts[i] to starts[i + 1] - 1 in row i.

    data: numbers [nse]; columns: integers [nse], which add nothing if out of bounds; starts: integers [rows + 1],
    ascending; x: [n, *rest] of the data's dtype. Returns [rows, *rest]. Cost: a loop over each row's entries.

    >>> data, columns, starts = tnp.asarray([2.0, 3.0]), tnp.asarray([1, 0]), tnp.asarray([0, 1, 2])
    >>> row_products(data, columns, starts, tnp.asarray([1.0, 10.0]))
    Array([20.,  3.], f64)
    """
    return bind(row_products_p, data, columns, starts, x)


SPARSE_PRODUCTS = (row_products_p,)
"""The primitive of products by rows."""
