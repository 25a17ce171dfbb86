"""Table of scalar operations: how each is spelled in CUDA C++, as an expression of its operands' names.

`tracer.ir.scalar` defines the meanings. Signed arithmetic goes through unsigned integers, since C++ leaves its overflow
undefined. No product is contracted: kernels are compiled with `--fmad=false`, and FMA is spelled as such. Short floats
never come here: their operands are widened to f32 before, their results rounded after.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final

from tracer.codegen.cuda.types import computing_name, type_name, word_name
from tracer.errors import InternalError
from tracer.ir.dtypes import BOOL, F32, DType, is_float, is_signed, short_name
from tracer.ir.loop import Constant
from tracer.ir.scalar import ScalarOp


class Place:
    """Place where an operation is spelled: the dtype of its operands, and the helpers that the module will need.

    known: the integer that the last operand is, where it is a constant.
    """

    __slots__ = ("dtype", "helpers", "known")

    def __init__(self, dtype: DType, helpers: dict[str, None], last: object = None) -> None:
        self.dtype = dtype
        self.helpers = helpers
        integral = isinstance(last, Constant) and not is_float(dtype)
        self.known = int(last.value) if integral and isinstance(last, Constant) else None

    @property
    def width(self) -> int:
        return 8 * self.dtype.itemsize

    def call(self, name: str, *values: str) -> str:
        """Return the name of one of our helpers, and note that the module needs it."""
        self.helpers[name] = None
        return f"tr_{name}({', '.join(values)})"

    def table(self, values: list[str]) -> str:
        """Return the name of an array of constants of this dtype."""
        entries, kind = ", ".join(values), type_name(self.dtype)
        name = f"tr_table_{hashlib.sha256(entries.encode()).hexdigest()[:16]}"
        self.helpers[f"static __device__ const {kind} {name}[{len(values)}] = {{{entries}}};\n"] = None
        return name

    def of_dtype(self, name: str, *values: str) -> str:
        """Return the name of the helper for this dtype."""
        return self.call(f"{name}_{short_name(self.dtype)}", *values)


Spelling = Callable[..., str]


def _operator(symbol: str) -> Spelling:
    """Spell an operator: on floats plainly, on integers wrapping."""

    def spell(p: Place, a: str, b: str) -> str:
        if is_float(p.dtype):
            return f"{a} {symbol} {b}"
        wide = computing_name(p.dtype)
        return f"({type_name(p.dtype)})(({wide}){a} {symbol} ({wide}){b})"

    return spell


def _bitwise(symbol: str) -> Spelling:
    def spell(p: Place, a: str, b: str) -> str:
        return f"({type_name(p.dtype)})({a} {symbol} {b})"

    return spell


def _comparison(symbol: str) -> Spelling:
    def spell(p: Place, a: str, b: str) -> str:
        return f"{a} {symbol} {b}"

    return spell


def _function(name: str) -> Spelling:
    """Spell a function of C, with `f` appended for f32."""

    def spell(p: Place, *values: str) -> str:
        return f"{name}{'f' if p.dtype == F32 else ''}({', '.join(values)})"

    return spell


def _helper(name: str) -> Spelling:
    """Spell a call of our helper for the dtype."""

    def spell(p: Place, *values: str) -> str:
        return p.of_dtype(name, *values)

    return spell


def _extremum(name: str, symbol: str, boolean: str) -> Spelling:
    def spell(p: Place, a: str, b: str) -> str:
        if is_float(p.dtype):
            return p.of_dtype(name, a, b)
        return f"{a} {boolean} {b}" if p.dtype == BOOL else f"{a} {symbol} {b} ? {a} : {b}"

    return spell


def _negate(p: Place, a: str) -> str:
    if is_float(p.dtype):
        return f"-({a})" if a.startswith("-") else f"-{a}"
    return f"({type_name(p.dtype)})(0 - ({computing_name(p.dtype)}){a})"


def _absolute(p: Place, a: str) -> str:
    if is_float(p.dtype):
        return _function("fabs")(p, a)
    return f"{a} < 0 ? {_negate(p, a)} : {a}" if is_signed(p.dtype) else a


def _not(p: Place, a: str) -> str:
    return f"!{a}" if p.dtype == BOOL else f"({type_name(p.dtype)})~{a}"


def _division(name: str, symbol: str) -> Spelling:
    """Spell a division, unguarded by a constant other than 0 and -1."""

    def spell(p: Place, a: str, b: str) -> str:
        if p.known is None or p.known in (0, -1):
            return p.of_dtype(name, a, b)
        return f"{a} {symbol} {b}" if p.width >= 32 else f"({type_name(p.dtype)})({a} {symbol} {b})"

    return spell


def _shift(name: str, symbol: str) -> Spelling:
    """Spell a shift, unguarded by a constant below the width."""

    def spell(p: Place, a: str, count: str) -> str:
        if p.known is None or not 0 <= p.known < p.width:
            return p.of_dtype(name, a, count)
        through = {
            "shl": computing_name(p.dtype), "shr_logical": word_name(p.dtype), "shr_arithmetic": f"i{p.width}",
        }  # fmt: skip
        return f"({type_name(p.dtype)})(({through[name]}){a} {symbol} {p.known})"

    return spell


def _ones(p: Place, a: str) -> str:
    counter = "__popcll" if p.width == 64 else "__popc"
    return f"({type_name(p.dtype)}){counter}(({word_name(p.dtype)}){a})"


def _leading_zeros(p: Place, a: str) -> str:
    kind = type_name(p.dtype)
    if p.width == 64:
        return f"({kind})__clzll((i64){a})"
    spare = f" - {32 - p.width}" if p.width < 32 else ""
    return f"({kind})(__clz((i32)({word_name(p.dtype)}){a}){spare})"


def _select(p: Place, condition: str, then: str, otherwise: str) -> str:
    return f"{condition} ? {then} : {otherwise}"


SPELLINGS: Final[Mapping[ScalarOp, Spelling]] = {
    ScalarOp.ADD: _operator("+"),
    ScalarOp.SUB: _operator("-"),
    ScalarOp.MUL: _operator("*"),
    ScalarOp.NEG: _negate,
    ScalarOp.ABS: _absolute,
    ScalarOp.MIN: _extremum("min", "<", "&"),
    ScalarOp.MAX: _extremum("max", ">", "|"),
    ScalarOp.DIV: _operator("/"),
    ScalarOp.REM: _function("fmod"),
    ScalarOp.FMA: _function("fma"),
    ScalarOp.SQRT: _function("sqrt"),
    ScalarOp.FLOOR: _function("floor"),
    ScalarOp.CEIL: _function("ceil"),
    ScalarOp.TRUNC: _function("trunc"),
    ScalarOp.ROUND_EVEN: _function("rint"),
    ScalarOp.COPYSIGN: _function("copysign"),
    ScalarOp.EXPONENT: _helper("exponent"),
    ScalarOp.SIGNIFICAND: _helper("significand"),
    ScalarOp.SCALE: _helper("scale"),
    ScalarOp.IDIV: _division("idiv", "/"),
    ScalarOp.IREM: _division("irem", "%"),
    ScalarOp.AND: _bitwise("&"),
    ScalarOp.OR: _bitwise("|"),
    ScalarOp.XOR: _bitwise("^"),
    ScalarOp.NOT: _not,
    ScalarOp.SHL: _shift("shl", "<<"),
    ScalarOp.SHR_ARITHMETIC: _shift("shr_arithmetic", ">>"),
    ScalarOp.SHR_LOGICAL: _shift("shr_logical", ">>"),
    ScalarOp.POPCOUNT: _ones,
    ScalarOp.CLZ: _leading_zeros,
    ScalarOp.EQ: _comparison("=="),
    ScalarOp.NE: _comparison("!="),
    ScalarOp.LT: _comparison("<"),
    ScalarOp.LE: _comparison("<="),
    ScalarOp.GT: _comparison(">"),
    ScalarOp.GE: _comparison(">="),
    ScalarOp.SELECT: _select,
}
"""Without CONVERT, BITCAST, NEXTAFTER and LOOKUP, which need more than their operands' names: see `compute`."""


def spell(op: ScalarOp, place: Place, *values: str) -> str:
    """Return the expression of `op` on operands of the place's dtype. Raises InternalError for math functions."""
    function = SPELLINGS.get(op)
    if function is None:
        raise InternalError(f"cuda: {op.label} of {short_name(place.dtype)} should have been expanded before")
    return function(place, *values)
