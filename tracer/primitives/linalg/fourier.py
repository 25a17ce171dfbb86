"""Discrete Fourier transforms along one axis: fft.

    "FFT"      y[k] = scale Σ_j x[j] exp(-2πi jk / n)        complex [n] -> complex [n]
    "IFFT"     the same with exp(+2πi jk / n)
    "RFFT"     the first n // 2 + 1 results of "FFT"          real [n] -> complex [n // 2 + 1]
    "IRFFT"    "IFFT" of the Hermitian array with this first half, real: the imaginary parts of x[0], and of x[n / 2]
               for even n, are not read                       complex [n // 2 + 1] -> real [n]

Transforms are linear, and none is scaled unless `scale` says so. A transform over several axes is one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tracer.errors import AxisError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Library, Primitive
from tracer.ir.types import ArrayType, Type, array_type
from tracer.primitives.base.rules import check_kinds, linear_jvp
from tracer.primitives.base.shapes import broadcasted_iota
from tracer.primitives.elementwise.arithmetic import mul, neg
from tracer.primitives.elementwise.bits import or_
from tracer.primitives.elementwise.comparison import eq, select
from tracer.primitives.elementwise.complex import complex, imag, real
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace.source import here
from tracer.trace.trace import bind

FFT_DTYPES: Final = (dtypes.F32, dtypes.F64, dtypes.C64, dtypes.C128)
_KINDS: Final = {"FFT": "c", "IFFT": "c", "RFFT": "f", "IRFFT": "c"}


def _infer(x: Type, *, fft_type: str, axis: int, length: int, scale: float) -> ArrayType:
    check_kinds("fft", [x], _KINDS[fft_type])
    assert isinstance(x, ArrayType)
    if x.dtype not in FFT_DTYPES:
        raise DTypeError(
            message(
                f"fft{here()} computes in f32, f64, c64 and c128",
                f"got {x}",
                help='cast the operand, as with .astype("float32"), and the result back',
            )
        )
    if not 0 <= axis < len(x.shape):
        raise AxisError(message(f"fft{here()}: there is no axis {axis}", f"got {x}", help="a transform needs an axis"))
    given = length // 2 + 1 if fft_type == "IRFFT" else length
    if length < 1 or x.shape[axis] != given:
        raise ShapeError(
            message(
                f"fft{here()}: the operand does not have the transform's length",
                f"got {x} for {fft_type} of length {length} along axis {axis}",
                help="pad or slice it: a length is at least 1, and IRFFT takes length // 2 + 1",
            )
        )
    dtype = {
        "RFFT": dtypes.complex_dtype, "IRFFT": dtypes.real_dtype,
    }.get(fft_type, lambda same: same)(x.dtype)  # fmt: skip
    size = length // 2 + 1 if fft_type == "RFFT" else length
    return array_type(dtype, (*x.shape[:axis], size, *x.shape[axis + 1 :]))


# Value


def transformed(x: Any, *, fft_type: str, axis: int, length: int, scale: float) -> Any:
    """Return the transform of a NumPy array."""
    y: Any
    match fft_type:
        case "FFT":
            y = np.fft.fft(x, axis=axis)
        case "IFFT":
            y = np.fft.ifft(x, axis=axis, norm="forward")
        case "RFFT":
            y = np.fft.rfft(x, axis=axis)
        case _:
            y = np.fft.irfft(x, length, axis, norm="forward")
    if scale != 1:
        parts = y.view(dtypes.real_dtype(y.dtype))
        parts *= parts.dtype.type(scale)
    return y


def _prepared(x: Type, *, fft_type: str, axis: int, length: int, scale: float) -> Callable[[Any], Any] | None:
    """Return a call of NumPy's own loops, which `numpy.fft` reaches through twenty calls of Python."""
    names = {"FFT": "fft", "IFFT": "ifft", "RFFT": "rfft_n_odd" if length % 2 else "rfft_n_even", "IRFFT": "irfft"}
    loops = getattr(getattr(np.fft, "_pocketfft_umath", None), names[fft_type], None)
    if loops is None:
        return None
    found = _infer(x, fft_type=fft_type, axis=axis, length=length, scale=scale)
    shape, dtype = found.shape, found.dtype
    factor, axes = dtypes.real_dtype(dtype).type(scale), [(axis,), (), (axis,)]

    def run(value: Any) -> Any:
        result = np.empty(shape, dtype)
        loops(value, factor, out=result, axes=axes)
        return result

    return run


# Transposes. A cotangent t of y is paired with dy as Re Σ t dy.


def _transpose(ctx: Any, cts: Any, xs: Any, *, fft_type: str, axis: int, length: int, scale: float) -> list[Any]:
    ct = cts[0]
    match fft_type:
        case "RFFT":  # Re Σ_k t[k] exp(-2πi jk / n): both halves of a Hermitian array add the same real part
            return [fft(_weighted(ct, axis, length, 0.5), "IRFFT", axis, length, scale)]
        case "IRFFT":
            return [_weighted(fft(ct, "RFFT", axis, length, scale), axis, length, 2.0)]
        case _:
            return [fft(ct, fft_type, axis, length, scale)]


def _weighted(x: Any, axis: int, length: int, weight: float) -> Any:
    """Return the conjugate, multiplied by `weight` where the Hermitian array of the length holds an element twice."""
    shape, part = x.type.shape, dtypes.real_dtype(x.type.dtype)
    places = broadcasted_iota(dtypes.I32, shape, axis)
    once = eq(places, 0)
    if length % 2 == 0:
        once = or_(once, eq(places, length // 2))
    weights = convert_element_type(select(once, 1.0, weight), part)
    return complex(mul(real(x), weights), mul(imag(x), neg(weights)))


# Batching


def _batch(
    ctx: Any, xs: Sequence[Any], axes: Sequence[int], *, fft_type: str, axis: int, length: int, scale: float
) -> tuple[list[Any], list[int]]:
    """Return the transform along the axis that stands before or behind the batch."""
    (x,), (batched,) = xs, axes
    return [fft(x, fft_type, axis + (axis >= batched), length, scale)], [batched]


fft_p: Primitive = Primitive(
    name="fft", infer=_infer, reference=transformed, jvp=linear_jvp, transpose=_transpose, batch=_batch,
    lower=Library("fft"), prepared=_prepared,
)  # fmt: skip


def fft(x: Any, fft_type: str, axis: int, length: int, scale: float = 1.0) -> Any:
    """Bind `fft` with an axis counted from the front.

    fft_type: "FFT", "IFFT", "RFFT" or "IRFFT". length: n, of the complex or the real side. scale: a finite factor.
    """
    return bind(fft_p, x, fft_type=fft_type, axis=axis, length=length, scale=float(scale))


FOURIER = (fft_p,)
