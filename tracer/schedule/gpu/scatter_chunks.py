"""Chunks of long scatters on a GPU, so that no thread walks all updates where cells are few.

A scatter of more than 4,096 updates becomes several nests. Each chunk of successive updates has cells of its own:

1. every cell begins with the operation's identity;
2. each chunk is a scatter into its cells, which applies its updates in order (see `scatter_kernels`);
3. a reduction along the chunks joins a cell's results, the array's element from the left.

Where values are set, the cells hold the number of the last update that reaches them, joined by maxima. A map over
updates then stores the values that stay. Chunks follow from shapes alone, so that results do not depend on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from tracer.ir.dtypes import I32, I64, DType
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Carry,
    Compute,
    Constant,
    Fault,
    For,
    Function,
    Invoke,
    Load,
    LoopKind,
    Module,
    Operand,
    Register,
    Space,
    Statement,
    Store,
    Update,
    View,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder, address
from tracer.ir.loop.walk import accesses_of, statements_of, with_statements
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.scan_kernels import ALIGNMENT, BLOCKS
from tracer.schedule.gpu.scatter_kernels import Scatter, scatter_of, sliced
from tracer.schedule.gpu.threads import Names, Unfit, renamed, trips

CHAIN: Final = 1 << 12
"""Most updates that follow each other in a thread, where memory allows: up to as many, sums have the CPU's bits."""
_SHORTER: Final = 8  # times, a chunk where there are few
_MAX_CELLS: Final = 1 << 22  # cells of all chunks, or four times the updates' elements


def chunk_scatters(module: Module, *, chain: int = CHAIN) -> Module:
    """Return the module with scatters of more than `chain` updates to few cells in chunks."""
    chunking = _Chunking(module, chain)
    made = {f.name: steps for f in module.functions if f.name != module.entry and (steps := chunking.steps(f))}
    if not made:
        return module
    functions = [step for f in module.functions for step in made.get(f.name, (f,))]
    entry, known = module.entry_function, {f.name: f for f in module.functions}

    def in_steps(s: Statement) -> Sequence[Statement]:
        if not isinstance(s, Invoke) or s.function not in made:
            return (s,)
        given = dict(zip(known[s.function].parameters, s.arguments, strict=True))
        given.update({own: View(held) for own, held in chunking.memory.items()})
        return [Invoke(step.name, tuple(given[p] for p in step.parameters)) for step in made[s.function]]

    changed = replace(entry, body=with_statements(entry.body, in_steps))
    functions = [changed if f is entry else f for f in functions]
    return replace(module, functions=tuple(functions), arena=chunking.arena)


class _Chunking:
    """Writer of the nests of a module's scatters. memory: the arena's buffers, by the nests' parameters for them."""

    def __init__(self, module: Module, chain: int) -> None:
        self.chain = chain
        self.start = -(-module.arena // ALIGNMENT) * ALIGNMENT
        self.arena = module.arena
        self.memory: dict[Buffer | Register, Buffer] = {}

    def steps(self, function: Function) -> Sequence[Function]:
        """Return the nests in the place of a scatter of many updates to few cells, none for other functions."""
        try:
            scatter = scatter_of(function.body)
        except Unfit:
            return ()
        found = None if scatter is None else _chunks_of(scatter, self.chain)
        if scatter is None or found is None:
            return ()
        chunks, size = found
        cells = scatter.write.buffer.size
        is_set = isinstance(scatter.write, Store)
        dtype = I32 if is_set else scatter.write.buffer.dtype
        part, offset = self.room("part", dtype, chunks * cells, self.start)
        parts = _Parts(scatter, part, chunks, size)
        bodies = [parts.empty(), parts.scattered()]
        given: list[Buffer | Register] = [*function.parameters, part]
        if is_set:
            last, _ = self.room("last", dtype, cells, offset)
            given.append(last)
            bodies += [parts.joined(last, None), parts.stored(last)]
        else:
            bodies.append(parts.joined(scatter.write.buffer, scatter.write.buffer))
        return [_step(f"{function.name}_{n}", body, given) for n, body in enumerate(bodies)]

    def room(self, name: str, dtype: DType, count: int, offset: int) -> tuple[Buffer, int]:
        """Return a nest's parameter for memory at an offset of the arena, and the offset behind it."""
        held = Buffer(f"{name}{len(self.memory)}", dtype, count, Space.ARENA, offset, ALIGNMENT, written=True)
        parameter = replace(held, space=Space.ARGUMENT, offset=0)
        self.memory[parameter] = held
        end = offset + -(-count * dtype.itemsize // ALIGNMENT) * ALIGNMENT
        self.arena = max(self.arena, end)
        return parameter, end


def _chunks_of(s: Scatter, chain: int) -> tuple[int, int] | None:
    """Return the number of chunks and their updates, or None where one is enough, or memory allows no more."""
    count, cells = prod(map(trips, s.updates)), s.write.buffer.size
    if count <= chain or count >= 1 << 31 or not cells or cells % s.span:
        return None
    start = identity(s.write.op, s.write.buffer.dtype) if isinstance(s.write, Update) else 0
    if start != start:  # a dtype without infinity
        return None
    elements = count * prod(map(trips, (*s.batch, *s.window)))
    wanted = max(-(-count // chain), min(BLOCKS, _SHORTER * count // chain))
    chunks = min(wanted, max(_MAX_CELLS, 4 * elements) // cells)
    if chunks < 2:
        return None
    size = -(-count // chunks)
    return -(-count // size), size


def _step(name: str, body: Block, given: Sequence[Buffer | Register]) -> Function:
    """Return a nest with the parameters that it uses."""
    used = {b for s in statements_of(body) for b, _, _ in accesses_of(s)}
    return Function(name, tuple(p for p in given if isinstance(p, Register) or p in used), body)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Writer of the steps of a scatter. part: memory of all chunks' cells. size: updates of a chunk."""

    scatter: Scatter
    part: Buffer
    chunks: int
    size: int

    @property
    def cells(self) -> int:
        return self.scatter.write.buffer.size

    @property
    def op(self) -> ScalarOp:
        write = self.scatter.write
        return write.op if isinstance(write, Update) else ScalarOp.MAX

    @property
    def start(self) -> Constant:
        """The value of a cell that no update of a chunk reaches."""
        if isinstance(self.scatter.write, Store):
            return Constant(np.int32(-1), I32)
        return Constant(identity(self.op, self.part.dtype), self.part.dtype)

    def empty(self) -> Block:
        """Return step 1."""
        index = Register(I64, "i")
        body = Block((Store(self.part, address(index), self.start),))
        return Block((_loop(index, self.part.size, body, LoopKind.PARALLEL),))

    def scattered(self) -> Block:
        """Return step 2. Chunks are as long as the first one, and their last updates have no effect."""
        s, chunk, turn = self.scatter, Register(I64, "chunk"), Register(I64, "k")
        count, b = prod(map(trips, s.updates)), Builder()
        inside: Operand | None = None
        number = b.compute(ScalarOp.ADD, b.compute(ScalarOp.MUL, chunk, self.size), turn, name="update")
        if self.size * self.chunks > count:
            inside = b.compute(ScalarOp.LT, number, count, name="inside")
            number = b.compute(ScalarOp.MIN, number, count - 1)
        names = self.located(b, number)
        for each in s.statements if isinstance(s.write, Update) else sliced(s, s.write.mask)[0]:
            b.add(renamed(each, names))
        write = renamed(Store(s.write.buffer, s.write.address, s.write.value, s.write.mask), names)
        assert isinstance(write, Store)
        mask = write.mask if inside is None else _both(b, inside, write.mask)
        place = address(write.address, (chunk, self.cells))
        if isinstance(s.write, Update):
            b.update(self.part, place, self.op, write.value, mask=mask)
        else:
            b.store(self.part, place, b.convert(number, I32), mask=mask)
        body = b.finish()
        for each in reversed(s.window):
            body = Block((replace(each, body=body),))
        body = Block((_loop(turn, self.size, body),))
        for each in reversed(s.batch):
            body = Block((replace(each, body=body),))
        return Block((_loop(chunk, self.chunks, body, LoopKind.PARALLEL),))

    def located(self, b: Builder, number: Operand) -> Names:
        """Write the indices of an update by its number."""
        names: dict[Register, Operand] = {}
        for each in reversed(self.scatter.updates[1:]):
            names[each.index] = b.compute(ScalarOp.IREM, number, trips(each), name=each.index.name)
            number = b.compute(ScalarOp.IDIV, number, trips(each))
        names[self.scatter.updates[0].index] = number
        return names

    def joined(self, target: Buffer, before: Buffer | None) -> Block:
        """Return step 3. before: memory of the values that come in from the left, None for none."""
        cell, chunk = Register(I64, "cell"), Register(I64, "chunk")
        so_far, read, total, result, old = (Register(target.dtype, n) for n in ("acc", "part", "sum", "total", "old"))
        first: Operand = self.start if before is None else old
        carry = Carry(so_far, first, self.op, Constant(identity(self.op, target.dtype), target.dtype))
        place = Address(0, ((chunk, self.cells), (cell, 1)))
        body = Block((Load(read, self.part, place), Compute(total, self.op, (so_far, read))), (total,))
        each = replace(_loop(chunk, self.chunks, body), carries=(carry,), results=(result,))
        loads = () if before is None else (Load(old, before, address(cell)),)
        return Block(
            (_loop(cell, self.cells, Block((*loads, each, Store(target, address(cell), result))), LoopKind.PARALLEL),)
        )

    def stored(self, last: Buffer) -> Block:
        """Return the map over updates that stores the values that stay. last: the number of a cell's last update."""
        s, b = self.scatter, Builder()
        assert isinstance(s.write, Store)
        for each in s.statements:
            if not isinstance(each, Fault):  # step 2 recorded it
                b.add(each)
        number: Operand = index_constant(0)
        for loop in s.updates:
            number = b.compute(ScalarOp.ADD, b.compute(ScalarOp.MUL, number, trips(loop)), loop.index)
        found = b.load(last, s.write.address)
        stays = b.compute(ScalarOp.EQ, found, b.convert(number, I32), name="stays")
        b.store(s.write.buffer, s.write.address, s.write.value, mask=_both(b, stays, s.write.mask))
        body = b.finish()
        for each in reversed((*s.batch, *s.updates, *s.window)):
            body = Block((replace(each, body=body, kind=LoopKind.PARALLEL),))
        return body


def _loop(index: Register, count: int, body: Block, kind: LoopKind = LoopKind.SERIAL) -> For:
    return For(index, index_constant(0), index_constant(count), body, kind)


def _both(b: Builder, x: Operand, y: Operand | None) -> Operand:
    return x if y is None else b.compute(ScalarOp.AND, x, y)
