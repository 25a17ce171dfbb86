"""A loop program as CUDA C++: a kernel for every function that loops over blocks, and the entry's steps as a plan.

A kernel is one loop over blocks around one loop over threads. All threads compute the statements between them alike. A
checking simulator can run the text as well: it has no return, so all threads come to every barrier; all lanes take part
in a shuffle; no pointer is made from the address of an element.
"""

from __future__ import annotations

from math import prod

from tracer.codegen.cuda.frame import Frame
from tracer.codegen.cuda.helpers import helper_text
from tracer.codegen.cuda.source import MAX_BLOCKS, MAX_THREADS, CudaSource, Host, Kernel, Step
from tracer.codegen.cuda.statements import run_block
from tracer.codegen.cuda.types import PREAMBLE, memory_name, type_name
from tracer.errors import DeviceError, InternalError, message
from tracer.ir import loop
from tracer.ir.loop.text import Printer
from tracer.ir.loop.walk import statements_of


def emit_cuda(module: loop.Module) -> CudaSource:
    """Return the module's kernels and how its entry runs them. Equal modules give equal text.

    Functions without a loop over blocks, and steps that need the host, become comments and `Host` steps. Raises
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
    steps, plan = _entry(entry, known)
    parts = [PREAMBLE, helper_text(helpers), *texts, plan]
    parameters = tuple([p for p in entry.parameters if isinstance(p, loop.Buffer)])
    return CudaSource("\n".join([part for part in parts if part]), tuple(kernels), steps, parameters, module.arena)


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
    parameters = [_parameter(f, p) for p in f.function.parameters]
    parameters += ["u64* __restrict__ fault"] if faults else []
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


def _parameter(f: Frame, parameter: loop.Buffer | loop.Register) -> str:
    """Return a parameter's declaration. Written buffers overlap no other parameter, so all of them are restricted."""
    if isinstance(parameter, loop.Register):
        return f"{type_name(parameter.dtype)} {f.name(parameter)}"
    const = "" if parameter.written else "const "
    return f"{const}{memory_name(parameter.dtype)}* __restrict__ {f.name(parameter)}"


# -- the entry -----------------------------------------------------------------------------------------


def _entry(entry: loop.Function, kernels: dict[str, Kernel]) -> tuple[tuple[Step, ...], str]:
    """Return the entry's steps, and a comment that shows them."""
    steps: list[Step] = []
    lines: list[str] = []
    printer = Printer(entry)
    for s in entry.body.statements:
        step = _step(s, kernels)
        if step is None:
            continue
        steps.append(step)
        first = printer.statement_lines(s)[0]
        if isinstance(step, loop.Invoke):
            kernel = kernels[step.function]
            lines.append(first.replace("invoke ", "", 1).replace("(", f"<<<{kernel.grid}, {kernel.block}>>>(", 1))
        else:
            lines.append(first if isinstance(step, loop.Copy) else f"not on the GPU yet: {first.removesuffix(' {')}")
    return tuple(steps), "".join(f"// {line}\n" for line in [f"{entry.name}:", *lines])


def _step(s: loop.Statement, kernels: dict[str, Kernel]) -> Step | None:
    """Return a statement as a step of the plan; None for one that needs no step."""
    match s:
        case loop.Invoke(name) if name in kernels and all(isinstance(a, loop.View) for a in s.arguments):
            return s
        case loop.Copy():
            return s
        case loop.Leave():
            return None  # kernels after a fault are harmless, and the record is read at the end
        case loop.Invoke(name):
            return Host(f"{'scalars for ' if name in kernels else ''}{name}")
        case loop.Library(name):
            return Host(f"library {name}")
        case loop.While() | loop.For() | loop.If() | loop.Callback():
            return Host(type(s).__name__.lower())
        case loop.StackPush() | loop.StackPop() | loop.StackRead() | loop.StackWrite():
            return Host("stack")
        case loop.StackReset() | loop.StackLength():
            return Host("stack")
        case _:
            return Host("scalars")
