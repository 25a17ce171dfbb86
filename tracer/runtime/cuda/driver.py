"""Drivers: memory, copies and launches of one device, by CuPy or on the simulator."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Protocol

import numpy as np

from tracer.codegen.cuda.nvrtc import OPTIONS
from tracer.codegen.cuda.source import Kernel
from tracer.errors import DeviceError, OutOfMemoryError, message
from tracer.ir.dtypes import BOOL, DType, is_float
from tracer.ir.types import Shape

Memory = Any
"""Bytes on a device, of a driver's own type. They are freed with the last reference, once the device has used them."""

INSTALL: Final = "pip install 'tracer[cuda]'"
DROP: Final = "drop arrays, donate arguments, or compute in parts"


class Driver(Protocol):
    """Memory and kernels of one device. All work of a driver is done in the order of the calls.

    arch: NVIDIA's name of the device's architecture, such as "sm_90". kind: the maker's name for the device.
    """

    arch: str
    kind: str

    def usage(self) -> tuple[int, int]:
        """Return the bytes in use, and their peak."""

    def empty(self, nbytes: int) -> Memory:
        """Return new memory. Raises OutOfMemoryError."""

    def upload(self, values: np.ndarray[Any, Any]) -> Memory:
        """Return new memory with the bytes of a C-contiguous array of the host."""

    def download(self, memory: Memory, dtype: DType) -> np.ndarray[Any, Any]:
        """Wait for the device, and return a flat copy on the host."""

    def shared(self, memory: Memory, dtype: DType, shape: Shape) -> Any:
        """Return an array on the memory, which has DLPack's methods: NumPy's or CuPy's."""

    def part(self, memory: Memory, start: int, stop: int) -> Memory:
        """Return the bytes from `start` to `stop`, which stay part of the memory."""

    def address(self, memory: Memory) -> int:
        """Return the address of the first byte."""

    def copy(self, target: Memory, source: Memory) -> None:
        """Copy all bytes of `source` to the memory `target` of equal size."""

    def load(self, text: str) -> Any:
        """Return the module of a CUDA source text. Raises InternalError if it does not compile."""

    def launch(self, module: Any, kernel: Kernel, arguments: Sequence[Any]) -> None:
        """Launch a kernel of a module. arguments: memory for buffers, NumPy scalars for registers."""

    def routine(self, name: str, arguments: Sequence[Any]) -> None:
        """Call a library routine of `Library` statements. Raises DeviceError for one that the device does not have."""

    def synchronize(self) -> None:
        """Wait for all work of the driver."""


def storage(dtype: DType) -> DType:
    """Return the dtype that holds the bits in memory: unsigned integers for bool and the short floats."""
    if dtype == BOOL or (is_float(dtype) and dtype.itemsize < 4):
        return np.dtype(f"u{dtype.itemsize}")
    return dtype


_LOST: Final = frozenset((214, 700, 702, 709, 710, *range(714, 720)))  # CUDA's errors that end the context


class _Use:
    """Block of calls of CuPy on a device, whose errors become DeviceError."""

    def __init__(self, cupy: Any, device: Any) -> None:
        self._device = device
        self._errors = (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)
        self._process = os.getpid()

    def __enter__(self) -> None:
        if os.getpid() != self._process:
            text = f"cuda:{self._device.id} was opened before this process was forked, and CUDA does not survive a fork"
            raise DeviceError(
                message(text, help="start processes by multiprocessing's 'spawn', or fork before the first use")
            )
        self._device.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._device.__exit__(kind, error, at)
        except self._errors as later:
            error = error or later
        if not isinstance(error, self._errors):
            return
        name = f"cuda:{self._device.id}"
        if getattr(error, "status", None) not in _LOST:
            raise DeviceError(message(f"{name} refused a call", str(error))) from None
        text = f"{name} is lost to this process, with all arrays on it: a program that ran there failed"
        remedy = "start a new process; with CUDA_LAUNCH_BLOCKING=1 the error comes from the call that causes it"
        raise DeviceError(message(text, str(error), help=remedy)) from None


class CupyDriver:
    """Driver of an NVIDIA device by CuPy.

    NOT YET RUN ON A DEVICE. It is typed, and the programs that it launches run on the simulator.
    """

    def __init__(self, ordinal: int) -> None:
        """ordinal: CUDA's number of the device. Raises DeviceError without CuPy, or without the device."""
        self._cupy = load_cupy()
        count = self._cupy.cuda.runtime.getDeviceCount()
        if ordinal >= count:
            raise DeviceError(message(f"there is no device cuda:{ordinal}", f"there are {count}"))
        self._device = self._cupy.cuda.Device(ordinal)
        self._use = _Use(self._cupy, self._device)
        self.arch = f"sm_{self._device.compute_capability}"
        self.kind = self._cupy.cuda.runtime.getDeviceProperties(ordinal)["name"].decode()
        self._peak = 0

    def usage(self) -> tuple[int, int]:
        """Return the bytes in use of CuPy's pool, and their peak at this driver's allocations."""
        with self._use:
            used = int(self._cupy.get_default_memory_pool().used_bytes())
        self._peak = max(self._peak, used)
        return used, self._peak

    def empty(self, nbytes: int) -> Memory:
        """Return new memory. Raises OutOfMemoryError."""
        try:
            with self._use:
                memory = self._cupy.empty(nbytes, np.uint8)
        except self._cupy.cuda.memory.OutOfMemoryError:
            raise self._full(nbytes) from None
        self.usage()
        return memory

    def _full(self, nbytes: int) -> OutOfMemoryError:
        with self._use:
            free, total = self._cupy.cuda.runtime.memGetInfo()
        text = f"cuda:{self._device.id} has no memory for {nbytes:,} bytes more"
        return OutOfMemoryError(message(text, f"{free:,} of {total:,} bytes are free", help=DROP))

    def upload(self, values: np.ndarray[Any, Any]) -> Memory:
        """Return new memory with the bytes of a C-contiguous array of the host."""
        memory = self.empty(values.nbytes)
        with self._use:
            memory.set(values.reshape(-1).view(np.uint8))
        return memory

    def download(self, memory: Memory, dtype: DType) -> np.ndarray[Any, Any]:
        """Wait for the device, and return a flat copy on the host."""
        with self._use:
            found: np.ndarray[Any, Any] = memory.get().view(dtype)
        return found

    def shared(self, memory: Memory, dtype: DType, shape: Shape) -> Any:
        """Return CuPy's array on the memory."""
        with self._use:
            return memory.view(dtype).reshape(shape)

    def part(self, memory: Memory, start: int, stop: int) -> Memory:
        """Return the bytes from `start` to `stop`, which stay part of the memory."""
        return memory[start:stop]

    def address(self, memory: Memory) -> int:
        """Return the address of the first byte."""
        return int(memory.data.ptr)

    def copy(self, target: Memory, source: Memory) -> None:
        """Copy all bytes of `source` to the memory `target` of equal size."""
        with self._use:
            self._cupy.copyto(target, source)

    def load(self, text: str) -> Any:
        """Return the module of a CUDA source text. Raises InternalError if it does not compile."""
        with self._use:
            return self._cupy.RawModule(code=text, backend="nvrtc", options=OPTIONS)

    def launch(self, module: Any, kernel: Kernel, arguments: Sequence[Any]) -> None:
        """Launch a kernel of a module. arguments: memory for buffers, NumPy scalars for registers."""
        with self._use:
            module.get_function(kernel.name)((kernel.grid,), (kernel.block,), tuple(arguments))

    def routine(self, name: str, arguments: Sequence[Any]) -> None:
        """Raise DeviceError: no library is called on a card yet."""
        text = f"cuda:{self._device.id} has no library routine {name} yet"
        raise DeviceError(message(text, help="run the program on the CPU"))

    def synchronize(self) -> None:
        """Wait for all work of the driver."""
        with self._use:
            self._device.synchronize()


_NO_DRIVER: Final = 35  # cudaErrorInsufficientDriver
_NO_DEVICE: Final = 100  # cudaErrorNoDevice


def load_cupy() -> Any:
    """Return CuPy's module. Raises DeviceError where it is not installed, or finds no driver or no device."""
    if importlib.util.find_spec("cupy") is None:
        raise DeviceError(message("CuPy, which launches kernels, is not installed", help=INSTALL))
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        text = "CuPy, which launches kernels, does not load"
        raise DeviceError(message(text, str(error).strip().partition("\n")[0], help=INSTALL)) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        status, said = error.status, str(error)
        if status == _NO_DRIVER:
            remedy = "install NVIDIA's driver; nvidia-smi shows its version"
            text = "there is no NVIDIA driver here, or one too old for CuPy"
            raise DeviceError(message(text, said, help=remedy)) from None
        if status != _NO_DEVICE:
            raise DeviceError(message("CUDA does not start", said, help="nvidia-smi shows the devices")) from None
        count = 0
    if not count:
        remedy = "run on the CPU; CUDA_VISIBLE_DEVICES may hide devices"
        raise DeviceError(message("there is no CUDA device here", help=remedy))
    return cupy
