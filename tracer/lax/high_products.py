"""The high words of integer products: `mulhi`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.primitives.elementwise.arithmetic import add, mul, sub
from tracer.primitives.elementwise.bits import and_, shift_right_arithmetic, shift_right_logical
from tracer.primitives.elementwise.comparison import lt, select
from tracer.primitives.elementwise.conversion import bitcast_convert_type, convert_element_type
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import here


def mulhi(x: Any, y: Any, /) -> Array:
    """Return the high half of the product of two integers, as wide as they are.

    x, y: integers [*s] of one dtype. Returns floor(x y / 2**w) for integers of w bits.

    Raises DTypeError for other or unequal dtypes, ShapeError for unequal shapes.

    >>> tracer.lax.mulhi(tnp.asarray([100, -100], "int8"), tnp.asarray([100, 100], "int8"))
    Array([ 39, -40], i8)
    """
    first, second = as_array(x, "mulhi"), as_array(y, "mulhi")
    dtype = first.dtype
    if not dtypes.is_integer(dtype) or second.dtype != dtype:
        raise DTypeError(
            message(
                f"mulhi{here()} takes integers of one dtype",
                f"got {first.type} and {second.type}",
                help='cast them, as in x.astype("int64")',
            )
        )
    if dtype.itemsize == 8:
        return _unsigned(first, second) if dtypes.is_unsigned(dtype) else _signed(first, second)
    width, unsigned = 8 * dtype.itemsize, dtypes.is_unsigned(dtype)
    wide = np.dtype(f"{'u' if unsigned else ''}int{2 * width}")
    product = mul(convert_element_type(first, wide), convert_element_type(second, wide))
    return convert_element_type((shift_right_logical if unsigned else shift_right_arithmetic)(product, width), dtype)


def _unsigned(x: Array, y: Array) -> Array:
    """Multiply halves, whose sums do not overflow."""
    (x_low, x_high), (y_low, y_high) = (
        (and_(v, 2**32 - 1), shift_right_logical(v, 32)) for v in (x, y)
    )  # fmt: skip
    crossed = add(mul(x_high, y_low), shift_right_logical(mul(x_low, y_low), 32))
    other = add(mul(x_low, y_high), and_(crossed, 2**32 - 1))
    carried = add(shift_right_logical(crossed, 32), shift_right_logical(other, 32))
    return add(mul(x_high, y_high), carried)


def _signed(x: Array, y: Array) -> Array:
    """Correct the unsigned product: a negative integer is the unsigned value of its bits minus 2**64."""
    high = bitcast_convert_type(_unsigned(*(bitcast_convert_type(v, dtypes.U64) for v in (x, y))), dtypes.I64)
    return sub(sub(high, select(lt(x, 0), y, 0)), select(lt(y, 0), x, 0))
