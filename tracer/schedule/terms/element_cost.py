"""Estimated operations of one element of an equation, which decide whether its value is stored or computed again."""

from __future__ import annotations

from tracer.ir import dtypes
from tracer.ir.primitive import Checked, Compare, Convert, Effect, Gather, Generate, Pointwise
from tracer.ir.program import Equation
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp
from tracer.ir.types import ArrayType, KeyType

_EXPENSIVE = {
    ScalarOp.DIV: 4,
    ScalarOp.SQRT: 4,
    ScalarOp.IDIV: 6,
    ScalarOp.IREM: 6,
    **dict.fromkeys(MATH_FUNCTIONS, 12),
}


def cost_of(equation: Equation) -> int:
    """Return the rough operations of an element."""
    lower = equation.primitive.lower
    match lower:
        case Pointwise(op):
            factor = 4 if any(_has_parts(a.type) for a in equation.inputs) else 1
            return _EXPENSIVE.get(op, 1) * factor
        case Compare() | Convert() | Generate():
            return 1
        case Checked():
            return 2
        case Gather():
            return 4 if Effect.FAULT not in equation.effects else 6
        case _:
            return 0


_WRITTEN_OUT = {
    ScalarOp.SIN: 100, ScalarOp.COS: 100, ScalarOp.TAN: 120, ScalarOp.POW: 130, ScalarOp.LGAMMA: 250,
    ScalarOp.DIGAMMA: 200, ScalarOp.ERFC: 100, ScalarOp.ERF_INV: 100,
}  # fmt: skip


def operations_of(equation: Equation) -> int:
    """Return the rough statements of an element, functions written out."""
    lower = equation.primitive.lower
    if not isinstance(lower, Pointwise):
        return cost_of(equation)
    factor = 6 if any(_has_parts(a.type) for a in equation.inputs) else 1
    return factor * _WRITTEN_OUT.get(lower.op, 45 if lower.op in MATH_FUNCTIONS else 1)


def _has_parts(type: object) -> bool:
    return isinstance(type, KeyType) or (isinstance(type, ArrayType) and dtypes.is_complex(type.dtype))
