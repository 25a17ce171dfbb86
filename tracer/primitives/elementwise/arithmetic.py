"""Elementwise arithmetic: add, sub, mul, neg, div, max, min, clamp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.primitive import Composite, NoRule, Pointwise, Primitive, Rule, Zero
from tracer.ir.program import Literal
from tracer.ir.scalar import ScalarOp
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.rules import (
    Value,
    by_ufunc,
    check_kinds,
    coerce,
    is_linear,
    linear_jvp,
    operand_of,
    per_operand,
    pointwise,
    pointwise_batch,
    pointwise_infer,
)
from tracer.primitives.elementwise.bits import and_
from tracer.primitives.elementwise.comparison import eq, lt, ne, select
from tracer.primitives.elementwise.complex_reference import product, quotient
from tracer.trace.array import Array
from tracer.trace.trace import Operand


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
    name="add", infer=pointwise_infer("add", "bifc"), reference=np.add,
    jvp=_add_jvp,
    transpose=lambda ctx, cts, xs: [cts[0] if is_linear(x) else None for x in xs],
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ADD), splat=True, prepared=by_ufunc(np.add), commutative=True,
)  # fmt: skip

sub_p = Primitive(
    name="sub", infer=pointwise_infer("sub", "ifc"), reference=np.subtract,
    jvp=_sub_jvp,
    transpose=lambda ctx, cts, xs: [cts[0] if is_linear(xs[0]) else None, neg(cts[0]) if is_linear(xs[1]) else None],
    batch=pointwise_batch, lower=Pointwise(ScalarOp.SUB), splat=True, prepared=by_ufunc(np.subtract),
)  # fmt: skip


def multiply(x: Any, y: Any) -> Any:
    """Multiply NumPy arrays, bit-identical to compiled loops."""
    return product(x, y) if x.dtype.kind == "c" else np.multiply(x, y)


mul_p = Primitive(
    name="mul", infer=pointwise_infer("mul", "bifc"), reference=multiply,
    jvp=per_operand(lambda ctx, dx, x, y: mul(dx, y), lambda ctx, dy, x, y: mul(x, dy)),
    transpose=_mul_transpose,
    batch=pointwise_batch, lower=Pointwise(ScalarOp.MUL), splat=True, prepared=by_ufunc(np.multiply), commutative=True,
)  # fmt: skip

neg_p = Primitive(
    name="neg", infer=pointwise_infer("neg", "ifc"), reference=np.negative,
    jvp=linear_jvp,
    transpose=lambda ctx, cts, xs: [neg(cts[0])],
    batch=pointwise_batch, lower=Pointwise(ScalarOp.NEG), splat=True, prepared=by_ufunc(np.negative),
)  # fmt: skip


def divide(x: Any, y: Any) -> Any:
    """Divide NumPy arrays, bit-identical to compiled loops. Integers round towards zero."""
    if dtypes.is_integer(x.dtype):
        return truncated_division(x, y)[0]
    return quotient(x, y) if x.dtype.kind == "c" else np.divide(x, y)


def truncated_division(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the quotient, rounded towards zero, and the remainder, with the special cases of `ir.scalar`."""
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
    name="div", infer=pointwise_infer("div", "ifc"), reference=divide,
    jvp=per_operand(
        lambda ctx, dx, x, y: div(dx, y),
        lambda ctx, dy, x, y: mul(neg(div(ctx.outputs[0], y)), dy),
    ),
    transpose=lambda ctx, cts, xs: [div(cts[0], xs[1]), None],
    batch=pointwise_batch, lower=Pointwise(ScalarOp.DIV), splat=True, prepared=by_ufunc(np.divide, "f"),
)  # fmt: skip


def _extreme(function: Callable[..., Any], of_zeros: Callable[..., Any]) -> Rule:
    """Make a reference from np.maximum or np.minimum with -0 below +0. NumPy returns either zero."""

    def reference(x: Any, y: Any) -> Any:
        found = function(x, y)
        if found.dtype.kind in "biuc":
            return found
        zeros = found == 0
        return np.where((x == 0) & (y == 0), of_zeros(x, y), found) if zeros.any() else found

    return reference


def _share(z: Operand, x: Operand, other: Operand) -> Any:
    """Return the share of a tangent that x has in the extreme z: 1, 0, or 1/2 where x and `other` tie."""
    return select(eq(x, z), select(eq(other, z), _like(z, 0.5), _like(z, 1)), 0)


def _like(z: Operand, value: float) -> Any:
    return coerce("select", (z, value))[1]


_MAX_REFERENCE = _extreme(np.maximum, lambda x, y: x + y)
_MIN_REFERENCE = _extreme(np.minimum, lambda x, y: -(-x - y))

max_p = Primitive(
    name="max", infer=pointwise_infer("max", "bifc"), reference=_MAX_REFERENCE,
    jvp=per_operand(
        lambda ctx, dx, x, y: mul(dx, _share(ctx.outputs[0], x, y)),
        lambda ctx, dy, x, y: mul(dy, _share(ctx.outputs[0], y, x)),
    ),
    transpose=NoRule("max is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.MAX), splat=True, commutative=True,
)  # fmt: skip

min_p = Primitive(
    name="min", infer=pointwise_infer("min", "bifc"), reference=_MIN_REFERENCE,
    jvp=per_operand(
        lambda ctx, dx, x, y: mul(dx, _share(ctx.outputs[0], x, y)),
        lambda ctx, dy, x, y: mul(dy, _share(ctx.outputs[0], y, x)),
    ),
    transpose=NoRule("min is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.MIN), splat=True, commutative=True,
)  # fmt: skip


def _below(x: Any, y: Any) -> Any:
    """Return x < y, for complex numbers in the order of `max`: they have no `lt`."""
    return and_(eq(max(x, y), y), ne(x, y)) if dtypes.is_complex(y.type.dtype) else lt(x, y)


clamp_p = Primitive(
    name="clamp", infer=pointwise_infer("clamp", "bifc"),
    reference=lambda low, x, high: _MIN_REFERENCE(_MAX_REFERENCE(low, x), high),
    jvp=per_operand(
        lambda ctx, dx, low, x, high: select(and_(_below(x, low), _below(low, high)), dx, 0),
        lambda ctx, dx, low, x, high: select(and_(_below(low, x), _below(x, high)), dx, 0),
        lambda ctx, dx, low, x, high: select(_below(high, max(low, x)), dx, 0),
    ),
    transpose=NoRule("clamp is not linear"),
    batch=pointwise_batch, lower=Composite(lambda low, x, high: min(max(low, x), high), computes=True), splat=True,
)  # fmt: skip


def add(x: Value, y: Value) -> Any:
    """Add: x + y. Integers wrap, bool is `or`.

    x, y: numbers or bool [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError if the dtypes differ, ShapeError if the shapes differ.

    >>> add(tnp.asarray([1.0, 2.0]), 0.5)
    Array([1.5, 2.5], f64)
    """
    return pointwise(add_p, x, y)


def sub(x: Value, y: Value) -> Any:
    """Subtract: x - y. Integers wrap.

    x, y: numbers [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> sub(tnp.asarray([1.0, 2.0]), 0.5)
    Array([0.5, 1.5], f64)
    """
    return pointwise(sub_p, x, y)


def mul(x: Value, y: Value) -> Any:
    """Multiply: x * y. Integers wrap, bool is `and`.

    x, y: numbers or bool [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError if the dtypes differ, ShapeError if the shapes differ.

    >>> mul(tnp.asarray([1.0, 2.0]), 3.0)
    Array([3., 6.], f64)
    """
    return pointwise(mul_p, x, y)


def neg(x: Value) -> Any:
    """Negate: -x. Integers wrap, so the lowest integer stays itself.

    x: numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> neg(tnp.asarray([1.0, -2.0]))
    Array([-1.,  2.], f64)
    """
    return pointwise(neg_p, x)


def div(x: Value, y: Value) -> Any:
    """Divide: x / y. Integers round towards zero, with x / 0 = -1 (all bits set).

    x, y: numbers [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> div(tnp.asarray([7, -7, 1]), tnp.asarray([2, 2, 0]))
    Array([ 3, -3, -1], i64)
    """
    return pointwise(div_p, x, y)


def reciprocal(x: Value) -> Any:
    """Compute 1 / x.

    x: floats or complex numbers [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> reciprocal(tnp.asarray([2.0, 0.0]))
    Array([0.5, inf], f64)
    """
    operand = operand_of("reciprocal", x)
    check_kinds("reciprocal", (operand.type,), "fc")
    one = Literal(operand.type.dtype.type(1), operand.type) if isinstance(operand, Literal) else 1
    return div(one, operand)


def max(x: Value, y: Value) -> Any:
    """Return the larger of x and y. NaN if either is; -0 < +0. Complex numbers compare by real, then imaginary part.

    Where x and y tie, each gets half of the derivative.

    x, y: numbers or bool [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError if the dtypes differ, ShapeError if the shapes differ.

    >>> max(tnp.asarray([1.0, 3.0]), 2.0)
    Array([2., 3.], f64)
    """
    return pointwise(max_p, x, y)


def min(x: Value, y: Value) -> Any:
    """Return the smaller of x and y. NaN if either is; -0 < +0. Complex numbers compare by real, then imaginary part.

    Where x and y tie, each gets half of the derivative.

    x, y: numbers or bool [*s] of one dtype, or one a Python scalar or an array []. Returns the same dtype, [*s]. Raises
    DTypeError if the dtypes differ, ShapeError if the shapes differ.

    >>> min(tnp.asarray([1.0, 3.0]), 2.0)
    Array([1., 2.], f64)
    """
    return pointwise(min_p, x, y)


def clamp(min: Value, x: Value, max: Value) -> Any:
    """Clamp `x` to [`min`, `max`]: the smaller of `max` and (the larger of `min` and `x`). NaN anywhere gives NaN.

    x: an array [*s]; min, max: of its dtype, [*s] or []. Returns x's type, [*s]. Raises DTypeError if the dtypes
    differ, ShapeError for bounds of another shape.

    >>> clamp(0.0, tnp.asarray([-1.0, 0.5, 2.0]), 1.0)
    Array([0. , 0.5, 1. ], f64)
    """
    low, operand, high = coerce("clamp", (min, x, max))
    return pointwise(clamp_p, _spread(low, operand), operand, _spread(high, operand))


def _spread(bound: Operand, x: Operand) -> Operand:
    """Broadcast a bound without axes to the shape of x."""
    if isinstance(bound, Array) and isinstance(x, Array) and not bound.shape:
        spread: Operand = broadcast_in_dim(bound, x.shape, ())
        return spread
    return bound


ARITHMETIC = (add_p, sub_p, mul_p, neg_p, div_p, max_p, min_p, clamp_p)
