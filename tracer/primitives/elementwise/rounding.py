"""Elementwise rounding and remainders: floor, ceil, round (both ways), rem, nextafter, copysign."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Composite, Narrow, NoRule, Pointwise, Primitive
from tracer.ir.scalar import ScalarOp
from tracer.primitives.base.rules import Value, per_operand, pointwise, pointwise_batch, pointwise_infer, zero_jvp
from tracer.primitives.elementwise.arithmetic import add, div, mul, neg, sub, truncated_division
from tracer.primitives.elementwise.comparison import eq, ge, select
from tracer.primitives.elementwise.complex import abs, sign
from tracer.trace.source import here
from tracer.trace.trace import Operand

floor_p, ceil_p, round_even_p = (
    Primitive(
        name=name, infer=pointwise_infer(name, "f"), reference=function,
        jvp=zero_jvp, transpose=NoRule(f"{name} is not linear"),
        batch=pointwise_batch, lower=Pointwise(op), splat=True,
    )
    for name, function, op in (
        ("floor", np.floor, ScalarOp.FLOOR), ("ceil", np.ceil, ScalarOp.CEIL),
        ("round_even", np.rint, ScalarOp.ROUND_EVEN),
    )
)  # fmt: skip


def _round_away_reference(x: Any) -> Any:
    whole = np.trunc(x)
    one = x.dtype.type(1)
    return np.where(np.abs(x - whole) >= x.dtype.type(0.5), whole + np.copysign(one, x), whole)


def _round_away_expand(x: Operand) -> Any:
    size = abs(x)
    whole = floor(size)
    half_or_more = ge(sub(size, whole), 0.5)  # exact, and false for infinities
    return mul(sign(x), select(half_or_more, add(whole, 1), whole))


round_away_p = Primitive(
    name="round_away", infer=pointwise_infer("round_away", "f"), reference=_round_away_reference,
    jvp=zero_jvp, transpose=NoRule("round_away is not linear"),
    batch=pointwise_batch, lower=Composite(_round_away_expand, computes=True), splat=True,
)  # fmt: skip


def _rem_reference(x: Any, y: Any) -> Any:
    return truncated_division(x, y)[1] if dtypes.is_integer(x.dtype) else np.fmod(x, y)


def _whole_quotient(r: Operand, x: Operand, y: Operand) -> Any:
    """Compute x / y, rounded towards zero. x minus the remainder is a multiple of y, so nothing is lost.

    Infinite where x / y is.
    """
    return round_even(div(select(eq(r, r), sub(x, r), x), y))


rem_p = Primitive(
    name="rem", infer=pointwise_infer("rem", "if"), reference=_rem_reference,
    jvp=per_operand(
        lambda ctx, dx, x, y: dx,
        lambda ctx, dy, x, y: neg(mul(dy, _whole_quotient(ctx.outputs[0], x, y))),
    ),
    transpose=NoRule("rem is linear between its jumps only"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.REM), splat=True,
)  # fmt: skip


def _nextafter_reference(x: Any, y: Any) -> Any:
    return np.where(x == y, y, np.nextafter(x, y))  # equal zeros give y, as in C; NumPy's float16 gives x


nextafter_p = Primitive(
    name="nextafter", infer=pointwise_infer("nextafter", "f"), reference=_nextafter_reference,
    jvp=NoRule("the neighbours of a float depend on its bits, not smoothly on its value"),
    transpose=NoRule("nextafter is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.NEXTAFTER), splat=True, narrow=Narrow.REFUSED,
)  # fmt: skip


copysign_p = Primitive(
    name="copysign", infer=pointwise_infer("copysign", "f"), reference=np.copysign,
    jvp=per_operand(lambda ctx, dx, x, y: mul(dx, mul(copysign(1, x), copysign(1, y))), None),
    transpose=NoRule("copysign is linear in its first operand between the jumps only"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.COPYSIGN), splat=True,
)  # fmt: skip


class RoundingMethod(Enum):
    """Direction in which `round` rounds halves.

    >>> round(tnp.asarray([0.5, 1.5]), RoundingMethod.TO_NEAREST_EVEN)
    Array([0., 2.], f64)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def floor(x: Value) -> Any:
    """Round down to an integer, as a float.

    x: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> floor(tnp.asarray([1.5, -1.5]))
    Array([ 1., -2.], f64)
    """
    return pointwise(floor_p, x)


def ceil(x: Value) -> Any:
    """Round up to an integer, as a float.

    x: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> ceil(tnp.asarray([1.5, -1.5]))
    Array([ 2., -1.], f64)
    """
    return pointwise(ceil_p, x)


def round(x: Value, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """Round to the nearest integer, as a float. Halves go away from zero, or to the even neighbour.

    x: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes. rounding_method: a
    `RoundingMethod`, AWAY_FROM_ZERO or TO_NEAREST_EVEN.

    >>> round(tnp.asarray([0.5, 1.5, -2.5]))
    Array([ 1.,  2., -3.], f64)
    >>> round(tnp.asarray([0.5, 1.5, -2.5]), RoundingMethod.TO_NEAREST_EVEN)
    Array([ 0.,  2., -2.], f64)
    """
    match rounding_method:
        case RoundingMethod.AWAY_FROM_ZERO:
            return pointwise(round_away_p, x)
        case RoundingMethod.TO_NEAREST_EVEN:
            return round_even(x)
        case _:
            raise ArgumentError(
                message(
                    f"round{here()}: no such rounding method",
                    f"got {rounding_method!r}",
                    help="RoundingMethod.AWAY_FROM_ZERO or RoundingMethod.TO_NEAREST_EVEN",
                )
            )


def round_even(x: Value) -> Any:
    """Round to the nearest integer, as a float. Halves go to the even neighbour, as in `np.round`.

    >>> round_even(tnp.asarray([0.5, 1.5, 2.5]))
    Array([0., 2., 2.], f64)
    """
    return pointwise(round_even_p, x)


def rem(x: Value, y: Value) -> Any:
    """Compute the remainder of x / y rounded towards zero. It has the sign of x. On integers, x rem 0 is x.

    x, y: real numbers [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> rem(tnp.asarray([7.0, -7.0]), 3.0)
    Array([ 1., -1.], f64)
    """
    return pointwise(rem_p, x, y)


def nextafter(x1: Value, x2: Value) -> Any:
    """Return the neighbour of `x1` towards `x2` among the floats of their dtype.

    x1, x2: floats [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> nextafter(tnp.asarray([1.0]), 2.0)
    Array([1.], f64)
    """
    return pointwise(nextafter_p, x1, x2)


def copysign(x1: Value, x2: Value) -> Any:
    """Return the magnitude of x1 with the sign of x2, also where x2 is zero or NaN.

    >>> copysign(tnp.asarray([1.0, -2.0]), tnp.asarray([-0.0, 3.0]))
    Array([-1.,  2.], f64)
    """
    return pointwise(copysign_p, x1, x2)


ROUNDING = (floor_p, ceil_p, round_even_p, round_away_p, rem_p, nextafter_p, copysign_p)
