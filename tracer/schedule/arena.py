"""The arena: scratch memory for values that live between the steps of one call, reused as their lives end."""

from __future__ import annotations

from bisect import bisect

from tracer.ir.loop import Address, Buffer, Space
from tracer.ir.types import Type
from tracer.schedule.sources import Memory, byte_size, components, scalar_count

_ALIGNMENT = 64
_SMALL = 1 << 14  # bytes of a value that does not take what others left: nests that meet nowhere may become one
_MOST_SMALL = 1 << 18  # bytes of all such values


class Arena:
    """Hands out slices of one block of bytes; `size` is how many it needs in all."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # (offset, bytes), by offset, no two adjacent
        self._taken: dict[Buffer, tuple[int, int]] = {}
        self._count = 0
        self._small = 0

    def allocate(self, type: Type) -> Memory:
        """Room for a value."""
        wanted = max(_ALIGNMENT, -(-byte_size(type) // _ALIGNMENT) * _ALIGNMENT)
        offset = self._take(wanted)
        dtype, _ = components(type)
        self._count += 1
        buffer = Buffer(f"t{self._count}", dtype, scalar_count(type), Space.ARENA, offset, _ALIGNMENT, written=True)
        self._taken[buffer] = (offset, wanted)
        return Memory(buffer, Address(), type)

    def release(self, memory: Memory) -> None:
        """The value is dead; nothing happens for memory that is not of this arena."""
        taken = self._taken.pop(memory.buffer, None)
        if taken is None:
            return
        offset, length = taken
        at = bisect(self._free, taken)
        if at < len(self._free) and self._free[at][0] == offset + length:
            length += self._free.pop(at)[1]
        if at and sum(self._free[at - 1]) == offset:
            at -= 1
            offset, before = self._free.pop(at)
            length += before
        self._free.insert(at, (offset, length))

    def _take(self, wanted: int) -> int:
        if wanted <= _SMALL and self._small + wanted <= _MOST_SMALL:
            self._small += wanted
            self.size += wanted
            return self.size - wanted
        fitting = [(length, offset) for offset, length in self._free if length >= wanted]
        if not fitting:
            offset = self.size
            if self._free and sum(self._free[-1]) == self.size:  # grow the free slice at the end
                offset = self._free.pop()[0]
            self.size = offset + wanted
            return offset
        length, offset = min(fitting)
        self._free.remove((offset, length))
        if length > wanted:
            self._free.append((offset + wanted, length - wanted))
            self._free.sort()
        return offset
