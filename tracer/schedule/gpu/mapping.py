"""The mapping to a GPU: every nest becomes a kernel, a loop over thread blocks around a loop over their threads.

The result is loop IR again: the reference interpreter runs it, and the CUDA backend only spells it.

    maps          the independent loops are one range, cut into blocks of at most 256 threads, an element a thread,
                  or 16 bytes of them (see `wide_accesses`); reductions within run in order in their thread
    transposed    a block a tile of rows and columns, through shared memory (see `transpose_kernels`)
    rows          a block a row where that reads memory smoothly or rows are few (see `row_programs`)
    columns       a block a tile of columns where reductions run along an outer axis (see `column_kernels`)
    scalars       computed by the entry between nests: kernels of one thread, handed on through memory (`host_plan`)
    cumulative    a block a row, or a chunk of a long row (see `scan_kernels`)
    scatters      a thread for each element of a window and part of the destinations (see `scatter_kernels`)
    in order      loops whose iterations depend on each other, and other scatters: one thread
    control flow  loops and branches of the entry are the host's, around kernels (but see `block_loops`)

Everything depends on shapes and dtypes alone, never on the device, so results do not either. Library routines and
callbacks are steps of the host, told in `on_host`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tracer.errors import DeviceError, InternalError, message
from tracer.ir.loop import Block, For, Function, LoopKind, Module, Operand, Statement
from tracer.ir.loop.build import Builder
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.column_kernels import map_columns
from tracer.schedule.gpu.host_plan import left_on_host, scalars_to_kernels
from tracer.schedule.gpu.row_kernels import map_row_program
from tracer.schedule.gpu.row_programs import row_program, takes_a_block, takes_columns
from tracer.schedule.gpu.scan_kernels import map_scan, scan_of
from tracer.schedule.gpu.scatter_kernels import scatter_of, scattered
from tracer.schedule.gpu.threads import WARP, Axes, Unfit, in_thread, split, through_memory
from tracer.schedule.gpu.transpose_kernels import map_tiles, tile_of
from tracer.schedule.gpu.wide_accesses import group_width, write_elements

_BLOCK = 256  # threads of a block that maps


@dataclass(frozen=True, slots=True)
class GpuSchedule:
    """A module whose nests are kernels as far as they can be."""

    module: Module

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why nests have no kernel, a sentence each."""
        return tuple(f"{nest.name}: {why}" for nest in self.module.functions if (why := self._lack_of(nest)))

    @property
    def on_host(self) -> tuple[str, ...]:
        """Library routines and callbacks, a sentence each."""
        return left_on_host(self.module.entry_function)

    def _lack_of(self, nest: Function) -> str:
        """Return why a function is no kernel, "" if it is one or the entry."""
        if nest.name == self.module.entry or _is_kernel(nest):
            return ""
        try:
            _kernel(nest)
        except Unfit as unfit:
            return str(unfit)
        raise InternalError(f"nest {nest.name} has a kernel, but was not mapped")

    @property
    def left(self) -> tuple[str, ...]:
        """All that no kernel does."""
        return (*self.reasons, *self.on_host)

    def require(self, name: str) -> Module:
        """Return the module, if a GPU can run all of it. Raises DeviceError that lists the steps it cannot."""
        if self.reasons:
            raise DeviceError(
                message(
                    f"{name}: this program does not run on a GPU yet",
                    *self.reasons,
                    help="run it on the CPU; .lower(...).cuda() shows the kernels that it has",
                )
            )
        return self.module


def map_to_gpu(module: Module) -> GpuSchedule:
    """Turn the nests of `schedule.pipeline.loops` into kernels, and the entry's scalars too.

    Math functions may still be in it: `expand_math` comes afterwards.
    """
    entry = module.entry_function
    mapped, unmapped = [], []
    for nest in module.functions:
        if nest is not entry:
            try:
                mapped.append(nest if _is_kernel(nest) else _kernel(nest))
            except Unfit:
                unmapped.append(nest)
    changed = replace(module, functions=(*mapped, *unmapped, entry))
    return GpuSchedule(changed if unmapped else scalars_to_kernels(changed))


def _is_kernel(nest: Function) -> bool:
    loop = nest.body.statements[0] if nest.body.statements else None
    return isinstance(loop, For) and loop.kind is LoopKind.BLOCK


def _kernel(nest: Function) -> Function:
    """Return the nest as a kernel, which reads scalar parameters from memory. Raises Unfit.

    Loops that no threads can share run in one thread: correct, and slow.
    """
    parameters, loads = through_memory(nest.parameters)
    try:
        scatter = scatter_of(nest.body)
        if scatter is not None:
            return Function(nest.name, parameters, map_elements(*scattered(scatter), loads))
        scan = scan_of(nest.body)
        if scan is not None:
            return Function(nest.name, parameters, map_scan(*scan, loads))
        axes, body = split(nest.body)
        program = row_program(body)
        if program is not None and takes_columns(axes, program):
            return Function(nest.name, parameters, map_columns(axes, program, loads))
        if program is not None and takes_a_block(axes, program):
            return Function(nest.name, parameters, map_row_program(axes, program, loads))
        tile = tile_of(axes, body)
        if tile is not None:
            return Function(nest.name, parameters, map_tiles(axes, body, tile, loads))
        return Function(nest.name, parameters, map_elements(axes, body, loads))
    except Unfit:
        return Function(nest.name, parameters, map_alone(nest.body.statements, loads))


def map_elements(axes: Axes, body: Sequence[Statement], loads: Sequence[Statement] = ()) -> Block:
    """Return a kernel with one thread for each element or group of the axes. Excess threads do nothing."""
    width = group_width(axes, body)
    count = prod(axes.sizes) // width
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
                write_elements(b, axes, body, position, width)
        else:
            write_elements(b, axes, body, position, width)
    return b.finish()


def map_alone(body: Sequence[Statement], loads: Sequence[Statement] = ()) -> Block:
    """Return a kernel whose only thread runs all loops in order."""
    b = Builder()
    with (
        b.for_("b", 0, 1, kind=LoopKind.BLOCK),
        b.for_("t", 0, WARP, kind=LoopKind.THREAD) as thread,
        b.if_(b.compute(ScalarOp.EQ, thread.index, 0)),
    ):
        for statement in (*loads, *in_thread(body, {}, alone=True)):
            b.add(statement)
    return b.finish()
