"""Loops that carry a value along an axis: cumulative operations, and reductions whose parts do not join."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from tracer.ir import dtypes
from tracer.ir.loop import Carry, LoopKind, Operand, Register
from tracer.ir.loop.build import Builder, constant
from tracer.ir.primitive import Reduce
from tracer.ir.program import Atom, Equation
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp
from tracer.schedule.elements.complex.arithmetic import combine
from tracer.schedule.elements.pointwise import convert, scalar_op
from tracer.schedule.elements.puller import is_reduction
from tracer.schedule.terms.affine import Affine, of_register, scaled, shifted
from tracer.schedule.terms.cost import flops_of_operand
from tracer.schedule.terms.schedules import Schedule, Values, always
from tracer.schedule.terms.value_locations import Element
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter

_COMPLEX_STARTS: Final = {
    ScalarOp.ADD: 0j, ScalarOp.MUL: 1 + 0j, ScalarOp.MAX: complex(-inf, -inf), ScalarOp.MIN: complex(inf, inf),
}  # fmt: skip


def join(b: Builder, op: ScalarOp, x: Element, y: Element) -> Element:
    """Return x op y on elements."""
    if len(x) == 2:
        return combine(b, op, x, y)
    return tuple(scalar_op(b, op, pair) for pair in zip(x, y, strict=True))


def start_of(op: ScalarOp, element_dtype: dtypes.DType, parts: int) -> list[Operand]:
    """Return the initial value of an accumulation."""
    on_bool = {
        ScalarOp.ADD: ScalarOp.OR,
        ScalarOp.MUL: ScalarOp.AND,
        ScalarOp.MAX: ScalarOp.OR,
        ScalarOp.MIN: ScalarOp.AND,
    }
    actual = on_bool.get(op, op) if dtypes.is_bool(element_dtype) else op
    if parts == 2:
        start = _COMPLEX_STARTS[op]
        return [constant(start.real, element_dtype), constant(start.imag, element_dtype)]
    if actual is ScalarOp.ADD:
        return [constant(0, element_dtype)]
    return [constant(identity(actual, element_dtype), element_dtype)]


def write_cumulative(writer: BlockWriter, equation: Equation, op: ScalarOp) -> None:
    """Write every partial result along one axis. Other axes are independent."""
    (variable,), (operand,) = equation.outputs, equation.inputs
    axis, reverse = equation.params["axis"], equation.params.get("reverse", False)
    shape = variable.type.shape
    target = writer.target_of(variable)
    f = FunctionWriter(writer)
    result = f.memory(target, written=True)
    dtype = target.buffer.dtype
    wide = dtypes.accumulator_dtype(dtype) if op in (ScalarOp.ADD, ScalarOp.MUL) else dtype
    others = tuple(1 if a == axis else n for a, n in enumerate(shape))
    parts = 2 if dtypes.is_complex(getattr(variable.type, "dtype", dtypes.F32)) else 1
    with f.loops(others, LoopKind.PARALLEL) as around:
        carries = [Carry(Register(wide, "sum"), x) for x in start_of(op, wide, parts)]
        loop = f.builder.for_("k", 0, shape[axis], carries=carries)
        with loop:
            f.extents[loop.index] = shape[axis]
            along: Affine = of_register(loop.index)
            if reverse:
                along = shifted(scaled(along, -1), shape[axis] - 1)
            index = tuple(along if a == axis else i for a, i in enumerate(around))
            element = tuple(convert(f.builder, x, wide) for x in f.element(operand, index))
            joined = join(f.builder, op, loop.carries, element)
            f.store(result, index, tuple(convert(f.builder, x, dtype) for x in joined))
            loop.yields(*joined)
    f.invoke()


def write_serial_reduction(writer: BlockWriter, equation: Equation) -> None:
    """Write a reduction in row-major order, whose partial results do not join: complex products, max and min."""
    lower = equation.primitive.lower
    assert isinstance(lower, Reduce)
    op = lower.op
    (variable,), (operand,) = equation.outputs, equation.inputs
    axes, shape = equation.params["axes"], operand.type.shape
    target = writer.target_of(variable)
    f = FunctionWriter(writer)
    result = f.memory(target, written=True)
    dtype = target.buffer.dtype
    parts = 2 if dtypes.is_complex(getattr(variable.type, "dtype", dtypes.F32)) else 1
    kept = [a for a in range(len(shape)) if a not in axes]
    with f.loops([shape[a] for a in kept], LoopKind.PARALLEL) as around:
        index: list[Affine] = [Affine() for _ in shape]
        for a, i in zip(kept, around, strict=True):
            index[a] = i
        total = _reduce_axes(f, operand, op, index, list(axes), start_of(op, dtype, parts))
        f.store(result, around, tuple(total))
    f.invoke()


def _reduce_axes(
    f: FunctionWriter, operand: object, op: ScalarOp, index: list[Affine], axes: list[int], start: list[Operand]
) -> list[Operand]:
    if not axes:
        element = f.element(operand, tuple(index))  # type: ignore[arg-type]
        return list(join(f.builder, op, tuple(start), element))
    axis, *rest = axes
    size = operand.type.shape[axis]  # type: ignore[attr-defined]
    carries = [Carry(Register(x.dtype, "acc"), x) for x in start]
    loop = f.builder.for_(f"r{axis}", 0, size, carries=carries)
    with loop:
        f.extents[loop.index] = size
        index[axis] = of_register(loop.index)
        loop.yields(*_reduce_axes(f, operand, op, index, rest, list(loop.carries)))
    return list(loop.results)


def _operands_in_memory(equation: Equation, values: Values) -> Sequence[Atom]:
    return () if is_reduction(equation) else equation.inputs


REDUCE: Final = Schedule(Reduce, "", flops_of_operand, write_serial_reduction, _operands_in_memory, always)
