"""Complex numbers as pairs of reals: the scalar operations of `ir.scalar` on elements of two parts, as loop IR.

Decisions: products are the plain formula, without a second look at infinities and NaN (C99's Annex G recovers some;
NumPy and LLVM do not): inf * (1 + 0i) has a NaN part. Quotients are Smith's, as NumPy's are. Functions have the
special values of Annex G where it names any. `max` and `min` compare real parts first; an element with a NaN part
wins, the first operand's before the second's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tracer.errors import InternalError
from tracer.ir import dtypes
from tracer.ir.loop import Operand
from tracer.ir.loop.build import Builder, constant
from tracer.ir.primitive import Compare, Convert, Parts, Pointwise
from tracer.ir.program import Equation
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType
from tracer.schedule.elements.complex import functions, inverses
from tracer.schedule.math.expand import Code, Value, select
from tracer.schedule.terms.value_locations import Element

Pair = tuple[Value, Value]


def combine(b: Builder, op: ScalarOp, x: Element, y: Element) -> Element:
    """Return x op y, for an operation that reductions and scatters combine with."""
    return _written(b, _OPERATIONS[op], x, y)


def complex_pointwise(b: Builder, equation: Equation, elements: Sequence[Element]) -> Element:
    """Return the element of an equation with complex operands or results."""
    result = equation.outputs[0].type
    assert isinstance(result, ArrayType)
    match equation.primitive.lower:
        case Pointwise(ScalarOp.SELECT):
            predicate = elements[0][0]
            return tuple(b.apply(ScalarOp.SELECT, predicate, p, q) for p, q in zip(*elements[1:], strict=True))
        case Pointwise(op) if op in _OPERATIONS:
            return _written(b, _OPERATIONS[op], *elements)
        case Compare(op):
            real, imag = (b.apply(op, p, q) for p, q in zip(*elements, strict=True))
            return (b.apply(ScalarOp.OR if op is ScalarOp.NE else ScalarOp.AND, real, imag),)
        case Convert():
            return _convert(b, elements[0], result)
        case Parts("imag"):
            return (elements[0][1],)
        case Parts("complex"):
            return (elements[0][0], elements[1][0])
        case _:
            raise InternalError(f"{equation.primitive.name} on complex numbers has no schedule")


def _written(b: Builder, function: Callable[..., Pair | Value], *elements: Element) -> Element:
    """Append the statements of a function of pairs."""
    code = Code()
    result = function(*(tuple(Value(code, part) for part in element) for element in elements))
    for statement in code.statements:
        b.add(statement)
    return (result.operand,) if isinstance(result, Value) else tuple(part.operand for part in result)


def _convert(b: Builder, element: Element, result: ArrayType) -> Element:
    """Convert between real and complex: a real value gets the imaginary part 0, a complex one loses its own."""
    real = dtypes.real_dtype(result.dtype)
    if not dtypes.is_complex(result.dtype):
        if dtypes.is_bool(result.dtype) and len(element) == 2:
            parts = [b.convert(x, dtypes.BOOL) for x in element]
            return (b.apply(ScalarOp.OR, *parts),)
        return (b.convert(element[0], real),)
    imag: Operand = b.convert(element[1], real) if len(element) == 2 else constant(0, real)
    return (b.convert(element[0], real), imag)


# -- arithmetic --------------------------------------------------------------------------------------------------


def product(z: Pair, w: Pair) -> Pair:
    """Return z * w: rounded products, rounded sums."""
    (x, y), (u, v) = z, w
    return x * u - y * v, x * v + y * u


def quotient(z: Pair, w: Pair) -> Pair:
    """Return z / w, scaled by the larger part of w: it overflows only where the result does, or nearly so.

    Smith 1962, Communications of the ACM 5(8). By zero both parts of z are divided by zero.
    """
    (x, y), (u, v) = z, w
    real_larger = abs(u) >= abs(v)
    big, small = select(real_larger, u, v), select(real_larger, v, u)
    first, second = select(real_larger, x, y), select(real_larger, y, x)
    ratio = small / big
    scale = big + small * ratio
    cross = (second - first * ratio) / scale
    real, imag = (first + second * ratio) / scale, select(real_larger, cross, -cross)
    by_zero = u.equals(0.0) & v.equals(0.0)
    return select(by_zero, x / abs(u), real), select(by_zero, y / abs(u), imag)


def magnitude(z: Pair) -> Value:
    """Return |z|, without overflow; infinite where a part is, even beside NaN."""
    return functions.real_function(ScalarOp.HYPOT, *z)


def _extreme(order: Callable[[Value, Value], Value]) -> Callable[[Pair, Pair], Pair]:
    """Return the first operand where it comes first by `order`, real parts before imaginary ones, or has a NaN part."""

    def function(z: Pair, w: Pair) -> Pair:
        (x, y), (u, v) = z, w
        ahead = order(x, u) | (x.equals(u) & (order(y, v) | y.equals(v)))
        of_z, of_w = x.differs(x) | y.differs(y), u.differs(u) | v.differs(v)
        first = of_z | (ahead & ~of_w)
        return select(first, x, u), select(first, y, v)

    return function


_OPERATIONS: Final[dict[ScalarOp, Callable[..., Pair | Value]]] = {
    ScalarOp.ADD: lambda z, w: (z[0] + w[0], z[1] + w[1]),
    ScalarOp.SUB: lambda z, w: (z[0] - w[0], z[1] - w[1]),
    ScalarOp.NEG: lambda z: (-z[0], -z[1]),
    ScalarOp.MUL: product,
    ScalarOp.DIV: quotient,
    ScalarOp.ABS: magnitude,
    ScalarOp.MAX: _extreme(lambda a, b: a > b),
    ScalarOp.MIN: _extreme(lambda a, b: a < b),
    ScalarOp.SQRT: functions.sqrt,
    ScalarOp.RSQRT: functions.rsqrt,
    ScalarOp.POW: functions.power,
    ScalarOp.EXP: functions.exp,
    ScalarOp.EXP2: functions.exp2,
    ScalarOp.EXPM1: functions.expm1,
    ScalarOp.LOGISTIC: functions.logistic,
    ScalarOp.LOG: functions.log,
    ScalarOp.LOG2: functions.log2,
    ScalarOp.LOG1P: functions.log1p,
    ScalarOp.SINH: functions.sinh,
    ScalarOp.COSH: functions.cosh,
    ScalarOp.TANH: functions.tanh,
    ScalarOp.SIN: lambda z: functions.swapped(functions.sinh, z),
    ScalarOp.COS: functions.cos,
    ScalarOp.TAN: lambda z: functions.swapped(functions.tanh, z),
    ScalarOp.ASIN: inverses.asin,
    ScalarOp.ACOS: inverses.acos,
    ScalarOp.ATAN: lambda z: functions.swapped(inverses.atanh, z),
    ScalarOp.ASINH: lambda z: functions.swapped(inverses.asin, z),
    ScalarOp.ACOSH: inverses.acosh,
    ScalarOp.ATANH: inverses.atanh,
}
