"""Locations of values: memory, registers, or inline (computed where they are read).

An element is a tuple of scalars: one for most types, two for complex numbers (real and imaginary part, interleaved in
memory) and for random keys (their two words).
"""

from __future__ import annotations

from dataclasses import dataclass

from tracer.ir.loop import Address, Buffer, Operand, View
from tracer.ir.program import Equation
from tracer.ir.types import Type

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
    """A growable stack of the call, by its index."""

    number: int


Source = Memory | Scalars | Inline | StackSource
