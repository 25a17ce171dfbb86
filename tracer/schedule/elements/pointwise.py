"""One element of a pointwise equation: scalar operations for real types, formulas on parts for complex ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.loop import Operand
from tracer.ir.loop.build import Builder
from tracer.ir.primitive import Compare, Convert, Pointwise
from tracer.ir.program import Equation
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, Type
from tracer.schedule.elements.complex.arithmetic import complex_pointwise
from tracer.schedule.terms.value_locations import Element

ON_BOOL: Final = {
    ScalarOp.ADD: ScalarOp.OR,
    ScalarOp.MUL: ScalarOp.AND,
    ScalarOp.MAX: ScalarOp.OR,
    ScalarOp.MIN: ScalarOp.AND,
}
"""Operations on bits that stand for sums, products and extremes of booleans."""
_ON_INTEGERS = {ScalarOp.DIV: ScalarOp.IDIV, ScalarOp.REM: ScalarOp.IREM}


def pointwise_element(b: Builder, equation: Equation, elements: Sequence[Element]) -> Element:
    """Return the element of a pointwise, comparing or converting equation, from the elements of its operands."""
    lower = equation.primitive.lower
    result_type = equation.outputs[0].type
    if any(_is_complex(atom.type) for atom in (*equation.inputs, *equation.outputs)):
        return complex_pointwise(b, equation, elements)
    match lower:
        case Pointwise(ScalarOp.SELECT):
            return _select(b, elements)
        case Pointwise(ScalarOp.BITCAST):
            assert isinstance(result_type, ArrayType)
            return (b.bitcast(elements[0][0], result_type.dtype),)
        case Pointwise(op):
            return (scalar_op(b, op, [e[0] for e in elements]),)
        case Compare(op):
            return (_compare(b, op, elements),)
        case Convert():
            assert isinstance(result_type, ArrayType)
            return (convert(b, elements[0][0], result_type.dtype),)
        case _:
            raise AssertionError(lower)


def _is_complex(type: Type) -> bool:
    return isinstance(type, ArrayType) and dtypes.is_complex(type.dtype)


def scalar_op(b: Builder, op: ScalarOp, operands: Sequence[Operand]) -> Operand:
    """Return a scalar operation by its meaning for the operands' dtype: integer division, logic for bool."""
    dtype = operands[-1].dtype
    if dtypes.is_bool(dtype):
        op = ON_BOOL.get(op, op)
    elif dtypes.is_integer(dtype):
        op = _ON_INTEGERS.get(op, op)
    return b.apply(op, *operands)


def _select(b: Builder, elements: Sequence[Element]) -> Element:
    predicate = elements[0][0]
    return tuple(b.apply(ScalarOp.SELECT, predicate, x, y) for x, y in zip(elements[1], elements[2], strict=True))


def _compare(b: Builder, op: ScalarOp, elements: Sequence[Element]) -> Operand:
    parts = [b.apply(op, x, y) for x, y in zip(*elements, strict=True)]
    joined: Operand = parts[0]
    for part in parts[1:]:
        joined = b.apply(ScalarOp.OR if op is ScalarOp.NE else ScalarOp.AND, joined, part)
    return joined


def convert(b: Builder, x: Operand, dtype: DType) -> Operand:
    """Return x as another dtype, by the rules of `ScalarOp.CONVERT`."""
    return b.convert(x, dtype)
