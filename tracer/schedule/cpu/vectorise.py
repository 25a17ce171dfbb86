"""Vectorisation: the loop of each nest that runs in vector lanes, and how many lanes it has.

The number of lanes of a reduction is part of the result's meaning (see `ir.loop`). So it follows from dtypes and counts
alone. It is four 64-byte vectors of the accumulated dtype, or two or one where that is enough. Further lanes would only
hold the identity. Elementwise loops take one vector of their widest dtype.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Compute,
    Constant,
    Fault,
    For,
    Load,
    LoopKind,
    Module,
    Operand,
    Register,
    Statement,
    Store,
    Update,
    While,
)
from tracer.ir.loop.varying import varying_from
from tracer.ir.loop.walk import blocks_of
from tracer.ir.target import CPU, Machine, Target
from tracer.schedule.cpu.column_reductions import streamed
from tracer.schedule.cpu.ordered_stores import in_order, stores_in_order
from tracer.schedule.cpu.short_row_reductions import with_rows_in_lanes
from tracer.schedule.cpu.transpose_tiling import tiled

_REDUCTION_BYTES = 256  # max of an accumulator: belongs to the meaning of a result
_SCATTERED = 2**62  # step of an address that no step describes


def vectorise(module: Module, target: Target = CPU) -> Module:
    """Return the module with one loop of every nest turned into a vector loop, where there is one that gains."""
    functions = tuple(
        f if f.name == module.entry else replace(f, body=_map_block(f.body, target.machine)) for f in module.functions
    )
    return replace(module, functions=functions)


def _map_block(block: Block, machine: Machine) -> Block:
    return Block(tuple(_map_loop(s, machine) if isinstance(s, For) else s for s in block.statements), block.yields)


def _map_loop(loop: For, machine: Machine) -> For:
    """Return the loop with itself, or a loop within it, as a vector loop."""
    if loop.kind is LoopKind.VECTOR:
        return loop
    if stores_in_order(loop):
        return in_order(loop)
    loop = with_rows_in_lanes(loop, machine) or loop
    cut = tiled(loop, machine)
    if cut is not None:
        return replace(cut, body=_map_block(cut.body, machine))
    inner = [s for s in loop.body.statements if isinstance(s, For)]
    if _vectorizable(loop) and (not inner or not _better_inside(loop, machine)):
        rows = streamed(loop, machine) if inner else None
        if rows is not None:
            return rows
        lanes = _lanes(loop, machine)
        if lanes > 1:
            return replace(loop, body=_serial(loop.body), kind=LoopKind.VECTOR, lanes=lanes)
    return replace(loop, body=_map_block(loop.body, machine)) if inner else loop


def runs_lanes_inside(loop: For, machine: Machine) -> bool:
    """Whether the lanes of a loop over loops would be in the inner loops, its own iterations running in order."""
    return tiled(loop, machine) is None and not (_vectorizable(loop) and not _better_inside(loop, machine))


def _serial(block: Block) -> Block:
    """Return the block inside a vector loop, where each lane runs the loops within serially."""
    statements = tuple(
        replace(s, body=_serial(s.body), kind=LoopKind.SERIAL) if isinstance(s, For) else s for s in block.statements
    )
    return Block(statements, block.yields)


def _vectorizable(loop: For) -> bool:
    """Whether iterations are independent or reductions that join, over plain statements and simple loops."""
    simple = isinstance(loop.start, Constant) and int(loop.start.value) == 0 and loop.step == 1
    ordinary = all(carry.combine is not None for carry in loop.carries)
    if not simple or not ordinary or (loop.kind is LoopKind.SERIAL and not loop.carries):
        return False
    return all(_plain(s, loop.index) for s in loop.body.statements)


def _plain(statement: Statement, index: Register) -> bool:
    match statement:
        case Compute() | Load() | Store() | Update() | Fault():
            return True
        case For():
            bounds = isinstance(statement.start, Constant) and isinstance(statement.stop, Constant)
            mapped = statement.kind is LoopKind.VECTOR  # chosen by its schedule
            return bounds and not mapped and all(_plain(s, index) for s in statement.body.statements)
        case While():
            return all(_plain(s, index) for block in blocks_of(statement) for s in block.statements)
        case _:
            return False


def _better_inside(loop: For, machine: Machine) -> bool:
    """Whether a loop within steps through memory more smoothly than this one."""
    mine = _smoothness(loop, loop.index, machine)
    return _better_than(mine, loop, machine)


def _better_than(score: float, loop: For, machine: Machine) -> bool:
    inner = [s for s in loop.body.statements if isinstance(s, For)]
    return any(
        (_vectorizable(s) and _smoothness(s, s.index, machine) >= score)
        or stores_in_order(s)
        or _better_than(score, s, machine)
        for s in inner
    )


def _smoothness(loop: For, index: Register, machine: Machine) -> float:
    """Return the share of accesses under the loop that are contiguous, or do not move, as its index steps.

    Addresses computed from the index, such as loaded indices, are neither. Where none is contiguous, it matters more
    how many lanes have something to do.
    """
    varying = varying_from(loop.body, {index})
    steps = [
        _SCATTERED if any(r in varying and r is not index for r, _ in address.terms) else _step(address, index)
        for _, address in _accesses(loop.body.statements)
    ]
    if not steps:
        return 1.0
    share = sum(step == 1 or step == 0 for step in steps) / len(steps)
    contiguous = sum(step == 1 for step in steps)
    if contiguous or loop.carries or not isinstance(loop.stop, Constant):
        return share + 0.01 * contiguous
    iterations, lanes = int(loop.stop.value), max(1, _lanes(loop, machine))
    return (share + 0.1) * iterations / (-(-iterations // lanes) * lanes) if iterations else share


def _step(address: Address, index: Register) -> int:
    return next((c for r, c in address.terms if r is index), 0)


def _lanes(loop: For, machine: Machine) -> int:
    if loop.carries:
        widest = max(carry.register.dtype.itemsize for carry in loop.carries)
        return _enough_lanes(loop.stop, _REDUCTION_BYTES // widest, machine.reduction_bytes // widest)
    accesses = list(_accesses(loop.body.statements))
    moving = [buffer for buffer, address in accesses if _step(address, loop.index)]
    widths = [buffer.dtype.itemsize for buffer in moving or [buffer for buffer, _ in accesses]]
    return machine.vector_bytes // max(widths) if widths else 1


def _enough_lanes(stop: Operand, most: int, least: int) -> int:
    """Return the lanes of a reduction: `most`, halved while every element still has a lane of its own."""
    if not isinstance(stop, Constant):
        return most
    while most // 2 >= max(least, int(stop.value)):
        most //= 2
    return most


def _accesses(statements: Sequence[Statement]) -> Iterator[tuple[Buffer, Address]]:
    for s in statements:
        match s:
            case Load() | Store() | Update():
                yield s.buffer, s.address
            case For():
                yield from _accesses(s.body.statements)
            case _:
                pass
