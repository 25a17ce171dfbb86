"""The arena: scratch memory for values that live between the steps of a call; `arena_allocation` lets them share it."""

from __future__ import annotations

from tracer.ir.layout import byte_size, components, scalar_count
from tracer.ir.loop import Address, Buffer, Space
from tracer.ir.types import Type
from tracer.schedule.terms.value_locations import Memory

ALIGNMENT = 64


class Arena:
    """Hands out slices of one block of bytes; `size` is how many it needs in all."""

    def __init__(self) -> None:
        self.size = 0
        self._count = 0

    def allocate(self, type: Type) -> Memory:
        """Return new memory for a value."""
        dtype, _ = components(type)
        self._count += 1
        count = scalar_count(type)
        buffer = Buffer(f"t{self._count}", dtype, count, Space.ARENA, self.size, ALIGNMENT, written=True)
        self.size += aligned(byte_size(type))
        return Memory(buffer, Address(), type)


def aligned(size: int) -> int:
    """Return a size rounded up to the alignment."""
    return max(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT)
