"""Stacks of run-time length: storage for the residuals of a loop with an unknown trip count.

A stack holds equal items. Beyond its length it holds zeros without end, so that the cotangent of a stack may start
empty. Reading there gives zeros, writing there extends it. All operations are linear in stacks and items together, and
each is the transpose of another:

    push <-> pop          item <-> add_at        put <-> put and item        add_stacks <-> fan-out
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import InternalError
from tracer.ir import dtypes
from tracer.ir.primitive import Linear, NoRule, Onto, Primitive, Structured, Zero
from tracer.ir.program import Equation, Literal, Var
from tracer.ir.types import StackType, Type, array_type, storage_type, tangent_type, with_shape
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.nested_programs import Axes
from tracer.trace.array import Array, traced
from tracer.trace.trace import Operand, bind, bind_all

Stack = np.ndarray[Any, Any]  # the reference's stacks: items along the leading axis


def _item_type(stack: Type) -> Type:
    if not isinstance(stack, StackType):
        raise InternalError(f"a stack was expected, not {stack}")
    return stack.item


def _lead(ctx: Any, stack: Any, axis: int | None) -> Any:
    """Return the stack with batched items, batch axis first."""
    return stack if axis is not None else spread(stack, ctx.size)


# empty, spread


def _empty_reference(*, item: Type) -> Stack:
    storage = storage_type(item)
    return np.zeros((0, *storage.shape), storage.dtype)


empty_p = Primitive(
    name="stack_empty", infer=lambda *, item: StackType(item), reference=_empty_reference,
    jvp=NoRule("an empty stack has no operands"), transpose=NoRule("an empty stack has no operands"),
    batch=NoRule("an empty stack has no operands"), lower=Structured("stack_empty"),
    laws={"batch": "there is no operand to batch"},
)  # fmt: skip


def empty(item: Type) -> Array:
    """Return a stack of zeros."""
    return bind(empty_p, item=item)


spread_p = Primitive(
    name="stack_spread",
    infer=lambda stack, *, size, axis: with_shape(stack, (*stack.item.shape[:axis], size, *stack.item.shape[axis:])),
    reference=lambda stack, *, size, axis: np.repeat(np.expand_dims(stack, axis + 1), size, axis + 1),
    jvp=lambda ctx, xs, dxs, *, size, axis: [spread(dxs[0], size, axis)],
    transpose=NoRule("stacks are batched before they are transposed"),
    batch=lambda ctx, xs, axes, *, size, axis: ([spread(xs[0], size, axis + 1)], [0]), lower=Structured("stack_spread"),
    laws={"transpose": "stacks are batched before they are transposed"},
)  # fmt: skip


def spread(stack: Operand, size: int, axis: int = 0) -> Array:
    """Broadcast every item along a new axis, by default the leading one: an unbatched stack becomes a batched one.

    A stack that a batch already spread, such as the cotangents' stack in `jacrev`, is spread behind its batch axis.
    """
    if _is_empty(stack):
        item = _item_type(stack.type)
        return empty(with_shape(item, (*item.shape[:axis], size, *item.shape[axis:])))
    return bind(spread_p, stack, size=size, axis=axis)


def _is_empty(stack: Operand) -> bool:
    """Return whether the stack is known to be empty."""
    if not isinstance(stack, Array) or stack._trace is None:
        return False
    equation = _definition(stack._trace.equations, stack._atom)
    return equation is not None and equation.primitive is empty_p


def _definition(equations: Sequence[Equation], atom: Any) -> Equation | None:
    """Return the equation that made a value, if it is among these."""
    return next((e for e in reversed(equations) if atom in e.outputs), None)


# push, pop


def _push_infer(stack: Type, item: Type) -> Type:
    if _item_type(stack) != item:
        raise InternalError(f"push of {item} to {stack}")
    return stack


def _push_jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
    if all(isinstance(dx, Zero) for dx in dxs):
        return [Zero(tangent_type(xs[0].type))]
    stack = ctx.instantiate(dxs[0])
    return [push(stack, ctx.instantiate(dxs[1]))]


def _push_transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    stack, item = pop(cts[0])
    return [stack if isinstance(xs[0], Linear) else None, item if isinstance(xs[1], Linear) else None]


def _push_batch(ctx: Any, xs: Sequence[Any], axes: Axes) -> Any:
    return [push(_lead(ctx, xs[0], axes[0]), ctx.to_front(xs[1], axes[1]))], [0]


push_p = Primitive(
    name="stack_push", infer=_push_infer, reference=lambda stack, item: np.concatenate([stack, np.asarray(item)[None]]),
    jvp=_push_jvp, transpose=_push_transpose, batch=_push_batch, lower=Structured("stack_push"),
)  # fmt: skip


def push(stack: Operand, item: Operand) -> Array:
    """Return the stack with one more item on top."""
    return bind(push_p, stack, item)


def _pop_transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    return [push(ctx.instantiate(cts[0]), ctx.instantiate(cts[1]))]


def _pop_reference(stack: Stack) -> tuple[Stack, Any]:
    return stack[:-1], stack[-1] if len(stack) else np.zeros(stack.shape[1:], stack.dtype)


pop_p = Primitive(
    name="stack_pop", infer=lambda stack: (stack, _item_type(stack)), reference=_pop_reference,
    jvp=lambda ctx, xs, dxs: pop(dxs[0]), transpose=_pop_transpose,
    batch=lambda ctx, xs, axes: (pop(xs[0]), [0, 0]), lower=Structured("stack_pop"), multiple=True,
)  # fmt: skip


def pop(stack: Operand) -> list[Array]:
    """Return the stack without its top item, and that item."""
    return bind_all(pop_p, [stack], {})


# item, add_at


def _item_infer(stack: Type, index: Type) -> Type:
    if index != array_type(dtypes.I64, ()):
        raise InternalError(f"a stack's index is i64[], not {index}")
    return _item_type(stack)


def _item_reference(stack: Stack, index: Any) -> Any:
    return stack[int(index)] if index < len(stack) else np.zeros(stack.shape[1:], stack.dtype)


def _item_transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    return [Onto(xs[0].type, lambda total: add_at(total, xs[1], cts[0])), None]


def _item_batch(ctx: Any, xs: Sequence[Any], axes: Axes) -> Any:
    if axes[1] is not None:
        raise InternalError("stacks are read at the same step by every lane")
    return [item(xs[0], xs[1])], [0]


item_p = Primitive(
    name="stack_item", infer=_item_infer, reference=_item_reference,
    jvp=lambda ctx, xs, dxs: [item(dxs[0], xs[1])],
    transpose=_item_transpose, batch=_item_batch, lower=Structured("stack_item"),
)  # fmt: skip


def item(stack: Operand, index: Operand) -> Array:
    """Return the item that was pushed `index`-th, from 0. Zeros beyond the length."""
    return bind(item_p, stack, index)


def _add_at_reference(stack: Stack, index: Any, value: Any) -> Stack:
    grown = _grown(stack, int(index) + 1)
    grown[int(index)] += value
    return grown


def _grown(stack: Stack, length: int) -> Stack:
    """Return a copy of the stack, extended with zeros to `length` at least."""
    grown = np.zeros((max(len(stack), length), *stack.shape[1:]), stack.dtype)
    grown[: len(stack)] = stack
    return grown


def _add_at_jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
    if isinstance(dxs[2], Zero):
        return [dxs[0]]
    stack = ctx.instantiate(dxs[0])
    return [add_at(stack, xs[1], dxs[2])]


def _add_at_transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    (ct,) = cts
    return [
        ct if isinstance(xs[0], Linear) else None, None, item(ct, xs[1]) if isinstance(xs[2], Linear) else None,
    ]  # fmt: skip


add_at_p = Primitive(
    name="stack_add_at", infer=lambda stack, index, value: stack, reference=_add_at_reference,
    jvp=_add_at_jvp, transpose=_add_at_transpose,
    batch=lambda ctx, xs, axes: ([add_at(_lead(ctx, xs[0], axes[0]), xs[1], ctx.to_front(xs[2], axes[2]))], [0]),
    lower=Structured("stack_add_at"),
)  # fmt: skip


def add_at(stack: Operand, index: Operand, value: Operand) -> Array:
    """Return the stack with a value added to its `index`-th item."""
    return bind(add_at_p, stack, index, value)


# put


def _put_reference(stack: Stack, index: Any, value: Any) -> Stack:
    grown = _grown(stack, int(index) + 1)
    grown[int(index)] = value
    return grown


def _put_jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
    if isinstance(dxs[0], Zero) and isinstance(dxs[2], Zero):
        return [Zero(tangent_type(xs[0].type))]
    return [put(ctx.instantiate(dxs[0]), xs[1], ctx.instantiate(dxs[2]))]


def _put_transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    (ct,) = cts
    value = item(ct, xs[1]) if isinstance(xs[2], Linear) else None  # read before ct is overwritten, or ct is copied
    rest = put(ct, xs[1], ctx.zeros(_item_type(ct.type))) if isinstance(xs[0], Linear) else None
    return [rest, None, value]


put_p = Primitive(
    name="stack_put", infer=lambda stack, index, value: stack, reference=_put_reference,
    jvp=_put_jvp, transpose=_put_transpose,
    batch=lambda ctx, xs, axes: ([put(_lead(ctx, xs[0], axes[0]), xs[1], ctx.to_front(xs[2], axes[2]))], [0]),
    lower=Structured("stack_put"),
)  # fmt: skip


def put(stack: Operand, index: Operand, value: Operand) -> Array:
    """Return the stack with its `index`-th item replaced."""
    return bind(put_p, stack, index, value)


# sums of stacks


def _sum_reference(a: Stack, b: Stack) -> Stack:
    return _grown(a, len(b)) + _grown(b, len(a))


def _sum_jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
    if isinstance(dxs[0], Zero):
        return [dxs[1]]
    return [dxs[0]] if isinstance(dxs[1], Zero) else [add_stacks(*dxs)]


add_stacks_p = Primitive(
    name="stack_sum", infer=lambda a, b: a, reference=_sum_reference,
    jvp=_sum_jvp, transpose=lambda ctx, cts, xs: [cts[0] if isinstance(x, Linear) else None for x in xs],
    batch=lambda ctx, xs, axes: ([add_stacks(*(_lead(ctx, x, a) for x, a in zip(xs, axes, strict=True)))], [0]),
    lower=Structured("stack_sum"), commutative=True,
)  # fmt: skip


def add_stacks(a: Operand, b: Operand) -> Operand:
    """Add stacks item by item, the shorter one extended with zeros.

    If one is a few items on an empty stack, these are added to the other one by one. Else a loop whose steps each add
    to one item would take quadratic time.
    """
    for whole, few in ((a, b), (b, a)):
        items = _items_added(few)
        if items is not None:
            total = whole
            for index, value in items:
                total = add_at(total, index, value)
            return total
    return bind(add_stacks_p, a, b)


def _items_added(stack: Operand) -> list[tuple[Operand, Operand]] | None:
    """Return the (index, value) pairs of a stack known to be an empty one with values added, else None."""
    if not isinstance(stack, Array) or stack._trace is None:
        return None
    trace, atom = stack._trace, stack._atom
    found: list[tuple[Operand, Operand]] = []
    while True:
        equation = _definition(trace.equations, atom)
        if equation is None or equation.primitive not in (add_at_p, empty_p):
            return None
        if equation.primitive is empty_p:
            return found[::-1]
        below, *added = equation.inputs
        assert isinstance(below, Var)  # no literal is a stack
        atom = below
        index, value = (a if isinstance(a, Literal) else traced(trace, a) for a in added)
        found.append((index, value))


def filled(type: Type) -> Array:
    """Return the zero of any type: for stacks, the empty one."""
    return empty(type.item) if isinstance(type, StackType) else zeros(type)


def claimed(ctx: Any, positions: Sequence[int], xs: Sequence[Any]) -> list[Any]:
    """Return the entry carries for cotangents of linear operands, which loops add to: the sums so far, or zeros."""
    totals = [(xs[i].type, ctx.claim(i)) for i in positions if isinstance(xs[i], Linear)]
    return [filled(tangent_type(type)) if total is None else total for type, total in totals]


STACKS = (empty_p, spread_p, push_p, pop_p, item_p, add_at_p, put_p, add_stacks_p)
