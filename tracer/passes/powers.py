"""Powers with constant exponents as products. A product is rounded differently from `pow`, by an ulp or two at most."""

from __future__ import annotations

from typing import Final

from tracer.ir import dtypes
from tracer.ir.program import Atom, Equation, Literal
from tracer.passes.base.rewriter import Rewriter, rewriting
from tracer.passes.base.rules import Rules, by_primitive
from tracer.primitives.elementwise.arithmetic import div_p, mul_p
from tracer.primitives.elementwise.powers import pow_p


def known_power(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite pow(x, y) for y = -1, 0, 1, 2, 3, 4 and real x. NaN to the power 0 is 1, as in C."""
    x, y = equation.inputs
    if not isinstance(y, Literal) or not dtypes.is_float(y.type.dtype):
        return None
    match float(y.value):
        case 0.0:
            return at.number(1, equation.outputs[0].type)
        case -1.0:
            return at.emit(div_p, at.number(1, y.type), x)
        case 1.0:
            return x
        case 2.0:
            return at.emit(mul_p, x, x)
        case 3.0:
            return at.emit(mul_p, at.emit(mul_p, x, x), x)
        case 4.0:
            square = at.emit(mul_p, x, x)
            return at.emit(mul_p, square, square)
        case _:
            return None


POWERS: Final[Rules] = (((pow_p,), (known_power,)),)

powers = rewriting(by_primitive(POWERS))
"""Write powers with constant exponents as products, nested programs included."""
