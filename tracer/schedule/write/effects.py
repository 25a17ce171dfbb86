"""Equations with effects: checks, and callbacks into Python."""

from __future__ import annotations

from typing import Final

from tracer.ir.dtypes import I64
from tracer.ir.loop import index_constant
from tracer.ir.primitive import Structured
from tracer.ir.program import Equation
from tracer.ir.scalar import ScalarOp
from tracer.schedule.elements.pointwise import convert
from tracer.schedule.terms.cost import moves_of_results
from tracer.schedule.terms.schedules import Schedule
from tracer.schedule.write.program_writer import BlockWriter


def write_check(writer: BlockWriter, equation: Equation) -> None:
    """Write a fault where the condition is false and the guard holds. Neither has axes."""
    condition, guard = equation.inputs
    b = writer.builder
    failed = b.apply(ScalarOp.NOT, writer.element_of(condition)[0])
    bad = b.apply(ScalarOp.AND, failed, writer.element_of(guard)[0])
    site = writer.module.sites.number(equation)
    b.fault(site, bad, index_constant(0))
    b.leave()


def write_callback(writer: BlockWriter, equation: Equation) -> None:
    """Write a call into Python with the memory of operands and results."""
    inputs = [writer.memory_of(atom) for atom in equation.inputs]
    outputs = [writer.target_of(v) if v.type.shape else writer.allocate(v.type) for v in equation.outputs]
    slot = len(writer.module.callbacks)
    writer.module.callbacks.append(equation)
    writer.builder.callback(slot, [m.view for m in inputs], [m.view for m in outputs])
    writer.builder.leave()
    for variable, memory in zip(equation.outputs, outputs, strict=True):
        writer.sources[variable] = memory


def write_progress(writer: BlockWriter, equation: Equation) -> None:
    """Write an addition of the guard, 0 or 1, to a shared word."""
    b = writer.builder
    amount = convert(b, writer.element_of(equation.inputs[0])[0], I64)
    b.library("mark", index_constant(equation.params["word"].number), amount)


CHECK: Final = Schedule(Structured, "check", moves_of_results, write_check)
CALLBACK: Final = Schedule(Structured, "callback", moves_of_results, write_callback)
PROGRESS: Final = Schedule(Structured, "progress", moves_of_results, write_progress)
