"""concatenate and pad: each operand stored at its offset in the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.ir.loop import LoopKind
from tracer.ir.primitive import Join
from tracer.ir.program import Atom, Equation
from tracer.schedule.terms.affine import scaled, shifted
from tracer.schedule.terms.cost import join_cost
from tracer.schedule.terms.schedules import Schedule, always, no_operands
from tracer.schedule.terms.value_locations import Memory
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter

_MAX_IN_TURN = 8


def write_concatenate(writer: BlockWriter, equation: Equation) -> None:
    """Write a loop for each operand that stores it from its offset on, or one loop where their elements alternate."""
    (variable,), axis = equation.outputs, equation.params["dimension"]
    target, offset = writer.target_of(variable), 0
    if _alternate(equation):
        f = FunctionWriter(writer)
        result = f.memory(target, written=True)
        with f.loops(equation.inputs[0].type.shape, LoopKind.PARALLEL) as index:
            puller = f.puller()
            elements = [puller.element(atom, index) for atom in equation.inputs]
            for number, element in enumerate(elements):
                f.store(result, tuple(shifted(i, number * (a == axis)) for a, i in enumerate(index)), element)
        f.invoke()
        return
    for atom in equation.inputs:
        f = FunctionWriter(writer)
        result = f.memory(target, written=True)
        with f.loops(atom.type.shape, LoopKind.PARALLEL) as index:
            element = f.element(atom, index)
            place = tuple(shifted(i, offset) if a == axis else i for a, i in enumerate(index))
            f.store(result, place, element)
        f.invoke()
        offset += atom.type.shape[axis]


def _alternate(equation: Equation) -> bool:
    """Whether a few operands of one element along the axis are joined, and nothing lies behind it."""
    shape, axis = equation.outputs[0].type.shape, equation.params["dimension"]
    alone = all(atom.type.shape[axis] == 1 for atom in equation.inputs)
    return alone and 2 <= len(equation.inputs) <= _MAX_IN_TURN and all(n == 1 for n in shape[axis + 1 :])


def write_pad(writer: BlockWriter, equation: Equation) -> None:
    """Store the padding value around the operand, then the operand without its cropped parts.

    Interior padding is stored everywhere first, and the operand's elements over it.
    """
    (variable,), (operand, value) = equation.outputs, equation.inputs
    config, shape = equation.params["padding_config"], variable.type.shape
    target = writer.target_of(variable)
    first, count, box = [], [], []
    for n, size, (low, _, interior) in zip(operand.type.shape, shape, config, strict=True):
        step = interior + 1
        begin = max(0, -(low // step)) if low < 0 else 0  # the first element that is not cut off
        end = min(n, max(0, -(-(size - low) // step)))
        first.append(begin)
        count.append(max(0, end - begin))
        start = low + begin * step
        box.append((start, start + (count[-1] - 1) * step + 1) if count[-1] else (0, 0))
    spread = any(interior and n > 1 for n, (_, _, interior) in zip(count, config, strict=True))
    whole = [tuple((0, n) for n in shape)]
    _fill(writer, target, value, whole if spread or not all(count) else around(box, shape))
    f = FunctionWriter(writer)
    result = f.memory(target, written=True)
    with f.loops(count, LoopKind.PARALLEL) as index:
        inner = tuple(shifted(i, begin) for i, begin in zip(index, first, strict=True))
        place = tuple(
            shifted(scaled(i, interior + 1), low) for i, (low, _, interior) in zip(inner, config, strict=True)
        )
        f.store(result, place, f.element(operand, inner))
    f.invoke()


Box = tuple[tuple[int, int], ...]


def around(inner: Sequence[tuple[int, int]], shape: Sequence[int]) -> list[Box]:
    """Return the boxes of the shape around the inner one: two for each axis, within it along earlier axes."""
    boxes: list[Box] = []
    for axis, (start, stop) in enumerate(inner):
        for span in ((0, start), (stop, shape[axis])):
            box = (*inner[:axis], span, *((0, n) for n in shape[axis + 1 :]))
            if all(end > begin for begin, end in box):
                boxes.append(box)
    return boxes


def _fill(writer: BlockWriter, target: Memory, value: Atom, boxes: Sequence[Box]) -> None:
    """Store one value everywhere in the boxes."""
    for box in boxes:
        f = FunctionWriter(writer)
        result = f.memory(target, written=True)
        with f.loops([end - begin for begin, end in box], LoopKind.PARALLEL) as index:
            place = tuple(shifted(i, begin) for i, (begin, _) in zip(index, box, strict=True))
            f.store(result, place, f.element(value, ()))
        f.invoke()


CONCATENATE: Final = Schedule(Join, "concatenate", join_cost, write_concatenate, no_operands, always)
PAD: Final = Schedule(Join, "pad", join_cost, write_pad, no_operands, always)
