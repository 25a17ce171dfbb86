"""Stacks in loop IR. Each `stack_empty` is one growable stack of the call, which the operations on it change in place.

An operation that pushes or adds takes its operand's stack over. A stack with other readers is copied first.
"""

from __future__ import annotations

from typing import Final

from tracer.errors import InternalError
from tracer.ir.layout import byte_size, scalar_count
from tracer.ir.loop import LoopKind, Operand
from tracer.ir.primitive import Structured
from tracer.ir.program import Atom, Equation, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, KeyType, StackType, Type
from tracer.schedule.terms.cost import no_cost
from tracer.schedule.terms.schedules import Schedule
from tracer.schedule.terms.value_locations import Memory, StackSource
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.growable_stacks import new_stack, own_stack, stack_of
from tracer.schedule.write.program_writer import BlockWriter
from tracer.schedule.write.serial_reductions import join


def item_type(atom: Atom) -> ArrayType | KeyType:
    assert isinstance(atom.type, StackType)
    return atom.type.item


def write_stack(writer: BlockWriter, equation: Equation) -> None:
    """Write one of the operations on stacks."""
    lower, b = equation.primitive.lower, writer.builder
    assert isinstance(lower, Structured)
    name = lower.kind
    output = equation.outputs[0]
    if name == "stack_empty":
        writer.sources[output] = new_stack(writer)
        return
    first, *others = equation.inputs
    if name == "stack_sum" and others[0] in writer.owned:  # a carry stays where it is
        first, others = others[0], [first]
    stack = stack_of(writer, first) if name in ("stack_item", "stack_spread") else own_stack(writer, equation, first)
    number, kind = stack.number, item_type(first)
    count = scalar_count(kind)
    match name:
        case "stack_spread":
            stack = _spread(writer, stack.number, kind, item_type(output), equation.params["axis"])
        case "stack_push":
            b.push(number, writer.memory_of(equation.inputs[1]).view, count)
        case "stack_pop":
            popped = _target(writer, equation.outputs[1])
            b.pop(number, popped.view, count)
        case "stack_item":
            b.read_item(number, writer.element_of(equation.inputs[1])[0], _target(writer, output).view, count)
            return
        case "stack_put":
            value = writer.memory_of(equation.inputs[2])
            b.write_item(number, writer.element_of(equation.inputs[1])[0], value.view, count)
        case "stack_add_at":
            index = writer.element_of(equation.inputs[1])[0]
            _add(writer, number, index, writer.memory_of(equation.inputs[2]), kind)
        case "stack_sum":
            _add_all(writer, number, stack_of(writer, others[0]).number, kind)
        case _:
            raise InternalError(f"{name} has no schedule")
    writer.sources[output] = stack


def _spread(writer: BlockWriter, number: int, kind: Type, wide: Type, axis: int) -> StackSource:
    """Return a new stack, of the items broadcast along a new axis."""
    b, spread = writer.builder, new_stack(writer)
    narrow, wider = writer.allocate(kind), writer.allocate(wide)
    with b.for_("item", 0, b.length(number, max(1, byte_size(kind)))) as loop:
        b.read_item(number, loop.index, narrow.view, scalar_count(kind))
        f = FunctionWriter(writer)
        source, target = f.memory(narrow), f.memory(wider, written=True)
        with f.loops(wide.shape, LoopKind.PARALLEL) as place:
            f.store(target, place, f.puller().load(source, (*place[:axis], *place[axis + 1 :])))
        f.invoke()
        b.push(spread.number, wider.view, scalar_count(wide))
    return spread


def _target(writer: BlockWriter, variable: Var) -> Memory:
    memory = writer.target_of(variable) if variable.type.shape else writer.allocate(variable.type)
    writer.sources[variable] = memory
    return memory


def _add(writer: BlockWriter, number: int, index: Operand, value: Memory, kind: Type) -> None:
    """Add a value to an item, by way of the arena."""
    b, count = writer.builder, scalar_count(kind)
    held = writer.allocate(kind)
    b.read_item(number, index, held.view, count)
    f = FunctionWriter(writer)
    total, part = f.memory(held, written=True), f.memory(value)
    with f.loops(kind.shape, LoopKind.PARALLEL) as place:
        puller = f.puller()
        f.store(total, place, join(f.builder, ScalarOp.ADD, puller.load(total, place), puller.load(part, place)))
    f.invoke()
    b.write_item(number, index, held.view, count)


def _add_all(writer: BlockWriter, number: int, other: int, kind: Type) -> None:
    """Add every item of another stack."""
    b = writer.builder
    items = writer.allocate(kind)
    with b.for_("item", 0, b.length(other, max(1, byte_size(kind)))) as loop:
        b.read_item(other, loop.index, items.view, scalar_count(kind))
        _add(writer, number, loop.index, items, kind)


def _schedule(kind: str) -> Schedule:
    return Schedule(Structured, kind, no_cost, write_stack)


STACK_EMPTY: Final = _schedule("stack_empty")
STACK_SPREAD: Final = _schedule("stack_spread")
STACK_PUSH: Final = _schedule("stack_push")
STACK_POP: Final = _schedule("stack_pop")
STACK_ITEM: Final = _schedule("stack_item")
STACK_PUT: Final = _schedule("stack_put")
STACK_ADD_AT: Final = _schedule("stack_add_at")
STACK_SUM: Final = _schedule("stack_sum")
