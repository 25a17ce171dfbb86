"""Math functions of `tracer.ir.scalar.MATH_FUNCTIONS`, by NumPy and SciPy: computed in f64, then rounded.

They let modules be interpreted before `schedule.math` has expanded them; tests compare an expansion with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from scipy import special

from tracer.ir.scalar import ScalarOp

Function = Callable[..., Any]  # on NumPy scalars or arrays


def _in_double(function: Function) -> Function:
    def apply(*operands: Any) -> Any:
        dtype = np.asarray(operands[0]).dtype
        result = function(*[np.asarray(x, np.float64) for x in operands])
        return np.asarray(result).astype(dtype)[()]

    return apply


_IN_DOUBLE: Final[dict[ScalarOp, Function]] = {
    ScalarOp.EXP: np.exp, ScalarOp.EXP2: np.exp2, ScalarOp.EXPM1: np.expm1,
    ScalarOp.LOG: np.log, ScalarOp.LOG2: np.log2, ScalarOp.LOG1P: np.log1p,
    ScalarOp.SIN: np.sin, ScalarOp.COS: np.cos, ScalarOp.TAN: np.tan,
    ScalarOp.ASIN: np.arcsin, ScalarOp.ACOS: np.arccos, ScalarOp.ATAN: np.arctan, ScalarOp.ATAN2: np.arctan2,
    ScalarOp.SINH: np.sinh, ScalarOp.COSH: np.cosh, ScalarOp.TANH: np.tanh,
    ScalarOp.ASINH: np.arcsinh, ScalarOp.ACOSH: np.arccosh, ScalarOp.ATANH: np.arctanh,
    ScalarOp.LOGISTIC: special.expit, ScalarOp.POW: np.power, ScalarOp.CBRT: np.cbrt,
    ScalarOp.RSQRT: lambda x: 1.0 / np.sqrt(x), ScalarOp.HYPOT: np.hypot,
    ScalarOp.ERF: special.erf, ScalarOp.ERFC: special.erfc, ScalarOp.ERF_INV: special.erfinv,
    ScalarOp.LGAMMA: special.gammaln, ScalarOp.DIGAMMA: special.psi,
}  # fmt: skip

MATH: Final[dict[ScalarOp, Function]] = {op: _in_double(f) for op, f in _IN_DOUBLE.items()}
