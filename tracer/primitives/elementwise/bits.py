"""Elementwise bit operations: and, or, xor, not, shifts, population count, leading zeros."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tracer.ir.dtypes import DType
from tracer.ir.primitive import Narrow, NoRule, Pointwise, Primitive
from tracer.ir.scalar import ScalarOp
from tracer.primitives.base.rules import Value, pointwise, pointwise_batch, pointwise_infer, zero_jvp

_NO_DERIVATIVE = NoRule("bits have no derivatives, so nothing is linear in them")

and_p, or_p, xor_p = (
    Primitive(
        name=name, infer=pointwise_infer(name, "bi"), reference=function, jvp=zero_jvp, transpose=_NO_DERIVATIVE,
        batch=pointwise_batch, lower=Pointwise(op), splat=True, commutative=True,
    )
    for name, function, op in (
        ("and", np.bitwise_and, ScalarOp.AND), ("or", np.bitwise_or, ScalarOp.OR), ("xor", np.bitwise_xor, ScalarOp.XOR)
    )
)  # fmt: skip

not_p = Primitive(
    name="not", infer=pointwise_infer("not", "bi"), reference=np.invert, jvp=zero_jvp, transpose=_NO_DERIVATIVE,
    batch=pointwise_batch, lower=Pointwise(ScalarOp.NOT), splat=True,
)  # fmt: skip


_UNSIGNED: Final = {size: np.dtype(f"uint{8 * size}") for size in (1, 2, 4, 8)}


def unsigned_dtype(dtype: DType) -> DType:
    """Return the unsigned integer dtype of the same width."""
    return _UNSIGNED[dtype.itemsize]


def _unsigned(x: Any) -> Any:
    return np.asarray(x).view(unsigned_dtype(x.dtype))


def _shift_left(x: Any, y: Any) -> Any:
    inside, count = _counted(x, y)
    return np.where(inside, np.left_shift(x, count), x.dtype.type(0))


def _shift_right_logical(x: Any, y: Any) -> Any:
    inside, count = _counted(x, y)
    shifted = np.right_shift(_unsigned(x), _unsigned(count))
    return np.where(inside, shifted, shifted.dtype.type(0)).view(x.dtype)


def _shift_right_arithmetic(x: Any, y: Any) -> Any:
    signed = np.dtype(f"int{8 * x.dtype.itemsize}")
    inside, count = _counted(x, y)
    value = np.asarray(x).view(signed)
    return np.where(inside, np.right_shift(value, count.view(signed)), value >> (8 * signed.itemsize - 1)).view(x.dtype)


def _counted(x: Any, y: Any) -> tuple[Any, Any]:
    """Return which counts are inside the width, and the counts with counts outside set to 0."""
    width = 8 * x.dtype.itemsize
    inside = _unsigned(y) < width
    return inside, np.where(inside, y, y.dtype.type(0))


shift_left_p = Primitive(
    name="shift_left", infer=pointwise_infer("shift_left", "i"), reference=_shift_left,
    jvp=zero_jvp, transpose=_NO_DERIVATIVE,
    batch=pointwise_batch, lower=Pointwise(ScalarOp.SHL), splat=True,
)  # fmt: skip

shift_right_logical_p = Primitive(
    name="shift_right_logical", infer=pointwise_infer("shift_right_logical", "i"), reference=_shift_right_logical,
    jvp=zero_jvp, transpose=_NO_DERIVATIVE,
    batch=pointwise_batch, lower=Pointwise(ScalarOp.SHR_LOGICAL), splat=True, narrow=Narrow.UNSIGNED,
)  # fmt: skip

shift_right_arithmetic_p = Primitive(
    name="shift_right_arithmetic", infer=pointwise_infer("shift_right_arithmetic", "i"),
    reference=_shift_right_arithmetic,
    jvp=zero_jvp, transpose=_NO_DERIVATIVE,
    batch=pointwise_batch, lower=Pointwise(ScalarOp.SHR_ARITHMETIC), splat=True,
)  # fmt: skip


def _population_count(x: Any) -> Any:
    return np.bitwise_count(_unsigned(x)).astype(x.dtype)  # NumPy counts the absolute value of a signed integer


def _clz(x: Any) -> Any:
    smeared, width = _unsigned(x), 8 * x.dtype.itemsize
    step = 1
    while step < width:
        smeared = smeared | (smeared >> smeared.dtype.type(step))
        step *= 2
    return (width - np.bitwise_count(smeared)).astype(x.dtype)


population_count_p = Primitive(
    name="population_count", infer=pointwise_infer("population_count", "i"), reference=_population_count,
    jvp=zero_jvp, transpose=_NO_DERIVATIVE,
    batch=pointwise_batch, lower=Pointwise(ScalarOp.POPCOUNT), splat=True, narrow=Narrow.UNSIGNED,
)  # fmt: skip

clz_p = Primitive(
    name="clz", infer=pointwise_infer("clz", "i"), reference=_clz,
    jvp=zero_jvp, transpose=_NO_DERIVATIVE,
    batch=pointwise_batch, lower=Pointwise(ScalarOp.CLZ), splat=True, narrow=Narrow.REFUSED,
)  # fmt: skip


def and_(x: Value, y: Value) -> Any:
    """Compute x & y; `lax.bitwise_and`.

    x, y: bool or integers [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s].
    Raises DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> tracer.lax.bitwise_and(tnp.asarray([12, 10]), 6)
    Array([4, 2], i64)
    """
    return pointwise(and_p, x, y)


def or_(x: Value, y: Value) -> Any:
    """Compute x | y; `lax.bitwise_or`.

    x, y: bool or integers [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s].
    Raises DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> tracer.lax.bitwise_or(tnp.asarray([12, 10]), 6)
    Array([14, 14], i64)
    """
    return pointwise(or_p, x, y)


def xor(x: Value, y: Value) -> Any:
    """Compute x ^ y; `lax.bitwise_xor`.

    x, y: bool or integers [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s].
    Raises DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> tracer.lax.bitwise_xor(tnp.asarray([12, 10]), 6)
    Array([10, 12], i64)
    """
    return pointwise(xor_p, x, y)


def not_(x: Value) -> Any:
    """Compute ~x; `lax.bitwise_not`.

    x: bool or integers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> tracer.lax.bitwise_not(tnp.asarray([0, 5]))
    Array([-1, -6], i64)
    """
    return pointwise(not_p, x)


def shift_left(x: Value, y: Value) -> Any:
    """Compute x << y. A count below 0, or of the width or more, gives 0.

    x, y: integers [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> shift_left(tnp.asarray([1, 3]), 4)
    Array([16, 48], i64)
    """
    return pointwise(shift_left_p, x, y)


def shift_right_logical(x: Value, y: Value) -> Any:
    """Compute x >> y, shifting in zeros. A count below 0, or of the width or more, gives 0.

    x, y: integers [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> shift_right_logical(tnp.asarray([16, -1]), 60)
    Array([ 0, 15], i64)
    """
    return pointwise(shift_right_logical_p, x, y)


def shift_right_arithmetic(x: Value, y: Value) -> Any:
    """Compute x >> y, shifting in the sign. A count below 0, or of the width or more, gives 0 or -1, by the sign.

    x, y: integers [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> shift_right_arithmetic(tnp.asarray([16, -16]), 2)
    Array([ 4, -4], i64)
    """
    return pointwise(shift_right_arithmetic_p, x, y)


def population_count(x: Value) -> Any:
    """Count the bits that are set, in the integer's own dtype.

    x: integers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> population_count(tnp.asarray([7, -1]))
    Array([ 3, 64], i64)
    """
    return pointwise(population_count_p, x)


def clz(x: Value) -> Any:
    """Count the leading zero bits, in the integer's own dtype. For 0 that is the width.

    x: integers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> clz(tnp.asarray([0, 1, -1]))
    Array([64, 63,  0], i64)
    """
    return pointwise(clz_p, x)


BITS = (
    and_p, or_p, xor_p, not_p, shift_left_p, shift_right_logical_p, shift_right_arithmetic_p, population_count_p,
    clz_p,
)  # fmt: skip
