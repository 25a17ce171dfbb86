"""Functions of loop IR written by hand-made schedules: their parameters, loops over shapes, and elements within."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tracer.ir.loop import Address, Block, Fault, Function, LoopKind, Operand, Register, Statement
from tracer.ir.loop.build import Builder
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Atom, Var
from tracer.schedule.elements.puller import Puller
from tracer.schedule.terms.affine import ZERO, Affine, Index, flatten, of_register, plus, scaled
from tracer.schedule.terms.value_locations import Element, Inline, Memory, Scalars, Source, StackSource
from tracer.schedule.write.nest_writer import Invocation, Parameters
from tracer.schedule.write.program_writer import BlockWriter


class FunctionWriter:
    """Collects a function's parameters while its body is written; `invoke` finishes it and calls it."""

    def __init__(self, writer: BlockWriter) -> None:
        self.writer = writer
        self.builder = Builder()
        self.parameters = Parameters()
        self.extents: dict[Register, int] = {}

    def memory(self, outer: Memory, *, written: bool = False) -> Memory:
        """Return an outer array, as the function sees it."""
        return self.parameters.memory(outer, written=written)

    def source_of(self, variable: Var) -> Source:
        """Return a value of the enclosing block, as the function sees it."""
        source = self.writer.source_of(variable)
        match source:
            case Memory():
                return self.parameters.memory(source)
            case Scalars(element):
                return Scalars(tuple(map(self.parameters.operand, element)))
            case Inline() | StackSource():
                return source

    def puller(self) -> Puller:
        """Return a puller for the open scope, valid until it closes."""
        return Puller(self.builder, self.source_of, self.extents, self.writer.module.sites)

    def element(self, atom: Atom, index: Index) -> Element:
        return self.puller().element(atom, index)

    @contextmanager
    def loops(self, shape: Sequence[int], kind: LoopKind | Sequence[LoopKind]) -> Iterator[tuple[Affine, ...]]:
        """Open loops over a shape, outermost first, of one kind or one for each axis, and yield the index."""
        kinds = [kind] * len(shape) if isinstance(kind, LoopKind) else kind
        with ExitStack() as stack:
            index = []
            for axis, (n, of) in enumerate(zip(shape, kinds, strict=True)):
                if n == 1:
                    index.append(ZERO)
                    continue
                loop = stack.enter_context(self.builder.for_(f"i{axis}", 0, n, kind=of))
                self.extents[loop.index] = n
                index.append(of_register(loop.index))
            yield tuple(index)

    def store(self, target: Memory, index: Sequence[Affine], element: Element, mask: Operand | None = None) -> None:
        """Store target[index] = element, where the mask holds."""
        self.store_at(target, flatten(index, target.type.shape), element, mask)

    def store_at(self, target: Memory, position: Affine, element: Element, mask: Operand | None = None) -> None:
        """Store an element at a row-major position of the target, where the mask holds."""
        place = plus(target.start, scaled(position, len(element)))
        for part, value in enumerate(element):
            self.builder.store(target.buffer, Address(place.constant + part, place.terms), value, mask=mask)

    def invoke(self) -> None:
        """Finish the function, and call it from the block."""
        body = self.builder.finish()
        function = Function(self.writer.module.next_name(), tuple(self.parameters.parameters), body)
        faults = contains_fault(body.statements)
        self.writer.invoke(Invocation(function, tuple(self.parameters.arguments), faults))


def contains_fault(statements: Sequence[Statement]) -> bool:
    """Whether a fault may be recorded in the statements or in the loops within."""
    return any(isinstance(s, Fault) for s in statements_of(Block(tuple(statements))))
