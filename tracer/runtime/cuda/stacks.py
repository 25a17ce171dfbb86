"""Growable stacks in a device's memory, whose lengths the host keeps."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracer.errors import OutOfMemoryError
from tracer.runtime.cuda.driver import Driver, Memory

_LEAST: Final = 1 << 16  # bytes of a stack's first memory, so that small items cause few copies


class Stack:
    """Items of equal size, one after another.

    Memory that is full is copied to twice as much. So kernels find an item by its number alone, and N items cause
    copies of fewer than N.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.memory: Memory = None
        self.count = 0
        self.size = 0

    def reserve(self, count: int, size: int) -> int:
        """Make room for `count` items of `size` bytes, and return the number of items that fit."""
        self.size = size
        room = 0 if self.memory is None else self.memory.nbytes // max(size, 1)
        if self.memory is None or count > room:
            room = max(count, 2 * room, _LEAST // max(size, 1))
            try:
                grown = self.driver.empty(room * size)
            except OutOfMemoryError:
                room = count
                grown = self.driver.empty(room * size)
            if self.count and size:
                used = self.count * size
                self.driver.copy(self.driver.part(grown, 0, used), self.driver.part(self.memory, 0, used))
            self.memory = grown
        return room

    def item(self, index: int) -> Memory:
        """Return the memory of an item."""
        return self.driver.part(self.memory, index * self.size, (index + 1) * self.size)

    def push(self, source: Memory) -> None:
        """Append a copy of some memory."""
        self.reserve(self.count + 1, source.nbytes)
        self.count += 1
        self.write(self.count - 1, source)

    def write(self, index: int, source: Memory) -> None:
        """Copy some memory to an item. The stack grows with zeros up to there."""
        self.reserve(max(self.count, index + 1), source.nbytes)
        if index > self.count and self.size:
            zeros = self.driver.upload(np.zeros((index - self.count) * self.size, np.uint8))
            self.driver.copy(self.driver.part(self.memory, self.count * self.size, index * self.size), zeros)
        self.count = max(self.count, index + 1)
        self.driver.copy(self.item(index), source)

    def read(self, index: int, target: Memory) -> None:
        """Copy an item to some memory; zeros beyond the stack's end."""
        inside = 0 <= index < self.count
        self.driver.copy(target, self.item(index) if inside else self.driver.upload(np.zeros(target.nbytes, np.uint8)))

    def pop(self, target: Memory) -> None:
        """Move the last item to some memory; zeros if there is none."""
        self.read(self.count - 1, target)
        self.count = max(0, self.count - 1)
