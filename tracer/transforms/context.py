"""The context that rules receive: the equation's primitive and outputs, and the transforms for nested programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracer.ir.primitive import Primitive, Zero
from tracer.ir.program import Literal
from tracer.ir.types import Float0Type, Type, storage_type
from tracer.primitives.arithmetic import add
from tracer.primitives.shapes import broadcast_in_dim, moveaxis
from tracer.trace.array import Array
from tracer.trace.trace import Operand, as_literal, bind_all


class Context:
    """What a rule may ask for.

    primitive: the equation's. outputs: the primal outputs, for tangent-only jvp rules.
    size, axis_name: of the batch, in batch rules.
    """

    __slots__ = ("axis_name", "outputs", "primitive", "size")

    def __init__(
        self, primitive: Primitive, outputs: Sequence[Operand] = (), *, size: int = 0, axis_name: object = None
    ) -> None:
        self.primitive = primitive
        self.outputs = outputs
        self.size = size
        self.axis_name = axis_name

    bind_all = staticmethod(bind_all)
    add = staticmethod(add)

    def zeros(self, type: Type) -> Array:
        """An array of zeros of the type."""
        return zeros(type)

    def instantiate(self, x: Operand | Zero) -> Operand:
        """A symbolic zero as an array; anything else as it is."""
        return zeros(x.type) if isinstance(x, Zero) else x

    def to_front(self, x: Operand, axis: int | None) -> Array:
        """The operand with its batch axis first; broadcast along a new one where it has none."""
        return to_front(x, axis, self.size)


def zeros(type: Type) -> Array:
    """An array of zeros of the type (of its storage, for types that are no numbers)."""
    storage = storage_type(type)
    assert not isinstance(type, Float0Type)
    return broadcast_in_dim(as_literal(storage.dtype.type(0), storage.dtype), storage.shape, ())


def to_front(x: Operand, axis: int | None, size: int) -> Array:
    """Move the batch axis to the front, or broadcast along a new one."""
    if axis is None:
        shape = () if isinstance(x, Literal) else x.shape
        return broadcast_in_dim(x, (size, *shape), tuple(range(1, len(shape) + 1)))
    assert isinstance(x, Array)
    return moveaxis(x, axis, 0)


Params = Mapping[str, Any]
