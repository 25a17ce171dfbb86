"""Kernels of one block that run loops and branches of the host: see `block_loops`.

    kernels       their blocks take turns, side by side where the threads suffice; threads without work store nothing
    copies        thread t moves elements t, t + T, t + 2T, ... of T threads
    conditions    read by all threads from the cell that a kernel wrote
    barriers      before a step that reads memory which other threads stored since the last barrier, or stores to memory
                  that they accessed; at the end of each iteration

Each element is computed as by the kernels that the host would launch. A fault ends the kernel where the host would
leave: all threads look at the record between two barriers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from tracer.ir import loop
from tracer.ir.dtypes import BOOL, I64
from tracer.ir.loop.build import address
from tracer.ir.loop.walk import Access, accesses_of, blocks_of, statements_of
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.block_stacks import OnStack, Stacks, Steps
from tracer.schedule.terms.clone import Copier, Names

_MAX_THREADS: Final = 512
_Parameter = loop.Buffer | loop.Register
_RECORD: Final = loop.Buffer("record", I64, 1, loop.Space.ARGUMENT)  # the record of faults


@dataclass(frozen=True, slots=True)
class Grid:
    """A kernel's loops over blocks and threads."""

    parameters: tuple[_Parameter, ...]
    blocks: loop.For
    threads: loop.For

    @property
    def before(self) -> tuple[loop.Statement, ...]:
        """Statements that all threads of a block run alike."""
        return self.blocks.body.statements[:-1]

    @property
    def shared(self) -> list[loop.Buffer]:
        return [s.buffer for s in self.before if isinstance(s, loop.Alloc)]

    @property
    def meets(self) -> bool:
        """Whether threads of a block wait for each other."""
        return any(isinstance(s, loop.Barrier | loop.Shuffle) for s in statements_of(self.threads.body))

    @property
    def faults(self) -> bool:
        return any(isinstance(s, loop.Fault) for s in statements_of(self.blocks.body))

    @property
    def may_share_a_block(self) -> bool:
        """Whether threads without work may run along."""
        inside = list(statements_of(self.threads.body))
        stays = not any(isinstance(s, loop.Leave) for s in inside)
        return stays and not (self.meets and any(isinstance(s, loop.While) for s in inside))

    @property
    def operations(self) -> int:
        """Iterations of the innermost loops, all threads together."""
        return _operations(loop.Block((self.blocks,)))

    @property
    def width(self) -> int:
        """Threads that the kernel can use, as far as a block has them."""
        blocks, threads = trips(self.blocks), trips(self.threads)
        return threads * max(1, min(blocks, _MAX_THREADS // threads))

    def at_once(self, threads: int) -> int:
        """Return the number of its blocks that so many threads run side by side."""
        return max(1, min(trips(self.blocks), threads // trips(self.threads)))


def grid_of(function: loop.Function) -> Grid | None:
    """Return a kernel's loops, None for a function that is no kernel."""
    blocks = function.body.statements[0] if function.body.statements else None
    if not isinstance(blocks, loop.For) or blocks.kind is not loop.LoopKind.BLOCK:
        return None
    threads = blocks.body.statements[-1]
    assert isinstance(threads, loop.For), "a loop over blocks ends in one over threads"
    return Grid(function.parameters, blocks, threads)


def trips(s: loop.For) -> int:
    """Return the most iterations of a loop, 1 where they are not known. Threads may share its range."""
    if not isinstance(s.stop, loop.Constant):
        return 1
    start = int(s.start.value) if isinstance(s.start, loop.Constant) else 0
    return max(0, -(-(int(s.stop.value) - start) // s.step))


def _operations(block: loop.Block) -> int:
    found = 0
    for s in block.statements:
        found += sum(map(_operations, blocks_of(s))) * (trips(s) if isinstance(s, loop.For) else 1)
    return max(found, 1)


def block_kernel(
    steps: Sequence[loop.Statement], grids: Mapping[str, Grid], names: Mapping[loop.Buffer, loop.Buffer], threads: int,
    stacks: Stacks,
) -> loop.Block:  # fmt: skip
    """Return a kernel of one block that runs steps of the entry. names: its memory, by the entry's."""
    return _Writer(grids, names, threads, stacks).kernel(steps)


class _Writer(Steps):
    """Writer of one kernel. known: values of cells that the host's part stored. outermost: the loop or branch."""

    def __init__(
        self, grids: Mapping[str, Grid], names: Mapping[loop.Buffer, loop.Buffer], threads: int, stacks: Stacks
    ) -> None:
        super().__init__(names, threads, stacks)
        self.grids = grids
        self.shared = [*(b for b in names.values() if b.space is loop.Space.SHARED), *stacks.cells]
        self.known: dict[loop.Buffer, loop.Operand] = {}
        self.inlined = 0

    def kernel(self, steps: Sequence[loop.Statement]) -> loop.Block:
        """Write the kernel."""
        block, self.outermost = loop.Register(I64, "b"), steps[-1]
        inside = list(statements_of(loop.Block(tuple(steps))))
        self.faults = any(self.grids[i.function].faults for i in inside if isinstance(i, loop.Invoke))
        with self.inside() as b:
            if self.stacks.cells or any(isinstance(i, loop.Store) for i in inside):
                self.first = b.compute(ScalarOp.EQ, self.thread, 0, name="first")
            self.begin_stacks()
            for s in steps:
                self.statement(s)
            self.end_stacks()
        bounds = loop.index_constant(0), loop.index_constant(self.threads)
        each = loop.For(self.thread, *bounds, b.finish(), loop.LoopKind.THREAD)
        body = loop.Block((*map(loop.Alloc, self.shared), each))
        return loop.Block((loop.For(block, bounds[0], loop.index_constant(1), body, loop.LoopKind.BLOCK),))

    # -- steps of the host

    def block(self, block: loop.Block, *, repeats: bool = False) -> loop.Block:
        """Return a block's steps. repeats: whether an iteration may follow."""
        with self.inside() as b:
            for s in block.statements:
                self.statement(s)
            if repeats:
                self.barrier()
        return b.finish(*block.yields)

    def statement(self, s: loop.Statement) -> None:
        """Write a step of the host."""
        match s:
            case loop.Invoke():
                self.invoke(s)
            case loop.Copy():
                self.copy(s)
            case loop.Load():
                self.meet(reads=[s.buffer])
                self.b.add(replace(s, buffer=self.names[s.buffer]))
            case loop.Store():
                self.meet(stores=[s.buffer])
                self.b.add(replace(s, buffer=self.names[s.buffer], mask=self.first))
                self.known[s.buffer] = s.value
            case loop.Leave() if self.faults:
                self.meet(stores=[_RECORD])
                self.b.add(s)
            case loop.Leave():
                pass
            case loop.For() | loop.While():
                self.host_loop(s)
            case loop.If():
                self.branch(s)
            case _:
                assert isinstance(s, OnStack), s
                self.on_stack(s)

    def host_loop(self, s: loop.For | loop.While) -> None:
        """Write a loop. Accesses of a While's condition are the last ones before its body, and after the loop."""
        self.forget(s)
        self.barrier()
        if isinstance(s, loop.While):
            condition = self.block(s.condition)
            if s is self.outermost and self.stacks.ends_early:
                condition = self.with_room(condition)
            accessed = set(self.read), set(self.stored)
            self.b.add(loop.While((), condition, self.block(s.body, repeats=True), ()))
            self.read, self.stored = accessed
        else:
            self.b.add(replace(s, body=self.block(s.body, repeats=True)))
        self.forget(s)

    def branch(self, s: loop.If) -> None:
        """Write a branch, whose arms both begin after the same accesses."""
        self.forget(s)
        before = set(self.read), set(self.stored)
        then = self.block(s.then)
        after = self.read, self.stored
        self.read, self.stored = before
        self.b.add(loop.If(s.predicate, then, self.block(s.otherwise)))
        self.read, self.stored = self.read | after[0], self.stored | after[1]
        self.forget(s)

    def forget(self, s: loop.Statement) -> None:
        """Forget the cells that a loop or branch stores to."""
        for inner in statements_of(loop.Block((s,))):
            if isinstance(inner, loop.Store):
                self.known.pop(inner.buffer, None)

    def copy(self, s: loop.Copy) -> None:
        """Write a copy of memory."""
        self.move(s.count, s.source, s.target)

    # -- kernels

    def invoke(self, s: loop.Invoke) -> None:
        """Write the blocks of a kernel, some side by side."""
        grid = self.grids[s.function]
        blocks, at_once = trips(grid.blocks), grid.at_once(self.threads)
        if not blocks:
            return  # no elements
        views = {p: a for p, a in zip(grid.parameters, s.arguments, strict=True) if isinstance(a, loop.View)}
        inside = list(statements_of(grid.blocks.body))
        read, stored = set[loop.Buffer]({_RECORD} if grid.faults else ()), set[loop.Buffer]()
        for i in inside:
            for buffer, _, access in accesses_of(i):
                if buffer in views:
                    (stored if access is Access.WRITE else read).add(views[buffer].buffer)
        self.meet(read, stored)
        known = {p: self.known[v.buffer] for p, v in views.items() if v.buffer in self.known}
        rounds = -(-blocks // at_once)
        if rounds < 2:
            self.turn(grid, views, known, loop.index_constant(0))
            return
        r = loop.Register(I64, "r")
        with self.inside() as b:
            self.turn(grid, views, known, b.compute(ScalarOp.MUL, r, at_once))
            if grid.meets:
                b.barrier()
        self.b.add(loop.For(r, loop.index_constant(0), loop.index_constant(rounds), b.finish()))

    def turn(
        self, grid: Grid, views: Mapping[_Parameter, loop.View], known: Mapping[_Parameter, loop.Operand],
        block: loop.Operand,
    ) -> None:  # fmt: skip
        """Write some blocks of a kernel, side by side. block: the first one."""
        b, blocks, size, at_once = self.b, trips(grid.blocks), trips(grid.threads), grid.at_once(self.threads)
        lane: loop.Operand = self.thread
        group: loop.Operand = loop.index_constant(0)
        if at_once > 1:
            lane = b.compute(ScalarOp.IREM, self.thread, size, name="lane")
            group = b.compute(ScalarOp.IDIV, self.thread, size, name="group")
            block = b.compute(ScalarOp.ADD, block, group, name="block")
        checks: list[tuple[loop.Operand, int]] = [(block, blocks)] if blocks % at_once else []
        checks += [(self.thread, at_once * size)] if at_once * size < self.threads else []
        inside = [b.compute(ScalarOp.LT, found, limit, name="inside") for found, limit in checks]
        mask = reduce(lambda x, y: b.compute(ScalarOp.AND, x, y), inside) if inside else None
        names: Names = {grid.blocks.index: block, grid.threads.index: lane}
        names |= {p: self.names[view.buffer] for p, view in views.items()}
        starts = {p: view.start for p, view in views.items()}
        for buffer in grid.shared:
            own = names[buffer] = replace(buffer, name=f"k{self.inlined}_{buffer.name}", size=buffer.size * at_once)
            starts[buffer] = address((group, buffer.size))
            self.shared.append(own)
        copier = _Inlined(names, starts, known, mask if grid.meets else None, self.inlined)
        self.inlined += 1
        inner = copier.block(loop.Block((*grid.before, *grid.threads.body.statements)))
        if mask is None or grid.meets:
            for s in inner.statements:
                b.add(s)
        else:
            b.add(loop.If(mask, inner))


class _Inlined(Copier):
    """Copies a kernel's statements.

    starts: addresses of its memory in the buffers of `names`. known: values of cells. mask: whether the thread has
    work. number: for names.
    """

    def __init__(
        self, names: Names, starts: Mapping[_Parameter, loop.Address], known: Mapping[_Parameter, loop.Operand],
        mask: loop.Operand | None, number: int,
    ) -> None:  # fmt: skip
        super().__init__(names)
        self.starts, self.known, self.mask, self.number = starts, known, mask, number

    def statements(self, s: loop.Statement) -> Sequence[loop.Statement]:
        match s:
            case loop.Alloc() if s.buffer.space is loop.Space.SHARED:
                return ()
            case loop.Alloc():
                self.names[s.buffer] = replace(s.buffer, name=f"k{self.number}_{s.buffer.name}")
                return (loop.Alloc(self.buffer(s.buffer)),)
            case loop.Load() if s.mask is None and s.address == loop.Address() and s.buffer in self.known:
                self.names[s.result] = self.known[s.buffer]
                return ()
            case loop.Copy():
                return [copy for move in _one_by_one(s) for copy in self.statements(move)]
            case loop.Load() | loop.Store():
                copy = self.statement(s)
                assert isinstance(copy, loop.Load | loop.Store)
                start = self.starts.get(s.buffer)
                copy = copy if start is None else replace(copy, address=address(start, copy.address))
                if self.mask is None or copy.buffer.space is loop.Space.LOCAL:
                    return (copy,)
                before, mask = self.both(self.mask, copy.mask)
                return (*before, replace(copy, mask=mask))
            case loop.Fault() if self.mask is not None:
                copy = self.statement(s)
                assert isinstance(copy, loop.Fault)
                before, holds = self.both(self.mask, copy.predicate)
                return (*before, replace(copy, predicate=holds))
            case _:
                return super().statements(s)

    def both(self, mask: loop.Operand, other: loop.Operand | None) -> tuple[Sequence[loop.Statement], loop.Operand]:
        """Return the statements that compute whether both hold, and their result."""
        if other is None:
            return (), mask
        result = loop.Register(BOOL, "both")
        return (loop.Compute(result, ScalarOp.AND, (mask, other)),), result


def _one_by_one(s: loop.Copy) -> Iterator[loop.Statement]:
    """Yield a wide access as accesses to each element."""
    for n in range(s.count):
        value = loop.Register(s.source.buffer.dtype, "moved")
        yield loop.Load(value, s.source.buffer, address(s.source.start, n))
        yield loop.Store(s.target.buffer, address(s.target.start, n), value)
