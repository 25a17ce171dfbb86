"""`lax.fft`: Fourier transforms over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.shape import show
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.linalg import fourier
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.integers import integers
from tracer.trace.source import here


class FftType(Enum):
    """Kind of a Fourier transform.

    >>> FftType["RFFT"]
    <FftType.RFFT: 2>
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Return the discrete Fourier transform over the last axes, one for each length.

    x: numbers [*s, *n] with the lengths n; for "IRFFT" the last axis is n[-1] // 2 + 1. fft_type: "FFT", "IFFT",
    "RFFT", "IRFFT", or a `FftType`; inverse transforms are divided by the product of n. fft_lengths: integers n.
    Returns complex numbers [*s, *n], for "RFFT" n[-1] // 2 + 1 along the last axis; for "IRFFT" real numbers. Integers
    are cast to the default float. Raises ArgumentError for another type, DTypeError for "RFFT" of complex numbers,
    ShapeError for lengths that differ from x's.

    >>> tracer.lax.fft(tnp.asarray([1.0, 2.0, 3.0, 4.0]), "RFFT", (4,))
    Array([10.+0.j, -2.+2.j, -2.+0.j], c128)
    """
    operand, kind = as_array(x, "fft"), _known(fft_type)
    lengths = integers("fft", "fft_lengths", fft_lengths)
    if not dtypes.is_inexact(operand.dtype):
        operand = convert_element_type(operand, dtypes.F64 if operand.dtype.itemsize == 8 else dtypes.F32)
    if kind == "RFFT" and dtypes.is_complex(operand.dtype):
        raise DTypeError(
            message(f"fft{here()}: RFFT takes real numbers", f"got {operand.type}", help='"FFT" takes complex ones')
        )
    if kind != "RFFT" and not dtypes.is_complex(operand.dtype):
        operand = convert_element_type(operand, dtypes.complex_dtype(operand.dtype))
    if not lengths:
        return operand
    wanted = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == "IRFFT" else lengths
    first = operand.ndim - len(lengths)
    if first < 0 or operand.shape[first:] != wanted or min(lengths) < 1:
        raise ShapeError(
            message(
                f"fft{here()}: the last axes do not have the transform's lengths",
                f"got {operand.type} for {kind} of lengths {show(lengths)}",
                help="lengths are at least 1; IRFFT takes n // 2 + 1 for the last; tracer.numpy.fft pads and slices",
            )
        )
    result: Array = _over(operand, kind, first, lengths)
    return result


def _over(x: Any, kind: str, first: int, lengths: Sequence[int]) -> Any:
    """Transform one axis after another: a half of the last one first, or last where the result is real."""
    last = len(lengths) - 1
    order = [*range(last), last] if kind == "IRFFT" else range(last, -1, -1)
    for place in order:
        step = kind if place == last else "IFFT" if kind[0] == "I" else "FFT"
        scale = 1 / lengths[place] if kind[0] == "I" else 1.0
        part = dtypes.real_dtype(x.dtype)
        x = fourier.fft(x, step, first + place, lengths[place], float(part.type(scale)))
    return x


def _known(fft_type: FftType | str) -> str:
    if isinstance(fft_type, FftType):
        return fft_type.name
    name = str(fft_type).upper()
    if name not in FftType.__members__:
        shown = ", ".join(map(repr, FftType.__members__))
        raise ArgumentError(message(f"fft{here()}: fft_type is one of {shown}", f"got {fft_type!r}"))
    return name
