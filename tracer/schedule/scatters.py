"""Scatters: a copy of the operand (or the operand itself, where it dies), and a loop over the updates in order."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.ir import dtypes
from tracer.ir.loop import Address, LoopKind, Operand
from tracer.ir.primitive import Scatter
from tracer.ir.program import Atom, Equation, Var
from tracer.ir.scalar import ScalarOp
from tracer.schedule.blocks import BlockWriter
from tracer.schedule.complex import multiply
from tracer.schedule.function_writer import FunctionWriter
from tracer.schedule.index import Affine, flatten, plus, scaled
from tracer.schedule.sources import Element, Memory
from tracer.schedule.windows import scatter_window, update_window

_ON_BOOL = {
    ScalarOp.ADD: ScalarOp.OR,
    ScalarOp.MUL: ScalarOp.AND,
    ScalarOp.MAX: ScalarOp.OR,
    ScalarOp.MIN: ScalarOp.AND,
}


def memory_with_values(writer: BlockWriter, equation: Equation, operand: Atom, variable: Var) -> Memory:
    """The result's memory, holding the operand's values: the operand's own where it dies here, else a copy."""
    source = writer.memory_of(operand)
    if isinstance(operand, Var) and writer.may_take_over(equation, operand, variable):
        writer.sources[variable] = source
        writer.sources.pop(operand, None)
        return source
    target = writer.target_of(variable)
    if source != target:
        writer.copy(target, source)
    return target


def write_scatter(writer: BlockWriter, equation: Equation) -> None:
    """One of the scatters; its updates apply in row-major order."""
    lower, updates = equation.primitive.lower, equation.inputs[2]
    assert isinstance(lower, Scatter)
    memories = [writer.memory_of(atom) for atom in equation.inputs[1:3] if atom.type.shape]
    target = memory_with_values(writer, equation, equation.inputs[0], equation.outputs[0])
    f = FunctionWriter(writer)
    result = f.memory(target, written=True)
    alone = equation.params["unique_indices"] and target not in memories
    with f.loops(updates.type.shape, LoopKind.PARALLEL if alone else LoopKind.SERIAL) as index:
        puller = f.puller()
        window = scatter_window(equation, index)
        found = [puller.element(*demand) for demand in window.demands]
        flat = flatten(index, updates.type.shape)
        place, live = window.locate(f.builder, writer.module.sites, found, flat)
        value = puller.element(updates, index)
        _combine(f, result, place, lower.op, value, live)
    f.invoke()


def _combine(
    f: FunctionWriter,
    target: Memory,
    index: Sequence[Affine],
    op: ScalarOp | None,
    value: Element,
    live: Operand | None,
) -> None:
    if op is None:
        f.store(target, index, value, live)
        return
    place = plus(target.start, scaled(flatten(index, target.type.shape), len(value)))
    if len(value) == 1 or op is ScalarOp.ADD:
        for part, x in enumerate(value):
            actual = _ON_BOOL.get(op, op) if dtypes.is_bool(x.dtype) else op
            f.builder.update(target.buffer, Address(place.constant + part, place.terms), actual, x, mask=live)
        return
    fill = [0] * len(value)
    old = tuple(
        f.builder.load(
            target.buffer, Address(place.constant + part, place.terms), mask=live, fill=zero if live else None
        )
        for part, zero in enumerate(fill)
    )
    f.store(target, index, multiply(f.builder, old, value), live)


def write_update_slice(writer: BlockWriter, equation: Equation) -> None:
    """dynamic_update_slice."""
    update = equation.inputs[1]
    if update.type.shape:
        writer.memory_of(update)
    target = memory_with_values(writer, equation, equation.inputs[0], equation.outputs[0])
    f = FunctionWriter(writer)
    result = f.memory(target, written=True)
    with f.loops(update.type.shape, LoopKind.PARALLEL) as index:
        puller = f.puller()
        window = update_window(equation, index)
        found = [puller.element(*demand) for demand in window.demands]
        place, _ = window.locate(f.builder, writer.module.sites, found, flatten(index, update.type.shape))
        f.store(result, place, puller.element(update, index))
    f.invoke()
