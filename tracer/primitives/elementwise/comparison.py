"""Elementwise comparison and selection: eq, ne, lt, le, gt, ge, is_finite, select, select_n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Compare, Composite, NoRule, Pointwise, Primitive, Rule, Zero
from tracer.ir.program import Literal
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, KeyType, Type, array_type, tangent_type
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.rules import (
    Value,
    check_kinds,
    coerce,
    fold_literals,
    is_linear,
    operand_of,
    pointwise,
    pointwise_batch,
    same_types,
    zero_jvp,
)
from tracer.primitives.elementwise.bits import and_
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.trace import Operand, bind

# Comparisons


def _compare_infer(name: str, kinds: str) -> Rule:
    def infer(*types: Type) -> Type:
        check_kinds(name, types, kinds)
        return array_type(dtypes.BOOL, same_types(name, types).shape)

    return infer


_NOT_LINEAR = NoRule("a comparison is not linear")

eq_p, ne_p, lt_p, le_p, gt_p, ge_p = (
    Primitive(
        name=name, infer=_compare_infer(name, kinds), reference=function, jvp=zero_jvp, transpose=_NOT_LINEAR,
        batch=pointwise_batch, lower=Compare(op), splat=True, commutative=kinds == "bifc",
    )
    for name, kinds, function, op in (
        ("eq", "bifc", np.equal, ScalarOp.EQ), ("ne", "bifc", np.not_equal, ScalarOp.NE),
        ("lt", "bif", np.less, ScalarOp.LT), ("le", "bif", np.less_equal, ScalarOp.LE),
        ("gt", "bif", np.greater, ScalarOp.GT), ("ge", "bif", np.greater_equal, ScalarOp.GE),
    )
)  # fmt: skip

is_finite_p = Primitive(
    name="is_finite", infer=_compare_infer("is_finite", "f"), reference=np.isfinite,
    jvp=zero_jvp, transpose=_NOT_LINEAR,
    batch=pointwise_batch, lower=Composite(lambda x: and_(lt(x, np.inf), gt(x, -np.inf)), computes=True), splat=True,
)  # fmt: skip


def eq(x: Value, y: Value) -> Any:
    """Compare x == y. NaN equals nothing, -0 equals +0. Complex numbers are equal if both parts are.

    x, y: numbers or bool [*s] of one dtype, or one a Python scalar or an array []. Returns bool, [*s]. Raises
    DTypeError if the dtypes differ, ShapeError if the shapes differ.

    >>> eq(tnp.asarray([1.0, 2.0]), 2.0)
    Array([False,  True], bool)
    """
    return pointwise(eq_p, x, y)


def ne(x: Value, y: Value) -> Any:
    """Compare x != y. True wherever NaN is involved.

    x, y: numbers or bool [*s] of one dtype, or one a Python scalar or an array []. Returns bool, [*s]. Raises
    DTypeError if the dtypes differ, ShapeError if the shapes differ.

    >>> ne(tnp.asarray([1.0, 2.0]), 2.0)
    Array([ True, False], bool)
    """
    return pointwise(ne_p, x, y)


def lt(x: Value, y: Value) -> Any:
    """Compare x < y. False wherever NaN is involved. Complex numbers have no order.

    x, y: real numbers or bool [*s] of one dtype, or one a Python scalar or an array []. Returns bool, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> lt(tnp.asarray([1.0, 2.0]), 2.0)
    Array([ True, False], bool)
    """
    return pointwise(lt_p, x, y)


def le(x: Value, y: Value) -> Any:
    """Compare x <= y. False wherever NaN is involved. Complex numbers have no order.

    x, y: real numbers or bool [*s] of one dtype, or one a Python scalar or an array []. Returns bool, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> le(tnp.asarray([1.0, 2.0]), 2.0)
    Array([ True,  True], bool)
    """
    return pointwise(le_p, x, y)


def gt(x: Value, y: Value) -> Any:
    """Compare x > y. False wherever NaN is involved. Complex numbers have no order.

    x, y: real numbers or bool [*s] of one dtype, or one a Python scalar or an array []. Returns bool, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> gt(tnp.asarray([2.0, 3.0]), 2.0)
    Array([False,  True], bool)
    """
    return pointwise(gt_p, x, y)


def ge(x: Value, y: Value) -> Any:
    """Compare x >= y. False wherever NaN is involved. Complex numbers have no order.

    x, y: real numbers or bool [*s] of one dtype, or one a Python scalar or an array []. Returns bool, [*s]. Raises
    DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    >>> ge(tnp.asarray([2.0, 3.0]), 2.0)
    Array([ True,  True], bool)
    """
    return pointwise(ge_p, x, y)


def is_finite(x: Value) -> Any:
    """Return whether a float is neither infinite nor NaN.

    x: floats [*s]. Returns bool, [*s]. Raises DTypeError for other dtypes.

    >>> is_finite(tnp.asarray([1.0, np.inf, np.nan]))
    Array([ True, False, False], bool)
    """
    return pointwise(is_finite_p, x)


# Selection


def _cases_type(name: str, which: Type, cases: Sequence[Type]) -> Type:
    """Return the common type of the cases. Raises ShapeError if the selector's shape does not fit."""
    first = cases[0]
    if isinstance(first, ArrayType):
        check_kinds(name, cases, "bifc")
        result: Type = same_types(name, cases)
    else:
        result = first
        if not isinstance(first, KeyType) or any(case != first for case in cases):
            raise DTypeError(
                message(
                    f"{name}{here()}: the cases must be arrays or random keys of one type",
                    f"got {' and '.join(map(str, cases))}",
                    help="random keys go with random keys of the same shape",
                )
            )
    if which.shape not in ((), result.shape):
        raise ShapeError(
            message(
                f"{name}{here()}: the selector must have the shape of the cases, or none",
                f"got a selector {which} for cases {result}",
                help="broadcast the selector to the shape of the cases",
            )
        )
    return result


def _select_infer(pred: Type, on_true: Type, on_false: Type) -> Type:
    if not (isinstance(pred, ArrayType) and dtypes.is_bool(pred.dtype)):
        raise DTypeError(
            message(f"select{here()}: the predicate must be bool", f"got {pred}", help="compare it: x != 0")
        )
    return _cases_type("select", pred, (on_true, on_false))


def _fitted(which: Any, *cases: Any) -> Any:
    """Give the selector an axis for the hidden words of random keys."""
    rank = max(case.ndim for case in cases)
    return which[..., None] if 0 < which.ndim < rank else which


def _select_reference(pred: Any, on_true: Any, on_false: Any) -> Any:
    return np.where(_fitted(pred, on_true, on_false), on_true, on_false)


def _choice_jvp(ctx: Any, xs: Sequence[Operand], dxs: Sequence[Any]) -> list[Any]:
    if all(isinstance(dx, Zero) for dx in dxs[1:]):
        return [Zero(tangent_type(ctx.outputs[0].type))]
    return [_choose(ctx.primitive, xs[0], [0 if isinstance(dx, Zero) else dx for dx in dxs[1:]])]


def _select_transpose(ctx: Any, cts: Any, xs: Any) -> list[Any]:
    (ct,), (pred, on_true, on_false) = cts, xs
    return [
        None,
        select(pred, ct, 0) if is_linear(on_true) else None,
        select(pred, 0, ct) if is_linear(on_false) else None,
    ]


def _choice_batch(
    ctx: Any, xs: Sequence[Operand], axes: Sequence[int | None], **params: Any
) -> tuple[list[Any], list[int | None]]:
    """Batch as a pointwise primitive, except that a selector without axes chooses whole examples."""
    which, *cases = xs
    which_axis, *case_axes = axes
    arrays = [(x, axis) for x, axis in zip(cases, case_axes, strict=True) if isinstance(x, Array)]
    examples = [x.shape if axis is None else (*x.shape[:axis], *x.shape[axis + 1 :]) for x, axis in arrays]
    shape = examples[0] if examples else ()
    single = isinstance(which, Array) and not which.shape[which_axis is not None :]
    if single and which_axis is None and len(arrays) == len(cases):
        positions = set(case_axes)
        axis = positions.pop() if len(positions) == 1 else 0
        moved = [x if axis == a else ctx.to_front(x, a) for x, a in zip(cases, case_axes, strict=True)]
        return ctx.bind_all(ctx.primitive, [which, *moved], params), [axis]
    if single and shape:
        spread = broadcast_in_dim(which, (ctx.size, *shape), () if which_axis is None else (0,))
        return pointwise_batch(ctx, [spread, *cases], [0, *case_axes], **params)
    return pointwise_batch(ctx, xs, axes, **params)


select_p = Primitive(
    name="select", infer=_select_infer, reference=_select_reference,
    jvp=_choice_jvp, transpose=_select_transpose,
    batch=_choice_batch, lower=Pointwise(ScalarOp.SELECT), splat=True,
)  # fmt: skip


def _select_n_infer(which: Type, *cases: Type) -> Type:
    if not (isinstance(which, ArrayType) and dtypes.is_integer(which.dtype)):
        raise DTypeError(
            message(
                f"select_n{here()}: the selector must be bool or an integer",
                f"got {which}",
                help='cast it, which.astype("int32"), or compare it',
            )
        )
    return _cases_type("select_n", which, cases)


def _select_n_reference(which: Any, *cases: Any) -> Any:
    index = _fitted(which, *cases)
    chosen = cases[-1]
    for position in range(len(cases) - 2, -1, -1):
        chosen = np.where(index <= position, cases[position], chosen)
    return chosen


def _select_n_expand(which: Operand, *cases: Operand) -> Any:
    chosen = cases[-1]
    for position in range(len(cases) - 2, -1, -1):
        chosen = select(le(which, position), cases[position], chosen)
    return chosen


def _select_n_transpose(ctx: Any, cts: Any, xs: Any) -> list[Any]:
    (ct,), (which, *cases) = cts, xs
    last = len(cases) - 1

    def chosen(position: int) -> Any:
        if position == 0:
            return le(which, 0)
        return ge(which, last) if position == last else eq(which, position)

    return [None, *(select(chosen(i), ct, 0) if is_linear(case) else None for i, case in enumerate(cases))]


select_n_p = Primitive(
    name="select_n", infer=_select_n_infer, reference=_select_n_reference,
    jvp=_choice_jvp, transpose=_select_n_transpose,
    batch=_choice_batch, lower=Composite(_select_n_expand), splat=True,
)  # fmt: skip


def _choose(primitive: Primitive, which: Operand, cases: Sequence[Value]) -> Any:
    """Bind a selection. A selector without axes is broadcast if a literal case would take its shape."""
    operands = coerce(primitive.name, cases)
    if isinstance(which, Literal) and all(isinstance(x, Literal) for x in operands):
        return fold_literals(primitive, [which, *operands], {})
    if isinstance(which, Literal) and primitive is select_p:
        chosen = operands[0 if which.value else 1]
        if isinstance(chosen, Array) and not chosen.weak_type:
            return chosen
    if isinstance(which, Array) and not which.shape and any(isinstance(x, Literal) for x in operands):
        shape = next((x.shape for x in operands if isinstance(x, Array)), ())
        which = broadcast_in_dim(which, shape, ())
    return bind(primitive, which, *operands)


def select(pred: Value, on_true: Value, on_false: Value) -> Any:
    """Select `on_true` where `pred` holds, else `on_false`. Both are computed.

    pred: bool, or an integer, which holds above 0, of the shape of the cases or []. on_true, on_false: of one shape and
    dtype; a Python scalar takes the other's.

    Returns that shape and dtype, [*s]. Raises DTypeError if the predicate is neither bool nor an integer or the cases'
    dtypes differ, ShapeError if shapes differ.

    >>> select(tnp.asarray([True, False]), tnp.asarray([1.0, 2.0]), 0.0)
    Array([1., 0.], f64)
    """
    selector = operand_of("select", pred)
    if isinstance(selector.type, ArrayType) and dtypes.is_integer(selector.type.dtype):
        return _choose(select_n_p, selector, (on_false, on_true))
    return _choose(select_p, selector, (on_true, on_false))


def select_n(which: Value, *cases: Value) -> Any:
    """Select `cases[which]` at every element. All cases are computed.

    which: an integer (clamped to the cases), or bool with two cases, the second for true; of the shape of the cases or
    []. The cases agree in shape and dtype.

    Returns that shape and dtype, [*s]. Raises DTypeError if the cases' dtypes differ, and ShapeError if shapes differ.
    Raises ArgumentError for no cases, or more than two for a bool.

    >>> select_n(tnp.asarray([2, 0]), tnp.asarray([1.0, 2.0]), tnp.asarray([3.0, 4.0]), tnp.asarray([5.0, 6.0]))
    Array([5., 2.], f64)
    """
    selector = operand_of("select_n", which)
    if not cases:
        raise ArgumentError(message(f"select_n{here()}: expected at least one case", help="pass the cases"))
    type = selector.type
    if isinstance(type, ArrayType) and dtypes.is_bool(type.dtype):
        if len(cases) == 2:
            return select(selector, cases[1], cases[0])
        if len(cases) > 2:
            raise ArgumentError(
                message(
                    f"select_n{here()}: a bool selects between two cases",
                    f"got {len(cases)}",
                    help='select with an integer, which.astype("int32")',
                )
            )
    if len(cases) == 1:
        return operand_of("select_n", cases[0])
    return _choose(select_n_p, selector, cases)


COMPARISON = (eq_p, ne_p, lt_p, le_p, gt_p, ge_p, is_finite_p, select_p, select_n_p)
