"""Memory of the simulated device, which knows of every byte whether something wrote it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tracer.errors import InternalError


class KernelError(InternalError):
    """Error for an access or a wait of a kernel that is wrong, with its thread and line."""


_ALIGNMENT: Final = 256  # as CUDA's allocators give
_POISON: Final = 0xFB


class DeviceMemory:
    """A flat array of the device: its elements, and a mark for every byte that holds something."""

    def __init__(self, values: np.ndarray[Any, Any], known: np.ndarray[Any, Any]) -> None:
        self.values, self.known = values, known

    @classmethod
    def empty(cls, size: int, dtype: Any) -> DeviceMemory:
        """Return memory that nothing wrote yet."""
        kind = np.dtype(dtype)
        room = np.full(int(size) * kind.itemsize + _ALIGNMENT, _POISON, np.uint8)
        start = -room.ctypes.data % _ALIGNMENT
        held = room[start : start + int(size) * kind.itemsize]
        return cls(held.view(kind), np.zeros(held.size, np.uint8))

    @classmethod
    def holding(cls, values: Any) -> DeviceMemory:
        """Return memory that holds an array's elements."""
        given = np.ascontiguousarray(values).reshape(-1)
        memory = cls.empty(given.size, given.dtype)
        memory.values[...] = given
        memory.known[...] = 1
        return memory

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements' dtype."""
        dtype: np.dtype[Any] = self.values.dtype
        return dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.values.size

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.values.nbytes

    @property
    def address(self) -> int:
        """The address of the first byte."""
        return self.values.ctypes.data

    @property
    def known_address(self) -> int:
        """The address of the first mark."""
        return self.known.ctypes.data

    def view(self, dtype: Any) -> DeviceMemory:
        """Return the same bytes as elements of another dtype."""
        return DeviceMemory(self.values.view(dtype), self.known)

    def __getitem__(self, key: Any) -> Any:
        """Return a part for a slice, an element for a number."""
        if not isinstance(key, slice):
            return self.get()[key]
        start, stop, step = key.indices(self.size)
        assert step == 1
        size = self.dtype.itemsize
        return DeviceMemory(self.values[start:stop], self.known[start * size : max(start, stop) * size])

    def get(self) -> np.ndarray[Any, Any]:
        """Return a copy on the host. Every byte must hold something."""
        return self.checked().values.copy()

    def checked(self) -> DeviceMemory:
        """Return the memory itself. Raises KernelError for a byte that nothing wrote."""
        missing = np.flatnonzero(self.known == 0)
        if missing.size:
            raise KernelError(f"element {missing[0] // self.dtype.itemsize} of {self.size} was never written")
        return self


def copy(target: DeviceMemory, source: DeviceMemory) -> None:
    """Copy bytes on the device, marks and all."""
    target.values[...] = source.values
    target.known[...] = source.known
