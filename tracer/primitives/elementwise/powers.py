"""Elementwise powers and roots: square, integer_pow, pow, sqrt, rsqrt, cbrt, hypot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Composite, NoRule, Pointwise, Primitive, Zero
from tracer.ir.program import Literal
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, Type, tangent_type
from tracer.primitives.base.broadcasting import full_like
from tracer.primitives.base.rules import (
    Value,
    coerce,
    operand_of,
    per_operand,
    pointwise,
    pointwise_batch,
    pointwise_infer,
)
from tracer.primitives.elementwise.arithmetic import div, divide, mul, multiply, sub
from tracer.primitives.elementwise.bits import and_
from tracer.primitives.elementwise.comparison import eq, ne, select
from tracer.primitives.elementwise.complex_reference import joined, product
from tracer.primitives.elementwise.conversion import (
    convert_element_type,
    dtype_of,
    expand_in_single,
    reference_in_single,
)
from tracer.primitives.elementwise.exponential import log
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.trace import Operand

square_p = Primitive(
    name="square", infer=pointwise_infer("square", "ifc"), reference=lambda x: multiply(x, x),
    jvp=per_operand(lambda ctx, dx, x: mul(dx, mul(x, 2))),
    transpose=NoRule("square is not linear"),
    batch=pointwise_batch, lower=Composite(lambda x: mul(x, x), computes=True), splat=True,
)  # fmt: skip


# integer_pow

_infer_number = pointwise_infer("integer_pow", "ifc")


def _integer_pow_infer(x: Type, *, y: int) -> Type:
    result: Type = _infer_number(x)
    if y < 0 and isinstance(x, ArrayType) and dtypes.is_integer(x.dtype):
        raise DTypeError(
            message(
                f"integer_pow{here()}: integers have no negative powers",
                f"got {x} to the power {y}",
                help="cast it to a float with .astype(...)",
            )
        )
    return result


def _by_squaring(x: Any, y: int, multiply: Callable[[Any, Any], Any]) -> Any:
    """Compute x to the power y > 0 by squaring, from the low bits of y up."""
    result = None
    while y:
        if y & 1:
            result = x if result is None else multiply(result, x)
        y >>= 1
        x = multiply(x, x) if y else x
    return result


def _integer_pow_reference(x: Any, *, y: int) -> Any:
    one = np.ones((), x.dtype)
    if y == 0:
        return np.full_like(x, one)
    power = _by_squaring(x, y if y > 0 else -y, multiply)
    return power if y > 0 else divide(one, power)


def _integer_pow_expand(x: Operand, *, y: int) -> Any:
    if y == 0:
        return full_like(x, 1)
    power = _by_squaring(x, y if y > 0 else -y, mul)
    return power if y > 0 else div(1, power)


def _number(x: Operand, value: float) -> Operand:
    """Return a scalar as a literal of the dtype of x."""
    return coerce("integer_pow", (x, value))[1]


def _integer_pow_tangent(ctx: Any, dx: Any, x: Any, *, y: int) -> Any:
    if y == 0:
        return Zero(tangent_type(ctx.outputs[0].type))
    return dx if y == 1 else mul(dx, mul(integer_pow(x, y - 1), y))


integer_pow_p = Primitive(
    name="integer_pow", infer=_integer_pow_infer, reference=reference_in_single(_integer_pow_reference),
    jvp=per_operand(_integer_pow_tangent),
    transpose=NoRule("integer_pow is not linear"),
    batch=pointwise_batch, lower=Composite(expand_in_single(_integer_pow_expand), computes=True), splat=True,
)  # fmt: skip


# pow and roots


def _one_for_zero(x: Operand) -> Any:
    return select(eq(x, 0), _number(x, 1), x)


def _pow_base_tangent(ctx: Any, dx: Any, x: Any, y: Any) -> Any:
    """Return y x^(y-1) dx. It is 0 where y is 0, even at x = 0, where its derivative by y is still x^(y-1)."""
    inverse = div(1, x)
    lost = and_(eq(y, 0), ne(sub(inverse, inverse), 0))  # 0 times a power that is not finite
    power = pow(select(lost, _number(x, 1), x), sub(y, 1))
    return mul(dx, mul(y, select(lost, 0, power)))


def _pow_exponent_tangent(ctx: Any, dy: Any, x: Any, y: Any) -> Any:
    """Return x^y log(x) dy. At x = 0 it is the limit from y > 0, which is 0."""
    return mul(dy, mul(log(_one_for_zero(x)), ctx.outputs[0]))


def _pow_reference(x: Any, y: Any) -> Any:
    """Compute x^y, for complex numbers as exp(y log x) where a value is not finite. NumPy recovers some infinities.

    This is the result of C99.
    """
    power = np.power(x, y)
    if not dtypes.is_complex(power.dtype):
        return power
    wide = np.exp(product(y.astype(np.complex128), np.log(x.astype(np.complex128)))).astype(power.dtype)
    settled = (np.isfinite(power) & np.isfinite(x) & np.isfinite(y)) | (x == 0) | (y == 0)
    return np.where(settled, power, wide)


pow_p = Primitive(
    name="pow", infer=pointwise_infer("pow", "fc"), reference=_pow_reference,
    jvp=per_operand(_pow_base_tangent, _pow_exponent_tangent),
    transpose=NoRule("pow is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.POW), splat=True,
)  # fmt: skip

sqrt_p = Primitive(
    name="sqrt", infer=pointwise_infer("sqrt", "fc"), reference=np.sqrt,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, div(0.5, ctx.outputs[0]))),
    transpose=NoRule("sqrt is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.SQRT), splat=True,
)  # fmt: skip


def _rsqrt_reference(x: Any) -> Any:
    """Compute 1 / sqrt(x). A complex x with an infinite part gives 0, which no division finds."""
    inverse = divide(np.ones((), x.dtype), np.sqrt(x))
    if not dtypes.is_complex(x.dtype):
        return inverse
    zero = np.zeros(x.shape, x.real.dtype)
    return np.where(np.isinf(x), joined(zero, np.copysign(zero, -x.imag)), inverse)


rsqrt_p = Primitive(
    name="rsqrt", infer=pointwise_infer("rsqrt", "fc"), reference=reference_in_single(_rsqrt_reference),
    jvp=per_operand(lambda ctx, dx, x: mul(dx, mul(div(ctx.outputs[0], x), -0.5))),
    transpose=NoRule("rsqrt is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.RSQRT), splat=True,
)  # fmt: skip

cbrt_p = Primitive(
    name="cbrt", infer=pointwise_infer("cbrt", "f"), reference=np.cbrt,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, mul(integer_pow(ctx.outputs[0], -2), 1 / 3))),
    transpose=NoRule("cbrt is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.CBRT), splat=True,
)  # fmt: skip


def _share(x: Operand, length: Operand) -> Any:
    """Compute x / length, 0 where both are 0, as is its derivative: no direction is preferred."""
    return select(eq(length, 0), 0, div(x, _one_for_zero(length)))


def _hypot_reference(x: Any, y: Any) -> Any:
    """Compute np.hypot, but infinite also beside a signalling NaN."""
    return np.where(np.isinf(x) | np.isinf(y), x.dtype.type(np.inf), np.hypot(x, y))


hypot_p = Primitive(
    name="hypot", infer=pointwise_infer("hypot", "f"), reference=_hypot_reference,
    jvp=per_operand(
        lambda ctx, dx, x, y: mul(dx, _share(x, ctx.outputs[0])),
        lambda ctx, dy, x, y: mul(dy, _share(y, ctx.outputs[0])),
    ),
    transpose=NoRule("hypot is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.HYPOT), splat=True, commutative=True,
)  # fmt: skip


def square(x: Value) -> Any:
    """Compute x * x. Integers wrap.

    x: numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> square(tnp.asarray([3.0, -2.0]))
    Array([9., 4.], f64)
    """
    return pointwise(square_p, x)


def integer_pow(x: Value, y: int) -> Any:
    """Raise x to a Python integer power by repeated multiplication. Integers wrap and take y >= 0 only.

    Any x to the power 0 is 1. A negative power is the reciprocal of the positive one.

    x: numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> integer_pow(tnp.asarray([2.0, -3.0]), 3)
    Array([  8., -27.], f64)
    """
    return pointwise(integer_pow_p, x, y=integer("integer_pow", "the exponent", y))


def pow(x: Value, y: Value) -> Any:
    """Raise x to the power y. x: float or complex; y: of the same dtype, or an integer, which is cast to it.

    As C's pow: any x to the power 0 is 1, and 1 to any power is 1. A negative x to a fraction is NaN.

    x: floats or complex numbers [*s]; y: the same or an integer, either may be a Python scalar or an array []. Returns
    x's dtype, [*s]. Raises DTypeError for integers x or if the dtypes differ, ShapeError if the shapes differ.

    >>> pow(tnp.asarray([2.0, 9.0]), tnp.asarray([10.0, 0.5]))
    Array([1024.,    3.], f64)
    """
    base = operand_of("pow", x)
    if isinstance(y, Array | Literal) and dtypes.is_integer(dtype_of(y)):
        y = convert_element_type(y, dtype_of(base))
    return pointwise(pow_p, base, y)


def sqrt(x: Value) -> Any:
    """Compute the square root. NaN for floats below 0; complex roots have a real part >= 0.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> sqrt(tnp.asarray([4.0, 2.0]))
    Array([2.        , 1.41421356], f64)
    """
    return pointwise(sqrt_p, x)


def rsqrt(x: Value) -> Any:
    """Compute 1 / sqrt(x).

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> rsqrt(tnp.asarray([4.0, 0.0]))
    Array([0.5, inf], f64)
    """
    return pointwise(rsqrt_p, x)


def cbrt(x: Value) -> Any:
    """Compute the real cube root. Negative floats have one.

    x: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> cbrt(tnp.asarray([27.0, -8.0]))
    Array([ 3., -2.], f64)
    """
    return pointwise(cbrt_p, x)


def hypot(x: Value, y: Value) -> Any:
    """Compute sqrt(x^2 + y^2) without overflow. Infinite if either is. The derivative at the origin is 0.

    >>> hypot(tnp.asarray([3.0, 1e300]), tnp.asarray([4.0, 0.0]))
    Array([5.e+000, 1.e+300], f64)
    """
    return pointwise(hypot_p, x, y)


POWERS = (square_p, integer_pow_p, pow_p, sqrt_p, rsqrt_p, cbrt_p, hypot_p)
