"""top_k of long rows that lie in memory, for few of them: a routine of our own (`codegen.llvm.greatest`)."""

from __future__ import annotations

from tracer.ir.dtypes import short_name
from tracer.ir.program import Equation
from tracer.ir.types import ArrayType, size
from tracer.schedule.write.program_writer import BlockWriter


def write_greatest(writer: BlockWriter, equation: Equation) -> None:
    """One call for all rows."""
    (operand,), n = equation.inputs, equation.inputs[0].type.shape[equation.params["axis"]]
    values, places = [writer.target_of(variable).view for variable in equation.outputs]
    assert isinstance(operand.type, ArrayType)
    routine = f"greatest_{short_name(operand.type.dtype)}"
    rows = size(operand.type) // n
    writer.builder.library(routine, writer.memory_of(operand).view, values, places, rows, n, equation.params["k"])
