"""Products over the elements of equal places, each element left out in turn: the derivatives of scatter_mul."""

from __future__ import annotations

from typing import Any

from tracer.ir import dtypes
from tracer.primitives.arrays.indexing.dimension_numbers import ScatterDimensionNumbers
from tracer.primitives.arrays.indexing.gather import scatter_add, take_along
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.arrays.sorting import sort
from tracer.primitives.base.broadcasting import expand_dims, full, full_like
from tracer.primitives.base.shapes import iota
from tracer.primitives.control.scan import scan_program, slice_type
from tracer.primitives.elementwise.arithmetic import mul
from tracer.primitives.elementwise.comparison import eq, select
from tracer.trace.stage import stage

_ELEMENTS = ScatterDimensionNumbers((), (0,), (0,))


def products_of_others(x: Any, places: Any) -> Any:
    """For every element of x [n], the product of the others with the same of the places, integers [n].

    Those before it times those behind it, each found in one pass over the elements in order of place. Nothing is
    divided, so zeros are right to every order.
    """
    n = x.shape[0]
    if n < 2:
        return full_like(x, 1)
    keys, order = sort((places, iota(dtypes.I64, n)))
    factors = take_along(x, order, 0, unique_indices=True)
    meets = eq(slice_in_dim(keys, 0, n - 1), slice_in_dim(keys, 1, n))
    alone = full((1,), False)
    before = _products_so_far(factors, concatenate([alone, meets], 0), reverse=False)
    behind = _products_so_far(factors, concatenate([meets, alone], 0), reverse=True)
    products, vectors = mul(before, behind), expand_dims(order, (1,))
    return scatter_add(full_like(x, 0), vectors, products, _ELEMENTS, mode="clip", unique_indices=True)


def _products_so_far(factors: Any, goes_on: Any, *, reverse: bool) -> Any:
    """The product of the factors met before each one since the last that does not go on."""
    row = slice_type(factors.type)

    def step(inputs: list[Any]) -> list[Any]:
        product, factor, on = inputs
        kept = select(on, product, full_like(product, 1))
        return [mul(kept, factor), kept]

    body = stage(step, [row, row, slice_type(goes_on.type)], name="products").program
    one = full((), 1, factors.dtype)
    _, found = scan_program(body, [], [one], [factors, goes_on], length=factors.shape[0], reverse=reverse)
    return found
