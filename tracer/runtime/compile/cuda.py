"""From programs to CUDA: schedule, mapping to a GPU, source text, and the errors of faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.cuda.source import CudaSource
from tracer.errors import OutOfBoundsError, message
from tracer.ir.primitive import Composite, Library, Structured
from tracer.ir.program import Program
from tracer.ir.target import CUDA, Target
from tracer.schedule.elements.gather_bounds import FaultSite
from tracer.schedule.pipeline import Scheduled, gpu_schedule


class CudaProgram(NamedTuple):
    """Program as CUDA. text: the source, for people to read, with missing kernels in comments. scheduled: its loops."""

    name: str
    arch: str
    text: str
    source: CudaSource
    scheduled: Scheduled


def cuda_program(program: Program, target: Target = CUDA) -> CudaProgram:
    """Return a program optimised for a GPU as CUDA."""
    scheduled, schedule = gpu_schedule(program, target)
    source = emit_cuda(schedule.module)
    count, arch = len(source.kernels), target.name.removeprefix("cuda:")
    head = [f"{program.name} for {arch}: {count} {'kernel' if count == 1 else 'kernels'}, not yet run on a device"]
    left = schedule.left
    if left:
        head += ["not on the GPU yet:", *(f"  {line}" for line in (*left, *_outside(program)))]
    text = "".join(f"// {line}\n" for line in head) + source.text
    return CudaProgram(program.name, arch, text, source, scheduled)


def fault_error(site: FaultSite, position: int) -> Exception:
    """Return the user's exception. A GPU reports the position of a fault, not the values of the CPU's message."""
    if site.kind != "bounds":
        return site.error((), position)
    where = f" at {site.source}" if site.source is not None else ""
    return OutOfBoundsError(
        message(f"index out of bounds{where}", f"for element {position} of the result", help="the CPU names the index")
    )


def _outside(program: Program) -> Iterator[str]:
    """Yield the equations with control flow, callbacks and library calls, with their lines."""
    for equation in program.equations:
        lower = equation.primitive.lower
        controls = isinstance(lower, Structured) and lower.kind != "check"
        if isinstance(lower, Library | Composite) or controls:
            where = f" at {equation.source}" if equation.source is not None else ""
            yield f"{equation.primitive.name}{where}"
