"""scatter_mul: multiply windows at computed indices. Its derivative takes products of the other factors, by scans."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import NoRuleError, message
from tracer.ir import dtypes, shape
from tracer.ir.primitive import Primitive, Scatter, Zero
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
    take_along,
    window_effects,
)
from tracer.primitives.arrays.indexing.reference import scatter_reference
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.arrays.sorting import sort
from tracer.primitives.base.broadcasting import expand_dims, full, full_like
from tracer.primitives.base.rules import Value, is_linear, one_linear
from tracer.primitives.base.shapes import iota, reshape
from tracer.primitives.control.scan import scan_program, slice_type
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.comparison import eq, select
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.trace import Operand

# Derivatives


def _scatter_mul_jvp(
    ctx: Any, xs: Any, dxs: Any, *, dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode,
    unique_indices: bool,
) -> list[Any]:  # fmt: skip
    (operand, indices, updates, predicate), (dx, _, dupdates, _) = xs, dxs
    numbers, settled = dimension_numbers, mode.settled
    parts = []
    if not isinstance(dx, Zero):
        parts.append(bind_scatter(scatter_mul_p, dx, indices, updates, numbers, settled, unique_indices, predicate))
    if not isinstance(dupdates, Zero):
        factor = gather_back(operand, operand, indices, updates, predicate, numbers, settled)
        if not unique_indices and shape.size(indices.type.shape[:-1]) > 1:
            factor = mul(factor, _products_of_others(operand, indices, updates, predicate, numbers, settled))
        zeros = full_like(operand, 0)
        parts.append(scatter_add(zeros, indices, mul(factor, dupdates), numbers, mode=settled, predicate=predicate))
    return [parts[0] if len(parts) == 1 else add(*parts)]


def _products_of_others(
    operand: Any, indices: Any, updates: Any, predicate: Any, numbers: ScatterDimensionNumbers, mode: GatherScatterMode
) -> Any:
    """Return, for each update, the product of the other updates that go to its element."""
    sizes, count = operand.type.shape, shape.size(operand.type.shape)
    numbered = reshape(add(iota(dtypes.I64, count), 1), sizes)
    places = gather_back(numbered, operand, indices, updates, predicate, numbers, mode)  # 0: dropped
    written = select(eq(places, 0), full_like(updates, 1), updates)
    flat = (shape.size(places.shape),)
    return reshape(products_of_others(reshape(written, flat), reshape(places, flat)), places.shape)


def _scatter_mul_transpose(
    ctx: Any, cts: Any, xs: Any, *, dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode, **params: Any
) -> list[Any]:
    (ct,), (operand, indices, updates, predicate) = cts, one_linear("scatter_mul", xs)
    numbers, unique = dimension_numbers, params["unique_indices"]
    doperand = dupdates = None
    if is_linear(operand):
        doperand = bind_scatter(scatter_mul_p, ct, indices, updates, numbers, mode, unique, predicate)
    if is_linear(updates):
        if not unique and shape.size(indices.type.shape[:-1]) > 1:
            raise NoRuleError(
                message(
                    f"transpose of scatter_mul{here()}: updates of one element are multiplied with each other",
                    help="pass unique_indices=True if none share an element; "
                    "vjp differentiates functions that are not linear",
                )
            )
        dupdates = gather_back(mul(ct, operand), operand, indices, updates, predicate, numbers, mode)
    return [doperand, None, dupdates, None]


_ELEMENTS = ScatterDimensionNumbers((), (0,), (0,))


def products_of_others(x: Any, keys: Any) -> Any:
    """Return, for each element of x [n], the product of the other elements with an equal `key`. keys: integers [n].

    It is the product of the elements before times the product of the elements after. Each takes one pass in order of
    key. Nothing is divided, so zeros are exact to every order.
    """
    n = x.shape[0]
    if n < 2:
        return full_like(x, 1)
    keys, order = sort((keys, iota(dtypes.I64, n)))
    factors = take_along(x, order, 0, unique_indices=True)
    meets = eq(slice_in_dim(keys, 0, n - 1), slice_in_dim(keys, 1, n))
    alone = full((1,), False)
    before = _products_so_far(factors, concatenate([alone, meets], 0), reverse=False)
    behind = _products_so_far(factors, concatenate([meets, alone], 0), reverse=True)
    products, vectors = mul(before, behind), expand_dims(order, (1,))
    return scatter_add(full_like(x, 0), vectors, products, _ELEMENTS, mode="clip", unique_indices=True)


def _products_so_far(factors: Any, goes_on: Any, *, reverse: bool) -> Any:
    """Return the product of the factors before each one, restarted where `goes_on` is false."""
    row = slice_type(factors.type)

    def step(inputs: list[Any]) -> list[Any]:
        product, factor, on = inputs
        kept = select(on, product, full_like(product, 1))
        return [mul(kept, factor), kept]

    body = stage(step, [row, row, slice_type(goes_on.type)], name="products").program
    one = full((), 1, factors.dtype)
    _, found = scan_program(body, [], [one], [factors, goes_on], length=factors.shape[0], reverse=reverse)
    return found


# The primitive

scatter_mul_p = Primitive(
    name="scatter_mul", infer=scatter_infer("scatter_mul", "bifc"), reference=scatter_reference(np.multiply),
    jvp=_scatter_mul_jvp, settle=settle_scatter, transpose=_scatter_mul_transpose, batch=scatter_batch,
    lower=Scatter(ScalarOp.MUL), effects=window_effects, guard=3,
)  # fmt: skip


def scatter_mul(
    operand: Operand, scatter_indices: Operand, updates: Operand, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Mode = None, predicate: Value = True,
) -> Any:  # fmt: skip
    """Multiply by windows of `updates` at computed indices. Repeated indices accumulate; derivatives do not divide.

    operand: [*s]; scatter_indices, updates, dimension_numbers, mode, predicate, unique_indices, indices_are_sorted: as
    for `scatter_add`. Returns the operand's type, [*s]. Raises as `scatter_add`.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_mul(tnp.asarray([1, 2, 3]), tnp.asarray([[2], [2]]), tnp.asarray([5, 6]), numbers)
    Array([ 1,  2, 90], i64)
    """
    return bind_scatter(
        scatter_mul_p, operand, scatter_indices, updates, dimension_numbers, mode, unique_indices, predicate
    )


SCATTER_MUL = (scatter_mul_p,)
