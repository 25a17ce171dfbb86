"""checked_divisor: integers that must not be zero, for division under `config.debug_division`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import DivisionError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import FAULTS, Checked, NoRule, Primitive
from tracer.ir.program import Literal
from tracer.ir.types import ArrayType, Type
from tracer.primitives.base.rules import check_kinds, zero_jvp
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.settings import config
from tracer.trace.source import here
from tracer.trace.trace import Operand, as_literal, bind


def division_message(operation: str, where: str) -> str:
    """Return the text of a DivisionError. where: ` at ` and the user's line, or nothing.

    >>> print(division_message("floor_divide", " at demo.py:3"))
    floor_divide at demo.py:3: an integer is divided by zero
      help: divide by tnp.where(y == 0, 1, y), and choose the result there
    """
    return message(
        f"{operation}{where}: an integer is divided by zero",
        help="divide by tnp.where(y == 0, 1, y), and choose the result there",
    )


def _infer(divisor: Type, predicate: Type, *, operation: str) -> Type:
    check_kinds("checked_divisor", [divisor], "i")
    is_mask = isinstance(predicate, ArrayType) and dtypes.is_bool(predicate.dtype)
    if not is_mask or predicate.shape not in ((), divisor.shape):
        raise ShapeError(
            message(
                f"checked_divisor{here()}: the predicate must be a bool, or one for each divisor",
                f"got {predicate} for divisors {divisor}",
                help="broadcast it",
            )
        )
    return divisor


def _reference(divisor: Any, predicate: Any, *, operation: str) -> Any:
    if np.any((divisor == 0) & predicate):
        raise DivisionError(division_message(operation, here()))
    return divisor


def _batch(ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], *, operation: str) -> Any:
    (divisor, predicate), (divisor_axis, mask_axis) = xs, axes
    divisor = ctx.to_front(divisor, divisor_axis)
    if mask_axis is not None or predicate.type.shape:
        mask = ctx.to_front(predicate, mask_axis)
        predicate = broadcast_in_dim(mask, divisor.shape, range(mask.ndim))
    return [bind(checked_divisor_p, divisor, predicate, operation=operation)], [0]


checked_divisor_p = Primitive(
    name="checked_divisor", infer=_infer, reference=_reference,
    jvp=zero_jvp, transpose=NoRule("divisors are integers, without cotangents"), batch=_batch,
    lower=Checked("divisor"), effects=FAULTS, guard=1,
)  # fmt: skip


def checked_divisor(operation: str, divisor: Operand) -> Any:
    """Return a divisor; under `config.debug_division`, an integer one checked not to be zero when it is read.

    operation: the name of the division, for errors. Raises DivisionError with the user's line, also from compiled code.

    >>> checked_divisor("floor_divide", tnp.asarray([1, 2]))
    Array([1, 2], i64)
    """
    type = divisor.type
    if not config.debug_division or not isinstance(type, ArrayType) or not dtypes.is_integer(type.dtype):
        return divisor
    if isinstance(divisor, Literal):
        if divisor.value != 0:
            return divisor
        divisor = broadcast_in_dim(divisor, (), ())
    return bind(checked_divisor_p, divisor, as_literal(True), operation=operation)


DIVISORS = (checked_divisor_p,)
