"""Scalar operations: the closed set of computations on a single element, on any backend.

Each operation is one record: its name, its arity, the dtype kinds it takes and its result's dtype.
Values are `bool` (`bool` registers are one bit), signed and unsigned integers, and floats;
complex numbers never reach this level: they are pairs of floats by then.

Meanings that a backend must not choose for itself:

- Integers wrap. `IDIV` truncates towards zero; division by zero gives -1 (all bits set for unsigned),
  the lowest integer divided by -1 gives itself; `IREM` takes the dividend's sign, `x rem 0` is `x`,
  `lowest rem -1` is 0. Shifts by the width or more (or by a negative count) give 0; `SHR_ARITHMETIC`
  then gives the sign, 0 or -1.
- `MAX` and `MIN` propagate NaN, and hold -0 to be less than +0.
- `CONVERT` from float to integer truncates, saturates at the ends, and gives 0 for NaN; to bool it is `x != 0`;
  from bool it gives 0 or 1; between floats it rounds to nearest even; between integers it wraps.
- `SIGNIFICAND` of a positive finite float is m in [3/4, 3/2) and `EXPONENT` is e with x = 2^e m; of zeros they are 1
  and -inf, of inf 1 and inf, of negative numbers and NaN both are NaN. `SCALE` is x * 2^n, rounded once. It is defined
  for |x| in [2^-8, 2^8], 0 or infinite, and integral n. These n go from the smallest exponent of a denormal to one
  above the largest exponent. It is NaN where x is, unless n is infinite.
- `LOOKUP` picks one of sixteen constants by the lowest four bits of an integer as wide as the constants.
- `REM` on floats is C's `fmod`. Comparisons are ordered (false with a NaN), except `NE`.
- Operations on f16 and bf16 compute in f32 and round their result.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Signature:
    """Signature of an operation: its arity, the kinds of its operands (`b`ool, `i`nteger, `f`loat), its result."""

    arity: int
    kinds: str
    result: str = "same"


class ScalarOp(Enum):
    """Scalar operation; the value is its signature.

    `result` is "same" (the dtype of the last operand), "bool", or "target" (given by the statement).
    """

    __hash__ = object.__hash__  # members compare by identity; Enum's own hash runs Python at every table look-up

    # arithmetic on integers and floats
    ADD = ("add", Signature(2, "if"))
    SUB = ("sub", Signature(2, "if"))
    MUL = ("mul", Signature(2, "if"))
    NEG = ("neg", Signature(1, "if"))
    ABS = ("abs", Signature(1, "if"))
    MIN = ("min", Signature(2, "bif"))
    MAX = ("max", Signature(2, "bif"))
    # floats only
    DIV = ("div", Signature(2, "f"))
    REM = ("rem", Signature(2, "f"))
    FMA = ("fma", Signature(3, "f"))
    SQRT = ("sqrt", Signature(1, "f"))
    FLOOR = ("floor", Signature(1, "f"))
    CEIL = ("ceil", Signature(1, "f"))
    TRUNC = ("trunc", Signature(1, "f"))
    ROUND_EVEN = ("round_even", Signature(1, "f"))
    COPYSIGN = ("copysign", Signature(2, "f"))
    EXPONENT = ("exponent", Signature(1, "f"))
    SIGNIFICAND = ("significand", Signature(1, "f"))
    SCALE = ("scale", Signature(2, "f"))
    # integers (and, or, xor, not on bool too)
    IDIV = ("idiv", Signature(2, "i"))
    IREM = ("irem", Signature(2, "i"))
    AND = ("and", Signature(2, "bi"))
    OR = ("or", Signature(2, "bi"))
    XOR = ("xor", Signature(2, "bi"))
    NOT = ("not", Signature(1, "bi"))
    SHL = ("shl", Signature(2, "i"))
    SHR_ARITHMETIC = ("shr_arithmetic", Signature(2, "i"))
    SHR_LOGICAL = ("shr_logical", Signature(2, "i"))
    POPCOUNT = ("popcount", Signature(1, "i"))
    CLZ = ("clz", Signature(1, "i"))
    # comparisons
    EQ = ("eq", Signature(2, "bif", "bool"))
    NE = ("ne", Signature(2, "bif", "bool"))
    LT = ("lt", Signature(2, "bif", "bool"))
    LE = ("le", Signature(2, "bif", "bool"))
    GT = ("gt", Signature(2, "bif", "bool"))
    GE = ("ge", Signature(2, "bif", "bool"))
    # choice and change of type
    SELECT = ("select", Signature(3, "bif"))  # (bool, when true, when false)
    CONVERT = ("convert", Signature(1, "bif", "target"))
    BITCAST = ("bitcast", Signature(1, "if", "target"))  # equal widths
    NEXTAFTER = ("nextafter", Signature(2, "f"))
    LOOKUP = ("lookup", Signature(17, "f"))  # (integer, sixteen constants), f32 or f64
    # functions, expanded into the operations above by `schedule.math` before a backend sees them
    EXP = ("exp", Signature(1, "f"))
    EXP2 = ("exp2", Signature(1, "f"))
    EXPM1 = ("expm1", Signature(1, "f"))
    LOG = ("log", Signature(1, "f"))
    LOG2 = ("log2", Signature(1, "f"))
    LOG1P = ("log1p", Signature(1, "f"))
    SIN = ("sin", Signature(1, "f"))
    COS = ("cos", Signature(1, "f"))
    TAN = ("tan", Signature(1, "f"))
    ASIN = ("asin", Signature(1, "f"))
    ACOS = ("acos", Signature(1, "f"))
    ATAN = ("atan", Signature(1, "f"))
    ATAN2 = ("atan2", Signature(2, "f"))
    SINH = ("sinh", Signature(1, "f"))
    COSH = ("cosh", Signature(1, "f"))
    TANH = ("tanh", Signature(1, "f"))
    ASINH = ("asinh", Signature(1, "f"))
    ACOSH = ("acosh", Signature(1, "f"))
    ATANH = ("atanh", Signature(1, "f"))
    LOGISTIC = ("logistic", Signature(1, "f"))
    POW = ("pow", Signature(2, "f"))
    CBRT = ("cbrt", Signature(1, "f"))
    RSQRT = ("rsqrt", Signature(1, "f"))
    HYPOT = ("hypot", Signature(2, "f"))
    ERF = ("erf", Signature(1, "f"))
    ERFC = ("erfc", Signature(1, "f"))
    ERF_INV = ("erf_inv", Signature(1, "f"))
    LGAMMA = ("lgamma", Signature(1, "f"))
    DIGAMMA = ("digamma", Signature(1, "f"))

    def __init__(self, label: str, signature: Signature) -> None:
        self.label = label
        self.signature = signature


MATH_FUNCTIONS = tuple(op for op in ScalarOp if list(ScalarOp).index(op) >= list(ScalarOp).index(ScalarOp.EXP))
"""The operations that a backend never spells itself."""
