"""The entry of a program on a GPU, in device normal form: kernels, copies and library steps, and the loops around them.

Scalars are computed by kernels of one thread, and so are loops and branches of nothing but scalars. They lie in slots
of the arena, from where later kernels read them. So nothing waits for a value to come back, but where the host must
decide. Predicates of branches, conditions of loops, trip counts and addresses that depend on scalars are read from
their slots. A loop's carries are slots too, assigned at once at the end of its body. The indices of counted loops are
the host's; kernels read them from a slot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import combinations

from tracer.errors import InternalError
from tracer.ir import loop
from tracer.ir.loop.build import Builder
from tracer.ir.loop.walk import (
    accesses_of,
    blocks_of,
    operands_of,
    results_of,
    share_bytes,
    statements_of,
    with_buffers,
    with_statements,
)
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.threads import WARP

_SLOT = 8  # bytes of a scalar in the arena: the widest dtype's
_ALIGNMENT = 64

Simple = loop.Compute | loop.Load | loop.Store | loop.Fault
Nested = loop.For | loop.While | loop.If
Scalar = Simple | Nested
OnStack = loop.StackPush | loop.StackPop | loop.StackRead | loop.StackWrite | loop.StackReset
HostStep = loop.Copy | loop.Library | loop.Callback | OnStack


def left_on_host(entry: loop.Function) -> tuple[str, ...]:
    """Return the entry's steps that no kernel does: library routines and callbacks, a sentence for each."""
    steps = []
    for s in statements_of(entry.body):
        if isinstance(s, loop.Library):
            steps.append(f"{entry.name}: the library routine {s.name}")
        elif isinstance(s, loop.Callback):
            steps.append(f"{entry.name}: a callback into Python")
    return tuple(dict.fromkeys(steps))


def scalars_to_kernels(module: loop.Module) -> loop.Module:
    """Return the module with its entry in device normal form. All other functions take scalars from memory already."""
    entry = module.entry_function
    writer = _Entry(entry, module.arena)
    main = replace(entry, body=writer.block(entry.body))
    others = tuple(f for f in module.functions if f is not entry)
    return replace(module, functions=(*others, *writer.kernels, main), arena=writer.arena)


class _Entry:
    """Writes the entry anew. slots: where scalars lie that later steps read. known: the registers of the host."""

    def __init__(self, entry: loop.Function, arena: int) -> None:
        self.main = Builder()
        self.kernels: list[loop.Function] = []
        self.arena = arena
        self.slots: dict[loop.Register, loop.Buffer] = {}
        self.known: set[loop.Register] = set()
        self.pending: list[Scalar] = []
        self.uses = _uses(entry.body)

    # -- blocks and steps

    def block(self, block: loop.Block, values: Sequence[loop.Register] = ()) -> loop.Block:
        """Return a block of the entry. values: the registers whose slots take its yields, all at once."""
        with self._inside() as main:
            self._statements(block)
            self._assign(values, block.yields)
        return main.finish()

    @contextmanager
    def _inside(self) -> Iterator[Builder]:
        outer, self.main = self.main, Builder()
        yield self.main
        self.main = outer

    def _statements(self, block: loop.Block) -> None:
        for statement in block.statements:
            if isinstance(statement, Simple) or (isinstance(statement, Nested) and _is_scalar(statement)):
                if self._overlaps(statement):
                    self._flush()
                self.pending.append(statement)
            else:
                self._flush()
                self._step(statement)

    def _step(self, s: loop.Statement) -> None:
        match s:
            case loop.Invoke():
                self.main.add(loop.Invoke(s.function, tuple(self._argument(a) for a in s.arguments)))
            case loop.While():
                self._assign([c.register for c in s.carries], [c.initial for c in s.carries])
                condition = self._condition(s.condition)
                body = self.block(s.body, [c.register for c in s.carries])
                self._results(s)
                self.main.add(loop.While((), condition, body, ()))
            case loop.For():
                self._for(s)
            case loop.If():
                predicate = self._host(s.predicate)
                for result in s.results:
                    self._slot(result)
                then, otherwise = self.block(s.then, s.results), self.block(s.otherwise, s.results)
                self.main.add(loop.If(predicate, then, otherwise))
            case loop.StackLength():
                self.main.add(s)
                self._from_host(s.result)
            case loop.Leave():
                self.main.add(s)
            case _ if isinstance(s, HostStep):
                self.main.add(self._on_host(s))
            case _:
                raise InternalError(f"a {type(s).__name__} stands in the entry of a GPU's program")

    def _condition(self, block: loop.Block) -> loop.Block:
        with self._inside() as main:
            self._statements(block)
            self._flush()
            found = self._host(block.yields[0])
        return replace(main.finish(), yields=(found,))

    def _for(self, s: loop.For) -> None:
        start, stop = self._host(s.start), self._host(s.stop)
        self._assign([c.register for c in s.carries], [c.initial for c in s.carries])
        with self._inside() as main:
            self._from_host(s.index)
            self._statements(s.body)
            self._assign([c.register for c in s.carries], s.body.yields)
        self._results(s)
        self.main.add(loop.For(s.index, start, stop, main.finish(), loop.LoopKind.SERIAL, s.step))

    def _results(self, s: loop.For | loop.While) -> None:
        for carry, result in zip(s.carries, s.results, strict=True):
            self.slots[result] = self.slots[carry.register]

    # -- values that the host and the device hand each other

    def _assign(self, targets: Sequence[loop.Register], values: Sequence[loop.Operand]) -> None:
        """Write values to the slots of registers, all of them read before any is written."""
        if targets:
            stored = [loop.Store(self._slot(t), loop.Address(), v) for t, v in zip(targets, values, strict=True)]
            if any(self._overlaps(s) for s in stored):
                self._flush()
            self.pending += stored
        self._flush()

    def _from_host(self, register: loop.Register) -> None:
        """Note a register that the host computes, and write it to a slot if kernels read it."""
        self.known.add(register)
        if self.uses[register]:
            self.main.add(loop.Store(self._slot(register), loop.Address(), register))

    def _host(self, operand: loop.Operand) -> loop.Operand:
        """Return an operand as the host knows it, read from its slot if the device computed it."""
        if not isinstance(operand, loop.Register) or operand in self.known:
            return operand
        found = loop.Register(operand.dtype, operand.name)
        self.main.add(loop.Load(found, self.slots[operand], loop.Address()))
        return found

    def _address(self, address: loop.Address) -> loop.Address:
        terms = [(self._host(register), factor) for register, factor in address.terms]
        return loop.Address(address.constant, tuple((r, n) for r, n in terms if isinstance(r, loop.Register)))

    def _view(self, view: loop.View) -> loop.View:
        return replace(view, start=self._address(view.start)) if view.start.terms else view

    def _argument(self, argument: loop.View | loop.Operand) -> loop.View | loop.Operand:
        if isinstance(argument, loop.View):
            return self._view(argument)
        return loop.View(self.slots[argument]) if isinstance(argument, loop.Register) else argument

    def _on_host(self, s: loop.Statement) -> loop.Statement:
        """Return a step with its views and operands as the host knows them."""
        match s:
            case loop.Copy():
                return replace(s, target=self._view(s.target), source=self._view(s.source))
            case loop.Library():
                taken = [self._view(a) if isinstance(a, loop.View) else self._host(a) for a in s.arguments]
                return replace(s, arguments=tuple(taken))
            case loop.Callback():
                inputs, outputs = (tuple(map(self._view, views)) for views in (s.inputs, s.outputs))
                return replace(s, inputs=inputs, outputs=outputs)
            case loop.StackPush():
                return replace(s, source=self._view(s.source))
            case loop.StackPop():
                return replace(s, target=self._view(s.target))
            case loop.StackRead():
                return replace(s, index=self._host(s.index), target=self._view(s.target))
            case loop.StackWrite():
                return replace(s, index=self._host(s.index), source=self._view(s.source))
            case _:
                return s

    # -- kernels of one thread

    def _overlaps(self, s: Scalar) -> bool:
        """Whether a waiting access goes to the same bytes under another name: no two parameters of a kernel do."""
        own, waiting = _accesses((s,)), _accesses(self.pending)
        return any(_clash(a, w) for a in own for w in waiting)

    def _flush(self) -> None:
        """Make a kernel of the scalars that wait."""
        run, self.pending = self.pending, []
        if not run:
            return
        inside, made = _uses(loop.Block(tuple(run))), _made(run)
        read = [r for r in inside if r not in made]
        kept = [r for s in run for r in results_of(s) if self.uses[r] > inside[r]]
        for register in kept:
            self._slot(register)
        self._kernel(run, read, kept)

    def _slot(self, register: loop.Register) -> loop.Buffer:
        found = self.slots.get(register)
        if found is None:
            start = -(-self.arena // _ALIGNMENT) * _ALIGNMENT if not self.slots else self.arena
            name = f"{register.name or 'x'}_{len(self.slots)}"
            found = self.slots[register] = loop.Buffer(name, register.dtype, 1, loop.Space.ARENA, start, written=True)
            self.arena = start + _SLOT
        return found

    def _kernel(self, run: Sequence[Scalar], read: Sequence[loop.Register], kept: Sequence[loop.Register]) -> None:
        accesses = _accesses(run)
        written = {buffer for buffer, is_store in accesses if is_store}
        outer = [buffer for buffer, _ in accesses]
        outer += [self.slots[r] for r in (*read, *kept)]
        own = written | {self.slots[r] for r in kept}
        given = loop.Space.ARGUMENT
        inner = {b: loop.Buffer(b.name, b.dtype, b.size, given, written=b in own) for b in dict.fromkeys(outer)}
        b, body = Builder(), _without_idle_leaves(with_buffers(loop.Block(tuple(run)), inner))
        alone = any(isinstance(s, loop.Leave) for s in statements_of(body))  # which all threads do, or none
        with (
            b.for_("b", 0, 1, kind=loop.LoopKind.BLOCK),
            b.for_("t", 0, 1 if alone else WARP, kind=loop.LoopKind.THREAD) as thread,
            nullcontext() if alone else b.if_(b.compute(ScalarOp.EQ, thread.index, 0)),
        ):
            for register in read:
                b.add(loop.Load(register, inner[self.slots[register]], loop.Address()))
            for s in body.statements:
                b.add(s)
            for register in kept:
                b.store(inner[self.slots[register]], 0, register)
        name = f"scalars{len(self.kernels)}"
        self.kernels.append(loop.Function(name, tuple(inner.values()), b.finish()))
        self.main.invoke(name, *inner)


def _uses(block: loop.Block) -> Counter[loop.Register]:
    """Return how often each register is read in a block and the blocks within, yields and initial carries included."""
    found: Counter[loop.Register] = Counter(r for r in block.yields if isinstance(r, loop.Register))
    for s in block.statements:
        found.update(_registers(s))
        for inner in blocks_of(s):
            found.update(_uses(inner))
    return found


def _made(statements: Sequence[loop.Statement]) -> set[loop.Register]:
    """Return the registers that statements and the blocks within assign, indices and carries included."""
    made = set[loop.Register]()
    for s in statements_of(loop.Block(tuple(statements))):
        made.update(results_of(s), (s.index,) if isinstance(s, loop.For) else ())
        made.update(c.register for c in (s.carries if isinstance(s, loop.For | loop.While) else ()))
    return made


def _is_scalar(s: Nested) -> bool:
    """Whether one thread can run a loop or branch: scalars alone, in memory that has one name."""
    inside = list(statements_of(loop.Block((s,))))
    simple = all(isinstance(i, Simple | Nested | loop.Leave) for i in inside)
    serial = all(i.kind is loop.LoopKind.SERIAL for i in inside if isinstance(i, loop.For))
    return simple and serial and not any(_clash(a, b) for a, b in combinations(_accesses((s,)), 2))


def _without_idle_leaves(block: loop.Block) -> loop.Block:
    """Return a block without the places where it leaves after a fault, if nothing in it may fail."""
    if any(isinstance(s, loop.Fault) for s in statements_of(block)):
        return block
    return with_statements(block, lambda s: () if isinstance(s, loop.Leave) else (s,))


def _accesses(statements: Sequence[loop.Statement]) -> list[tuple[loop.Buffer, bool]]:
    """Return the buffers that statements and the blocks within access, each with whether they store to it."""
    inside = statements_of(loop.Block(tuple(statements)))
    found = [(buffer, isinstance(s, loop.Store)) for s in inside for buffer, _, _ in accesses_of(s)]
    return list(dict.fromkeys(found))


def _clash(a: tuple[loop.Buffer, bool], b: tuple[loop.Buffer, bool]) -> bool:
    """Whether two accesses, a store among them, go to the same bytes under two names."""
    return (a[1] or b[1]) and a[0] is not b[0] and share_bytes(a[0], b[0])


def _registers(s: loop.Statement) -> list[loop.Register]:
    """Return the registers that a statement reads, in order."""
    found = [o for o in operands_of(s) if isinstance(o, loop.Register)]
    for _, address, _ in accesses_of(s):
        found += [register for register, _ in address.terms]
    return found
