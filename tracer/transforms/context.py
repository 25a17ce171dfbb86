"""Context of rules: the equation's primitive and outputs, and the transform for nested programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tracer.errors import NoRuleError, message
from tracer.ir.primitive import NoRule, Primitive, Zero
from tracer.ir.program import Literal
from tracer.ir.types import StackType, Type, tangent_type
from tracer.primitives.arrays.dynamic_slice import dynamic_slice, dynamic_update_slice
from tracer.primitives.base.shapes import broadcast_in_dim, moveaxis
from tracer.primitives.control.reverse.residual_stacks import add_stacks, filled, spread
from tracer.primitives.elementwise.arithmetic import add
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind_all, stage_process

Tangent = Operand | Zero


class Context:
    """Context of a rule.

    primitive: the equation's. outputs: the primal outputs, for tangent-only jvp rules. transform: the running
    transform, program to program, for rules of primitives with nested programs. size, axis_name: of the batch, in batch
    rules. nested: in linearize rules, whether a loop, branch or call keeps the residuals, so that they need a fixed
    size. claim: in transpose rules, takes the sum of an operand's cotangents so far, by its position, or None. The
    rule's own cotangent of that operand must then include the sum.
    """

    __slots__ = ("axis_name", "claim", "nested", "outputs", "primitive", "size", "transform")

    def __init__(
        self,
        primitive: Primitive,
        outputs: Sequence[Operand] = (),
        *,
        transform: Callable[..., Any] | None = None,
        size: int = 0,
        axis_name: object = None,
        nested: bool = False,
        claim: Callable[[int], Operand | None] = lambda position: None,
    ) -> None:
        self.primitive = primitive
        self.outputs = outputs
        self.transform = transform
        self.size = size
        self.axis_name = axis_name
        self.nested = nested
        self.claim = claim

    bind_all = staticmethod(bind_all)

    @staticmethod
    def add(x: Operand, y: Operand) -> Operand:
        """Return the sum of two tangents or cotangents of one value."""
        total: Operand = add_stacks(x, y) if isinstance(x.type, StackType) else add(x, y)
        return total

    @staticmethod
    def add_slice(total: Operand, value: Array, start: Sequence[int]) -> Array:
        """Add `value` to the box of `total` that begins at `start`, in place where possible."""
        there = dynamic_slice(total, start, value.shape)
        result: Array = dynamic_update_slice(total, Context.add(there, value), start)
        return result

    @staticmethod
    def zeros(type: Type) -> Array:
        """Return an array of zeros, or an empty stack. In a linear trace, it belongs to that trace."""
        return zero_here(type)

    @staticmethod
    def instantiate(x: Tangent) -> Operand:
        """Return a symbolic zero as an array; any other tangent as it is."""
        return zero_here(x.type) if isinstance(x, Zero) else x

    def to_front(self, x: Operand, axis: int | None) -> Array:
        """Return the operand with its batch axis first; broadcast along a new one if it has none."""
        return to_front(x, axis, self.size)


def zero_here(type: Type) -> Array:
    """Return a zero of the type. If a linear trace is open, it is made there, so that it is not a residual."""
    trace, outer = state.innermost, state.staging
    if trace is None or trace is outer or trace.process is not stage_process:
        return filled(type)
    state.staging = trace
    try:
        return filled(type)
    finally:
        state.staging = outer


def to_front(x: Operand, axis: int | None, size: int) -> Array:
    """Move the batch axis to the front, or broadcast along a new one."""
    if isinstance(x.type, StackType):
        return x if axis is not None and isinstance(x, Array) else spread(x, size)
    if axis is None:
        shape = () if isinstance(x, Literal) else x.shape
        widened: Array = broadcast_in_dim(x, (size, *shape), tuple(range(1, len(shape) + 1)))
        return widened
    moved: Array = moveaxis(x, axis, 0)
    return moved


def zero_like(x: Operand) -> Zero:
    """Return the zero tangent of a value."""
    return Zero(tangent_type(x.type))


def raise_no_rule(primitive: Primitive, transform: str, rule: NoRule) -> NoReturn:
    """Raise NoRuleError for an absent rule, with the rule's reason."""
    remedy = "vjp differentiates functions that are not linear" if transform == "transpose" else None
    raise NoRuleError(message(f"{transform} of {primitive.name}{here()}: {rule.why}", help=remedy))
