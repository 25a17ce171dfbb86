"""What each scalar operation means, in NumPy and Python integers: written from `tracer.ir.scalar`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tracer.ir.dtypes import BOOL, F32, F64, DType, iinfo, is_float, is_integer, is_narrow, wide_dtype
from tracer.ir.scalar import ScalarOp

Array = np.ndarray[Any, Any]


def _wrap(values: list[int], dtype: DType) -> Array:
    bits = dtype.itemsize * 8
    return np.array([v & ((1 << bits) - 1) for v in values], f"u{dtype.itemsize}").view(dtype)


def _integers(function: Callable[..., int]) -> Callable[..., Array]:
    def apply(*arrays: Array) -> Array:
        bits = arrays[0].dtype.itemsize * 8
        rows = zip(*(a.tolist() for a in arrays), strict=True)
        return _wrap([function(bits, *row) for row in rows], arrays[0].dtype)

    return apply


def _truncating(a: int, b: int) -> int:
    return -(-a // b) if (a < 0) != (b < 0) else a // b


def _idiv(bits: int, a: int, b: int) -> int:
    return -1 if b == 0 else _truncating(a, b)


def _irem(bits: int, a: int, b: int) -> int:
    return a if b == 0 else a - b * _truncating(a, b)


def _shift_left(bits: int, a: int, n: int) -> int:
    return a << n if 0 <= n < bits else 0


def _shift_logical(bits: int, a: int, n: int) -> int:
    return (a & ((1 << bits) - 1)) >> n if 0 <= n < bits else 0


def _shift_arithmetic(bits: int, a: int, n: int) -> int:
    signed = (a & ((1 << bits) - 1)) - ((1 << bits) if a & (1 << (bits - 1)) else 0)
    return signed >> n if 0 <= n < bits else (-1 if signed < 0 else 0)


def _extremum(a: Array, b: Array, smaller: bool) -> Array:
    if not is_float(a.dtype):
        return np.minimum(a, b) if smaller else np.maximum(a, b)
    first = np.where(np.signbit(a) == np.signbit(b), a < b, np.signbit(a)) == smaller
    picked = np.where(a == b, np.where(np.signbit(a) == smaller, a, b), np.where(first, a, b))
    return np.where(np.isnan(a) | np.isnan(b), np.asarray(np.nan, a.dtype), picked).astype(a.dtype)


def _exact_fma(a: Array, b: Array, c: Array) -> Array:
    with np.errstate(all="ignore"):
        rough = (a * b + c).astype(a.dtype)
    factors = np.isfinite(a) & np.isfinite(b)
    rough[factors & np.isinf(c)] = c[factors & np.isinf(c)]  # though the product may overflow
    finite = factors & np.isfinite(c)
    for i in np.flatnonzero(finite):
        exact = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
        if exact:
            rough[i] = _round(exact, a.dtype)
    return rough


def _round(exact: Fraction, dtype: DType) -> Any:
    try:
        value = float(exact)
    except OverflowError:
        return dtype.type(np.inf if exact > 0 else -np.inf)
    if dtype == F64:
        return np.float64(value)
    if Fraction(value) != exact:  # round to odd, so that the second rounding is right
        away = abs(Fraction(value)) > abs(exact)
        low = np.nextafter(value, 0.0) if away else np.float64(value)
        value = float((np.array(low).view(np.int64) | 1).view(np.float64))
    with np.errstate(all="ignore"):
        return np.float32(value)


def _parts(value: float) -> tuple[float, float]:
    """(e, m) with value = 2^e m, m in [3/4, 3/2)."""
    if not value > 0:
        return (-np.inf, 1.0) if value == 0 else (np.nan, np.nan)
    if value == np.inf:
        return np.inf, 1.0
    exact, e = Fraction(value), 0
    while exact >= Fraction(3, 2):
        exact, e = exact / 2, e + 1
    while exact < Fraction(3, 4):
        exact, e = exact * 2, e - 1
    return float(e), float(exact)


def _scaled(a: Array, n: Array) -> Array:
    """a * 2^n where `is_defined` says that SCALE is."""
    result = a.copy()
    for i in np.flatnonzero(np.isfinite(a) & (a != 0) & is_defined(ScalarOp.SCALE, a, n)):
        result[i] = _round(Fraction(float(a[i])) * Fraction(2) ** int(n[i]), a.dtype)
    return result


def is_defined(op: ScalarOp, *operands: Array) -> Array:
    """Where the result is said: everywhere, but for SCALE."""
    x = operands[-2 if op is ScalarOp.SCALE else -1]
    if op is not ScalarOp.SCALE:
        return np.ones(x.shape, bool)
    n, limits = operands[-1], np.finfo(operands[-1].dtype if operands[-1].dtype in (F32, F64) else F32)
    x, n = x.astype(np.float64), n.astype(np.float64)
    least = np.log2(limits.smallest_subnormal)
    inside = (x == 0) | np.isinf(x) | ((np.abs(x) >= 2.0**-8) & (np.abs(x) <= 2.0**8))
    return (np.isnan(x) & ~np.isinf(n)) | (inside & (n == np.trunc(n)) & (n >= least) & (n <= limits.maxexp))


_FLOAT: dict[ScalarOp, Callable[..., Array]] = {
    ScalarOp.ADD: np.add, ScalarOp.SUB: np.subtract, ScalarOp.MUL: np.multiply, ScalarOp.DIV: np.divide,
    ScalarOp.REM: np.fmod, ScalarOp.NEG: np.negative, ScalarOp.ABS: np.abs, ScalarOp.FMA: _exact_fma,
    ScalarOp.SQRT: np.sqrt, ScalarOp.FLOOR: np.floor, ScalarOp.CEIL: np.ceil, ScalarOp.TRUNC: np.trunc,
    ScalarOp.ROUND_EVEN: np.rint, ScalarOp.COPYSIGN: np.copysign,
    ScalarOp.EXPONENT: lambda x: np.array([_parts(v)[0] for v in x.tolist()], x.dtype),
    ScalarOp.SIGNIFICAND: lambda x: np.array([_parts(v)[1] for v in x.tolist()], x.dtype), ScalarOp.SCALE: _scaled,
}  # fmt: skip
_INTEGER: dict[ScalarOp, Callable[..., Array]] = {
    ScalarOp.ADD: _integers(lambda n, a, b: a + b), ScalarOp.SUB: _integers(lambda n, a, b: a - b),
    ScalarOp.MUL: _integers(lambda n, a, b: a * b), ScalarOp.NEG: _integers(lambda n, a: -a),
    ScalarOp.ABS: _integers(lambda n, a: abs(a)), ScalarOp.IDIV: _integers(_idiv), ScalarOp.IREM: _integers(_irem),
    ScalarOp.SHL: _integers(_shift_left), ScalarOp.SHR_LOGICAL: _integers(_shift_logical),
    ScalarOp.SHR_ARITHMETIC: _integers(_shift_arithmetic),
    ScalarOp.POPCOUNT: _integers(lambda n, a: (a & ((1 << n) - 1)).bit_count()),
    ScalarOp.CLZ: _integers(lambda n, a: n - (a & ((1 << n) - 1)).bit_length()),
}  # fmt: skip
_ANY: dict[ScalarOp, Callable[..., Array]] = {
    ScalarOp.AND: np.bitwise_and, ScalarOp.OR: np.bitwise_or, ScalarOp.XOR: np.bitwise_xor,
    ScalarOp.NOT: np.invert, ScalarOp.EQ: np.equal, ScalarOp.NE: np.not_equal, ScalarOp.LT: np.less,
    ScalarOp.LE: np.less_equal, ScalarOp.GT: np.greater, ScalarOp.GE: np.greater_equal,
    ScalarOp.MIN: lambda a, b: _extremum(a, b, True), ScalarOp.MAX: lambda a, b: _extremum(a, b, False),
}  # fmt: skip


def evaluate(op: ScalarOp, *operands: Array) -> Array:
    """The operation, element by element; short floats compute in f32 and round."""
    dtype = operands[-1].dtype
    with np.errstate(all="ignore"):
        if op is ScalarOp.SELECT:
            return np.where(*operands)
        if op is ScalarOp.NEXTAFTER:
            a, b = operands  # C gives b where they are equal; NumPy's float16 gives a
            return np.where(a == b, b, np.nextafter(a, b)).astype(dtype)
        if is_float(dtype) and dtype not in (F32, F64):
            wide = evaluate(op, *(x.astype(np.float32) for x in operands))
            return wide if wide.dtype == BOOL else wide.astype(dtype)
        kind = _FLOAT if is_float(dtype) else _INTEGER
        return np.asarray((kind.get(op) or _ANY[op])(*operands))


def convert(values: Array, target: DType) -> Array:
    """CONVERT: floats to integers truncate and saturate, f64 rounds to a short float once."""
    if is_narrow(values.dtype) and values.dtype != target:
        values = values.astype(wide_dtype(values.dtype))
    source = values.dtype
    if is_narrow(target) and is_float(source):
        with np.errstate(invalid="ignore"):
            values = np.where(values == values, values, np.asarray(np.nan, source))
    with np.errstate(all="ignore"):
        if target == BOOL:
            return values != np.zeros((), source)
        if is_float(source) and is_integer(target):
            limits = iinfo(target)
            whole = [0 if np.isnan(v) else v for v in values.astype(np.float64).tolist()]
            clipped = [limits.max if v > limits.max else limits.min if v < limits.min else int(v) for v in whole]
            held = wide_dtype(target) if is_narrow(target) else target
            return np.array([min(max(v, limits.min), limits.max) for v in clipped], held).astype(target)
        if source == F64 and is_float(target) and target not in (F32, F64):
            return np.array([_once(v) for v in values.tolist()], np.float32).astype(target)
        if is_float(target) and target not in (F32, F64):
            return values.astype(np.float32).astype(target)
        return values.astype(target)


def _once(value: float) -> np.float32:
    """An f64 as the f32 that rounds to any shorter format as the f64 itself would."""
    if not np.isfinite(value) or value == 0:
        return np.float32(value)
    near = np.float32(value)
    if float(near) == value:
        return near
    low = np.nextafter(near, np.float32(0)) if abs(float(near)) > abs(value) else near
    return (low.view(np.int32) | np.int32(1)).view(np.float32)
