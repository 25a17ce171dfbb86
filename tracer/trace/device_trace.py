"""Traces of devices: an operation on an array that lies on a device goes to the device, below all transforms.

A device is a trace that is always open, on every thread, and records nothing. Its `process` runs the operation there.
So `grad`, `vmap` and `jit` treat arrays on a device as they treat arrays of an enclosing trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tracer.errors import DeviceError, message
from tracer.ir.program import Program
from tracer.trace.array import Array, follows, is_recorded
from tracer.trace.device_value import DeviceValue
from tracer.trace.source import here
from tracer.trace.trace import Process, Trace, default_trace


class Device(Protocol):
    """Device, as traces know it."""

    def put(self, array: Array) -> Array:
        """Return the array on the device: itself, or a copy."""

    def run(self, program: Program, operands: Sequence[Array], donated: tuple[int, ...] = ()) -> list[Array]:
        """Start a program on arrays of the device, and arrays of the host, which follow. Return its results."""

    def prepared(self, program: Program) -> Callable[[Sequence[DeviceValue]], list[Array]]:
        """Return the function that starts a program on values of the device, and returns its results."""

    def donors(self, program: Program, donated: tuple[int, ...]) -> Mapping[int, int]:
        """Return the operands whose memory results of a program take over, by result."""

    def checked(self, name: str, x: Array) -> Array:
        """Return an operand. Raises DeviceError if it lies elsewhere and does not follow: see `follows`."""


class DeviceTrace(Trace):
    """Trace of a device. It is below every other trace, above operations on the host's arrays."""

    __slots__ = ("device",)
    is_device = True

    def __init__(self, process: Process, device: Device) -> None:
        super().__init__(process, str(device))
        self.device = device
        self.level, self.serial, self.source = 0, 0, None

    @property
    def is_here(self) -> bool:
        """Whether the trace takes operations on this thread: always."""
        return True


def device_of(array: Array) -> Any:
    """Return the device that an array lies on, None for arrays of the host and of staged programs."""
    while isinstance(array._value, Array):  # through the levels of derivatives
        array = array._value
    trace = array._trace
    return trace.device if isinstance(trace, DeviceTrace) else None


def beside(other: Any, array: Array) -> Array:
    """Return an array where another value lies: copied to its device, or itself."""
    device = device_of(other) if isinstance(other, Array) else None
    if device is None:
        return array
    there: Array = device.put(array)
    return there


def together(
    arrays: Sequence[Array], caller: str, names: Callable[[], Sequence[str]], device: Any = None
) -> list[Array]:
    """Return arrays on one device: the first array's that has one, else the default if all follow.

    caller: the call, for errors. names: of the arrays, for errors. device: the call's own, if it has one. Arrays of
    staged programs stay as they are. Raises DeviceError where other arrays lie elsewhere.
    """
    first = next((n for n, x in enumerate(arrays) if device_of(x) is not None), None)
    if device is None:
        if first is not None:
            device = device_of(arrays[first])
        elif (trace := default_trace(arrays)) is not None:
            device = trace.device
        else:
            return list(arrays)
    placed = []
    for n, array in enumerate(arrays):
        elsewhere = device_of(array)
        if follows(array):
            array = device.put(array)
        elif elsewhere is not device and not (elsewhere is None and is_recorded(array)):
            found, there = names(), elsewhere or "cpu"
            raise DeviceError(
                message(
                    f"{caller}{here()}: its arguments lie on two devices",
                    f"{'the call' if first is None else found[first]} is on {device}, {found[n]} on {there}",
                    help=f"move one of them: tracer.device_put(x, {str(device)!r})",
                )
            )
        placed.append(array)
    return placed
