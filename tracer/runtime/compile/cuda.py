"""From programs to CUDA: schedule, mapping to a GPU, source text; and running it where there is a device."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.cuda.launch import run
from tracer.codegen.cuda.source import CudaSource
from tracer.errors import DeviceError, OutOfBoundsError, message
from tracer.ir.primitive import Composite, Library, Structured
from tracer.ir.program import Program
from tracer.schedule.elements.gather_bounds import FaultSite
from tracer.schedule.gpu.mapping import GpuSchedule, map_to_gpu
from tracer.schedule.math.legalise import expand_math
from tracer.schedule.memory.arena_allocation import planned
from tracer.schedule.pipeline import loops


def gpu_schedule(program: Program) -> GpuSchedule:
    """The program's loops mapped to a GPU, mathematical functions still in them."""
    return map_to_gpu(planned(loops(program).module))


def cuda_source(program: Program) -> CudaSource:
    """The program's kernels; steps that need the host are marked as such."""
    return emit_cuda(expand_math(gpu_schedule(program).module))


def cuda_text(program: Program, arch: str = "sm_90") -> str:
    """The kernels of an optimised program for people to read, with what has no kernel yet in comments.

    arch: where it is meant to run, such as "sm_80"; the text is the same for all. Raises DeviceError for other names.
    """
    if re.fullmatch(r"sm_\d+[af]?", arch) is None:
        raise DeviceError(message(f"cuda: no architecture {arch!r}", help='name one such as "sm_80" or "sm_90"'))
    schedule = gpu_schedule(program)
    source = emit_cuda(expand_math(schedule.module))
    count = len(source.kernels)
    head = [f"{program.name} for {arch}: {count} {'kernel' if count == 1 else 'kernels'}, not yet run on a device"]
    left = schedule.left
    if left:
        head += ["not on the GPU yet:", *(f"  {what}" for what in (*left, *_outside(program)))]
    return "".join(f"// {line}\n" for line in head) + source.text


def run_on_cuda(program: Program, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs of an optimised program as flat device arrays. See `codegen.cuda.launch` for what is tested of it.

    Raises DeviceError for programs that need the host, and what the program's faults raise.
    """
    plain = loops(program)
    module = map_to_gpu(planned(plain.module)).require(f"cuda of {program.name}")
    outcome = run(emit_cuda(expand_math(module)), inputs)
    if outcome.fault is not None:
        site, position = outcome.fault
        raise fault_error(plain.sites[site], position)
    return outcome.outputs


def fault_error(site: FaultSite, position: int) -> Exception:
    """The user's exception. A GPU reports where a fault was, not the numbers that go into the CPU's message."""
    if site.kind != "bounds":
        return site.error((), position)
    where = f" at {site.source}" if site.source is not None else ""
    return OutOfBoundsError(
        message(f"index out of bounds{where}", f"for element {position} of the result", help="the CPU names the index")
    )


def _outside(program: Program) -> Iterator[str]:
    """The equations with control flow, callbacks and library calls, with their lines."""
    for equation in program.equations:
        lower = equation.primitive.lower
        controls = isinstance(lower, Structured) and equation.primitive.name != "check"
        if isinstance(lower, Library | Composite) or controls:
            where = f" at {equation.source}" if equation.source is not None else ""
            yield f"{equation.primitive.name}{where}"
