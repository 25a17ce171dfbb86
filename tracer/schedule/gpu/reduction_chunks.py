"""Chunks of long reductions on a GPU: one kernel reduces chunks, so that enough blocks have work, a second joins them.

Chunks follow from shapes alone, and are joined in order, so that results do not depend on the device. A second launch
costs microseconds, and needs neither atomic operations nor a counter that somebody sets back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Carry,
    Compute,
    For,
    Function,
    Load,
    LoopKind,
    Module,
    Register,
    Statement,
    Store,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder
from tracer.ir.loop.walk import statements_of
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.column_kernels import tile_width, tiles_of
from tracer.schedule.gpu.row_programs import Phase, RowProgram, row_program, takes_a_block, takes_columns
from tracer.schedule.gpu.scan_columns import SMALL, chunked_columns
from tracer.schedule.gpu.scan_kernels import ALIGNMENT, BLOCKS, MIN_CHUNK, chunked_scan, totals_of
from tracer.schedule.gpu.threads import Axes, Unfit, split, trips
from tracer.schedule.terms.loop_slicing import moved
from tracer.schedule.terms.two_steps import Steps, with_two_steps


def chunk_reductions(module: Module, *, small: int = SMALL) -> Module:
    """Return the module with long reductions to few results in two steps: of chunks, and of their totals.

    small: elements of columns with partial results that stay in one step.
    """
    functions: list[Function] = []
    made: dict[str, Steps] = {}
    arena = -(-module.arena // ALIGNMENT) * ALIGNMENT
    size = module.arena
    for function in module.functions:
        found = None
        if function.name != module.entry:
            found = _chunked(function, arena) or chunked_scan(function, arena)
            found = found or chunked_columns(function, arena, small)
        if found is None:
            functions.append(function)
            continue
        made[function.name] = found
        functions += found[:2]
        size = max(size, *(b.offset + b.size * b.dtype.itemsize for b in found[2]))
    if not made:
        return module
    return with_two_steps(module, functions, made, size)


def _chunked(function: Function, arena: int) -> Steps | None:
    """Return both steps, and the memory between them at an offset of the arena, or None for other functions."""
    try:
        axes, statements = split(function.body)
        program = row_program(statements)
    except Unfit:
        return None
    if program is None or len(program.phases) != 1 or not program.phases[0].reduces:
        return None
    if not all(isinstance(s, Phase | Compute | Load | Store) for s in program.steps):
        return None
    loop, length = program.phases[0].loops[0], trips(program.phases[0].loops[0])
    chunks = _count(axes, program)
    if chunks < 2 or any(isinstance(s, Store) for s in statements_of(loop.body)):
        return None
    count = prod(axes.sizes)
    buffers, parts = totals_of(function.name, loop.results, chunks * count, arena)
    at = statements.index(loop)
    before, after = statements[:at], statements[at + 1 :]
    chunk = Register(I64, "chunk")
    place = Address(0, ((chunk, count), *_row_major(axes)))
    part = _part(loop, chunk, -(-length // chunks), length)
    stores = [Store(b, place, r) for b, r in zip(parts, part.results, strict=True)]
    inner = _around(axes, (*before, part, *stores))
    each = For(chunk, index_constant(0), index_constant(chunks), inner, LoopKind.PARALLEL)
    whole = _around(axes, (*before, _joined(loop, parts, chunk, place, chunks), *after))
    parameters = (*function.parameters, *parts)
    first = Function(f"{function.name}_chunks", parameters, Block((each,)))
    return first, Function(f"{function.name}_joined", parameters, whole), buffers


def _count(axes: Axes, program: RowProgram) -> int:
    """Return the number of chunks, one where there are blocks enough or little to reduce."""
    if takes_columns(axes, program):
        blocks, width = tiles_of(axes), tile_width(axes.sizes[-1])
    elif takes_a_block(axes, program):
        blocks, width = prod(axes.sizes), 1
    else:
        return 1
    loops = program.phases[0].loops
    length = trips(loops[0])
    wanted = min(-(-BLOCKS // max(blocks, 1)), program.length * width // MIN_CHUNK, length)
    if wanted < 2:
        return 1
    dividing = [n for n in range(max(wanted // 2, 2), 2 * wanted + 1) if length % n == 0]
    near = min(dividing, key=lambda n: abs(n - wanted), default=wanted)
    return near if len(loops) == 1 or length % near == 0 else 1


def _row_major(axes: Axes) -> list[tuple[Register, int]]:
    """Return the terms of a position among the axes."""
    return [(r, prod(axes.sizes[n + 1 :])) for n, r in enumerate(axes.registers)]


def _around(axes: Axes, statements: Sequence[Statement]) -> Block:
    """Return statements within the independent loops."""
    block = Block(tuple(statements))
    for register, size in reversed(list(zip(axes.registers, axes.sizes, strict=True))):
        block = Block((For(register, index_constant(0), index_constant(size), block, LoopKind.PARALLEL),))
    return block


def _part(loop: For, chunk: Register, size: int, length: int) -> For:
    """Return the reduction of one chunk from the identity. The last chunk may have fewer elements."""
    pairs = zip(loop.carries, _combining(loop), strict=True)
    carries = tuple(replace(c, initial=own.identity) for c, own in pairs if own.identity is not None)
    results = tuple(Register(r.dtype, "part") for r in loop.results)
    part = moved(replace(loop, carries=carries, results=results), Address(0, ((chunk, size),)), index_constant(size))
    if length % size == 0:
        return part
    b = Builder()
    position = b.compute(ScalarOp.ADD, b.compute(ScalarOp.MUL, chunk, size), part.index)
    with b.if_(b.compute(ScalarOp.LT, position, length, name="inside")) as inside:
        for s in part.body.statements:
            b.add(s)
        inside.yields(*part.body.yields)
    with inside.otherwise as outside:
        outside.yields(*(c.register for c in part.carries))
    return replace(part, body=b.finish(*inside.results))


def _combining(loop: For) -> Sequence[Carry]:
    """Return the combining carries of a reduction, which its innermost loop has."""
    while any(c.combine is None for c in loop.carries):
        inner = loop.body.statements[0]
        assert isinstance(inner, For), "see row_reductions.chain"
        loop = inner
    return loop.carries


def _joined(loop: For, parts: Sequence[Buffer], chunk: Register, place: Address, chunks: int) -> For:
    """Return the reduction of the chunks' totals."""
    carries, statements, yields = [], list[Statement](), []
    for outer, own, part in zip(loop.carries, _combining(loop), parts, strict=True):
        assert own.combine is not None
        so_far, read, total = (Register(part.dtype, name) for name in ("acc", "part", "total"))
        carries.append(Carry(so_far, outer.initial, own.combine, own.identity))
        statements += [Load(read, part, place), Compute(total, own.combine, (so_far, read))]
        yields.append(total)
    body = Block(tuple(statements), tuple(yields))
    stop = index_constant(chunks)
    return For(chunk, index_constant(0), stop, body, carries=tuple(carries), results=loop.results)
