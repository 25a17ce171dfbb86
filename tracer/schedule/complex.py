"""Complex arithmetic on pairs of reals, as loop IR.

Products are the plain formula: rounded products and sums, no scaling. Quotients scale by the larger part of the
divisor (Smith 1962, CACM 5(8)), so that they overflow only where the result does, or nearly so.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracer.errors import InternalError
from tracer.ir import dtypes
from tracer.ir.loop import Operand
from tracer.ir.loop_build import Builder, constant
from tracer.ir.primitive import Compare, Convert, Pointwise
from tracer.ir.program import Equation
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType
from tracer.schedule.sources import Element


def multiply(b: Builder, x: Element, y: Element) -> Element:
    """x * y."""
    (xr, xi), (yr, yi) = x, y
    real = b.apply(ScalarOp.SUB, b.apply(ScalarOp.MUL, xr, yr), b.apply(ScalarOp.MUL, xi, yi))
    imag = b.apply(ScalarOp.ADD, b.apply(ScalarOp.MUL, xr, yi), b.apply(ScalarOp.MUL, xi, yr))
    return (real, imag)


def divide(b: Builder, x: Element, y: Element) -> Element:
    """x / y."""
    (xr, xi), (yr, yi) = x, y
    real_larger = b.apply(ScalarOp.GE, b.apply(ScalarOp.ABS, yr), b.apply(ScalarOp.ABS, yi))
    big = b.apply(ScalarOp.SELECT, real_larger, yr, yi)
    small = b.apply(ScalarOp.SELECT, real_larger, yi, yr)
    ratio = b.apply(ScalarOp.DIV, small, big)
    scale = b.apply(ScalarOp.ADD, big, b.apply(ScalarOp.MUL, small, ratio))
    first = b.apply(ScalarOp.SELECT, real_larger, xr, xi)
    second = b.apply(ScalarOp.SELECT, real_larger, xi, xr)
    real = b.apply(ScalarOp.DIV, b.apply(ScalarOp.ADD, first, b.apply(ScalarOp.MUL, second, ratio)), scale)
    cross = b.apply(ScalarOp.SUB, second, b.apply(ScalarOp.MUL, first, ratio))
    signed = b.apply(ScalarOp.SELECT, real_larger, cross, b.apply(ScalarOp.NEG, cross))
    return (real, b.apply(ScalarOp.DIV, signed, scale))


def complex_pointwise(b: Builder, equation: Equation, elements: Sequence[Element]) -> Element:
    """The element of an equation with complex operands or results."""
    result = equation.outputs[0].type
    assert isinstance(result, ArrayType)
    match equation.primitive.lower:
        case Pointwise(op):
            return _operation(b, op, equation.primitive.name, elements)
        case Compare(op):
            return (_compare(b, op, elements),)
        case Convert():
            return _convert(b, elements[0], result)
    raise InternalError(f"{equation.primitive.name} on complex numbers has no schedule")


def _operation(b: Builder, op: ScalarOp, name: str, elements: Sequence[Element]) -> Element:
    match op:
        case ScalarOp.ADD | ScalarOp.SUB:
            return tuple(b.apply(op, p, q) for p, q in zip(*elements, strict=True))
        case ScalarOp.NEG:
            return tuple(b.apply(op, p) for p in elements[0])
        case ScalarOp.MUL:
            return multiply(b, *elements)
        case ScalarOp.DIV:
            return divide(b, *elements)
        case ScalarOp.SELECT:
            predicate = elements[0][0]
            return tuple(b.apply(op, predicate, p, q) for p, q in zip(elements[1], elements[2], strict=True))
    raise InternalError(f"{name} on complex numbers has no schedule")


def _compare(b: Builder, op: ScalarOp, elements: Sequence[Element]) -> Operand:
    real, imag = (b.apply(op, p, q) for p, q in zip(*elements, strict=True))
    return b.apply(ScalarOp.OR if op is ScalarOp.NE else ScalarOp.AND, real, imag)


def _convert(b: Builder, element: Element, result: ArrayType) -> Element:
    """Between real and complex: the imaginary part of a real number is 0, that of a complex one is dropped."""
    real = dtypes.real_dtype(result.dtype)
    if not dtypes.is_complex(result.dtype):
        if dtypes.is_bool(result.dtype) and len(element) == 2:
            parts = [b.convert(x, dtypes.BOOL) for x in element]
            return (b.apply(ScalarOp.OR, *parts),)
        return (b.convert(element[0], real),)
    imag = b.convert(element[1], real) if len(element) == 2 else constant(0, real)
    return (b.convert(element[0], real), imag)
