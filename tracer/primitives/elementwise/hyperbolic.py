"""Elementwise hyperbolic functions and their inverses: sinh, cosh, tanh, asinh, acosh, atanh."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir.primitive import NoRule, Pointwise, Primitive
from tracer.ir.scalar import ScalarOp
from tracer.primitives.base.rules import Value, per_operand, pointwise, pointwise_batch, pointwise_infer
from tracer.primitives.elementwise.arithmetic import add, div, mul, sub
from tracer.primitives.elementwise.complex import is_complex
from tracer.primitives.elementwise.powers import hypot, rsqrt, square
from tracer.trace.trace import Operand

sinh_p = Primitive(
    name="sinh", infer=pointwise_infer("sinh", "fc"), reference=np.sinh,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, cosh(x))),
    transpose=NoRule("sinh is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.SINH), splat=True,
)  # fmt: skip

cosh_p = Primitive(
    name="cosh", infer=pointwise_infer("cosh", "fc"), reference=np.cosh,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, sinh(x))),
    transpose=NoRule("cosh is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.COSH), splat=True,
)  # fmt: skip

tanh_p = Primitive(
    name="tanh", infer=pointwise_infer("tanh", "fc"), reference=np.tanh,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, mul(add(1, ctx.outputs[0]), sub(1, ctx.outputs[0])))),
    transpose=NoRule("tanh is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.TANH), splat=True,
)  # fmt: skip


def _asinh_slope(x: Operand) -> Any:
    """Compute 1 / sqrt(x^2 + 1), where x^2 of a float may overflow."""
    return rsqrt(add(square(x), 1)) if is_complex(x) else div(1, hypot(x, 1))


asinh_p = Primitive(
    name="asinh", infer=pointwise_infer("asinh", "fc"), reference=np.arcsinh,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, _asinh_slope(x))),
    transpose=NoRule("asinh is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ASINH), splat=True,
)  # fmt: skip

acosh_p = Primitive(
    name="acosh", infer=pointwise_infer("acosh", "fc"), reference=np.arccosh,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, mul(rsqrt(sub(x, 1)), rsqrt(add(x, 1))))),
    transpose=NoRule("acosh is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ACOSH), splat=True,
)  # fmt: skip

atanh_p = Primitive(
    name="atanh", infer=pointwise_infer("atanh", "fc"), reference=np.arctanh,
    jvp=per_operand(lambda ctx, dx, x: div(dx, mul(sub(1, x), add(1, x)))),
    transpose=NoRule("atanh is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ATANH), splat=True,
)  # fmt: skip


def sinh(x: Value) -> Any:
    """Compute the hyperbolic sine.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> sinh(tnp.asarray([0.0, 1.0]))
    Array([0.        , 1.17520119], f64)
    """
    return pointwise(sinh_p, x)


def cosh(x: Value) -> Any:
    """Compute the hyperbolic cosine.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> cosh(tnp.asarray([0.0, 1.0]))
    Array([1.        , 1.54308063], f64)
    """
    return pointwise(cosh_p, x)


def tanh(x: Value) -> Any:
    """Compute the hyperbolic tangent.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> tanh(tnp.asarray([0.0, 1.0]))
    Array([0.        , 0.76159416], f64)
    """
    return pointwise(tanh_p, x)


def asinh(x: Value) -> Any:
    """Compute the inverse hyperbolic sine.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> asinh(tnp.asarray([0.0, 1.0]))
    Array([0.        , 0.88137359], f64)
    """
    return pointwise(asinh_p, x)


def acosh(x: Value) -> Any:
    """Compute the inverse hyperbolic cosine. NaN for floats below 1.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> acosh(tnp.asarray([1.0, 2.0]))
    Array([0.       , 1.3169579], f64)
    """
    return pointwise(acosh_p, x)


def atanh(x: Value) -> Any:
    """Compute the inverse hyperbolic tangent. NaN for floats outside [-1, 1].

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> atanh(tnp.asarray([0.5, 1.0]))
    Array([0.54930614,        inf], f64)
    """
    return pointwise(atanh_p, x)


HYPERBOLIC = (sinh_p, cosh_p, tanh_p, asinh_p, acosh_p, atanh_p)
