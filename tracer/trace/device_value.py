"""Values on a device, which an Array holds in place of a NumPy array."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tracer.ir.dtypes import DType
from tracer.ir.types import Shape

Value = np.ndarray[Any, Any]


class Place(Protocol):
    """Device, as values know it."""

    def wait(self, value: DeviceValue) -> None:
        """Wait until the value is computed. Raises the faults of its programs."""

    def shared(self, value: DeviceValue) -> Any:
        """Wait until the value is computed. Return an array of NumPy or CuPy on its memory."""

    def fetch(self, value: DeviceValue) -> Value:
        """Wait until the value is computed, and return it as a NumPy array. Raises the faults of its programs."""


class DeviceValue:
    """Elements in the memory of a device, perhaps still being computed.

    shape, dtype: of the storage, as NumPy's. memory: the driver's object. checks: the programs whose faults make the
    value wrong, not yet looked at. is_lent: whether another library may hold the memory, too.
    """

    __slots__ = ("_host", "checks", "dtype", "is_lent", "memory", "place", "shape")

    def __init__(self, place: Place, memory: Any, dtype: DType, shape: Shape, checks: tuple[Any, ...] = ()) -> None:
        self.place = place
        self.memory = memory
        self.dtype = dtype
        self.shape = shape
        self.checks = checks
        self.is_lent = False
        self._host: Value | None = None

    @property
    def size(self) -> int:
        """Count of the elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def ndim(self) -> int:
        """Count of the axes."""
        return len(self.shape)

    def wait(self) -> None:
        """Wait until the value is computed. Raises the faults of the programs that computed it."""
        self.place.wait(self)

    def host(self) -> Value:
        """Return the value as a NumPy array, copied once. Raises the faults of the programs that computed it."""
        if self._host is None:
            self._host = self.place.fetch(self)
            self._host.flags.writeable = False
        return self._host

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Value:
        return np.array(self.host(), dtype, copy=copy)

    def __repr__(self) -> str:
        return f"DeviceValue({self.dtype}{list(self.shape)} on {self.place})"
