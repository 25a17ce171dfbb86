"""Growable stacks in kernels of one block: see `block_kernels`.

A kernel takes the memory of its stacks, with as much room as the host made, and their lengths. All threads move an item
together. Item i of n elements lies at i * n. The kernel holds the lengths of stacks that it changes in shared memory.

A loop whose iterations push ends when a stack has no room for one more of them. The host makes more room, and launches
the kernel again, which goes on where it ended: so the loop's arrays lie in the device's memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from tracer.ir import loop
from tracer.ir.dtypes import I64, DType
from tracer.ir.loop.build import Builder, address
from tracer.ir.loop.walk import blocks_of, statements_of
from tracer.ir.scalar import ScalarOp

OnStack = loop.StackPush | loop.StackPop | loop.StackRead | loop.StackLength | loop.StackReset
_Moving = loop.StackPush | loop.StackPop | loop.StackRead


@dataclass(frozen=True, slots=True)
class HeldStack:
    """Stack of a kernel. number: of its sizes. length: a shared cell, None where the kernel only reads the stack."""

    number: int
    use: loop.StackUse
    memory: loop.Buffer
    length: loop.Buffer | None


@dataclass(frozen=True, slots=True)
class Stacks:
    """Stacks of a kernel by their numbers in the program, and the buffer of their lengths and rooms."""

    held: Mapping[int, HeldStack]
    sizes: loop.Buffer

    @property
    def uses(self) -> tuple[loop.StackUse, ...]:
        return tuple(stack.use for stack in self.held.values())

    @property
    def parameters(self) -> list[loop.Buffer]:
        """Last parameters of the kernel."""
        return [*(stack.memory for stack in self.held.values()), self.sizes] if self.held else []

    @property
    def cells(self) -> list[loop.Buffer]:
        """Shared memory of the kernel for the lengths."""
        return [stack.length for stack in self.held.values() if stack.length is not None]

    @property
    def pushes(self) -> bool:
        return any(use.room for use in self.uses)

    @property
    def ends_early(self) -> bool:
        """Whether the kernel ends where a stack is full, and is launched again."""
        return any(use.room and use.rounds is None for use in self.uses)


def stacks_of(s: loop.Statement) -> Stacks | None:
    """Return the stacks of a loop or branch that is to be a kernel, None where it cannot.

    A kernel neither writes to items by their index, nor pushes in a loop within the loop: neither tells its room.
    """
    inside = list(statements_of(loop.Block((s,))))
    steps = [i for i in inside if isinstance(i, OnStack)]
    pushed = [i.stack for i in _pushes(s)]
    if len(pushed) < sum(isinstance(i, loop.StackPush) for i in steps):
        return None
    if any(isinstance(i, loop.StackWrite) for i in inside) or (
        pushed and isinstance(s, loop.For) and not _counts_up(s)
    ):
        return None
    changed = {i.stack for i in steps if isinstance(i, loop.StackPush | loop.StackPop | loop.StackReset)}
    held: dict[int, HeldStack] = {}
    for number in dict.fromkeys(i.stack for i in steps):
        of = [i for i in steps if i.stack == number and isinstance(i, _Moving)]
        if not of or not all(i.count for i in of):
            return None  # its items have no size
        dtype, count = _element(of[0])
        room = pushed.count(number)
        use = loop.StackUse(number, count * dtype.itemsize, room, _rounds(s) if room else None)
        memory = loop.Buffer(f"stack{number}", dtype, 0, loop.Space.ARGUMENT, written=number in pushed)
        cell = loop.Buffer(f"length{number}", I64, 1, loop.Space.SHARED, written=True) if number in changed else None
        held[number] = HeldStack(len(held), use, memory, cell)
    return Stacks(held, loop.Buffer("sizes", I64, 0, loop.Space.ARGUMENT, written=bool(changed)))


def _element(s: _Moving) -> tuple[DType, int]:
    view = s.source if isinstance(s, loop.StackPush) else s.target
    return view.buffer.dtype, s.count


def _pushes(s: loop.Statement) -> Iterator[loop.StackPush]:
    """Yield the pushes of a branch, or of an iteration of a loop, without pushes in loops within."""
    for block in blocks_of(s):
        for inner in block.statements:
            if isinstance(inner, loop.StackPush):
                yield inner
            elif isinstance(inner, loop.If):
                yield from _pushes(inner)


def _rounds(s: loop.Statement) -> loop.Operand | None:
    """Return how often a statement's pushes run at most, None where its iterations may end early for lack of room."""
    match s:
        case loop.For():
            return s.stop
        case loop.If():
            return loop.index_constant(1)
        case _:
            return None


def _counts_up(s: loop.For) -> bool:
    """Whether a loop has at most as many iterations as its end says."""
    return s.step > 0 and isinstance(s.start, loop.Constant) and int(s.start.value) >= 0


class Steps:
    """Writer of steps that all threads of a block run. b: the statements. read, stored: since the last barrier."""

    def __init__(self, names: Mapping[loop.Buffer, loop.Buffer], threads: int, stacks: Stacks) -> None:
        self.names, self.threads, self.stacks = names, threads, stacks
        self.b = Builder()
        self.thread = loop.Register(I64, "t")
        self.first: loop.Operand | None = None
        self.read: set[loop.Buffer] = set()
        self.stored: set[loop.Buffer] = set()

    @contextmanager
    def inside(self) -> Iterator[Builder]:
        outer, self.b = self.b, Builder()
        yield self.b
        self.b = outer

    # -- order of accesses

    def meet(self, reads: Iterable[loop.Buffer] = (), stores: Iterable[loop.Buffer] = ()) -> None:
        """Write a barrier where a step's accesses depend on accesses since the last one."""
        read, stored = set(reads), set(stores)
        if not self.stored.isdisjoint(read | stored) or not self.read.isdisjoint(stored):
            self.barrier()
        self.read |= read
        self.stored |= stored

    def barrier(self) -> None:
        """Write a barrier if memory was accessed since the last one."""
        if self.read or self.stored:
            self.b.barrier()
            self.read, self.stored = set(), set()

    # -- stacks

    def begin_stacks(self) -> None:
        """Write the reads of the lengths to the cells."""
        for stack in self.stacks.held.values():
            if stack.length is not None:
                self.keep(stack, self.b.load(self.stacks.sizes, 2 * stack.number, name="length"))

    def end_stacks(self) -> None:
        """Write the stores of the lengths for the host."""
        for stack in self.stacks.held.values():
            if stack.length is not None:
                length = self.length(stack)
                self.b.add(loop.Store(self.stacks.sizes, address(2 * stack.number), length, self.first))

    def length(self, stack: HeldStack, result: loop.Register | None = None) -> loop.Register:
        found = result or loop.Register(I64, "length")
        if stack.length is None:
            self.b.add(loop.Load(found, self.stacks.sizes, address(2 * stack.number)))
        else:
            self.meet(reads=[stack.length])
            self.b.add(loop.Load(found, stack.length, address()))
        return found

    def keep(self, stack: HeldStack, length: loop.Operand) -> None:
        assert stack.length is not None
        self.meet(stores=[stack.length])
        self.b.add(loop.Store(stack.length, address(), length, self.first))

    def on_stack(self, s: OnStack) -> None:
        """Write a step on a stack."""
        b, stack = self.b, self.stacks.held[s.stack]
        match s:
            case loop.StackPush():
                length = self.length(stack)
                self.move(s.count, s.source, self.item(stack, length, s.count))
                self.keep(stack, b.compute(ScalarOp.ADD, length, 1))
            case loop.StackPop():
                last = b.compute(ScalarOp.SUB, self.length(stack), 1)
                self.move(s.count, self.item(stack, last, s.count), s.target, b.compute(ScalarOp.GE, last, 0))
                self.keep(stack, b.compute(ScalarOp.MAX, last, 0))
            case loop.StackRead():
                lower = b.compute(ScalarOp.GE, s.index, 0)
                inside = b.compute(ScalarOp.AND, lower, b.compute(ScalarOp.LT, s.index, self.length(stack)))
                self.move(s.count, self.item(stack, s.index, s.count), s.target, inside)
            case loop.StackLength():
                self.length(stack, s.result)
            case loop.StackReset():
                self.keep(stack, loop.index_constant(0))

    def item(self, stack: HeldStack, index: loop.Operand, count: int) -> loop.View:
        return loop.View(stack.memory, address(self.b.compute(ScalarOp.MUL, index, count)))

    def move(self, count: int, source: loop.View, target: loop.View, mask: loop.Operand | None = None) -> None:
        """Write a copy of elements; zeros where a mask is false."""
        self.meet([source.buffer], [target.buffer])
        read, written = (self.names.get(view.buffer, view.buffer) for view in (source, target))
        with self.b.for_("i", self.thread, count, step=self.threads) as each:
            value = self.b.load(read, address(source.start, each.index), mask=mask)
            self.b.store(written, address(target.start, each.index), value)

    def with_room(self, block: loop.Block) -> loop.Block:
        """Return a loop's condition, which fails as well where a stack has no room for one more iteration."""
        b, condition = Builder(), block.yields[0]
        outer, self.b = self.b, b
        for s in block.statements:
            b.add(s)
        fits = [condition]
        for stack in self.stacks.held.values():
            if stack.use.room and stack.use.rounds is None:
                after = b.compute(ScalarOp.ADD, self.length(stack), stack.use.room)
                room = b.load(self.stacks.sizes, 2 * stack.number + 1, name="room")
                fits.append(b.compute(ScalarOp.LE, after, room))
        self.b = outer
        return b.finish(reduce(lambda x, y: b.compute(ScalarOp.AND, x, y), fits))
