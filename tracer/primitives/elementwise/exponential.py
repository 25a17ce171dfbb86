"""Elementwise exponentials and logarithms: exp, exp2, expm1, log, log2, log1p, logistic."""

from __future__ import annotations

import importlib
import math
from functools import cache
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.primitive import NoRule, Pointwise, Primitive
from tracer.ir.scalar import ScalarOp
from tracer.primitives.base.rules import Value, per_operand, pointwise, pointwise_batch, pointwise_infer
from tracer.primitives.elementwise.arithmetic import add, div, divide, mul, sub
from tracer.primitives.elementwise.conversion import reference_in_single

_LOG_2 = math.log(2)


@cache
def scipy_special(name: str) -> Any:
    """Return a function of scipy.special, imported at first use: the import takes 0.2 s."""
    return getattr(importlib.import_module("scipy.special"), name)


exp_p = Primitive(
    name="exp", infer=pointwise_infer("exp", "fc"), reference=np.exp,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, ctx.outputs[0])),
    transpose=NoRule("exp is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.EXP), splat=True,
)  # fmt: skip


def _exp2_reference(x: Any) -> Any:
    """Compute 2^x, for complex x with the angle in two words. NumPy rounds it, so that large angles lose digits.

    The product of the imaginary part and log 2 is split as in Dekker 1971, Numer. Math. 18.
    """
    if x.dtype.kind != "c":
        return np.exp2(x)
    y = x.imag.astype(np.float64)
    near = 134217729.0 * y - (134217729.0 * y - y)
    short = 0.6931471824645996  # log 2 in 26 bits
    angle = y * _LOG_2
    rest = (near * short - angle) + near * (_LOG_2 - short) + (y - near) * short + (y - near) * (_LOG_2 - short)
    rest = rest + y * 2.3190468138462996e-17
    size = np.exp2(0.5 * x.real.astype(np.float64))
    precise = size * (np.exp(1j * angle) * np.exp(1j * rest)) * size
    return np.where(np.isfinite(rest) & np.isfinite(precise), precise, np.exp2(x)).astype(x.dtype)


exp2_p = Primitive(
    name="exp2", infer=pointwise_infer("exp2", "fc"), reference=_exp2_reference,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, mul(ctx.outputs[0], _LOG_2))),
    transpose=NoRule("exp2 is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.EXP2), splat=True,
)  # fmt: skip


def _expm1_reference(x: Any) -> Any:
    """Compute exp(x) - 1, directly for complex x where NumPy's formula overflows or meets zero times infinity."""
    near = np.expm1(x)
    return near if x.dtype.kind != "c" else np.where(np.isfinite(near), near, np.exp(x) - 1)


expm1_p = Primitive(
    name="expm1", infer=pointwise_infer("expm1", "fc"), reference=_expm1_reference,
    jvp=per_operand(lambda ctx, dx, x: mul(dx, add(ctx.outputs[0], 1))),
    transpose=NoRule("expm1 is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.EXPM1), splat=True,
)  # fmt: skip

log_p = Primitive(
    name="log", infer=pointwise_infer("log", "fc"), reference=np.log,
    jvp=per_operand(lambda ctx, dx, x: div(dx, x)),
    transpose=NoRule("log is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.LOG), splat=True,
)  # fmt: skip

log2_p = Primitive(
    name="log2", infer=pointwise_infer("log2", "fc"), reference=np.log2,
    jvp=per_operand(lambda ctx, dx, x: div(dx, mul(x, _LOG_2))),
    transpose=NoRule("log2 is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.LOG2), splat=True,
)  # fmt: skip


def _log1p_reference(x: Any) -> Any:
    """Compute log(1 + x), for complex x by SciPy: NumPy loses small real parts. SciPy < 1.16 lost the sign of -0."""
    if not dtypes.is_complex(x.dtype):
        return np.log1p(x)
    result = np.asarray(scipy_special("log1p")(x))
    result.imag = np.copysign(result.imag, x.imag)
    return result


log1p_p = Primitive(
    name="log1p", infer=pointwise_infer("log1p", "fc"), reference=_log1p_reference,
    jvp=per_operand(lambda ctx, dx, x: div(dx, add(x, 1))),
    transpose=NoRule("log1p is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.LOG1P), splat=True,
)  # fmt: skip


def _logistic_reference(x: Any) -> Any:
    """Compute 1 / (1 + e^-x) by e^-|x|, which does not overflow."""
    positive = x.real >= 0
    small = np.exp(np.where(positive, -x, x))
    one = np.ones((), x.dtype)
    return divide(np.where(positive, one, small), one + small)


logistic_p = Primitive(
    name="logistic", infer=pointwise_infer("logistic", "fc"), reference=reference_in_single(_logistic_reference),
    jvp=per_operand(lambda ctx, dx, x: mul(dx, mul(ctx.outputs[0], sub(1, ctx.outputs[0])))),
    transpose=NoRule("logistic is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.LOGISTIC), splat=True,
)  # fmt: skip


def exp(x: Value) -> Any:
    """Compute e to the power x.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> exp(tnp.asarray([0.0, 1.0]))
    Array([1.        , 2.71828183], f64)
    """
    return pointwise(exp_p, x)


def exp2(x: Value) -> Any:
    """Compute 2 to the power x.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> exp2(tnp.asarray([3.0, -1.0]))
    Array([8. , 0.5], f64)
    """
    return pointwise(exp2_p, x)


def expm1(x: Value) -> Any:
    """Compute exp(x) - 1 without cancellation near 0.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> expm1(tnp.asarray([1e-20, 1.0]))
    Array([1.00000000e-20, 1.71828183e+00], f64)
    """
    return pointwise(expm1_p, x)


def log(x: Value) -> Any:
    """Compute the natural logarithm. NaN for floats below 0; complex results have an imaginary part in [-pi, pi].

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> log(tnp.asarray([1.0, 0.0]))
    Array([  0., -inf], f64)
    """
    return pointwise(log_p, x)


def log2(x: Value) -> Any:
    """Compute the logarithm to base 2. NaN for floats below 0.

    >>> log2(tnp.asarray([8.0, 0.5]))
    Array([ 3., -1.], f64)
    """
    return pointwise(log2_p, x)


def log1p(x: Value) -> Any:
    """Compute log(1 + x) without cancellation near 0.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> log1p(tnp.asarray([1e-20, 1.0]))
    Array([1.00000000e-20, 6.93147181e-01], f64)
    """
    return pointwise(log1p_p, x)


def logistic(x: Value) -> Any:
    """Compute the sigmoid, 1 / (1 + exp(-x)).

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> logistic(tnp.asarray([0.0, -1000.0]))
    Array([0.5, 0. ], f64)
    """
    return pointwise(logistic_p, x)


EXPONENTIAL = (exp_p, exp2_p, expm1_p, log_p, log2_p, log1p_p, logistic_p)
