"""concatenate and pad: each operand stored at its place in the result."""

from __future__ import annotations

from tracer.ir.loop import LoopKind
from tracer.ir.program import Equation
from tracer.schedule.blocks import BlockWriter
from tracer.schedule.function_writer import FunctionWriter
from tracer.schedule.index import scaled, shifted


def write_concatenate(writer: BlockWriter, equation: Equation) -> None:
    """One loop an operand, storing it from its offset on."""
    (variable,), axis = equation.outputs, equation.params["dimension"]
    target, offset = writer.target_of(variable), 0
    for atom in equation.inputs:
        f = FunctionWriter(writer)
        result = f.memory(target, written=True)
        with f.loops(atom.type.shape, LoopKind.PARALLEL) as index:
            element = f.element(atom, index)
            place = tuple(shifted(i, offset) if a == axis else i for a, i in enumerate(index))
            f.store(result, place, element)
        f.invoke()
        offset += atom.type.shape[axis]


def write_pad(writer: BlockWriter, equation: Equation) -> None:
    """Fill with the padding value, then store what is left of the operand, spread by the interior padding."""
    (variable,), (operand, value) = equation.outputs, equation.inputs
    target = writer.target_of(variable)
    f = FunctionWriter(writer)
    result = f.memory(target, written=True)
    with f.loops(variable.type.shape, LoopKind.PARALLEL) as index:
        f.store(result, index, f.element(value, ()))
    f.invoke()
    first, count = [], []
    for n, size, (low, _, interior) in zip(
        operand.type.shape, variable.type.shape, equation.params["padding_config"], strict=True
    ):
        step = interior + 1
        begin = max(0, -(low // step)) if low < 0 else 0  # the first element that is not cut off
        end = min(n, max(0, -(-(size - low) // step)))
        first.append(begin)
        count.append(max(0, end - begin))
    f = FunctionWriter(writer)
    result = f.memory(target, written=True)
    with f.loops(count, LoopKind.PARALLEL) as index:
        inner = tuple(shifted(i, begin) for i, begin in zip(index, first, strict=True))
        place = tuple(
            shifted(scaled(i, interior + 1), low)
            for i, (low, _, interior) in zip(inner, equation.params["padding_config"], strict=True)
        )
        f.store(result, place, f.element(operand, inner))
    f.invoke()
