"""The entry of a program on a GPU: kernels in order, and kernels of one thread for the scalars between them.

A program without control flow runs straight: its scalars are computed by kernels too, and go through memory from
one to the next, so that nothing waits for a value to come back to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracer.ir.loop import (
    Address,
    Buffer,
    Callback,
    Compute,
    Copy,
    Fault,
    For,
    Function,
    If,
    Invoke,
    Leave,
    Library,
    Load,
    LoopKind,
    Module,
    Operand,
    Register,
    Space,
    StackLength,
    StackPop,
    StackPush,
    StackRead,
    StackReset,
    StackWrite,
    Statement,
    Store,
    View,
    While,
)  # fmt: skip
from tracer.ir.loop.build import Builder
from tracer.ir.loop.walk import accesses_of, operands_of, results_of
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.threads import WARP

_SLOT = 8  # bytes of a scalar in the arena: the widest dtype's
_ALIGNMENT = 64

Scalar = Compute | Load | Store | Fault


def runs_straight(entry: Function) -> bool:
    """Whether the entry has neither control flow nor callbacks, nor library calls that take computed scalars."""
    straight = all(isinstance(s, Scalar | Invoke | Copy | Leave | Library) for s in entry.body.statements)
    calls = [s for s in entry.body.statements if isinstance(s, Library)]
    return straight and not any(isinstance(o, Register) for s in calls for o in operands_of(s))


def left_on_host(entry: Function) -> tuple[str, ...]:
    """Return the entry's steps that need the host, a sentence for each."""
    found = [_host_step(s) for s in entry.body.statements]
    return tuple(dict.fromkeys(step for step in found if step))


def _host_step(s: Statement) -> str:
    match s:
        case Library(name):
            return f"main: the library routine {name}"
        case Callback():
            return "main: a callback into Python"
        case While():
            return "main: a while loop"
        case For():
            return "main: a loop with a known number of rounds (scan)"
        case If():
            return "main: a branch (cond)"
        case StackPush() | StackPop() | StackRead() | StackWrite() | StackReset() | StackLength():
            return "main: a stack of values kept for the backward pass"
        case _:
            return ""


def scalars_to_kernels(module: Module) -> Module:
    """Return the module with the entry's scalars in kernels; every other function takes scalars from memory already."""
    entry = next(f for f in module.functions if f.name == module.entry)
    writer = _Entry(entry, module.arena)
    for statement in entry.body.statements:
        writer.write(statement)
    writer.flush()
    main = replace(entry, body=writer.main.finish())
    others = tuple(f for f in module.functions if f is not entry)
    return replace(module, functions=(*others, *writer.kernels, main), arena=writer.arena)


class _Entry:
    """Writes the entry anew. slots: where a scalar is kept that a later step reads."""

    def __init__(self, entry: Function, arena: int) -> None:
        self.main = Builder()
        self.kernels: list[Function] = []
        self.arena = arena
        self.slots: dict[Register, Buffer] = {}
        self.pending: list[Scalar] = []
        self.uses: dict[Register, int] = {}  # of registers, in the whole entry
        for statement in entry.body.statements:
            for register in _registers(statement):
                self.uses[register] = self.uses.get(register, 0) + 1

    def write(self, s: Statement) -> None:
        """Take the next statement: scalars wait for those beside them."""
        if isinstance(s, Scalar):
            if self._overlaps(s):
                self.flush()
            self.pending.append(s)
            return
        self.flush()
        if isinstance(s, Invoke):
            s = Invoke(s.function, tuple(self._argument(a) for a in s.arguments))
        self.main.add(s)

    def _overlaps(self, s: Scalar) -> bool:
        """Whether a waiting access goes to the same bytes under another name: no two parameters of a kernel do."""
        if not isinstance(s, Load | Store):
            return False
        waiting = [w for w in self.pending if isinstance(w, Load | Store) and Store in (type(w), type(s))]
        return any(w.buffer is not s.buffer and _share_bytes(w.buffer, s.buffer) for w in waiting)

    def _argument(self, argument: View | Operand) -> View | Operand:
        return View(self.slots[argument]) if isinstance(argument, Register) else argument

    def flush(self) -> None:
        """Make a kernel of the scalars that wait."""
        run, self.pending = self.pending, []
        if not run:
            return
        made = {r for s in run for r in results_of(s)}
        read = dict.fromkeys(r for s in run for r in _registers(s) if r not in made)
        inside: dict[Register, int] = {}
        for s in run:
            for register in _registers(s):
                inside[register] = inside.get(register, 0) + 1
        kept = [r for s in run for r in results_of(s) if self.uses.get(r, 0) > inside.get(r, 0)]
        for register in kept:
            self._slot(register)
        self._kernel(run, list(read), kept)

    def _slot(self, register: Register) -> None:
        start = -(-self.arena // _ALIGNMENT) * _ALIGNMENT if not self.slots else self.arena
        name = f"{register.name or 'x'}_{len(self.slots)}"
        self.slots[register] = Buffer(name, register.dtype, 1, Space.ARENA, start, written=True)
        self.arena = start + _SLOT

    def _kernel(self, run: Sequence[Scalar], read: Sequence[Register], kept: Sequence[Register]) -> None:
        written = {buffer for s in run if isinstance(s, Store) for buffer in (s.buffer,)}
        outer = [b for s in run for b, _, _ in accesses_of(s)]
        outer += [self.slots[r] for r in (*read, *kept)]
        own = written | {self.slots[r] for r in kept}
        inner = {b: Buffer(b.name, b.dtype, b.size, Space.ARGUMENT, written=b in own) for b in dict.fromkeys(outer)}
        b = Builder()
        with (
            b.for_("b", 0, 1, kind=LoopKind.BLOCK),
            b.for_("t", 0, WARP, kind=LoopKind.THREAD) as thread,
            b.if_(b.compute(ScalarOp.EQ, thread.index, 0)),
        ):
            for register in read:
                b.add(Load(register, inner[self.slots[register]], Address()))
            for s in run:
                b.add(replace(s, buffer=inner[s.buffer]) if isinstance(s, Load | Store) else s)
            for register in kept:
                b.store(inner[self.slots[register]], 0, register)
        name = f"scalars{len(self.kernels)}"
        self.kernels.append(Function(name, tuple(inner.values()), b.finish()))
        self.main.invoke(name, *inner)


def _share_bytes(a: Buffer, b: Buffer) -> bool:
    ends = [buffer.offset + buffer.size * buffer.dtype.itemsize for buffer in (a, b)]
    return a.space is b.space is Space.ARENA and a.offset < ends[1] and b.offset < ends[0]


def _registers(s: Statement) -> list[Register]:
    """Return the registers that a statement reads, in order."""
    found = [o for o in operands_of(s) if isinstance(o, Register)]
    for _, address, _ in accesses_of(s):
        found += [register for register, _ in address.terms]
    return found
