"""top_k of few elements of long rows in memory, by the routine of `codegen.llvm.kernels.sort.top_k`."""

from __future__ import annotations

from typing import Final

from tracer.ir.dtypes import short_name
from tracer.ir.primitive import Composite
from tracer.ir.program import Equation
from tracer.ir.types import ArrayType, size
from tracer.schedule.terms.cost import flops_of_operand
from tracer.schedule.terms.schedules import Schedule, always
from tracer.schedule.write.program_writer import BlockWriter


def write_top_k(writer: BlockWriter, equation: Equation) -> None:
    """Write one call of the routine for all rows."""
    (operand,), n = equation.inputs, equation.inputs[0].type.shape[equation.params["axis"]]
    values, places = [writer.target_of(variable).view for variable in equation.outputs]
    assert isinstance(operand.type, ArrayType)
    routine = f"topk_{short_name(operand.type.dtype)}"
    rows = size(operand.type) // n
    writer.builder.library(routine, writer.memory_of(operand).view, values, places, rows, n, equation.params["k"])


TOP_K: Final = Schedule(Composite, "top_k", flops_of_operand, write_top_k, stores_anew=always)
