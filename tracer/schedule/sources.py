"""Where the schedule finds a value: in memory, in registers, or nowhere yet (computed where it is read).

An element is a tuple of scalars: one for most types, two for complex numbers (real and imaginary part, interleaved
in memory) and for random keys (their two words).
"""

from __future__ import annotations

from dataclasses import dataclass

from tracer.errors import InternalError
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.loop import Address, Buffer, Operand, View
from tracer.ir.program import Equation
from tracer.ir.types import ArrayType, Float0Type, KeyType, Type, size

Element = tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """A row-major array from `start` on; `start` counts scalars, not elements."""

    buffer: Buffer
    start: Address
    type: Type

    @property
    def view(self) -> View:
        return View(self.buffer, self.start)


@dataclass(frozen=True, slots=True)
class Scalars:
    """A value without axes, in registers or as constants."""

    element: Element


@dataclass(frozen=True, slots=True)
class Inline:
    """Computed where it is read."""

    equation: Equation
    output: int = 0


@dataclass(frozen=True, slots=True)
class StackSource:
    """A growable stack of the call, by its number."""

    number: int


Source = Memory | Scalars | Inline | StackSource


def components(type: Type) -> tuple[DType, int]:
    """The scalar dtype of an element, and how many there are."""
    match type:
        case ArrayType(dtype):
            if dtypes.is_complex(dtype):
                return dtypes.real_dtype(dtype), 2
            return dtype, 1
        case KeyType():
            return dtypes.U32, 2
        case Float0Type():
            return dtypes.BOOL, 1
        case _:
            raise InternalError(f"{type} has no elements")


def scalar_count(type: Type) -> int:
    """How many scalars the value takes in memory."""
    return size(type) * components(type)[1]


def byte_size(type: Type) -> int:
    return scalar_count(type) * components(type)[0].itemsize
