"""What `codegen.cuda.launch` asks of CuPy, on the simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.cudasim.memory import DeviceMemory, copy
from tests.cudasim.simulator import Counts, Order, built, built_from_ptx
from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.cuda.launch import run
from tracer.ir.loop import Module, Space


def simulated(
    order: Order = Order.FORWARD, *, seed: int = 1, arch: str = "", names: Mapping[str, str] | None = None,
    most: int = 200_000_000, counts: dict[str, Counts] | None = None,
) -> Any:  # fmt: skip
    """Return a stand-in for the module `cupy`, whose launches take this order, on the text or an arch's PTX.

    names: kernels to run in the place of others. most: accesses a launch. counts: takes each kernel's traffic.
    """

    def raw_module(*, code: str, backend: str, options: tuple[str, ...]) -> Any:
        assert backend == "nvrtc"
        assert "--fmad=false" in options
        kernels = built_from_ptx(code, arch) if arch else built(code)

        def function(name: str) -> Callable[..., None]:
            def launch(grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
                chosen, meter = names.get(name, name) if names else name, counts is not None
                found = kernels.launch(chosen, grid, block, arguments, order=order, seed=seed, most=most, meter=meter)
                if counts is not None:
                    counts[name] = found

            return launch

        return SimpleNamespace(get_function=function)

    return SimpleNamespace(
        RawModule=raw_module, asarray=_held, ascontiguousarray=_held, copyto=copy, empty=DeviceMemory.empty,
        full=lambda size, value, dtype: DeviceMemory.holding(np.full(size, value, dtype)),
    )  # fmt: skip


def _held(values: Any) -> DeviceMemory:
    return values if isinstance(values, DeviceMemory) else DeviceMemory.holding(values)


def outputs_of(
    module: Module, inputs: list[Any], order: Order = Order.FORWARD, *, seed: int = 1, arch: str = ""
) -> list[Any]:
    """Return the entry's outputs, of their own dtypes, from the emitted source, or from the PTX of an arch."""
    source = emit_cuda(module)
    outcome = run(source, inputs, cupy=simulated(order, seed=seed, arch=arch))
    dtypes = [p.dtype for p in source.parameters if p.space is Space.OUTPUT]
    return [array.get().view(dtype) for array, dtype in zip(outcome.outputs, dtypes, strict=True)]


def traffic_of(module: Module, inputs: list[Any]) -> dict[str, Counts]:
    """Return the traffic of each kernel of a program."""
    counts: dict[str, Counts] = {}
    run(emit_cuda(module), inputs, cupy=simulated(counts=counts))
    return counts
