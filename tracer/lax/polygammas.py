"""`polygamma` of concrete orders in an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.types import ArrayType
from tracer.primitives.base.broadcasting import full_like
from tracer.primitives.base.rules import operand_of, same_types
from tracer.primitives.elementwise.comparison import eq, select
from tracer.primitives.elementwise.special import polygamma as of_order
from tracer.trace.array import Array, concrete_value
from tracer.trace.convert import as_array
from tracer.trace.source import here


def polygamma(m: Any, x: Any) -> Array:
    """Return the m-th derivative of digamma.

    m: an integer, or an array of x's type with concrete whole values. At 0, -1, -2, ... the result is infinite for odd
    orders, NaN for even ones. Raises ArgumentError for orders that are traced, negative or not whole.

    x: floats [*s]. Returns the same type, [*s]. Raises DTypeError for other dtypes.

    >>> tracer.lax.polygamma(1, tnp.asarray([1.0, 0.5]))
    Array([1.64493407, 4.9348022 ], f64)
    >>> tracer.lax.polygamma(tnp.asarray([0.0, 1.0]), tnp.asarray([1.0, 1.0]))
    Array([-0.57721566,  1.64493407], f64)
    """
    operand = as_array(x, "polygamma")
    if not isinstance(m, Array | np.ndarray) or np.shape(m) == () != operand.shape:
        result: Array = of_order(_order(m), operand)
        return result
    orders = as_array(m, "polygamma")
    assert isinstance(orders.type, ArrayType)
    same_types("polygamma", (orders.type, operand.type))
    values = concrete_value(orders)
    if values is None:
        raise _not_known(str(orders.type))
    result = full_like(operand, 0)
    for order in np.unique(values):
        result = select(eq(orders, order.item()), of_order(_order(order), operand), result)
    return result


def _order(m: Any) -> int:
    value = concrete_value(m) if isinstance(m, Array) else operand_of("polygamma", m).value  # type: ignore[union-attr]
    if value is None or np.iscomplexobj(value) or value != np.floor(value) or value < 0:
        raise _not_known(str(m.type) if value is None else str(value))
    return int(value)


def _not_known(got: str) -> ArgumentError:
    return ArgumentError(
        message(
            f"polygamma{here()}: orders must be concrete whole numbers, 0 or more",
            f"got {got}",
            help="give the order as a Python integer; under vmap and jit, take it from outside",
        )
    )
