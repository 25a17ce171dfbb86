"""Runs of CUDA source on a device, through CuPy.

NOT YET RUN ON A DEVICE. The kernels that it launches have passed golden texts, NVRTC for sm_80 and sm_90, and their
schedules the interpreter of loop IR. This file itself is typed, and its plan of buffers and launches is tested against
a stand-in for CuPy, and nothing more.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tracer.codegen.cuda.nvrtc import OPTIONS
from tracer.codegen.cuda.source import FAULT_SHIFT, CudaSource
from tracer.errors import DeviceError, InternalError, message
from tracer.ir.dtypes import BOOL, DType, is_float
from tracer.ir.loop import Address, Buffer, Constant, Copy, Invoke, Operand, Space, View

INSTALL: Final = "pip install 'tracer[cuda]'"
_NO_FAULT: Final = (1 << 64) - 1

DeviceArray = Any  # cupy.ndarray; CuPy has no types
CuPy = Any  # the module


@dataclass(frozen=True, slots=True)
class Outcome:
    """Flat device arrays, one an OUTPUT parameter, and the (site, position) of the first fault, if there was one."""

    outputs: tuple[DeviceArray, ...]
    fault: tuple[int, int] | None


def load_cupy() -> CuPy:
    """Return CuPy's module. Raises DeviceError where it is not installed, or finds no device."""
    if importlib.util.find_spec("cupy") is None:
        raise DeviceError(message("CuPy, which launches kernels, is not installed", help=INSTALL))
    cupy = importlib.import_module("cupy")
    if not cupy.cuda.is_available():
        raise DeviceError(message("there is no CUDA device here", help="run on the CPU"))
    return cupy


def run(source: CudaSource, inputs: Sequence[Any], *, cupy: CuPy = None) -> Outcome:
    """Run the entry's steps on the current device and stream, then wait for the fault record if there is one.

    inputs: arrays of the INPUT parameters, on the host or the device, C-contiguous or copied. cupy: the module to
    launch with, for tests. Raises DeviceError for steps that need the host.
    """
    if source.on_host:
        raise DeviceError(message("these steps do not run on a GPU yet", *source.on_host, help="run on the CPU"))
    return _Launcher(cupy if cupy is not None else load_cupy(), source, inputs).run()


class _Launcher:
    """One call: the device arrays behind the entry's buffers."""

    def __init__(self, cupy: CuPy, source: CudaSource, inputs: Sequence[Any]) -> None:
        self.cupy, self.source = cupy, source
        self.arrays: dict[Buffer, DeviceArray] = {}
        given = [p for p in source.parameters if p.space is not Space.OUTPUT]
        for parameter, value in zip(given, inputs, strict=True):
            self.arrays[parameter] = self._as_device(parameter, value)
        for parameter in source.parameters:
            if parameter.space is Space.OUTPUT:
                self.arrays[parameter] = cupy.empty(parameter.size, storage(parameter.dtype))
        self.arena = cupy.empty(source.arena, np.uint8)
        faulting = any(kernel.faults for kernel in source.kernels)
        self.record = cupy.full(1, _NO_FAULT, np.uint64) if faulting else None

    def _as_device(self, parameter: Buffer, value: Any) -> DeviceArray:
        host = value if hasattr(value, "__cuda_array_interface__") else np.ascontiguousarray(value)
        if host.dtype != parameter.dtype or host.size != parameter.size:
            got = f"{host.dtype}[{host.size}]"
            raise InternalError(f"cuda: '{parameter.name}' is {parameter.dtype}[{parameter.size}], got {got}")
        return self.cupy.ascontiguousarray(self.cupy.asarray(host.view(storage(parameter.dtype)))).reshape(-1)

    def run(self) -> Outcome:
        """Launch all steps in order."""
        module = self.cupy.RawModule(code=self.source.text, backend="nvrtc", options=OPTIONS)
        functions = {kernel.name: module.get_function(kernel.name) for kernel in self.source.kernels}
        for step in self.source.steps:
            if isinstance(step, Invoke):
                self._launch(functions, step)
            elif isinstance(step, Copy):
                target, source = self.view(step.target), self.view(step.source)
                self.cupy.copyto(target[: step.count], source[: step.count])
        outputs = [self.arrays[p] for p in self.source.parameters if p.space is Space.OUTPUT]
        return Outcome(tuple(outputs), self._fault())

    def _launch(self, functions: Mapping[str, Any], step: Invoke) -> None:
        kernel = self.source.kernel(step.function)
        if not kernel.grid:
            return  # CUDA rejects an empty grid
        arguments = [self._argument(a) for a in step.arguments]
        arguments += [self.record] if kernel.faults else []
        functions[step.function]((kernel.grid,), (kernel.block,), tuple(arguments))

    def _argument(self, argument: View | Operand) -> Any:
        if isinstance(argument, View):
            return self.view(argument)
        if isinstance(argument, Constant):
            return np.asarray(argument.value).view(storage(argument.dtype))[()]
        raise InternalError("cuda: a kernel takes a register that only a host could know")

    def view(self, view: View) -> DeviceArray:
        """Return the memory from an address on, in the type that kernels see."""
        buffer, start = view.buffer, _constant(view.start)
        if buffer.space is Space.ARENA:
            stop = buffer.offset + buffer.size * buffer.dtype.itemsize
            return self.arena[buffer.offset : stop].view(storage(buffer.dtype))[start:]
        return self.arrays[buffer][start:]

    def _fault(self) -> tuple[int, int] | None:
        if self.record is None:
            return None
        word = int(self.record[0])  # waits for the device
        return None if word == _NO_FAULT else (word >> FAULT_SHIFT, word & ((1 << FAULT_SHIFT) - 1))


def storage(dtype: DType) -> DType:
    """Return the dtype that holds the bits in memory: unsigned integers for bool and the short floats."""
    if dtype == BOOL or (is_float(dtype) and dtype.itemsize < 4):
        return np.dtype(f"u{dtype.itemsize}")
    return dtype


def _constant(address: Address) -> int:
    if address.terms:
        raise InternalError("cuda: a view from a place that only a host could know")
    return address.constant
