"""What the math functions are measured with: compiled kernels, references of higher precision, errors in ulps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from scipy import special

from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.toolchain.ctypes_executable import Executable
from tracer.codegen.llvm.toolchain.object_code import compile_object, load_object
from tracer.ir.dtypes import F32, I64, DType
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Compute,
    For,
    Function,
    Load,
    LoopKind,
    Module,
    Register,
    Space,
    Statement,
    Store,
    index_constant,
)  # fmt: skip
from tracer.ir.scalar import ScalarOp
from tracer.schedule.math import expand_math

Array = np.ndarray[Any, Any]
Reference = Callable[..., Array]


def kernel_module(op: ScalarOp, dtype: DType, count: int, *, lanes: int = 16) -> Module:
    """out[i] = op(in[i], ...) for `count` elements, in a vector loop, or a serial one where `lanes` is 0."""
    index = Register(I64, "i")
    address = Address(0, ((index, 1),))
    inputs = [Buffer(f"in{k}", dtype, count, Space.INPUT) for k in range(op.signature.arity)]
    output = Buffer("out", dtype, count, Space.OUTPUT, written=True)
    operands = [Register(dtype, f"x{k}") for k in range(op.signature.arity)]
    result = Register(dtype, "y")
    body: list[Statement] = [Load(r, b, address) for r, b in zip(operands, inputs, strict=True)]
    body += [Compute(result, op, tuple(operands)), Store(output, address, result)]
    kind = LoopKind.VECTOR if lanes else LoopKind.SERIAL
    loop = For(index, index_constant(0), index_constant(count), Block(tuple(body)), kind, lanes=lanes or 1)
    return Module((Function("main", (*inputs, output), Block((loop,))),), "main")


def compiled(
    op: ScalarOp, dtype: DType, count: int, *, lanes: int = 16, vector_bits: int | None = None
) -> Callable[..., Array]:
    """op as a function of arrays of `count` elements."""
    module = expand_math(kernel_module(op, dtype, count, lanes=lanes))
    text = emit_module(module, vector_bits=vector_bits)
    executable = Executable(module, load_object(compile_object(text, vector_bits=vector_bits), {}))
    output = np.empty(count, dtype)

    def call(*arguments: Array) -> Array:
        executable.run([*arguments, output])
        return output

    return call


def evaluate(op: ScalarOp, *arguments: Array, lanes: int = 16, vector_bits: int | None = None) -> Array:
    """op of each element."""
    function = compiled(op, arguments[0].dtype, arguments[0].size, lanes=lanes, vector_bits=vector_bits)
    return function(*(np.ascontiguousarray(a) for a in arguments))


def operation_count(op: ScalarOp, dtype: DType) -> int:
    """How many operations the expansion has in a vector loop, bit casts not counted."""
    module = expand_math(kernel_module(op, dtype, 16))
    loop = module.functions[0].body.statements[0]
    assert isinstance(loop, For)
    return sum(isinstance(s, Compute) and s.op is not ScalarOp.BITCAST for s in loop.body.statements)


def _logistic(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


ARRAY_REFERENCES: dict[ScalarOp, Reference] = {
    ScalarOp.EXP: np.exp, ScalarOp.EXP2: np.exp2, ScalarOp.EXPM1: np.expm1,
    ScalarOp.LOG: np.log, ScalarOp.LOG2: np.log2, ScalarOp.LOG1P: np.log1p,
    ScalarOp.SIN: np.sin, ScalarOp.COS: np.cos, ScalarOp.TAN: np.tan,
    ScalarOp.ASIN: np.arcsin, ScalarOp.ACOS: np.arccos, ScalarOp.ATAN: np.arctan, ScalarOp.ATAN2: np.arctan2,
    ScalarOp.SINH: np.sinh, ScalarOp.COSH: np.cosh, ScalarOp.TANH: np.tanh,
    ScalarOp.ASINH: np.arcsinh, ScalarOp.ACOSH: np.arccosh, ScalarOp.ATANH: np.arctanh,
    ScalarOp.LOGISTIC: _logistic, ScalarOp.POW: np.power, ScalarOp.CBRT: np.cbrt,
    ScalarOp.RSQRT: lambda x: 1 / np.sqrt(x), ScalarOp.HYPOT: np.hypot,
}  # fmt: skip
"""Right to a fraction of an ulp of the argument's own dtype: evaluated one dtype wider than what is measured."""

SCIPY_REFERENCES: dict[ScalarOp, Reference] = {
    ScalarOp.ERF: special.erf, ScalarOp.ERFC: special.erfc,
    ScalarOp.ERF_INV: lambda x: np.copysign(special.erfinv(x), x),  # SciPy loses the sign of -0

    ScalarOp.LGAMMA: special.gammaln, ScalarOp.DIGAMMA: special.digamma,
}  # fmt: skip
"""For f32 only, in f64."""


def _erf_inv(x: Any) -> Any:
    """By Newton's method on log(erfc), which holds where erfinv's own start is too coarse."""
    if abs(x) >= 1:
        return x * mpmath.inf if abs(x) == 1 else mpmath.nan
    a = abs(x)
    y = a * mpmath.sqrt(mpmath.pi) / 2 if a < 0.7 else mpmath.sqrt(-mpmath.log1p(-a)) - mpmath.mpf("0.3")
    for _ in range(7):
        slope = 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-y * y)
        if a < 0.7:
            y -= (mpmath.erf(y) - a) / slope
        else:
            tail = mpmath.erfc(y)
            y += (mpmath.log(tail) - mpmath.log1p(-a)) * tail / slope
    return mpmath.sign(x) * y


PRECISE_REFERENCES: dict[ScalarOp, Callable[..., Any]] = {
    ScalarOp.EXP: mpmath.exp, ScalarOp.EXP2: lambda x: mpmath.mpf(2) ** x, ScalarOp.EXPM1: mpmath.expm1,
    ScalarOp.LOG: mpmath.log, ScalarOp.LOG2: lambda x: mpmath.log(x) / mpmath.ln2, ScalarOp.LOG1P: mpmath.log1p,
    ScalarOp.SIN: mpmath.sin, ScalarOp.COS: mpmath.cos, ScalarOp.TAN: mpmath.tan,
    ScalarOp.ASIN: mpmath.asin, ScalarOp.ACOS: mpmath.acos, ScalarOp.ATAN: mpmath.atan, ScalarOp.ATAN2: mpmath.atan2,
    ScalarOp.SINH: mpmath.sinh, ScalarOp.COSH: mpmath.cosh, ScalarOp.TANH: mpmath.tanh,
    ScalarOp.ASINH: mpmath.asinh, ScalarOp.ACOSH: mpmath.acosh, ScalarOp.ATANH: mpmath.atanh,
    ScalarOp.LOGISTIC: lambda x: 1 / (1 + mpmath.exp(-x)), ScalarOp.POW: mpmath.power,
    ScalarOp.CBRT: lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), ScalarOp.RSQRT: lambda x: 1 / mpmath.sqrt(x),
    ScalarOp.HYPOT: mpmath.hypot, ScalarOp.ERF: mpmath.erf, ScalarOp.ERFC: mpmath.erfc, ScalarOp.ERF_INV: _erf_inv,
    ScalarOp.LGAMMA: lambda x: mpmath.re(mpmath.loggamma(x)), ScalarOp.DIGAMMA: mpmath.digamma,
}  # fmt: skip
"""One element at a time with mpmath; real results only, so arguments must be in the domain."""


def precise_errors(op: ScalarOp, got: Array, *arguments: Array) -> Array:
    """Errors in ulps of f64 results, by mpmath; nan where the argument is outside the domain."""
    errors = np.full(got.size, np.nan)
    for i, y in enumerate(got):
        with mpmath.workprec(160):
            try:
                exact = PRECISE_REFERENCES[op](*(mpmath.mpf(float(a[i])) for a in arguments))
            except (ValueError, ZeroDivisionError, OverflowError):
                continue
            if isinstance(exact, mpmath.mpc) or not mpmath.isfinite(exact):
                continue
            # the exponent of the result's last place
            place = max(mpmath.frexp(exact)[1] - 53, -1074) if exact else -1074
            if np.isfinite(y):
                errors[i] = float(abs(mpmath.mpf(float(y)) - exact) / mpmath.ldexp(1, place))
            else:
                overflowed = abs(exact) >= mpmath.ldexp(1, 1024) - mpmath.ldexp(1, 970) and y * exact > 0
                errors[i] = 0.0 if overflowed else np.inf
    return errors


def ulp_errors(got: Array, exact: Array) -> Array:
    """Errors in ulps of `got`'s dtype against a wider reference; inf where one is NaN, infinite or -0 alone."""
    dtype = got.dtype
    digits, least = np.finfo(dtype).nmant, np.finfo(dtype).smallest_normal
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        size = np.maximum(np.abs(exact), exact.dtype.type(least))
        unit = np.ldexp(exact.dtype.type(1), np.frexp(size)[1] - 1 - digits)
        errors = np.abs(got.astype(exact.dtype) - exact) / unit
        finite = np.isfinite(got) & np.isfinite(rounded)
        same = (np.isnan(got) & np.isnan(rounded)) | (got == rounded)
        # an overflow a fraction of an ulp too early or too late
        limit = np.ldexp(exact.dtype.type(1), np.finfo(dtype).maxexp)
        near = np.abs(np.abs(exact) - limit) / unit
        errors = np.where(finite, errors, np.where(same, 0, np.where(np.isinf(got) & np.isfinite(exact), near, np.inf)))
        lost_sign = (got == 0) & (exact == 0) & (np.signbit(got) != np.signbit(exact))
    return np.asarray(np.where(lost_sign, np.inf, errors), np.float64)


def every_float32(step: int, start: int = 0, count: int | None = None) -> Array:
    """`count` of the 2^32 encodings, one in each `step` from `start` on, at a place that scatters over the step."""
    number = np.arange(count if count is not None else -(-((1 << 32) - start) // step), dtype=np.uint64)
    scattered = number * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)
    return (start + number * step + scattered % step).astype(np.uint32).view(np.float32)


def samples(op: ScalarOp, dtype: DType, count: int, seed: int = 0) -> tuple[Array, ...]:
    """Arguments over every exponent, and more of them where functions bend; pairs for pow reach its whole range."""
    rng = np.random.default_rng(seed)
    bits = 8 * dtype.itemsize

    def anywhere(n: int) -> Array:
        words = rng.integers(0, 1 << bits, n, dtype=f"u{dtype.itemsize}")
        return np.where(np.isnan(words.view(dtype)), dtype.type(1), words.view(dtype))

    def signs(n: int) -> Array:
        return rng.choice([-1.0, 1.0], n)

    n = count // 8
    near = 2.0 ** -rng.uniform(0, 53 if dtype != F32 else 24, n) * signs(n)
    x = np.concatenate([
        anywhere(2 * n), 2.0 ** rng.uniform(-30, 11, 2 * n) * signs(2 * n), rng.uniform(-8, 8, n),
        rng.uniform(-1, 1, n), 1 + near / 2,
    ]).astype(dtype)  # fmt: skip
    if op.signature.arity == 1:
        return (x,)
    if op is ScalarOp.POW:
        base = np.concatenate([np.abs(anywhere(n)), rng.uniform(0.5, 2, n), np.abs(1 + near)]).astype(dtype)
        base = base[(base > 0) & (base != 1) & np.isfinite(base)]
        least, most = (-104, 88.8) if dtype == F32 else (-745, 709.8)
        exponent = rng.uniform(least, most, base.size) / np.log(base.astype(np.float64))
        return base, exponent.astype(dtype)
    with np.errstate(over="ignore"):
        y = (x.astype(np.float64) * 2.0 ** rng.uniform(-3, 3, x.size) * signs(x.size)).astype(dtype)
    return np.concatenate([x, x]), np.concatenate([y, anywhere(x.size)])
