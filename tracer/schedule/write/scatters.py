"""Scatters: a loop over the updates in order, into the operand at its last use or a copy.

Axes along which updates cannot overlap are parallel loops: axes of windows and batch axes of the operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.ir import dtypes
from tracer.ir.loop import Address, LoopKind, Operand
from tracer.ir.primitive import Alias, Scatter
from tracer.ir.program import Atom, Equation, Literal, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import size
from tracer.primitives.arrays.indexing.dimension_numbers import ScatterDimensionNumbers
from tracer.schedule.elements.complex.arithmetic import combine
from tracer.schedule.elements.gather_bounds import scatter_window, update_window
from tracer.schedule.elements.in_place_updates import (
    is_computed_in_place,
    is_most,
    is_stored_at_once,
    reads_its_array,
)
from tracer.schedule.elements.pointwise import ON_BOOL
from tracer.schedule.elements.puller import is_map
from tracer.schedule.terms.affine import Affine, flatten, plus, scaled, shifted
from tracer.schedule.terms.cost import Cost, Nested, no_cost
from tracer.schedule.terms.schedules import CHEAP, Definitions, Schedule, Values
from tracer.schedule.terms.value_locations import Element, Memory, Scalars
from tracer.schedule.write.concatenate_pad import around
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter


def memory_with_values(writer: BlockWriter, equation: Equation, operand: Atom, variable: Var) -> Memory:
    """Return the result's memory, holding the operand's values: the operand's own at its last use, else a copy."""
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
    """Write a scatter. Updates apply in row-major order."""
    lower, updates = equation.primitive.lower, equation.inputs[2]
    assert isinstance(lower, Scatter)
    target = memory_with_values(writer, equation, equation.inputs[0], equation.outputs[0])
    f = FunctionWriter(writer)
    result = f.memory(target, written=True)
    sources = [writer.sources.get(v) for v in writer.reads(equation.inputs[1:])]
    kinds = _loops(equation)
    if target in sources:
        kinds = dict.fromkeys(kinds, LoopKind.SERIAL)
    with f.loops([updates.type.shape[axis] for axis in kinds], list(kinds.values())) as around:
        index = tuple(i for _, i in sorted(zip(kinds, around, strict=True)))
        puller = f.puller()
        window = scatter_window(equation, index)
        found = [puller.element(*demand) for demand in window.demands]
        place, live = window.locate(f.builder, writer.module.sites, found)
        value = puller.element(updates, index)
        _combine(f, result, place, lower.op, value, live)
    f.invoke()


def _loops(equation: Equation) -> dict[int, LoopKind]:
    """Return the updates' axes, outermost loop first: PARALLEL where updates never reach one element twice.

    Windows that move along their own axis may overlap: each is written whole before the next.
    """
    rank = len(equation.inputs[2].type.shape)
    if equation.params["unique_indices"]:
        return dict.fromkeys(range(rank), LoopKind.PARALLEL)
    numbers: ScatterDimensionNumbers = equation.params["dimension_numbers"]
    windows = [a for a in range(len(equation.inputs[0].type.shape)) if numbers.as_gather.is_window(a)]
    moving = {
        axis for axis, of in zip(numbers.update_window_dims, windows, strict=True)
        if of in numbers.scatter_dims_to_operand_dims
    }  # fmt: skip
    around = [axis for axis in range(rank) if axis not in numbers.update_window_dims]
    batched = {around[lane] for lane in numbers.scatter_indices_batching_dims}
    last = max(around, default=-1)
    order = sorted(range(rank), key=lambda axis: (axis > last, axis < last and axis in moving, axis))
    serial = [axis in around and axis not in batched for axis in order]
    return {axis: LoopKind.SERIAL if on else LoopKind.PARALLEL for axis, on in zip(order, serial, strict=True)}


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
            actual = ON_BOOL.get(op, op) if dtypes.is_bool(x.dtype) else op
            f.builder.update(target.buffer, Address(place.constant + part, place.terms), actual, x, mask=live)
        return
    fill = [0] * len(value)
    old = tuple(
        f.builder.load(
            target.buffer, Address(place.constant + part, place.terms), mask=live, fill=zero if live else None
        )
        for part, zero in enumerate(fill)
    )
    f.store(target, index, combine(f.builder, op, old, value), live)


def write_update_slice(writer: BlockWriter, equation: Equation) -> None:
    """Write a dynamic_update_slice."""
    (operand, update, *_), (variable,) = equation.inputs, equation.outputs
    source = writer.memory_of(operand)
    read = operand if isinstance(operand, Var) and operand is not update and operand in writer.reads([update]) else None
    apart = read or (operand if isinstance(operand, Var) and variable in writer.framed else None)
    if apart and is_most(equation) and not writer.may_take_over(equation, apart, variable):
        target = _with_frame(writer, equation, apart)
    else:
        target = memory_with_values(writer, equation, operand, variable)
    replaced = read if read and read not in writer.sources else None
    if replaced:  # its elements are read where they are replaced
        writer.sources[replaced] = source
    f = FunctionWriter(writer)
    result = f.memory(target, written=True)
    with f.loops(update.type.shape, LoopKind.PARALLEL) as index:
        puller = f.puller()
        window = update_window(equation, index)
        found = [puller.element(*demand) for demand in window.demands]
        place, _ = window.locate(f.builder, writer.module.sites, found)
        f.store(result, place, puller.element(update, index))
    f.invoke()
    if replaced:
        writer.sources.pop(replaced)


def _with_frame(writer: BlockWriter, equation: Equation, operand: Var) -> Memory:
    """Return memory for the result, other than the operand's, holding the operand's elements around the update."""
    target, source = writer.target_of(equation.outputs[0]), writer.memory_of(operand)
    if equation.outputs[0] in writer.framed:
        return target
    starts = [start.value for start in equation.inputs[2:] if isinstance(start, Literal)]
    taken, shape = equation.inputs[1].type.shape, operand.type.shape
    first = [min(max(int(start), 0), n - size) for start, n, size in zip(starts, shape, taken, strict=True)]
    inner = [(begin, begin + size) for begin, size in zip(first, taken, strict=True)]
    for box in around(inner, shape):
        f = FunctionWriter(writer)
        result, old = f.memory(target, written=True), f.memory(source)
        with f.loops([end - begin for begin, end in box], LoopKind.PARALLEL) as index:
            place = tuple(shifted(i, begin) for i, (begin, _) in zip(index, box, strict=True))
            f.store(result, place, f.puller().load(old, place))
        f.invoke()
    return target


def write_alias(writer: BlockWriter, equation: Equation) -> None:
    """Write the operands, each in its result's memory: taken over where they die here, else copied."""
    for atom, variable in zip(equation.inputs, equation.outputs, strict=True):
        if variable.type.shape:
            memory_with_values(writer, equation, atom, variable)
        else:
            writer.sources[variable] = Scalars(writer.element_of(atom))


# -- records -----------------------------------------------------------------------------------------------------

_CHEAP_ONCE: Final = 8  # operations that a loop on one thread takes over


def _operands_of_scatter(equation: Equation, values: Values) -> list[Atom]:
    """Return the array, and other operands where it must not be copied or they are too expensive for one thread."""
    array, *others = equation.inputs
    kept = reads_its_array(equation, values.definitions) is not False
    return [array, *(a for a in others if isinstance(a, Var) and (kept or _is_expensive(a, equation, values)))]


def _is_expensive(operand: Var, scatter: Equation, values: Values) -> bool:
    """Return whether to materialise `operand` before `scatter`.

    Scatters are serial, so an operand that is expensive to recompute per window is computed first, in a parallel nest.
    """
    once = size(operand.type) >= size(scatter.inputs[2].type)
    return values.costs.get(operand, 0) > (_CHEAP_ONCE if once else CHEAP)


def _operands_of_update(equation: Equation, values: Values) -> Sequence[Atom]:
    """Return the array alone where the new values are computed as they are stored, else all operands."""
    return equation.inputs[:1] if is_stored_at_once(equation, values.definitions) else equation.inputs


def _operands_of_alias(equation: Equation, values: Values) -> Sequence[Atom]:
    return () if is_map(equation) else equation.inputs


def _scatter_cost(equation: Equation, nested: Nested) -> Cost:
    """Return an operation, or a move, for each element of the updates; other elements stay unchanged."""
    lower, count = equation.primitive.lower, size(equation.inputs[2].type)
    assert isinstance(lower, Scatter)
    return Cost(moves=count) if lower.op is None else Cost(flops=count)


def _update_cost(equation: Equation, nested: Nested) -> Cost:
    """Return a move for each new value."""
    return Cost(moves=size(equation.inputs[1].type))


def _scattered_into(equation: Equation, position: int, definitions: Definitions) -> Atom | None:
    return equation.inputs[0]


def _updated(equation: Equation, position: int, definitions: Definitions) -> Atom | None:
    """Return the array, or None where new values are computed from it while they are stored."""
    return None if is_computed_in_place(equation, definitions) else equation.inputs[0]


SCATTER: Final = Schedule(
    Scatter, "windows", _scatter_cost, write_scatter, _operands_of_scatter, overwritten=_scattered_into
)
UPDATE_SLICE: Final = Schedule(
    Scatter, "slice", _update_cost, write_update_slice, _operands_of_update, is_computed_in_place, _updated
)
ALIAS: Final = Schedule(Alias, "", no_cost, write_alias, _operands_of_alias)
