"""Parts of rules that most primitives share: checks of types, binding, derivatives, batching."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tracer.errors import ArgumentError, DTypeError, NoRuleError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Linear, Primitive, Rule, Zero
from tracer.ir.program import Literal
from tracer.ir.types import ArrayType, Type, array_type, tangent_type
from tracer.trace.array import Array, concrete, require_concrete
from tracer.trace.source import here
from tracer.trace.trace import Operand, as_literal, bind, execute

Scalar = bool | int | float | complex | np.generic
Value = Operand | Scalar
Tangent = Operand | Zero

# Types of pointwise operations

_KIND_WORDS = {"b": "bool", "i": "integers", "f": "floats", "c": "complex numbers"}


def kind_of(dtype: DType) -> str:
    """Return the kind of a dtype as one letter: `b`ool, `i`nteger (signed or not), `f`loat, `c`omplex."""
    if dtypes.is_float(dtype):
        return "f"
    if dtypes.is_integer(dtype):
        return "i"
    return "c" if dtypes.is_complex(dtype) else "b"


def check_kinds(name: str, types: Sequence[Type], kinds: str) -> None:
    """Raise DTypeError unless every type is an array whose dtype is of one of `kinds`."""
    for type in types:
        if not isinstance(type, ArrayType) or kind_of(type.dtype) not in kinds:
            wanted = ", ".join(_KIND_WORDS[k] for k in kinds)
            if not isinstance(type, ArrayType):
                remedy = "see tracer.random.key_data"
            elif kind_of(type.dtype) == "c" and "f" in kinds:
                remedy = "take its .real, .imag or abs(...)"
            else:
                remedy = "cast the operand with .astype(...)"
            raise DTypeError(message(f"{name}{here()} takes {wanted}", f"got {type}", help=remedy))


def same_types(name: str, types: Sequence[Type]) -> ArrayType:
    """Return the common type of operands that must agree in shape and dtype. It is weak if all of them are."""
    first = types[0]
    assert isinstance(first, ArrayType)
    weak = first.weak
    for other in types[1:]:
        assert isinstance(other, ArrayType)
        if other.shape != first.shape:
            raise ShapeError(
                message(
                    f"{name}{here()}: operands must have equal shapes",
                    f"got {' and '.join(map(str, types))}",
                    help="tracer.numpy's functions broadcast; here, broadcast or reshape the operands yourself",
                )
            )
        weak = weak and other.weak
    check_same_dtype(name, types)
    return array_type(first.dtype, first.shape, weak)


def check_same_dtype(name: str, types: Sequence[Type]) -> None:
    """Raise DTypeError unless all arrays among the types have one dtype."""
    if len({type.dtype for type in types if isinstance(type, ArrayType)}) > 1:
        raise DTypeError(
            message(
                f"{name}{here()}: operands must have equal dtypes",
                f"got {' and '.join(map(str, types))}",
                help="tracer.numpy's functions promote; here, cast one operand with .astype(...)",
            )
        )


def by_ufunc(ufunc: Rule, kinds: str = "biuf") -> Rule:
    """Make the `prepared` rule of a pointwise primitive whose reference is NumPy's ufunc for dtypes of these kinds.

    The ufunc makes a new C-contiguous array of arrays with axes.
    """

    def prepared(*types: Type) -> Rule | None:
        plain = all(isinstance(t, ArrayType) and t.dtype.kind in kinds for t in types)
        return ufunc if plain and any(t.shape for t in types) else None

    return prepared


def pointwise_infer(name: str, kinds: str, *, result: Callable[[DType], DType] | None = None) -> Rule:
    """Make the `infer` rule of a pointwise primitive: operands of one type and of `kinds`.

    result: maps the operands' dtype to the result's; by default they are equal.
    """

    def infer(*types: Type) -> Type:
        check_kinds(name, types, kinds)
        common = same_types(name, types)
        if result is None:
            return common
        return array_type(result(common.dtype), common.shape, common.weak)

    return infer


# Calling pointwise primitives


def coerce(name: str, operands: Sequence[Value]) -> list[Operand]:
    """Turn Python and NumPy scalars among `operands` into literals of the dtype of the arrays.

    Python scalars stay weak beside weak arrays, so that the result stays weak.
    """
    model: Array | Literal | None = next((x for x in operands if isinstance(x, Array)), None)
    if model is None:
        model = next((x for x in operands if isinstance(x, Literal)), None)
    if model is None:
        return [operand_of(name, x) for x in operands]
    type_ = model.type
    if isinstance(type_, ArrayType) and type_.weak:
        return [_weak(x, type_.dtype) if type(x) in _NUMBERS else operand_of(name, x, type_.dtype) for x in operands]
    dtype = model.dtype if isinstance(model, Array) else model.type.dtype
    return [operand_of(name, x, dtype) for x in operands]


_NUMBERS = (int, float, complex)


def _weak(x: Any, dtype: DType) -> Literal:
    return Literal(as_literal(x, dtype).value, array_type(dtype, (), True))


def operand_of(name: str, x: Value | Linear, dtype: DType | None = None) -> Operand:
    """Return an array or literal as it is, and a scalar as a literal of `dtype`. Raises ArgumentError otherwise."""
    if isinstance(x, Array | Literal):
        return x
    if isinstance(x, bool | int | float | complex | np.generic):
        return as_literal(x, dtype)
    if isinstance(x, Linear):
        _raise_both_linear(name)
    raise ArgumentError(
        message(
            f"{name}{here()} takes arrays and scalars",
            f"got {type(x).__name__}",
            help="convert it with tracer.numpy.asarray",
        )
    )


def one_linear(name: str, xs: Sequence[Any]) -> Sequence[Any]:
    """Return the operands of a product. Raises NoRuleError if more than one of them is linear."""
    if sum(map(is_linear, xs)) > 1:
        _raise_both_linear(name)
    return xs


def _raise_both_linear(name: str) -> NoReturn:
    raise NoRuleError(
        message(
            f"transpose of {name}{here()}: it is linear in each operand, but not in both together",
            help="vjp differentiates functions that are not linear",
        )
    )


def pointwise(primitive: Primitive, *operands: Value, **params: Any) -> Any:
    """Bind a pointwise primitive. Operands that are all literals give a literal, computed at once."""
    coerced = coerce(primitive.name, operands)
    if all(isinstance(x, Literal) for x in coerced):
        return fold_literals(primitive, coerced, params)
    return bind(primitive, *coerced, **params)


def fold_literals(primitive: Primitive, operands: Sequence[Operand], params: dict[str, Any]) -> Literal:
    """Evaluate a pointwise primitive on literals."""
    (result,) = computed(primitive, [x for x in operands if isinstance(x, Literal)], params)
    return result


def computed(primitive: Primitive, literals: Sequence[Literal], params: Mapping[str, Any]) -> list[Literal]:
    """Return a primitive's outputs on literals, executed outside every trace, so that they equal compiled results."""
    arrays = [concrete(np.asarray(x.value, x.type.dtype), x.type.weak) for x in literals]
    outputs = execute(primitive, arrays, params)
    return [Literal(require_concrete(y)[()], y.type) for y in outputs if isinstance(y.type, ArrayType)]


# Derivatives


def per_operand(*rules: Rule | None) -> Rule:
    """Make a jvp rule from one formula per operand: rule(ctx, dx, *xs, **params) -> the operand's part of dy.

    None marks an operand without a derivative. For primitives with one output.
    """

    def jvp(ctx: Any, xs: Sequence[Operand], dxs: Sequence[Tangent], **params: Any) -> list[Tangent]:
        parts = [
            rule(ctx, dx, *xs, **params)
            for rule, dx in zip(rules, dxs, strict=True)
            if rule is not None and not isinstance(dx, Zero)
        ]
        parts = [part for part in parts if not isinstance(part, Zero)]
        if not parts:
            return [Zero(tangent_type(ctx.outputs[0].type))]
        total = parts[0]
        for part in parts[1:]:
            total = ctx.add(total, part)
        return [total]

    return jvp


def linear_jvp(ctx: Any, xs: Sequence[Operand], dxs: Sequence[Tangent], **params: Any) -> list[Tangent]:
    """Push tangents through the primitive itself. For primitives that are linear in all operands together."""
    if all(isinstance(dx, Zero) for dx in dxs):
        return [Zero(tangent_type(ctx.outputs[0].type))]
    return list(ctx.bind_all(ctx.primitive, [_dense(ctx, x, dx) for x, dx in zip(xs, dxs, strict=True)], params))


def _dense(ctx: Any, x: Operand, dx: Tangent) -> Operand:
    """Return a tangent as an operand. The zero tangent of a literal is a literal, which fits any shape."""
    if isinstance(x, Literal) and isinstance(dx, Zero):
        return as_literal(0, x.type.dtype)
    dense: Operand = ctx.instantiate(dx)
    return dense


def zero_jvp(ctx: Any, xs: Sequence[Operand], dxs: Sequence[Tangent], **params: Any) -> list[Tangent]:
    """Return zero tangents. For outputs that are locally constant: comparisons, floor, sign, integer results."""
    return [Zero(tangent_type(y.type)) for y in ctx.outputs]


def is_linear(x: object) -> bool:
    """Return whether a transpose rule's operand is one to transpose with respect to."""
    return isinstance(x, Linear)


# Batching


def pointwise_batch(
    ctx: Any, xs: Sequence[Operand], axes: Sequence[int | None], **params: Any
) -> tuple[list[Any], list[int | None]]:
    """Align the operands on one batch axis. Unbatched operands are broadcast along it."""
    positions = {axis for axis in axes if axis is not None}
    arrays_batched = all(axis is not None or isinstance(x, Literal) for x, axis in zip(xs, axes, strict=True))
    if len(positions) == 1 and arrays_batched:
        axis = positions.pop()
        moved = list(xs)
    else:
        axis = 0
        moved = [x if isinstance(x, Literal) else ctx.to_front(x, a) for x, a in zip(xs, axes, strict=True)]
    outputs = ctx.bind_all(ctx.primitive, moved, params)
    return outputs, [axis] * len(outputs)


def axis_after_drop(axis: int, dropped: Sequence[int]) -> int:
    """Return the index of a batch axis after other axes are reduced away."""
    return axis - sum(d < axis for d in dropped)


def shift_axes(axes: Sequence[int], batch_axis: int) -> tuple[int, ...]:
    """Return axes of one example as axes of the batch, which has `batch_axis` inserted."""
    return tuple(a + (a >= batch_axis) for a in axes)


# References


def quiet(function: Callable[..., Any]) -> Rule:
    """Make a reference that computes without NumPy's warnings: NaN and infinity are ordinary values here."""

    def reference(*arrays: Any, **params: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arrays, **params)

    return reference
