"""Devices that programs run on: NVIDIA's by CuPy, and the simulated one, `cuda-sim`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from tracer.errors import DeviceError, OutOfMemoryError, message
from tracer.ir.primitive import Primitive, Structured
from tracer.ir.program import Program, Source
from tracer.ir.types import array_type, size
from tracer.runtime.cuda.driver import DROP, CupyDriver, Driver, load_cupy
from tracer.runtime.cuda.programs import DeviceProgram
from tracer.runtime.cuda.simulator.driver import SimulatedDriver
from tracer.runtime.cuda.simulator.kernels import Counts
from tracer.runtime.eager.execute import single_equation
from tracer.runtime.system.devices import Device
from tracer.runtime.system.locks import ForkSafeLock
from tracer.trace.array import Array, concrete, follows, is_recorded, on_device
from tracer.trace.convert import native
from tracer.trace.device_trace import DeviceTrace, device_of
from tracer.trace.device_value import DeviceValue
from tracer.trace.source import here
from tracer.trace.trace import Operand, Trace, check_alive

_MAX_PROGRAMS: Final = 1024
_MAX_CHECKS: Final = 64
_DRIVERS: Final[Mapping[str, Callable[[int], Driver]]] = {
    "cuda": CupyDriver,
    "cuda-sim": lambda ordinal: SimulatedDriver(),
}


class CudaDevice(Device):
    """GPU, or its simulation. Arrays on it belong to its trace, and programs on them run there.

    >>> tracer.devices("cuda-sim")
    [CudaDevice('cuda-sim:0')]
    """

    def __init__(self, platform: str, id: int) -> None:
        self.platform = platform
        self.id = id
        self.trace = DeviceTrace(_process, self)
        self._programs: dict[Any, DeviceProgram] = {}
        self._lock = ForkSafeLock()

    @cached_property
    def driver(self) -> Driver:
        """Driver of the device, opened when it is first used."""
        return _DRIVERS[self.platform](self.id)

    @property
    def device_kind(self) -> str:  # type: ignore[override]
        """Maker's name for the device."""
        return self.driver.kind

    def memory_stats(self) -> dict[str, int]:
        """Return the bytes that arrays and running programs hold, and their peak.

        >>> sorted(tracer.devices("cuda-sim")[0].memory_stats())
        ['bytes_in_use', 'peak_bytes_in_use']
        """
        used, peak = self.driver.usage()
        return {"bytes_in_use": used, "peak_bytes_in_use": peak}

    def __repr__(self) -> str:
        return f"CudaDevice({str(self)!r})"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"

    def put(self, array: Array) -> Array:
        """Return the array on this device: itself, or a copy of an array of the host or of another device.

        Raises DeviceError for an array that a transform traces.
        """
        if array._trace is self.trace:
            return array
        if is_recorded(array):
            raise DeviceError(
                message(
                    f"device_put{here()}: a traced array does not move to {self}",
                    f"got {array.type}",
                    help="move the arguments before the call: programs run where these lie",
                )
            )
        if device_of(array) is not None:
            array = to_host(array)
        check_alive(array)
        value = array._value
        held = DeviceValue(self, self.driver.upload(np.ascontiguousarray(value)), value.dtype, value.shape)
        return on_device(self.trace, held, array.type)

    def wait(self, value: DeviceValue) -> None:
        """Wait until a value is computed. Raises the faults of its programs."""
        self.driver.synchronize()
        for check in value.checks:
            check.settle()

    def fetch(self, value: DeviceValue) -> np.ndarray[Any, Any]:
        """Wait until a value is computed, and return a copy on the host. Raises the faults of its programs."""
        self.wait(value)
        return self.driver.download(value.memory, value.dtype).reshape(value.shape)

    def shared(self, value: DeviceValue) -> Any:
        """Wait until a value is computed. Return an array of NumPy or CuPy on its memory, not to be written."""
        self.wait(value)
        value.is_lent = True
        return self.driver.shared(value.memory, value.dtype, value.shape)

    def run(self, program: Program, operands: Sequence[Array], donated: tuple[int, ...] = ()) -> list[Array]:
        """Start a program, and return its results, which may still be computed. Arrays of the host follow.

        donated: operands whose memory results may take over. Raises DeviceError for operands on another device, and
        for a program with loop nests that have no kernel.
        """
        found = self._program(program, donated)
        return self._start(found, [self.put(self.checked(program.name, x))._value for x in operands])

    def prepared(self, program: Program) -> Callable[[Sequence[DeviceValue]], list[Array]]:
        """Return the function that starts a program on values of this device."""
        return partial(self._start, self._program(program, ()))

    def _start(self, found: DeviceProgram, values: Sequence[DeviceValue]) -> list[Array]:
        try:
            memories, check = found.run([v.memory for v in values])
        except OutOfMemoryError as error:
            raise _too_large(found, error) from None
        checks = tuple({id(c): c for v in values if v.checks for c in v.checks if not c.is_settled}.values())
        if check is not None:
            checks = (*checks, check)
        if len(checks) > _MAX_CHECKS:  # of a long chain of calls whose values nobody waited for
            for each in checks:
                each.settle()
            checks = ()
        trace = self.trace
        return [
            on_device(trace, DeviceValue(self, memory, storage.dtype, storage.shape, checks), type)
            for memory, (type, storage) in zip(memories, found.outputs, strict=True)
        ]

    def checked(self, name: str, x: Array) -> Array:
        """Return an operand. Raises DeviceError if it lies on another device, or on the host and does not follow."""
        elsewhere = device_of(x)
        if elsewhere is self or follows(x):
            return x
        raise DeviceError(
            message(
                f"{name}{here()}: operands lie on two devices",
                f"got an array on {self}, and {x.type} on {elsewhere or 'cpu'}",
                help=f"move one of them: tracer.device_put(x, {str(self)!r})",
            )
        )

    def donors(self, program: Program, donated: tuple[int, ...]) -> Mapping[int, int]:
        """Return the operands whose memory results of a program take over, by result."""
        return self._program(program, donated).donors

    def _program(self, program: Program, donated: tuple[int, ...]) -> DeviceProgram:
        key = (program.lines, program, donated)  # equal programs may have different lines, which faults name
        with self._lock:
            found = self._programs.get(key)
            if found is None:
                if len(self._programs) >= _MAX_PROGRAMS:
                    self._programs.clear()
                found = self._programs[key] = DeviceProgram(program, self.driver, donated)
        return found


def _process(
    trace: Trace, primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any], source: Source | None
) -> list[Array]:
    """Run an operation on the device of its operands."""
    assert isinstance(trace, DeviceTrace)
    is_call = primitive.lower == Structured("call")
    program = params["program"] if is_call else single_equation(primitive, operands, params)
    results: list[Array] = trace.device.run(program, [x for x in operands if isinstance(x, Array)])
    return results


def _too_large(found: DeviceProgram, error: OutOfMemoryError) -> OutOfMemoryError:
    """Return the error of a program without memory: its bytes for results and temporaries, and its largest results."""
    largest = sorted(((t.dtype.itemsize * size(t), str(type)) for type, t in found.outputs), reverse=True)
    results = sum(nbytes for nbytes, _ in largest)
    asked, free, *_ = str(error).splitlines()
    taken = f"it takes {results:,} bytes for results and {found.temporary_bytes:,} for temporaries"
    shown = ", ".join(f"{type} of {nbytes:,}" for nbytes, type in largest[:3])
    text = f"{found.name}{here()}: {asked}"
    return OutOfMemoryError(message(text, free.strip(), taken, f"largest results: {shown}", help=DROP))


def to_host(array: Array) -> Array:
    """Return a copy of a device's array on the host. Waits for it."""
    return concrete(array._value.host(), array._weak, array.type)


_devices: dict[tuple[str, int], CudaDevice] = {}
_lock = ForkSafeLock()


def adopted(x: Any) -> Array:
    """Return another library's CUDA array as an array on its device. Memory in C order is not copied.

    Raises DeviceError without CuPy, DTypeError for a dtype that tracer does not have.
    """
    cupy = load_cupy()
    array = cupy.ascontiguousarray(cupy.from_dlpack(x) if hasattr(x, "__dlpack__") else cupy.asarray(x))
    device, like = device_named("cuda", int(array.device.id)), native(np.empty(0, array.dtype), "from_dlpack")
    held = DeviceValue(device, array.reshape(-1).view(np.uint8), like.dtype, tuple(array.shape))
    held.is_lent = True
    return on_device(device.trace, held, array_type(like.dtype, held.shape))


def traffic(program: Program, inputs: Sequence[np.ndarray[Any, Any]], arch: str) -> dict[str, Counts]:
    """Return the traffic of each kernel of a program, run once on the simulated device. inputs: the program's."""
    driver = SimulatedDriver(counts={})
    driver.arch = arch
    DeviceProgram(program, driver).run([driver.upload(np.ascontiguousarray(x)) for x in inputs])
    return driver.counts or {}


def cards() -> list[CudaDevice]:
    """Return NVIDIA's devices, none where CuPy is not installed or finds none."""
    try:
        count = load_cupy().cuda.runtime.getDeviceCount()
    except DeviceError:
        return []
    return [device_named("cuda", n) for n in range(count)]


def device_named(platform: str, id: int) -> CudaDevice:
    """Return a device, opened. Raises DeviceError where there is none."""
    with _lock:
        found = _devices.get((platform, id))
        if found is None:
            found = CudaDevice(platform, id)
            found.driver  # noqa: B018  # raises where there is none
            _devices[platform, id] = found
    return found
