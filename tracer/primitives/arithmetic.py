"""Arithmetic at every element: add, sub, mul, div, neg, max, pow and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.primitive import Pointwise, Primitive, Zero
from tracer.ir.scalar import ScalarOp
from tracer.primitives.rules import Value, is_linear, linear_jvp, per_operand, pointwise, pointwise_batch, pointwise_infer, quiet


def _add_jvp(ctx: Any, xs: Any, dxs: Any) -> list[Any]:
    dx, dy = dxs
    if isinstance(dx, Zero):
        return [dy]
    return [dx] if isinstance(dy, Zero) else [add(dx, dy)]


def _sub_jvp(ctx: Any, xs: Any, dxs: Any) -> list[Any]:
    dx, dy = dxs
    if isinstance(dx, Zero):
        return [dy] if isinstance(dy, Zero) else [neg(dy)]
    return [dx] if isinstance(dy, Zero) else [sub(dx, dy)]


def _mul_transpose(ctx: Any, cts: Any, xs: Any) -> list[Any]:
    (ct,), (x, y) = cts, xs
    return [mul(ct, y) if is_linear(x) else None, mul(x, ct) if is_linear(y) else None]


add_p = Primitive(
    name="add", infer=pointwise_infer("add", "bifc"), reference=quiet(np.add),
    jvp=_add_jvp,
    transpose=lambda ctx, cts, xs: [cts[0] if is_linear(x) else None for x in xs],
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ADD), splat=True, commutative=True,
)  # fmt: skip

sub_p = Primitive(
    name="sub", infer=pointwise_infer("sub", "ifc"), reference=quiet(np.subtract),
    jvp=_sub_jvp,
    transpose=lambda ctx, cts, xs: [cts[0] if is_linear(xs[0]) else None, neg(cts[0]) if is_linear(xs[1]) else None],
    batch=pointwise_batch, lower=Pointwise(ScalarOp.SUB), splat=True,
)  # fmt: skip

mul_p = Primitive(
    name="mul", infer=pointwise_infer("mul", "bifc"), reference=quiet(np.multiply),
    jvp=per_operand(lambda ctx, dx, x, y: mul(dx, y), lambda ctx, dy, x, y: mul(x, dy)),
    transpose=_mul_transpose,
    batch=pointwise_batch, lower=Pointwise(ScalarOp.MUL), splat=True, commutative=True,
)  # fmt: skip

neg_p = Primitive(
    name="neg", infer=pointwise_infer("neg", "ifc"), reference=quiet(np.negative),
    jvp=linear_jvp,
    transpose=lambda ctx, cts, xs: [neg(cts[0])],
    batch=pointwise_batch, lower=Pointwise(ScalarOp.NEG), splat=True,
)  # fmt: skip


def _div_reference(x: Any, y: Any) -> Any:
    if not dtypes.is_integer(x.dtype):
        with np.errstate(all="ignore"):
            return np.divide(x, y).astype(x.dtype)
    return _truncated_division(x, y)[0]


def _truncated_division(x: Any, y: Any) -> tuple[Any, Any]:
    """Quotient towards zero and remainder, with the tabled results of `ir.scalar`."""
    x, y = np.broadcast_arrays(x, y)
    lowest = np.iinfo(x.dtype).min
    zero = y == 0
    overflow = (x == lowest) & (y == -1) if dtypes.is_signed(x.dtype) else np.zeros_like(zero)
    safe = np.where(zero | overflow, x.dtype.type(1), y)
    remainder = np.fmod(x, safe)
    quotient = (x - remainder) // safe
    all_ones = x.dtype.type(-1) if dtypes.is_signed(x.dtype) else np.iinfo(x.dtype).max
    quotient = np.where(zero, all_ones, np.where(overflow, x, quotient)).astype(x.dtype)
    remainder = np.where(zero, x, np.where(overflow, x.dtype.type(0), remainder)).astype(x.dtype)
    return quotient, remainder


div_p = Primitive(
    name="div", infer=pointwise_infer("div", "ifc"), reference=_div_reference,
    jvp=per_operand(
        lambda ctx, dx, x, y: div(dx, y),
        lambda ctx, dy, x, y: mul(neg(div(ctx.outputs[0], y)), dy),
    ),
    transpose=lambda ctx, cts, xs: [div(cts[0], xs[1]), None],
    batch=pointwise_batch, lower=Pointwise(ScalarOp.DIV), splat=True,
)  # fmt: skip


def add(x: Value, y: Value) -> Any:
    """x + y. Integers wrap; bool is `or`."""
    return pointwise(add_p, x, y)


def sub(x: Value, y: Value) -> Any:
    """x - y. Integers wrap."""
    return pointwise(sub_p, x, y)


def mul(x: Value, y: Value) -> Any:
    """x * y. Integers wrap; bool is `and`."""
    return pointwise(mul_p, x, y)


def neg(x: Value) -> Any:
    """-x. Integers wrap: the lowest stays itself."""
    return pointwise(neg_p, x)


def div(x: Value, y: Value) -> Any:
    """x / y on floats and complex numbers; on integers towards zero, with x / 0 = -1 (all bits set)."""
    return pointwise(div_p, x, y)


