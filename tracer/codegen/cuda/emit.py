"""A loop program as CUDA C++: a kernel for every function that loops over blocks, and the entry's steps as a plan.

A kernel is one loop over blocks around one loop over threads. All threads compute the statements between them alike. A
checking simulator can run the text as well: all threads come to every barrier, and return early together or not at all;
all lanes take part in a shuffle; no pointer is made from the address of an element, but for wide accesses.
"""

from __future__ import annotations

from math import prod

from tracer.codegen.cuda.frame import Frame
from tracer.codegen.cuda.helpers import helper_text
from tracer.codegen.cuda.source import MAX_BLOCKS, MAX_THREADS, CudaSource, Kernel
from tracer.codegen.cuda.statements import run_block
from tracer.codegen.cuda.types import PREAMBLE, memory_name, type_name
from tracer.errors import DeviceError, InternalError, message
from tracer.ir import loop
from tracer.ir.loop.text import Printer
from tracer.ir.loop.walk import Access, accesses_of, statements_of


def emit_cuda(module: loop.Module) -> CudaSource:
    """Return the module's kernels and how its entry runs them. Equal modules give equal text.

    Functions without a loop over blocks are left out; `CudaSource.left` names them. Raises
    DeviceError for a grid beyond CUDA's limits, InternalError for statements that the schedule keeps from kernels.
    """
    helpers: dict[str, None] = {}
    texts: list[str] = []
    kernels: list[Kernel] = []
    for function in module.functions:
        if function.name != module.entry and _grid(function) is not None:
            frame = Frame(function, helpers)
            kernels.append(_kernel(frame))
            texts.append("\n".join(frame.lines) + "\n")
    entry = next((f for f in module.functions if f.name == module.entry), None)
    if entry is None:
        raise InternalError(f"cuda: the module's entry '{module.entry}' is missing")
    known = {kernel.name: kernel for kernel in kernels}
    parts = [PREAMBLE, helper_text(helpers), *texts, _plan(entry, known)]
    text = "\n".join([part for part in parts if part])
    return CudaSource(text, tuple(kernels), entry, module.arena, module.stacks)


# -- kernels -------------------------------------------------------------------------------------------


def _grid(function: loop.Function) -> loop.For | None:
    """Return the loop over blocks that makes a function a kernel, or None."""
    statements = function.body.statements
    first = statements[0] if len(statements) == 1 else None
    return first if isinstance(first, loop.For) and first.kind is loop.LoopKind.BLOCK else None


def _kernel(f: Frame) -> Kernel:
    grid = _grid(f.function)
    assert grid is not None
    threads = [s for s in grid.body.statements if isinstance(s, loop.For)]
    if len(threads) != 1 or threads[0].kind is not loop.LoopKind.THREAD or grid.body.statements[-1] is not threads[0]:
        f.fail("a loop over blocks that does not end in one loop over threads")
    block, faults = threads[0], any(isinstance(s, loop.Fault) for s in statements_of(f.function.body))
    if block.carries:
        f.fail("a thread loop with carries, which the schedule writes out")
    kernel = Kernel(
        f.function.name, _extent(f, grid, MAX_BLOCKS), _extent(f, block, MAX_THREADS), _shared(grid.body),
        f.function.parameters, faults,
    )  # fmt: skip
    handed_on = _handed_on(f.function)
    parameters = [_parameter(f, p, may_change=p in handed_on) for p in f.function.parameters]
    leaves = any(isinstance(s, loop.Leave) for s in statements_of(f.function.body))
    parameters += [f"u64*{'' if leaves else ' __restrict__'} fault"] if faults else []
    head = f'extern "C" __global__ void __launch_bounds__({kernel.block}) {kernel.name}({", ".join(parameters)})'
    with f.braces(head):
        f.do(f"const {f.define(grid.index)} = blockIdx.x;")
        run_block(f, loop.Block(grid.body.statements[:-1]))
        f.do(f"const {f.define(block.index)} = threadIdx.x;")
        run_block(f, block.body)
    return kernel


def _extent(f: Frame, s: loop.For, most: int) -> int:
    """Return the number of blocks or threads. Raises DeviceError beyond `most`."""
    counted = isinstance(s.start, loop.Constant) and isinstance(s.stop, loop.Constant) and s.step == 1
    if not counted or int(s.start.value) != 0:  # type: ignore[union-attr]  # both are constants
        f.fail(f"a {s.kind.value} loop that does not count from 0 to a constant")
    count = int(s.stop.value)  # type: ignore[union-attr]
    if count > most:
        limit = f"{s.kind.value}s: {count:,} of at most {most:,}"
        raise DeviceError(message(f"cuda: {f.function.name} needs too many {limit}", help="split the array"))
    return count


def _shared(block: loop.Block) -> int:
    buffers = [s.buffer for s in block.statements if isinstance(s, loop.Alloc) and s.buffer.space is loop.Space.SHARED]
    return sum(prod((buffer.size, buffer.dtype.itemsize)) for buffer in buffers)


def _handed_on(function: loop.Function) -> set[loop.Buffer]:
    """Return the buffers in which threads of a block hand each other values: stored to, read, and barriers between."""
    inside = list(statements_of(function.body))
    if not any(isinstance(s, loop.Barrier) for s in inside):
        return set()
    accesses = [(buffer, access) for s in inside for buffer, _, access in accesses_of(s)]
    stored = {buffer for buffer, access in accesses if access is Access.WRITE}
    return stored.intersection(buffer for buffer, access in accesses if access is Access.READ)


def _parameter(f: Frame, parameter: loop.Buffer | loop.Register, *, may_change: bool) -> str:
    """Return a parameter's declaration. Written buffers overlap no other parameter, so they are restricted.

    may_change: whether other threads may write it. Behind `__restrict__`, NVRTC moves its reads across barriers.
    """
    if isinstance(parameter, loop.Register):
        return f"{type_name(parameter.dtype)} {f.name(parameter)}"
    const = "" if parameter.written else "const "
    restrict = "" if may_change else " __restrict__"
    return f"{const}{memory_name(parameter.dtype)}*{restrict} {f.name(parameter)}"


# -- the entry -----------------------------------------------------------------------------------------


def _plan(entry: loop.Function, kernels: dict[str, Kernel]) -> str:
    """Return a comment with the host's part of the program."""
    lines = Printer(entry).block_lines(entry.body)
    return "".join(f"// {_launch(line, kernels)}\n" for line in [f"{entry.name}:", *lines])


def _launch(line: str, kernels: dict[str, Kernel]) -> str:
    """Return a line of the plan, an invocation of a kernel as CUDA writes a launch."""
    before, invoked, call = line.partition("invoke ")
    name, opened, arguments = call.partition("(")
    kernel = kernels.get(name)
    if not invoked or not opened:
        return line
    if kernel is None:
        return f"{before}not on the GPU yet: {call}"
    return f"{before}{name}<<<{kernel.grid}, {kernel.block}>>>({arguments}"
