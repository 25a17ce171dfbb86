"""Growable stacks as sources of values: the buffer of a stack, and a copy of a stack that may not be changed."""

from __future__ import annotations

from tracer.errors import InternalError
from tracer.ir.layout import byte_size, scalar_count
from tracer.ir.program import Atom, Equation, Var
from tracer.ir.types import StackType
from tracer.schedule.terms.value_locations import StackSource
from tracer.schedule.write.program_writer import BlockWriter


def stack_of(writer: BlockWriter, atom: Atom) -> StackSource:
    """Return the growable stack that holds a value."""
    source = writer.source_of(atom) if isinstance(atom, Var) else None
    if not isinstance(source, StackSource):
        raise InternalError(f"a stack was expected, not {atom}")
    return source


def new_stack(writer: BlockWriter) -> StackSource:
    """Return one more growable stack, reset whenever control reaches this point."""
    number = writer.module.stacks
    writer.module.stacks += 1
    writer.builder.reset(number)
    return StackSource(number)


def own_stack(writer: BlockWriter, equation: Equation, atom: Atom) -> StackSource:
    """Return the stack of a value, for an equation that changes it: a copy where it has other readers."""
    source = stack_of(writer, atom)
    assert isinstance(atom, Var) and isinstance(atom.type, StackType)  # noqa: PT018
    if sum(atom is other for other in equation.inputs) == 1 and writer.dies_here(atom):
        return source
    copy = new_stack(writer)
    copy_stack(writer, copy, source, atom.type)
    return copy


def copy_stack(writer: BlockWriter, target: StackSource, source: StackSource, type: StackType) -> None:
    """Write every item of one stack to another, which is empty."""
    b, item = writer.builder, type.item
    held, count = writer.allocate(item), scalar_count(item)
    with b.for_("item", 0, b.length(source.number, max(1, byte_size(item)))) as loop:
        b.read_item(source.number, loop.index, held.view, count)
        b.write_item(target.number, loop.index, held.view, count)
