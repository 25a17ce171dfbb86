"""Executables: a program's CUDA source, loaded on a device, and its steps run there in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tracer.codegen.cuda.source import FAULT_SHIFT, CudaSource, Kernel
from tracer.errors import DeviceError, InternalError, message
from tracer.ir.loop import Address, Buffer, Constant, Copy, Invoke, Operand, Space, View
from tracer.runtime.cuda.driver import Driver, Memory, storage

_NO_FAULT: Final = (1 << 64) - 1


class Outcome(NamedTuple):
    """Memory of each OUTPUT parameter, and the memory of the fault record, None if the program has no faults."""

    outputs: tuple[Memory, ...]
    record: Memory | None


class Executable:
    """CUDA source loaded on a device."""

    def __init__(self, source: CudaSource, driver: Driver) -> None:
        """Raises DeviceError for a source with steps that need the host."""
        if source.on_host:
            raise DeviceError(message("these steps do not run on a GPU yet", *source.on_host, help="run on the CPU"))
        self.source = source
        self.driver = driver
        self._module = driver.load(source.text)
        self._kernels = {kernel.name: kernel for kernel in source.kernels}
        self._faults = any(kernel.faults for kernel in source.kernels)

    def run(self, inputs: Sequence[Memory]) -> Outcome:
        """Start all steps in order, without waiting for the device. inputs: memory of all parameters but OUTPUT."""
        driver, source = self.driver, self.source
        memory: dict[Buffer, Memory] = {}
        given = [p for p in source.parameters if p.space is not Space.OUTPUT]
        for parameter, found in zip(given, inputs, strict=True):
            if found.nbytes != parameter.size * parameter.dtype.itemsize:
                got = f"{found.nbytes} bytes"
                raise InternalError(f"cuda: '{parameter.name}' is {parameter.dtype}[{parameter.size}], got {got}")
            memory[parameter] = found
        outputs = [p for p in source.parameters if p.space is Space.OUTPUT]
        for parameter in outputs:
            memory[parameter] = driver.empty(parameter.size * parameter.dtype.itemsize)
        arena = driver.empty(source.arena)
        record = driver.upload(np.full(1, _NO_FAULT, np.uint64)) if self._faults else None
        call = _Call(driver, memory, arena)
        for step in source.steps:
            if isinstance(step, Invoke):
                self._launch(self._kernels[step.function], step, call, record)
            elif isinstance(step, Copy):
                size = step.count * step.target.buffer.dtype.itemsize
                target, taken = call.view(step.target), call.view(step.source)
                driver.copy(driver.part(target, 0, size), driver.part(taken, 0, size))
        return Outcome(tuple(memory[p] for p in outputs), record)

    def _launch(self, kernel: Kernel, step: Invoke, call: _Call, record: Memory | None) -> None:
        if not kernel.grid:
            return  # CUDA rejects an empty grid
        arguments = [call.argument(a) for a in step.arguments]
        self.driver.launch(self._module, kernel, [*arguments, record] if kernel.faults else arguments)


class _Call(NamedTuple):
    """Memory behind the entry's buffers in one call."""

    driver: Driver
    memory: dict[Buffer, Memory]
    arena: Memory

    def argument(self, argument: View | Operand) -> Any:
        if isinstance(argument, View):
            return self.view(argument)
        if isinstance(argument, Constant):
            return np.asarray(argument.value).view(storage(argument.dtype))[()]
        raise InternalError("cuda: a kernel takes a register that only a host could know")

    def view(self, view: View) -> Memory:
        """Return the memory from an address on."""
        buffer, start = view.buffer, _constant(view.start) * view.buffer.dtype.itemsize
        size = buffer.size * buffer.dtype.itemsize
        if buffer.space is Space.ARENA:
            return self.driver.part(self.arena, buffer.offset + start, buffer.offset + size)
        return self.memory[buffer] if not start else self.driver.part(self.memory[buffer], start, size)


def fault_of(driver: Driver, record: Memory) -> tuple[int, int] | None:
    """Wait for the device, and return the (site, position) of the first fault in a record, None if there was none."""
    word = int(driver.download(record, np.dtype(np.uint64))[0])
    return None if word == _NO_FAULT else (word >> FAULT_SHIFT, word & ((1 << FAULT_SHIFT) - 1))


def _constant(address: Address) -> int:
    if address.terms:
        raise InternalError("cuda: a view from a place that only a host could know")
    return address.constant
