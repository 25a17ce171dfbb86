"""Loops and branches as one kernel: a block of threads runs all of their steps, with barriers between them.

A loop or branch of the host becomes a kernel where each step is a small kernel or copy: of at most 16,384 operations,
which one multiprocessor does in the time of a launch. Shapes alone decide. Then no iteration launches a kernel, or
waits for a condition. Stacks, callbacks and library routines keep a loop on the host.

Arrays that nothing else uses lie in shared memory where they fit, else in their own part of the arena.
`block_kernels` writes the kernels, whose results have the bits of the loops on the host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

from tracer.ir import loop
from tracer.ir.loop.walk import accesses_of, registers_read, results_of, share_bytes, statements_of, with_blocks
from tracer.schedule.gpu.block_kernels import Grid, block_kernel, grid_of
from tracer.schedule.gpu.block_stacks import OnStack, Stacks, stacks_of
from tracer.schedule.gpu.threads import WARP

MAX_OPERATIONS: Final = 1 << 14
"""Operations of one step: iterations of a kernel's innermost loops, all threads together."""
_SHARED_BYTES: Final = 40 << 10  # of the 48 KB that every block has
_ALIGNMENT: Final = 64


def loops_to_kernels(module: loop.Module) -> loop.Module:
    """Return the module with the entry's loops and branches as kernels where a block of threads can run them.

    Nothing changes where a nest has no kernel, since the entry is in device normal form only where all have.
    """
    entry = next(f for f in module.functions if f.name == module.entry)
    found = {f.name: grid_of(f) for f in module.functions if f is not entry}
    grids = {name: grid for name, grid in found.items() if grid is not None}
    if len(grids) < len(found):
        return module
    merging = _Merging(module, entry, grids)
    body = merging.block(entry.body)
    if not merging.made:
        return module
    used = {s.function for s in statements_of(body) if isinstance(s, loop.Invoke)}
    kept = [f for f in (*module.functions, *merging.made) if f is not entry and f.name in used]
    return replace(module, functions=(*kept, replace(entry, body=body)), arena=merging.arena)


class _Merging:
    """The entry's loops. grids: kernels by name. uses, reads: how often the entry names each buffer and register."""

    def __init__(self, module: loop.Module, entry: loop.Function, grids: dict[str, Grid]) -> None:
        self.grids = grids
        self.uses, self.reads = Counter(_buffers(entry.body)), registers_read(entry.body)
        self.arena = module.arena
        self.made: list[loop.Function] = []

    def block(self, block: loop.Block) -> loop.Block:
        """Return a block of the entry with its outermost loops and branches as kernels where they fit."""
        done: list[loop.Statement] = []
        for s in block.statements:
            stacks = stacks_of(s) if isinstance(s, loop.For | loop.While | loop.If) else None
            loads = [] if stacks is None or stacks.pushes else self.loads(s, done)
            merged = None if stacks is None else self.merged(loop.Block((*loads, s)), stacks)
            if merged is not None:
                done = [before for before in done if before not in loads]
            done.append(merged or with_blocks(s, self.block))
        return replace(block, statements=tuple(done))

    def loads(self, s: loop.Statement, before: Sequence[loop.Statement]) -> list[loop.Load]:
        """Return the loads before a loop or branch of values that only it reads, such as its trip count."""
        reads, found, written = registers_read(loop.Block((s,))), list[loop.Load](), set[loop.Buffer]()
        for earlier in reversed(before):
            match earlier:
                case loop.Load(result, buffer) if 0 < reads[result] == self.reads[result] and buffer not in written:
                    found.insert(0, earlier)
                case _:
                    pass
            written |= self.written(loop.Block((earlier,)))
        return found

    def merged(self, inside: loop.Block, stacks: Stacks) -> loop.Invoke | None:
        """Return the launch of a kernel that runs a loop or branch, None where a block cannot."""
        if not all(map(self.fits, statements_of(inside))):
            return None
        grids = [self.grids[i.function] for i in statements_of(inside) if isinstance(i, loop.Invoke)]
        threads = max([WARP, *(grid.width for grid in grids)])
        room = _SHARED_BYTES - sum(map(_bytes, stacks.cells))
        room -= sum(_bytes(b) * grid.at_once(threads) for grid in grids for b in grid.shared)
        counts, written = Counter(_buffers(inside)), self.written(inside)
        own = [b for b, n in counts.items() if b.space is loop.Space.ARENA and n == self.uses[b]]
        outer = [b for b in counts if b not in own]
        pairs = combinations(outer, 2)
        if room < 0 or any(share_bytes(a, b) and not written.isdisjoint((a, b)) for a, b in pairs):
            return None
        names = {b: replace(b, space=loop.Space.ARGUMENT, offset=0, written=b in written) for b in outer}
        arguments: list[loop.View | loop.Operand] = [loop.View(b) for b in outer]
        for b in own:
            is_shared = _bytes(b) <= room and not stacks.ends_early
            names[b] = replace(b, space=loop.Space.SHARED if is_shared else loop.Space.ARGUMENT, offset=0)
            if is_shared:
                room -= _bytes(b)
            else:
                arguments.append(loop.View(self.moved(b)))
        parameters = [b for b in names.values() if b.space is loop.Space.ARGUMENT]
        given = _free(inside)
        body = block_kernel(inside.statements, self.grids, names, threads, stacks)
        kernel = loop.Function(f"loop{len(self.made)}", (*parameters, *given, *stacks.parameters), body)
        grid = grid_of(kernel)
        assert grid is not None
        self.grids[kernel.name] = grid
        self.made.append(kernel)
        return loop.Invoke(kernel.name, (*arguments, *given), stacks=stacks.uses)

    def moved(self, b: loop.Buffer) -> loop.Buffer:
        """Return memory for a buffer that shares no byte with any other."""
        start = -(-self.arena // _ALIGNMENT) * _ALIGNMENT
        self.arena = start + _bytes(b)
        return replace(b, offset=start)

    def fits(self, s: loop.Statement) -> bool:
        """Whether a block of threads can run a step of the entry."""
        match s:
            case loop.Invoke():
                return self.grids[s.function].operations <= MAX_OPERATIONS and self.grids[s.function].may_share_a_block
            case loop.Copy() | loop.StackPush() | loop.StackPop() | loop.StackRead():
                return s.count <= MAX_OPERATIONS
            case loop.For():
                return s.kind is loop.LoopKind.SERIAL and not s.carries
            case _:
                return isinstance(s, loop.While | loop.If | loop.Load | loop.Store | loop.Leave | OnStack)

    def written(self, block: loop.Block) -> set[loop.Buffer]:
        """Return the entry's buffers that a block writes."""
        found = set()
        for s in statements_of(block):
            match s:
                case loop.Store():
                    found.add(s.buffer)
                case loop.Copy() | loop.StackPop() | loop.StackRead():
                    found.add(s.target.buffer)
                case loop.Invoke():
                    for a, p in zip(s.arguments, self.grids[s.function].parameters, strict=not s.stacks):
                        if isinstance(a, loop.View) and isinstance(p, loop.Buffer) and p.written:
                            found.add(a.buffer)
                case _:
                    pass
        return found


def _buffers(block: loop.Block) -> Iterator[loop.Buffer]:
    """Yield the buffer of each access in a block."""
    for s in statements_of(block):
        yield from (buffer for buffer, _, _ in accesses_of(s))


def _bytes(b: loop.Buffer) -> int:
    return b.size * b.dtype.itemsize


def _free(block: loop.Block) -> tuple[loop.Register, ...]:
    """Return the registers of the host that a block reads and does not assign."""
    made = {r for s in statements_of(block) for r in (*results_of(s), *((s.index,) if isinstance(s, loop.For) else ()))}
    return tuple(r for r in registers_read(block) if r not in made)
