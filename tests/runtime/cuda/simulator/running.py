"""Programs on the simulated device, from their source text or from the PTX that NVRTC makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.runtime.cuda.simulator.ptx import translate
from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.cuda.nvrtc import compile_cuda
from tracer.codegen.cuda.source import CudaSource
from tracer.ir.loop import Module, Space
from tracer.runtime.cuda.executable import Executable, fault_of
from tracer.runtime.cuda.simulator.driver import SimulatedDriver
from tracer.runtime.cuda.simulator.kernels import Counts, Kernels, Order, built, built_as, pointers_of

_PTX = Path(__file__).with_name("ptx.h")


@cache
def built_from_ptx(text: str, arch: str, prelude: str = "") -> Kernels:
    """Return the kernels of a translation unit by way of the PTX that NVRTC makes of it, behind a prelude."""
    return built_as(text, translate(compile_cuda(prelude + text, arch).ptx, pointers_of(text)), _PTX)


def simulated(order: Order = Order.FORWARD, *, arch: str = "", **options: Any) -> SimulatedDriver:
    """Return a driver whose launches take this order, on the text or on an arch's PTX. options: the driver's."""
    return SimulatedDriver(order, build=(lambda text: built_from_ptx(text, arch)) if arch else built, **options)


def run(
    source: CudaSource, inputs: Sequence[Any], driver: SimulatedDriver
) -> tuple[list[np.ndarray[Any, Any]], tuple[int, int] | None]:
    """Return the flat outputs of a source, and the first fault."""
    given = [p.dtype for p in source.parameters if p.space is not Space.OUTPUT]
    held = [driver.upload(np.ascontiguousarray(x, dtype)) for x, dtype in zip(inputs, given, strict=True)]
    outcome = Executable(source, driver).run(held)
    dtypes = [p.dtype for p in source.parameters if p.space is Space.OUTPUT]
    outputs = [driver.download(m, dtype) for m, dtype in zip(outcome.outputs, dtypes, strict=True)]
    return outputs, None if outcome.record is None else fault_of(driver, outcome.record)


def outputs_of(
    module: Module, inputs: list[Any], order: Order = Order.FORWARD, *, seed: int = 1, arch: str = ""
) -> list[Any]:
    """Return the entry's outputs, of their own dtypes, from the emitted source, or from the PTX of an arch."""
    return run(emit_cuda(module), inputs, simulated(order, seed=seed, arch=arch))[0]


def traffic_of(module: Module, inputs: list[Any]) -> dict[str, Counts]:
    """Return the traffic of each kernel of a program."""
    counts: dict[str, Counts] = {}
    run(emit_cuda(module), inputs, simulated(counts=counts))
    return counts
