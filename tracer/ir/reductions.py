"""Operations that combine partial results, and the identity of each."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tracer.errors import InternalError
from tracer.ir.dtypes import BOOL, DType, is_float, short_name
from tracer.ir.scalar import ScalarOp

COMBINING: Final = (
    ScalarOp.ADD, ScalarOp.MUL, ScalarOp.MIN, ScalarOp.MAX, ScalarOp.AND, ScalarOp.OR, ScalarOp.XOR,
)  # fmt: skip
"""The operations of a reducing `Carry`. They all commute; on floats, add and mul are not associative."""


def identity(op: ScalarOp, dtype: DType) -> Any:  # a NumPy scalar
    """Return the scalar e with op(e, x) == x for every x, bit for bit: -0 for sums of floats.

    Raises InternalError if the operation has no identity in the dtype.

    >>> identity(ScalarOp.ADD, np.dtype("float32"))
    np.float32(-0.0)
    """
    kind = "b" if dtype == BOOL else "f" if is_float(dtype) else "i"
    if op not in COMBINING or kind not in op.signature.kinds:
        raise InternalError(f"{op.label} of {short_name(dtype)} has no identity")
    return dtype.type(_bool(op) if kind == "b" else _number(op, dtype))


def _bool(op: ScalarOp) -> bool:
    return op in (ScalarOp.MIN, ScalarOp.AND)


def _number(op: ScalarOp, dtype: DType) -> float | int:
    if is_float(dtype):
        floats = {ScalarOp.ADD: -0.0, ScalarOp.MUL: 1.0, ScalarOp.MIN: np.inf, ScalarOp.MAX: -np.inf}
        return floats[op]
    limits = np.iinfo(dtype)
    all_ones = -1 if limits.min < 0 else limits.max
    integers = {ScalarOp.MUL: 1, ScalarOp.MIN: limits.max, ScalarOp.MAX: limits.min, ScalarOp.AND: all_ones}
    return int(integers.get(op, 0))
