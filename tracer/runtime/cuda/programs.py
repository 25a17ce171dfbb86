"""Programs loaded on a device, and the checks of their faults, which are raised where a value is waited for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import Any

import numpy as np

from tracer.codegen.cuda.emit import emit_cuda
from tracer.ir.program import Program
from tracer.ir.target import cuda
from tracer.ir.types import storage_type
from tracer.passes.pipeline import optimize
from tracer.runtime.compile.cuda import fault_error
from tracer.runtime.cuda.driver import Driver, Memory
from tracer.runtime.cuda.executable import Executable, fault_of
from tracer.schedule.elements.gather_bounds import FaultSite
from tracer.schedule.pipeline import gpu_schedule


class Check:
    """Faults of one run of a program, looked at once: at the first wait for a value that depends on the run."""

    __slots__ = ("_driver", "_fault", "_record", "_sites", "is_settled")

    def __init__(self, driver: Driver, record: Memory, sites: Sequence[FaultSite]) -> None:
        self._driver = driver
        self._record: Memory | None = record
        self._sites = sites
        self._fault: tuple[int, int] | None = None
        self.is_settled = False  # without a fault

    def settle(self) -> None:
        """Wait for the run, and raise its fault if there was one."""
        if self._record is not None:
            self._fault, self._record = fault_of(self._driver, self._record), None
            self.is_settled = self._fault is None
        if self._fault is not None:
            site, position = self._fault
            raise fault_error(self._sites[site], position)


class DeviceProgram:
    """Program compiled for a device, and loaded there."""

    def __init__(self, program: Program, driver: Driver, donated: Collection[int] = ()) -> None:
        """donated: inputs whose memory outputs may take over.

        Raises DeviceError for a program with loop nests that have no kernel.
        """
        target = cuda(driver.arch)
        plain, mapped = gpu_schedule(optimize(program, target), target, donated=donated)
        self.name = program.name
        self.outputs = [(type, storage_type(type)) for type in program.output_types]
        self.donors = plain.donors
        self._callbacks: tuple[Any, ...] = plain.callbacks  # Equations
        self._executable = Executable(emit_cuda(mapped.require(program.name)), driver, self._call_back)
        self._constants = [driver.upload(value) for value in plain.constants]
        self._sites = plain.sites
        self._driver = driver

    def run(self, inputs: Sequence[Memory]) -> tuple[tuple[Memory, ...], Check | None]:
        """Start the program, and return the memory of its outputs, and the check of its faults if it has any."""
        outputs, record = self._executable.run([*inputs, *self._constants], self.donors)
        return outputs, None if record is None else Check(self._driver, record, self._sites)

    @property
    def temporary_bytes(self) -> int:
        """Bytes of the program's temporaries, which lie in one piece of memory."""
        return self._executable.source.arena

    def _call_back(self, slot: int, inputs: Sequence[np.ndarray[Any, Any]]) -> Sequence[np.ndarray[Any, Any]]:
        """Run a callback on copies of its operands."""
        equation = self._callbacks[slot]
        shapes = [storage_type(atom.type).shape for atom in equation.inputs]
        values = [x[: prod(shape)].reshape(shape) for x, shape in zip(inputs, shapes, strict=True)]
        found: Sequence[np.ndarray[Any, Any]] = equation.primitive.reference(*values, **equation.params)
        return found
