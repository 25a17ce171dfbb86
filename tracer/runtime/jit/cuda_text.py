"""CUDA source of a lowered function, with the manifest, the resources and the traffic of its kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tracer.codegen.cuda import nvrtc
from tracer.codegen.cuda.manifest import manifest
from tracer.lazy import LazyModule
from tracer.runtime.jit.explain import Text
from tracer.runtime.system.devices import others

if TYPE_CHECKING:
    from tracer.ir.program import Program
    from tracer.ir.target import Target
    from tracer.runtime.compile import cuda as gpu
else:
    gpu = LazyModule("tracer.runtime.compile.cuda")


Inputs = Callable[[], list[Any]]


class CudaText(Text):
    """CUDA C++ of a program.

    complete: whether every loop nest has a kernel, so that a device can run the program.
    """

    __slots__ = ("_captured", "_inputs", "_made", "_traced", "complete")
    complete: bool
    _captured: int
    _inputs: Inputs
    _made: gpu.CudaProgram
    _traced: Program

    def __new__(cls, traced: Program, optimized: Program, target: Target, inputs: Inputs, captured: int) -> CudaText:
        """traced, inputs: the program as traced, and a function that returns its inputs.

        captured: how many of the inputs are captured arrays, which come first.
        """
        made = gpu.cuda_program(optimized, target)
        self = super().__new__(cls, made.text)
        self._made, self._traced, self._inputs, self._captured = made, traced, inputs, captured
        self.complete = not made.source.left
        return self

    def manifest(self) -> dict[str, Any]:
        """Return a tree of JSON's values with all that a host needs, besides the text, to run the program.

        kernels: grid, block, bytes of shared memory, parameters. parameters: of the program, with the data of captured
        arrays and constants.
        steps: launches, copies, loops and branches. slots: parts of the slab, the memory of a call, by offset in bytes.
        faults: the initial fault record, and the texts of its sites.

        >>> source = tracer.jit(lambda x: 2.0 * x).lower(np.zeros(1000)).cuda()
        >>> [(k["grid"], k["block"]) for k in source.manifest()["kernels"].values()]
        [(4, 256)]
        """
        made = self._made
        sites = [f"{site.kind}{f' at {site.source}' if site.source else ''}" for site in made.scheduled.sites]
        captured, constants = self._inputs()[: self._captured], made.scheduled.constants
        return manifest(
            made.source, name=made.name, arch=made.arch, captured=captured, constants=constants, sites=sites
        )  # fmt: skip

    def resources(self) -> dict[str, nvrtc.Resources]:
        """Return registers, shared memory, stack and spilled bytes of each kernel, from NVRTC's machine code.

        Raises DeviceError where NVRTC is not installed.
        """
        return nvrtc.compile_cuda(str(self), self._made.arch).resources

    def traffic(self) -> dict[str, Any]:
        """Return the `Counts` of bytes and sectors that each kernel moves, measured on the simulated device.

        The program runs on the arguments, on zeros for a `ShapeDtypeStruct`. Raises DeviceError without g++.
        """
        counts: dict[str, Any] = others.module.traffic(self._traced, self._inputs(), self._made.arch)
        return counts
