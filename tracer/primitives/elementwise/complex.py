"""Complex numbers: real, imag, complex, conj, and abs and sign of any number."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Composite, Convert, NoRule, Parts, Pointwise, Primitive, Zero
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, Type, array_type, tangent_type
from tracer.primitives.base.rules import (
    Value,
    is_linear,
    linear_jvp,
    operand_of,
    per_operand,
    pointwise,
    pointwise_batch,
    pointwise_infer,
    same_types,
)
from tracer.primitives.elementwise.arithmetic import div, mul, neg
from tracer.primitives.elementwise.comparison import eq, gt, lt, select
from tracer.primitives.elementwise.complex_reference import joined
from tracer.primitives.elementwise.conversion import dtype_of
from tracer.trace.source import here
from tracer.trace.trace import Operand


def is_complex(x: Operand) -> bool:
    """Return whether an array or literal is complex."""
    return dtypes.is_complex(dtype_of(x))


# Parts

real_p = Primitive(
    name="real", infer=pointwise_infer("real", "c", result=dtypes.real_dtype), reference=lambda x: x.real,
    jvp=linear_jvp,
    transpose=lambda ctx, cts, xs: [complex(cts[0], 0)],
    batch=pointwise_batch, lower=Convert(), splat=True,
)  # fmt: skip

imag_p = Primitive(
    name="imag", infer=pointwise_infer("imag", "c", result=dtypes.real_dtype), reference=lambda x: x.imag,
    jvp=linear_jvp,
    transpose=lambda ctx, cts, xs: [complex(0, neg(cts[0]))],  # Re(-i ct x) = ct imag(x)
    batch=pointwise_batch, lower=Parts("imag"), splat=True,
)  # fmt: skip


def _complex_infer(x: Type, y: Type) -> Type:
    for part in (x, y):
        if not (isinstance(part, ArrayType) and part.dtype in (dtypes.F32, dtypes.F64)):
            raise DTypeError(
                message(f"complex{here()}: the parts must be f32 or f64", f"got {part}", help="cast with .astype(...)")
            )
    common = same_types("complex", (x, y))
    return array_type(dtypes.complex_dtype(common.dtype), common.shape, common.weak)


complex_p = Primitive(
    name="complex", infer=_complex_infer, reference=joined,
    jvp=linear_jvp,
    transpose=lambda ctx, cts, xs: [
        real(cts[0]) if is_linear(xs[0]) else None,
        neg(imag(cts[0])) if is_linear(xs[1]) else None,
    ],
    batch=pointwise_batch, lower=Parts("complex"), splat=True,
)  # fmt: skip

conj_p = Primitive(
    name="conj", infer=pointwise_infer("conj", "c"), reference=np.conjugate,
    jvp=linear_jvp,
    transpose=lambda ctx, cts, xs: [conj(cts[0])],
    batch=pointwise_batch, lower=Composite(lambda x: complex(real(x), neg(imag(x))), computes=True), splat=True,
)  # fmt: skip


# Magnitude and direction


def _part_along(dx: Operand, x: Operand) -> Any:
    """Return the tangent of |x|: the part of dx in the direction of x.

    It is 0 at x = 0, where no direction is preferred.
    """
    return real(mul(dx, conj(sign(x)))) if is_complex(x) else mul(dx, sign(x))


abs_p = Primitive(
    name="abs", infer=pointwise_infer("abs", "ifc", result=dtypes.real_dtype), reference=np.abs,
    jvp=per_operand(lambda ctx, dx, x: _part_along(dx, x)),
    transpose=NoRule("abs is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ABS), splat=True,
)  # fmt: skip


def _sign_reference(x: Any) -> Any:
    if not dtypes.is_complex(x.dtype):
        return np.where(x == 0, x, np.sign(x))  # NumPy loses the sign of -0
    size = np.abs(x)
    return np.where(size == 0, x, joined(x.real / size, x.imag / size))


def _sign_expand(x: Operand) -> Any:
    if is_complex(x):
        size = abs(x)
        return select(eq(size, 0), x, complex(div(real(x), size), div(imag(x), size)))
    positive = select(gt(x, 0), _one(x), x)
    return positive if dtypes.is_unsigned(dtype_of(x)) else select(lt(x, 0), neg(_one(x)), positive)


def _one(x: Operand) -> Operand:
    return operand_of("sign", dtype_of(x).type(1))


def _sign_tangent(ctx: Any, dx: Operand, x: Operand) -> Any:
    """Return the tangent of sign: 0 for real x; i sign(x) times the angular part of dx over |x| for complex x."""
    if not is_complex(x):
        return Zero(tangent_type(ctx.outputs[0].type))
    size = abs(x)
    turn = div(imag(mul(dx, conj(ctx.outputs[0]))), select(eq(size, 0), _one(size), size))
    return mul(complex(0, turn), ctx.outputs[0])


sign_p = Primitive(
    name="sign", infer=pointwise_infer("sign", "ifc"), reference=_sign_reference,
    jvp=per_operand(_sign_tangent),
    transpose=NoRule("sign is not linear"),
    batch=pointwise_batch, lower=Composite(_sign_expand, computes=True), splat=True,
)  # fmt: skip


def real(x: Value) -> Any:
    """Return the real part of complex numbers: c64 gives f32, c128 gives f64.

    x: complex numbers [*s]. Returns the dtype of the parts, [*s]. Raises DTypeError for other dtypes.

    >>> real(tnp.asarray([1 + 2j]))
    Array([1.], f64)
    """
    return pointwise(real_p, x)


def imag(x: Value) -> Any:
    """Return the imaginary part of complex numbers: c64 gives f32, c128 gives f64.

    x: complex numbers [*s]. Returns the dtype of the parts, [*s]. Raises DTypeError for other dtypes.

    >>> imag(tnp.asarray([1 + 2j]))
    Array([2.], f64)
    """
    return pointwise(imag_p, x)


def complex(x: Value, y: Value) -> Any:
    """Make complex numbers x + iy, c64 from f32 and c128 from f64. Nothing is computed, so infinite parts survive.

    x, y: floats [*s] of one dtype, or one a Python scalar or an array []. Returns complex numbers of that precision,
    [*s]. Raises DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> complex(tnp.asarray([1.0]), 2.0)
    Array([1.+2.j], c128)
    """
    return pointwise(complex_p, x, y)


def conj(x: Value) -> Any:
    """Return the complex conjugate. A real x gives complex numbers.

    x: floats or complex numbers [*s]. Returns complex numbers of that precision, [*s]. Raises DTypeError for other
    dtypes.

    >>> conj(tnp.asarray([1 + 2j]))
    Array([1.-2.j], c128)
    """
    operand = operand_of("conj", x)
    return pointwise(conj_p, operand) if is_complex(operand) else complex(operand, 0)


def abs(x: Value) -> Any:
    """Compute the magnitude |x|. The lowest integer stays itself. The derivative at 0 is 0.

    x: numbers [*s]. Returns real numbers of that precision, [*s]. Raises DTypeError for other dtypes.

    >>> abs(tnp.asarray([3 - 4j]))
    Array([5.], f64)
    """
    return pointwise(abs_p, x)


def sign(x: Value) -> Any:
    """Return -1, 0 or 1 by the sign of x, and x / |x| for complex x. Zeros and NaN stay as they are.

    x: numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> sign(tnp.asarray([-2.0, 0.0, 5.0]))
    Array([-1.,  0.,  1.], f64)
    """
    return pointwise(sign_p, x)


COMPLEX = (real_p, imag_p, complex_p, conj_p, abs_p, sign_p)
