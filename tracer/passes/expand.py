"""Expansion: calls are put in line, and primitives that are written in others give way to those.

What is left has a schedule of its own. Products of matrices are brought to the form that the schedule knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.ir import dtypes
from tracer.ir.primitive import ArgReduce, Composite, Library, Structured
from tracer.ir.program import Equation, Program
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType
from tracer.passes.contractions import canonical_dot
from tracer.passes.rewrite import nested_first
from tracer.primitives.bits import or_
from tracer.primitives.comparison import eq, ne, select
from tracer.primitives.conversion import convert_element_type
from tracer.primitives.reductions import reduce_max, reduce_min
from tracer.primitives.shapes import broadcast_in_dim, broadcasted_iota
from tracer.trace.evaluate import Environment, evaluate, read
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, as_literal, bind_all

_CALLS = ("call", "custom_jvp", "custom_vjp")


def _needs_expansion(equation: Equation) -> bool:
    lower = equation.primitive.lower
    match lower:
        case Composite() | ArgReduce():
            return True
        case Structured(kind):
            return kind in _CALLS or kind == "inline"
        case Library("dot"):
            return canonical_dot(equation) is not None
        case _:
            return False


def _expand_once(program: Program) -> Program:
    if not any(map(_needs_expansion, program.equations)):
        return program

    def run(inputs: list[Any]) -> list[Operand]:
        environment: Environment = dict(zip(program.inputs, inputs, strict=True))
        outer_source = state.source
        try:
            for equation in program.equations:
                state.source = equation.source
                operands = [read(environment, atom) for atom in equation.inputs]
                outputs = _expanded(equation, operands)
                environment.update(zip(equation.outputs, outputs, strict=True))
        finally:
            state.source = outer_source
        return [read(environment, atom) for atom in program.outputs]

    return expand(stage(run, program.input_types, name=program.name).program)


def _expanded(equation: Equation, operands: Sequence[Operand]) -> Sequence[Operand]:
    """The outputs of an equation, written in simpler ones where it needs that."""
    primitive, params = equation.primitive, equation.params
    match primitive.lower:
        case Composite(rule):
            outputs = rule(*operands, **params)
            return list(outputs) if primitive.multiple else [outputs]
        case ArgReduce(op):
            return [_arg_reduce(operands[0], op, **params)]
        case Structured(kind) if kind in _CALLS:
            return evaluate(params["program"], operands)
        case Library("dot"):
            canonical = canonical_dot(equation)
            if canonical is not None:
                return [canonical(*operands)]
    return bind_all(primitive, operands, params)


def _arg_reduce(x: Any, op: ScalarOp, *, axis: int, index_dtype: Any) -> Any:
    """The least position whose element equals the extreme one; a NaN counts as extreme."""
    type = x.type
    assert isinstance(type, ArrayType)
    extreme = (reduce_max if op is ScalarOp.MAX else reduce_min)(x, (axis,))
    others = tuple(a for a in range(len(type.shape)) if a != axis)
    found = eq(x, broadcast_in_dim(extreme, type.shape, others))
    if dtypes.is_float(type.dtype):
        found = or_(found, ne(x, x))
    position = broadcasted_iota(dtypes.I64, type.shape, axis)
    nowhere = as_literal(type.shape[axis], dtypes.I64)
    first = reduce_min(select(found, position, nowhere), (axis,))
    return convert_element_type(first, index_dtype)


expand = nested_first(_expand_once)
"""Put calls in line and write composite primitives in others, nested programs included."""
