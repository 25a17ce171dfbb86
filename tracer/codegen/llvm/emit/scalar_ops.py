"""Table of scalar operations: how each is spelled in LLVM, for a scalar (no lanes) or a vector.

`tracer.ir.scalar` defines the meanings; none depends on the machine. Integer division, shifts and conversions guard
every lane by value. LLVM leaves the unguarded cases undefined even where a lane is masked. Short floats never come
here: their operands are widened to f32 before, their results rounded after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tracer.codegen.llvm.emit.exponent_significand import Parts
from tracer.codegen.llvm.emit.sqrt_newton import root
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.types import ELEMENT, SHORT_FLOATS, real, splat, vector
from tracer.errors import InternalError
from tracer.ir.dtypes import BOOL, F32, F64, DType, is_float, is_signed, short_name
from tracer.ir.scalar import ScalarOp


@dataclass(frozen=True, slots=True)
class Place:
    """Place where an operation is written: the writer, the dtype of its operands, the lanes."""

    w: Writer
    dtype: DType
    lanes: int

    @property
    def element(self) -> str:
        return ELEMENT[self.dtype]

    @property
    def type(self) -> str:
        return vector(ELEMENT[self.dtype], self.lanes)

    @property
    def width(self) -> int:
        return self.dtype.itemsize * 8

    def constant(self, value: int) -> str:
        return splat(self.element, str(value), self.lanes)

    def real(self, value: float) -> str:
        return splat(self.element, real(self.dtype, value), self.lanes)

    def choose(self, condition: str, then: str, otherwise: str) -> str:
        mask, kind = vector("i1", self.lanes), self.type
        return self.w.let(f"select {mask} {condition}, {kind} {then}, {kind} {otherwise}")


Spelling = Callable[..., str]


def _plain(opcode: str) -> Spelling:
    def spell(p: Place, a: str, b: str) -> str:
        return p.w.let(f"{opcode} {p.type} {a}, {b}")

    return spell


def _intrinsic(name: str) -> Spelling:
    def spell(p: Place, *values: str) -> str:
        return p.w.intrinsic(name, p.element, p.lanes, *values)

    return spell


def _of_parts(op: ScalarOp) -> Spelling:
    def spell(p: Place, *values: str) -> str:
        return Parts(p.w, p.dtype, p.lanes).spell(op, *values)

    return spell


def _root(p: Place, a: str) -> str:
    if p.w.multiplies_roots and p.dtype == F64 and p.lanes:
        return root(p.w, p.lanes, a)
    return p.w.intrinsic("llvm.sqrt", p.element, p.lanes, a)


def _by_kind(integer: Spelling, floating: Spelling) -> Spelling:
    def spell(p: Place, *values: str) -> str:
        return (floating if is_float(p.dtype) else integer)(p, *values)

    return spell


def _by_sign(signed: Spelling, unsigned: Spelling) -> Spelling:
    def spell(p: Place, *values: str) -> str:
        return (signed if is_signed(p.dtype) else unsigned)(p, *values)

    return spell


def _comparison(signed: str, unsigned: str, floating: str) -> Spelling:
    def spell(p: Place, a: str, b: str) -> str:
        if is_float(p.dtype):
            return p.w.let(f"fcmp {floating} {p.type} {a}, {b}")
        return p.w.let(f"icmp {signed if is_signed(p.dtype) else unsigned} {p.type} {a}, {b}")

    return spell


def _extremum(signed: str, unsigned: str, boolean: str, floating: str) -> Spelling:
    integer = _by_sign(_intrinsic(signed), _intrinsic(unsigned))

    def spell(p: Place, a: str, b: str) -> str:
        if p.dtype == BOOL:
            return p.w.let(f"{boolean} {p.type} {a}, {b}")
        if is_float(
            p.dtype
        ):  # b first: x86 branches on the first one's sign, and in reductions `a` is the newest value
            return p.w.intrinsic(floating, p.element, p.lanes, b, a)
        return integer(p, a, b)

    return spell


def _negate(p: Place, a: str) -> str:
    return p.w.let(f"fneg {p.type} {a}" if is_float(p.dtype) else f"sub {p.type} {p.constant(0)}, {a}")


def _absolute(p: Place, a: str) -> str:
    if is_float(p.dtype):
        return p.w.intrinsic("llvm.fabs", p.element, p.lanes, a)
    if not is_signed(p.dtype):
        return a
    negative = p.w.let(f"icmp slt {p.type} {a}, {p.constant(0)}")
    return p.choose(negative, p.w.let(f"sub {p.type} {p.constant(0)}, {a}"), a)


def _copysign(p: Place, a: str, b: str) -> str:
    """Combine bits. LLVM 22 turns f32's `llvm.copysign` into one of halves, whose conversion it then lacks."""
    word, sign = vector(f"i{p.width}", p.lanes), 1 << (p.width - 1)
    bits, sign_bits = (p.w.let(f"bitcast {p.type} {value} to {word}") for value in (a, b))
    size = p.w.let(f"and {word} {bits}, {splat(f'i{p.width}', str(sign - 1), p.lanes)}")
    chosen = p.w.let(f"and {word} {sign_bits}, {splat(f'i{p.width}', str(-sign), p.lanes)}")
    return p.w.let(f"bitcast {word} {p.w.let(f'or {word} {size}, {chosen}')} to {p.type}")


def _not(p: Place, a: str) -> str:
    ones = "true" if p.dtype == BOOL else "-1"
    return p.w.let(f"xor {p.type} {a}, {splat(p.element, ones, p.lanes)}")


def _concrete(value: str) -> int | None:
    """Return the integer that a literal spells; None for a register."""
    return None if value.startswith("%") else int(value.removesuffix(")").rpartition(" ")[2])


# -- division ----------------------------------------------------------------------------------------------------


def _safe_divisor(p: Place, a: str, b: str) -> tuple[str, str | None]:
    """Return a divisor that cannot trap, and where the real one is zero (None: nowhere)."""
    if _concrete(b) not in (None, 0, -1):
        return b, None
    zero = p.w.let(f"icmp eq {p.type} {b}, {p.constant(0)}")
    unsafe = zero
    if is_signed(p.dtype):
        lowest = p.w.let(f"icmp eq {p.type} {a}, {p.constant(-(1 << (p.width - 1)))}")
        minus = p.w.let(f"icmp eq {p.type} {b}, {p.constant(-1)}")
        mask = vector("i1", p.lanes)
        unsafe = p.w.let(f"or {mask} {zero}, {p.w.let(f'and {mask} {lowest}, {minus}')}")
    return p.choose(unsafe, p.constant(1), b), zero


def _by_constant(p: Place, a: str, divisor: int) -> str:
    """Return a / divisor, truncated, in lanes of i64: the upper half of |a| times a scaled inverse.

    Granlund & Montgomery 1994, PLDI. The product is made of 32-bit products; LLVM would take the lanes apart for 64-bit
    ones.
    """
    size = abs(divisor)
    shift = (size - 1).bit_length()
    inverse = -(-(1 << 63 + shift) // size)  # exact for |a| <= 2^63, since it is less than 1 too large
    high, low, half = p.constant(inverse >> 32), p.constant(inverse & _HALF), p.constant(_HALF)
    thirty_two = p.constant(32)

    def let(opcode: str, x: str, y: str) -> str:
        return p.w.let(f"{opcode} {p.type} {x}, {y}")

    sign = let("ashr", a, p.constant(63))
    magnitude = let("sub", let("xor", a, sign), sign)
    upper, lower = let("lshr", magnitude, thirty_two), let("and", magnitude, half)
    middle = let("add", let("mul", upper, low), let("lshr", let("mul", lower, low), thirty_two))
    other = let("add", let("mul", lower, high), let("and", middle, half))
    carried = let("add", let("lshr", middle, thirty_two), let("lshr", other, thirty_two))
    quotient = let("lshr", let("add", let("mul", upper, high), carried), p.constant(shift - 1))
    if divisor < 0:
        sign = let("xor", sign, p.constant(-1))
    return let("sub", let("xor", quotient, sign), sign)


_HALF: Final = (1 << 32) - 1


def _takes_apart(p: Place, divisor: int | None) -> bool:
    """Whether LLVM would divide lane by lane: by constants that are not powers of two."""
    signed_lanes = p.lanes > 1 and p.width == 64 and is_signed(p.dtype)
    return signed_lanes and divisor is not None and abs(divisor) & (abs(divisor) - 1) != 0


def _quotient(p: Place, a: str, safe: str) -> str:
    """Return a / safe, truncated. Vectors up to 32 bits divide as floats, whose quotient is exact once truncated."""
    letter, known = "s" if is_signed(p.dtype) else "u", _concrete(safe)
    if known is not None and _takes_apart(p, known):
        return _by_constant(p, a, known)
    if p.lanes < 2 or p.width == 64 or _concrete(safe) is not None:
        return p.w.let(f"{letter}div {p.type} {a}, {safe}")
    real_type = vector("double" if p.width == 32 else "float", p.lanes)
    numerator, divisor = (p.w.let(f"{letter}itofp {p.type} {v} to {real_type}") for v in (a, safe))
    ratio = p.w.let(f"fdiv {real_type} {numerator}, {divisor}")
    return p.w.let(f"fpto{letter}i {real_type} {ratio} to {p.type}")


def _divide(p: Place, a: str, b: str) -> str:
    safe, zero = _safe_divisor(p, a, b)
    quotient = _quotient(p, a, safe)
    return quotient if zero is None else p.choose(zero, p.constant(-1), quotient)


def _remainder(p: Place, a: str, b: str) -> str:
    safe, zero = _safe_divisor(p, a, b)
    if not _takes_apart(p, _concrete(safe)) and (p.lanes < 2 or p.width == 64 or _concrete(safe) is not None):
        rest = p.w.let(f"{'s' if is_signed(p.dtype) else 'u'}rem {p.type} {a}, {safe}")
    else:
        back = p.w.let(f"mul {p.type} {_quotient(p, a, safe)}, {safe}")
        rest = p.w.let(f"sub {p.type} {a}, {back}")
    return rest if zero is None else p.choose(zero, a, rest)


# -- shifts and bits -----------------------------------------------------------------------------------------------


def _shift(opcode: str) -> Spelling:
    def spell(p: Place, a: str, count: str) -> str:
        known = _concrete(count)
        if known is not None and 0 <= known < p.width:
            return p.w.let(f"{opcode} {p.type} {a}, {count}")
        inside = p.w.let(f"icmp ult {p.type} {count}, {p.constant(p.width)}")
        limit = p.constant(p.width - 1 if opcode == "ashr" else 0)
        shifted = p.w.let(f"{opcode} {p.type} {a}, {p.choose(inside, count, limit)}")
        return shifted if opcode == "ashr" else p.choose(inside, shifted, p.constant(0))

    return spell


def _leading_zeros(p: Place, a: str) -> str:
    full = f"@llvm.ctlz.{f'v{p.lanes}' if p.lanes else ''}{p.element}"
    p.w.declarations[full] = f"declare {p.type} {full}({p.type}, i1)"
    return p.w.let(f"call {p.type} {full}({p.type} {a}, i1 false)")


def _select(p: Place, condition: str, then: str, otherwise: str) -> str:
    return p.choose(condition, then, otherwise)


def nextafter(p: Place, a: str, b: str, a_bits: str, b_bits: str) -> str:
    """Return the bits of the float after `a` towards `b`; of a sum that is NaN where either is NaN.

    `a` and `b` are comparable values (of `p.dtype`, or f32 for short floats), `a_bits` and `b_bits` their bits.
    """
    w, value = p.w, Place(p.w, F32, p.lanes) if p.dtype in SHORT_FLOATS else p
    word, mask = vector(f"i{p.width}", p.lanes), vector("i1", p.lanes)

    def constant(number: int) -> str:
        return splat(f"i{p.width}", str(number), p.lanes)

    upwards = w.let(f"fcmp olt {value.type} {a}, {b}")
    positive = w.let(f"icmp sge {word} {a_bits}, {constant(0)}")
    grows = w.let(f"icmp eq {mask} {upwards}, {positive}")
    more, less = (w.let(f"{op} {word} {a_bits}, {constant(1)}") for op in ("add", "sub"))
    result = w.let(f"select {mask} {grows}, {word} {more}, {word} {less}")
    sign = w.let(f"and {word} {b_bits}, {constant(1 << (p.width - 1))}")
    least = w.let(f"or {word} {sign}, {constant(1)}")
    at_zero = w.let(f"fcmp oeq {value.type} {a}, {value.real(0.0)}")
    result = w.let(f"select {mask} {at_zero}, {word} {least}, {word} {result}")
    equal = w.let(f"fcmp oeq {value.type} {a}, {b}")
    return w.let(f"select {mask} {equal}, {word} {b_bits}, {word} {result}")


SPELLINGS: Final[dict[ScalarOp, Spelling]] = {
    ScalarOp.ADD: _by_kind(_plain("add"), _plain("fadd")),
    ScalarOp.SUB: _by_kind(_plain("sub"), _plain("fsub")),
    ScalarOp.MUL: _by_kind(_plain("mul"), _plain("fmul")),
    ScalarOp.NEG: _negate,
    ScalarOp.ABS: _absolute,
    ScalarOp.MIN: _extremum("llvm.smin", "llvm.umin", "and", "llvm.minimum"),
    ScalarOp.MAX: _extremum("llvm.smax", "llvm.umax", "or", "llvm.maximum"),
    ScalarOp.DIV: _plain("fdiv"),
    ScalarOp.REM: _plain("frem"),
    ScalarOp.FMA: _intrinsic("llvm.fma"),
    ScalarOp.SQRT: _root,
    ScalarOp.FLOOR: _intrinsic("llvm.floor"),
    ScalarOp.CEIL: _intrinsic("llvm.ceil"),
    ScalarOp.TRUNC: _intrinsic("llvm.trunc"),
    ScalarOp.ROUND_EVEN: _intrinsic("llvm.roundeven"),
    ScalarOp.COPYSIGN: _copysign,
    ScalarOp.EXPONENT: _of_parts(ScalarOp.EXPONENT),
    ScalarOp.SIGNIFICAND: _of_parts(ScalarOp.SIGNIFICAND),
    ScalarOp.SCALE: _of_parts(ScalarOp.SCALE),
    ScalarOp.IDIV: _divide,
    ScalarOp.IREM: _remainder,
    ScalarOp.AND: _plain("and"),
    ScalarOp.OR: _plain("or"),
    ScalarOp.XOR: _plain("xor"),
    ScalarOp.NOT: _not,
    ScalarOp.SHL: _shift("shl"),
    ScalarOp.SHR_ARITHMETIC: _shift("ashr"),
    ScalarOp.SHR_LOGICAL: _shift("lshr"),
    ScalarOp.POPCOUNT: _intrinsic("llvm.ctpop"),
    ScalarOp.CLZ: _leading_zeros,
    ScalarOp.EQ: _comparison("eq", "eq", "oeq"),
    ScalarOp.NE: _comparison("ne", "ne", "une"),
    ScalarOp.LT: _comparison("slt", "ult", "olt"),
    ScalarOp.LE: _comparison("sle", "ule", "ole"),
    ScalarOp.GT: _comparison("sgt", "ugt", "ogt"),
    ScalarOp.GE: _comparison("sge", "uge", "oge"),
    ScalarOp.SELECT: _select,
}
"""Without CONVERT, BITCAST, NEXTAFTER and LOOKUP, which need more than their operands' names: see `compute`."""


def spell(w: Writer, op: ScalarOp, dtype: DType, lanes: int, *values: str) -> str:
    """Write `op` on operands of `dtype` and return its result's name."""
    function = SPELLINGS.get(op)
    if function is None:
        raise InternalError(f"llvm: {op.label} of {short_name(dtype)} should have been expanded before")
    return function(Place(w, dtype, lanes), *values)
