"""Driver of the simulated device, `cuda-sim`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import finalize

import numpy as np

from tracer.codegen.cuda.source import Kernel
from tracer.codegen.reference.library import LIBRARY_REFERENCE
from tracer.ir.dtypes import DType
from tracer.ir.loop import Buffer
from tracer.ir.types import Shape
from tracer.runtime.cuda.driver import storage
from tracer.runtime.cuda.simulator.kernels import Counts, Kernels, Order, built
from tracer.runtime.cuda.simulator.memory import DeviceMemory, copy


class SimulatedDriver:
    """Driver of a device that the CPU plays, one thread after another, with every access checked.

    order, seed: turns of threads and blocks. build: makes kernels of CUDA text. names: kernels to launch in place of
    kernels of the program. most: accesses of a launch, before it counts as endless. counts: gets the traffic of each
    kernel.
    """

    arch = "sm_90"
    kind = "simulated on the CPU"

    def __init__(
        self, order: Order = Order.FORWARD, *, seed: int = 1, build: Callable[[str], Kernels] = built,
        names: Mapping[str, str] | None = None, most: int = 200_000_000, counts: dict[str, Counts] | None = None,
    ) -> None:  # fmt: skip
        self.order, self.seed, self.most, self.build = order, seed, most, build
        self.names = names or {}
        self.counts = counts
        self._used = self._peak = 0

    def empty(self, nbytes: int) -> DeviceMemory:
        """Return new memory, which holds nothing that may be read."""
        return self._counted(DeviceMemory.empty(nbytes, np.uint8))

    def _counted(self, memory: DeviceMemory) -> DeviceMemory:
        self._used += memory.nbytes
        self._peak = max(self._peak, self._used)
        finalize(memory.values.base, self._freed, memory.nbytes)  # which every part of it keeps
        return memory

    def _freed(self, nbytes: int) -> None:
        self._used -= nbytes

    def usage(self) -> tuple[int, int]:
        """Return the bytes in use, and their peak."""
        return self._used, self._peak

    def upload(self, values: np.ndarray[Any, Any]) -> DeviceMemory:
        """Return new memory with the bytes of a C-contiguous array of the host."""
        return self._counted(DeviceMemory.holding(values.reshape(-1).view(np.uint8)))

    def download(self, memory: DeviceMemory, dtype: DType) -> np.ndarray[Any, Any]:
        """Return a flat copy on the host."""
        return memory.get().view(dtype)

    def shared(self, memory: DeviceMemory, dtype: DType, shape: Shape) -> np.ndarray[Any, Any]:
        """Return NumPy's array on the memory, which is the host's."""
        return memory.checked().values.view(dtype).reshape(shape)

    def part(self, memory: DeviceMemory, start: int, stop: int) -> DeviceMemory:
        """Return the bytes from `start` to `stop`, which stay part of the memory."""
        part: DeviceMemory = memory[start:stop]
        return part

    def address(self, memory: DeviceMemory) -> int:
        """Return the address of the first byte."""
        return memory.address

    def copy(self, target: DeviceMemory, source: DeviceMemory) -> None:
        """Copy all bytes of `source` to the memory `target` of equal size."""
        copy(target, source)

    def load(self, text: str) -> Kernels:
        """Return the kernels of a CUDA source text."""
        return self.build(text)

    def launch(self, module: Kernels, kernel: Kernel, arguments: Sequence[Any]) -> None:
        """Run a kernel to its end. Raises KernelError for the first thing that a thread does wrong."""
        dtypes = [storage(p.dtype) for p in kernel.parameters if isinstance(p, Buffer)]
        dtypes += [np.dtype(np.uint64)] * kernel.faults
        kinds = iter(dtypes)
        given = [x.view(next(kinds)) if isinstance(x, DeviceMemory) else x for x in arguments]
        found = module.launch(
            self.names.get(kernel.name, kernel.name), kernel.grid, kernel.block, given, order=self.order,
            seed=self.seed, most=self.most, meter=self.counts is not None,
        )  # fmt: skip
        if self.counts is not None:
            before = self.counts.get(kernel.name)
            self.counts[kernel.name] = found if before is None else before + found

    def routine(self, name: str, arguments: Sequence[Any]) -> None:
        """Call a routine's reference in NumPy, which stands for the library of a card."""
        with np.errstate(all="ignore"):
            LIBRARY_REFERENCE[name](*[_Span(x) if isinstance(x, DeviceMemory) else x for x in arguments])

    def synchronize(self) -> None:
        """Do nothing: every launch runs to its end."""


class _Span:
    """Device memory as routines take it: see `codegen.reference.library`."""

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory

    def read(self, count: int, dtype: DType) -> np.ndarray[Any, Any]:
        """Return the first `count` values of `dtype`."""
        part: DeviceMemory = self._memory[: count * dtype.itemsize]
        return part.get().view(dtype)

    def write(self, values: np.ndarray[Any, Any]) -> None:
        """Store all the values, in row-major order."""
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        copy(self._memory[: data.size], DeviceMemory.holding(data))
