"""The schedules of everything that is no plain nest, by its lowering."""

from __future__ import annotations

from tracer.errors import InternalError
from tracer.ir.primitive import Alias, Composite, Join, Library, Reduce, Scan, Scatter, Structured
from tracer.ir.program import Equation
from tracer.schedule.algorithms.convolutions import write_convolution
from tracer.schedule.algorithms.cumulative_tiles import write_prefixes
from tracer.schedule.algorithms.factorizations import write_cholesky, write_lu, write_triangular_solve
from tracer.schedule.algorithms.matmul import write_dot
from tracer.schedule.algorithms.merge_sort import write_sort
from tracer.schedule.algorithms.top_k import write_greatest
from tracer.schedule.terms.value_locations import Scalars
from tracer.schedule.write.concatenate_pad import write_concatenate, write_pad
from tracer.schedule.write.control_flow import write_cond, write_for, write_scan, write_while
from tracer.schedule.write.effects import write_callback, write_check
from tracer.schedule.write.program_writer import BlockWriter
from tracer.schedule.write.scatters import memory_with_values, write_scatter, write_update_slice
from tracer.schedule.write.serial_reductions import write_cumulative, write_serial_reduction
from tracer.schedule.write.stacks import write_stack

_STRUCTURED = {
    "while": write_while, "for": write_for, "scan": write_scan, "cond": write_cond,
    "callback": write_callback, "check": write_check,
    "stack_empty": write_stack, "stack_spread": write_stack, "stack_push": write_stack, "stack_pop": write_stack,
    "stack_item": write_stack, "stack_put": write_stack, "stack_add_at": write_stack, "stack_sum": write_stack,
}  # fmt: skip
_NAMED = {
    "concatenate": write_concatenate, "pad": write_pad, "dynamic_update_slice": write_update_slice,
}  # fmt: skip
_LIBRARY = {
    "dot": write_dot, "sort": write_sort,
    "cholesky": write_cholesky, "lu": write_lu, "triangular_solve": write_triangular_solve,
}  # fmt: skip


def write_other(writer: BlockWriter, equation: Equation) -> None:
    """Write an equation by its own schedule."""
    primitive = equation.primitive
    match primitive.lower:
        case Structured(kind) if kind in _STRUCTURED:
            _STRUCTURED[kind](writer, equation)
        case Join():
            _NAMED[primitive.name](writer, equation)
        case Scatter():
            (_NAMED.get(primitive.name) or write_scatter)(writer, equation)
        case Scan(op):
            tile = writer.module.target.blocks.cumulative
            if tile:
                write_prefixes(writer, equation, op, tile)
            else:
                write_cumulative(writer, equation, op)
        case Reduce(op):
            write_serial_reduction(writer, equation, op)
        case Library(routine) if routine in _LIBRARY:
            _LIBRARY[routine](writer, equation)
        case Composite(_, has_nest) if has_nest is not None:
            (write_greatest if primitive.name == "top_k" else write_convolution)(writer, equation)
        case Alias():
            write_alias(writer, equation)
        case lower:
            raise InternalError(f"{primitive.name} has no schedule: {lower}")


def write_alias(writer: BlockWriter, equation: Equation) -> None:
    """The operands, each in the result's memory: taken over where they die here, else copied."""
    for atom, variable in zip(equation.inputs, equation.outputs, strict=True):
        if variable.type.shape:
            memory_with_values(writer, equation, atom, variable)
        else:
            writer.sources[variable] = Scalars(writer.element_of(atom))
