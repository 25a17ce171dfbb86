"""The mapping to a GPU: every nest becomes a kernel, a loop over thread blocks around a loop over their threads.

The result is loop IR again: the reference interpreter runs it, and the CUDA backend only spells it.

    maps          the independent loops are one range, cut into blocks of at most 256 threads, an element a thread;
                  reductions within run in order in their thread
    row sums      a block a row where that reads memory smoothly or rows are few (see `row_reductions`)
    scalars       computed by the entry between nests: kernels of one thread, handed on through memory (`host_plan`)

Everything depends on shapes and dtypes alone, never on the device, so results do not either. Nests without a kernel yet
stay as they were, with the reason in `left`: control flow, library calls, callbacks, scatters, and loops whose
iterations depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tracer.errors import DeviceError, message
from tracer.ir.loop import Block, Function, LoopKind, Module, Operand, Statement
from tracer.ir.loop.build import Builder
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.host_plan import left_on_host, runs_straight, scalars_to_kernels
from tracer.schedule.gpu.row_reductions import Row, map_rows, row_of
from tracer.schedule.gpu.threads import WARP, Axes, Unfit, in_thread, split, through_memory

_BLOCK = 256  # threads of a block that maps
_SHORT_ROW = 32  # shorter rows are one thread's work
_MANY_ROWS = 1024  # that keep a GPU busy with one thread a row


@dataclass(frozen=True, slots=True)
class GpuSchedule:
    """A module whose nests are kernels as far as they can be. left: what still needs the host, a sentence each."""

    module: Module
    left: tuple[str, ...]

    def require(self, name: str) -> Module:
        """Return the module, if a GPU can run all of it. Raises DeviceError that lists the steps it cannot."""
        if self.left:
            raise DeviceError(
                message(
                    f"{name}: this program does not run on a GPU yet",
                    *self.left,
                    help="run it on the CPU; .lower(...).cuda() shows the kernels that it has",
                )
            )
        return self.module


def map_to_gpu(module: Module) -> GpuSchedule:
    """Turn the nests of `schedule.pipeline.loops` into kernels, and the entry's scalars too.

    Math functions may still be in it: `expand_math` comes afterwards.
    """
    entry = next(f for f in module.functions if f.name == module.entry)
    nests = [f for f in module.functions if f.name != module.entry]
    reasons: dict[str, str] = {}
    for nest in nests:
        try:
            _kernel(nest)
        except Unfit as unfit:
            reasons[nest.name] = str(unfit)
    straight = not reasons and runs_straight(entry)
    mapped = [nest if nest.name in reasons else _kernel(nest, in_memory=straight) for nest in nests]
    result = replace(module, functions=(*mapped, entry))
    left = (*(f"{name}: {reason}" for name, reason in reasons.items()), *left_on_host(entry))
    return GpuSchedule(scalars_to_kernels(result) if straight else result, left)


def _kernel(nest: Function, *, in_memory: bool = False) -> Function:
    """Return the nest as a kernel. in_memory: its scalar parameters are read from memory. Raises Unfit."""
    parameters, loads = through_memory(nest.parameters) if in_memory else (nest.parameters, ())
    axes, body = split(nest.body)
    row = row_of(body)
    if row is not None and _takes_a_block(axes, row):
        return Function(nest.name, parameters, map_rows(axes, row, loads))
    return Function(nest.name, parameters, map_elements(axes, body, loads))


def _takes_a_block(axes: Axes, row: Row) -> bool:
    """Whether each row gets a block of its own."""
    if row.length < _SHORT_ROW:
        return False
    return prod(axes.sizes) < _MANY_ROWS or row.smoothness(row.innermost) >= row.smoothness(axes.last)


def map_elements(axes: Axes, body: Sequence[Statement], loads: Sequence[Statement] = ()) -> Block:
    """Return a kernel with one thread for each element of the axes. Excess threads of the last block do nothing."""
    count = prod(axes.sizes)
    threads = min(_BLOCK, -(-max(count, 1) // WARP) * WARP)
    blocks = -(-count // threads)
    b = Builder()
    with b.for_("b", 0, blocks, kind=LoopKind.BLOCK) as block, b.for_("t", 0, threads, kind=LoopKind.THREAD) as thread:
        for load in loads:
            b.add(load)
        position: Operand = thread.index
        if blocks != 1:
            first = b.compute(ScalarOp.MUL, block.index, threads)
            position = b.compute(ScalarOp.ADD, first, thread.index, name="i")
        if count % threads:
            with b.if_(b.compute(ScalarOp.LT, position, count, name="inside")):
                _element(b, axes, position, body)
        else:
            _element(b, axes, position, body)
    return b.finish()


def _element(b: Builder, axes: Axes, position: Operand, body: Sequence[Statement]) -> None:
    for statement in in_thread(body, axes.locate(b, position)):
        b.add(statement)
