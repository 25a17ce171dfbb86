"""Elementwise circular functions and their inverses: sin, cos, tan, asin, acos, atan, atan2."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir.primitive import NoRule, Pointwise, Primitive
from tracer.ir.scalar import ScalarOp
from tracer.primitives.base.rules import Value, per_operand, pointwise, pointwise_batch, pointwise_infer
from tracer.primitives.elementwise.arithmetic import add, div, mul, neg, sub
from tracer.primitives.elementwise.complex import is_complex
from tracer.primitives.elementwise.powers import hypot, rsqrt, square
from tracer.primitives.elementwise.stop_gradient import stop_gradient
from tracer.trace.trace import Operand

sin_p = Primitive(
    name="sin", infer=pointwise_infer("sin", "fc"), reference=np.sin,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, cos(x))),
    transpose=NoRule("sin is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.SIN), splat=True,
)  # fmt: skip

cos_p = Primitive(
    name="cos", infer=pointwise_infer("cos", "fc"), reference=np.cos,
    jvp=per_operand(lambda ctx, dx, x: neg(mul(dx, sin(x)))),
    transpose=NoRule("cos is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.COS), splat=True,
)  # fmt: skip

tan_p = Primitive(
    name="tan", infer=pointwise_infer("tan", "fc"), reference=np.tan,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, add(1, square(ctx.outputs[0])))),
    transpose=NoRule("tan is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.TAN), splat=True,
)  # fmt: skip


def _asin_slope(x: Operand) -> Any:
    """Compute 1 / sqrt(1 - x^2). Factored, it neither cancels near 1 nor leaves the branch of a complex x.

    Real x is differentiated as 1 - x^2, so that no zero meets the infinite slope at 1.
    """
    factored = mul(sub(1, x), add(1, x))
    if is_complex(x):
        return rsqrt(factored)
    plain = sub(1, square(x))
    return rsqrt(add(plain, stop_gradient(sub(factored, plain))))


asin_p = Primitive(
    name="asin", infer=pointwise_infer("asin", "fc"), reference=np.arcsin,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, _asin_slope(x))),
    transpose=NoRule("asin is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ASIN), splat=True,
)  # fmt: skip

acos_p = Primitive(
    name="acos", infer=pointwise_infer("acos", "fc"), reference=np.arccos,
    jvp=per_operand(lambda ctx, dx, x: neg(mul(dx, _asin_slope(x)))),
    transpose=NoRule("acos is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ACOS), splat=True,
)  # fmt: skip

atan_p = Primitive(
    name="atan", infer=pointwise_infer("atan", "fc"), reference=np.arctan,
    jvp=per_operand(lambda ctx, dx, x: div(dx, add(1, square(x)))),
    transpose=NoRule("atan is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ATAN), splat=True,
)  # fmt: skip


def _over_square(x: Operand, r: Operand) -> Any:
    """Compute x / r^2 where r^2 may overflow."""
    return div(div(x, r), r)


atan2_p = Primitive(
    name="atan2", infer=pointwise_infer("atan2", "f"), reference=np.arctan2,
    jvp=per_operand(
        lambda ctx, dx, x, y: mul(dx, _over_square(y, hypot(x, y))),
        lambda ctx, dy, x, y: mul(dy, _over_square(neg(x), hypot(x, y))),
    ),
    transpose=NoRule("atan2 is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ATAN2), splat=True,
)  # fmt: skip


def sin(x: Value) -> Any:
    """Compute the sine of x, in radians.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> sin(tnp.asarray([0.0, 1.0]))
    Array([0.        , 0.84147098], f64)
    """
    return pointwise(sin_p, x)


def cos(x: Value) -> Any:
    """Compute the cosine of x, in radians.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> cos(tnp.asarray([0.0, 1.0]))
    Array([1.        , 0.54030231], f64)
    """
    return pointwise(cos_p, x)


def tan(x: Value) -> Any:
    """Compute the tangent of x, in radians.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> tan(tnp.asarray([0.0, 1.0]))
    Array([0.        , 1.55740772], f64)
    """
    return pointwise(tan_p, x)


def asin(x: Value) -> Any:
    """Compute the angle in [-pi/2, pi/2] whose sine is x. NaN for floats outside [-1, 1].

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> asin(tnp.asarray([1.0, 2.0]))
    Array([1.57079633,        nan], f64)
    """
    return pointwise(asin_p, x)


def acos(x: Value) -> Any:
    """Compute the angle in [0, pi] whose cosine is x. NaN for floats outside [-1, 1].

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> acos(tnp.asarray([-1.0, 1.0]))
    Array([3.14159265, 0.        ], f64)
    """
    return pointwise(acos_p, x)


def atan(x: Value) -> Any:
    """Compute the angle in [-pi/2, pi/2] whose tangent is x.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> atan(tnp.asarray([1.0, np.inf]))
    Array([0.78539816, 1.57079633], f64)
    """
    return pointwise(atan_p, x)


def atan2(x: Value, y: Value) -> Any:
    """Compute the angle in [-pi, pi] of the point with ordinate `x` and abscissa `y`.

    x, y: floats [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> atan2(tnp.asarray([1.0, -0.0]), tnp.asarray([1.0, -1.0]))
    Array([ 0.78539816, -3.14159265], f64)
    """
    return pointwise(atan2_p, x, y)


TRIGONOMETRIC = (sin_p, cos_p, tan_p, asin_p, acos_p, atan_p, atan2_p)
