"""Signals: convolution and correlation along all axes, and removal of trends.

`fftconvolve` and method="fft" multiply Fourier transforms. All else is computed by its definition, in n m steps for n
and m elements. Operands that do not fit raise ShapeError, and an unknown mode, method or boundary ArgumentError.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.shape import axes_tuple, axis_index
from tracer.numpy import arange, concatenate, conj, fft, flip, mean, moveaxis, pad, sum
from tracer.numpy.core.conversion import array_of, unified
from tracer.numpy.core.promotion import promoted_inexact
from tracer.primitives.arrays.slice_pad_concatenate import slice as cut
from tracer.primitives.linalg.convolution_layouts import conv_general_dilated
from tracer.trace.array import Array
from tracer.trace.docstrings import say
from tracer.trace.integers import integers
from tracer.trace.source import here


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """Convolve two arrays along all axes: out[k] = sum over i of in1[i] in2[k - i].

    >>> tracer.scipy.signal.convolve(tnp.asarray([1.0, 2.0, 3.0]), tnp.asarray([0.0, 1.0, 0.5]), "same")
    Array([1. , 2.5, 4. ], f64)
    """
    x, y = _operands("convolve", in1, in2)
    if _is_by_transforms("convolve", method):
        return _multiplied("convolve", x, y, mode, range(x.ndim))
    return _convolved("convolve", x, y, mode, precision)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """Correlate two arrays along all axes: out[k] = sum over i of in1[i + k] conj(in2[i]).

    >>> tracer.scipy.signal.correlate(tnp.asarray([1.0, 2.0, 3.0]), tnp.asarray([0.0, 1.0]))
    Array([1., 2., 3., 0.], f64)
    """
    x, y = _operands("correlate", in1, in2)
    y = flip(_conjugate(y))
    if _is_by_transforms("correlate", method):
        return _multiplied("correlate", x, y, mode, range(x.ndim))
    return _convolved("correlate", x, y, mode, precision)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: int | Sequence[int] | None = None) -> Array:
    """Convolve two arrays along some axes by their Fourier transforms; other axes are matched by index.

    axes: one or several, by default all; other axes broadcast. Errors are relative to the largest result.

    >>> tracer.scipy.signal.fftconvolve(tnp.ones((2, 3)), tnp.ones((2, 2)), axes=1).round(12)
    Array([[1., 2., 2., 1.],
           [1., 2., 2., 1.]], f64)
    """
    x, y = _operands("fftconvolve", in1, in2)
    along = range(x.ndim) if axes is None else axes_tuple(axes, x.ndim, f"fftconvolve{here()}")
    if any(1 not in (n, m) and n != m for k, (n, m) in enumerate(zip(x.shape, y.shape, strict=True)) if k not in along):
        text = f"fftconvolve{here()}: axes that are not convolved broadcast"
        raise ShapeError(message(text, f"got {x.type} and {y.type}, axes={axes}"))
    return _multiplied("fftconvolve", x, y, mode, along)


def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0, precision: Any = None
) -> Array:
    """Convolve two matrices, the first extended beyond its ends.

    >>> tracer.scipy.signal.convolve2d(tnp.ones((2, 2)), tnp.ones((2, 2)), "same", boundary="wrap")
    Array([[4., 4.],
           [4., 4.]], f64)
    """
    x, y = _matrices("convolve2d", in1, in2)
    return _in_plane("convolve2d", x, y, mode, boundary, fillvalue, precision)


def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0, precision: Any = None
) -> Array:
    """Correlate two matrices, the first extended beyond its ends.

    As in SciPy, "same" is centred at in2[r

    2, c

    2]. "valid" with the larger one second gives the conjugate.

    >>> tracer.scipy.signal.correlate2d(tnp.ones((2, 2)), tnp.ones((2, 2)), "valid")
    Array([[4.]], f64)
    """
    x, y = _matrices("correlate2d", in1, in2)
    found = flip(_in_plane("correlate2d", flip(x), _conjugate(y), mode, boundary, fillvalue, precision))
    swapped = mode == "valid" and x.shape != y.shape and _fits_in(x, y)
    return _conjugate(found) if swapped else found


def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool | None = None) -> Array:
    """Subtract the least-squares line along an axis, or the mean.

    data: numbers [*s]; axis: by default the last; type: "linear" or "constant"; bp: concrete indices where another line
    begins; overwrite_data: None alone. Returns floats or complex numbers [*s]; integers are cast. Raises ArgumentError
    for another type, and for indices beyond the ends.

    >>> tracer.scipy.signal.detrend(tnp.asarray([1.0, 2.0, 4.0]), type="constant")
    Array([-1.33333333, -0.33333333,  1.66666667], f64)
    """
    (x,) = promoted_inexact("detrend", data)
    if type not in ("linear", "constant") or overwrite_data is not None:
        got = f"type={type!r}, overwrite_data={overwrite_data!r}"
        raise ArgumentError(message(f'detrend{here()}: type is "linear" or "constant"', f"got {got}"))
    along = axis_index(axis, x.ndim, f"detrend{here()}")
    if type == "constant":
        return x - mean(x, along, keepdims=True)
    y = moveaxis(x, along, -1)
    size = y.shape[-1]
    ends = np.unique([0, *integers("detrend", "bp", np.atleast_1d(np.asarray(bp)).tolist()), size])
    if ends[0] < 0 or ends[-1] > size:
        raise ArgumentError(message(f"detrend{here()}: indices must lie within the axis", f"got bp={bp} for {x.type}"))
    parts = [_without_line(y[..., first:last]) for first, last in pairwise(ends)]
    return moveaxis(concatenate(parts, -1), -1, along)


def _without_line(y: Array) -> Array:
    level = y - mean(y, -1, keepdims=True)
    positions = arange(y.shape[-1], dtype=dtypes.real_dtype(y.dtype) if dtypes.is_complex(y.dtype) else y.dtype)
    positions = positions - mean(positions)
    spread = sum(positions * positions)
    if y.shape[-1] < 2:
        return level
    return level - sum(level * positions, -1, keepdims=True) / spread * positions


def _operands(name: str, in1: Any, in2: Any) -> tuple[Array, Array]:
    """Return the operands in one float or complex dtype. Raises ShapeError unless they have equally many axes."""
    x, y = unified(name, [promoted_inexact(name, v)[0] for v in (in1, in2)])
    if x.ndim != y.ndim or not x.size or not y.size:
        raise ShapeError(
            message(
                f"{name}{here()}: both must have elements, and equally many axes",
                f"got {x.type} and {y.type}",
                help="give the smaller one axes of size 1: y[None]",
            )
        )
    return x, y


def _matrices(name: str, in1: Any, in2: Any) -> tuple[Array, Array]:
    x, y = _operands(name, in1, in2)
    if x.ndim != 2:
        raise ShapeError(message(f"{name}{here()} takes matrices", f"got {x.type} and {y.type}", help="see convolve"))
    return x, y


def _is_by_transforms(name: str, method: str) -> bool:
    """Whether a method is "fft": "auto" is by definition, as in JAX. Raises ArgumentError for an unknown one."""
    if method not in ("auto", "direct", "fft"):
        raise ArgumentError(message(f'{name}{here()}: method is "auto", "direct" or "fft"', f"got {method!r}"))
    return method == "fft"


def _conjugate(x: Array) -> Array:
    return conj(x) if dtypes.is_complex(x.dtype) else x


def _fits_in(x: Array, y: Array) -> bool:
    return all(n <= m for n, m in zip(x.shape, y.shape, strict=True))


def _larger_first(name: str, x: Array, y: Array, mode: str) -> tuple[Array, Array]:
    """Return the operands, the larger one first for "valid". Raises ShapeError where neither fits into the other."""
    if mode != "valid" or _fits_in(y, x):
        return x, y
    if not _fits_in(x, y):
        raise ShapeError(
            message(
                f'{name}{here()}: for "valid" one must fit into the other along every axis',
                f"got {x.type} and {y.type}",
                help='take "full" or "same"',
            )
        )
    return y, x


def _convolved(name: str, x: Array, y: Array, mode: str, precision: Any) -> Array:
    """Return the part of the full convolution chosen by the mode, by padding to its ends alone."""
    if not x.ndim:
        return x * y
    x, y = _larger_first(name, x, y, mode)
    ends = [_stretch(name, mode, n, m) for n, m in zip(x.shape, y.shape, strict=True)]
    padding = [(m - 1 - first, last - n) for (first, last), n, m in zip(ends, x.shape, y.shape, strict=True)]
    return conv_general_dilated(x[None, None], flip(y)[None, None], (1,) * x.ndim, padding, precision=precision)[0, 0]


def _multiplied(name: str, x: Array, y: Array, mode: str, axes: Sequence[int]) -> Array:
    """Return the convolution along the axes: the product of transforms that are long enough for all its results."""
    x, y = _larger_first(name, x, y, mode)
    ends = {axis: _stretch(name, mode, x.shape[axis], y.shape[axis]) for axis in axes}
    if not ends:
        return x * y
    lengths = [_good_length(x.shape[axis] + y.shape[axis] - 1) for axis in ends]
    there, back = (fft.fftn, fft.ifftn) if dtypes.is_complex(x.dtype) else (fft.rfftn, fft.irfftn)
    product = there(x, lengths, tuple(ends)) * there(y, lengths, tuple(ends))
    whole = back(product, lengths, tuple(ends))
    places = [ends.get(axis, (0, n)) for axis, n in enumerate(whole.shape)]
    return cut(whole, [first for first, _ in places], [last for _, last in places], [1] * x.ndim)


def _good_length(n: int) -> int:
    """Return the least even length from n on whose prime factors are at most 7."""
    length = n + n % 2
    while not _is_smooth(length):
        length += 2
    return length


def _is_smooth(n: int) -> bool:
    for factor in (2, 3, 5, 7):
        while n % factor == 0:
            n //= factor
    return n == 1


def _stretch(name: str, mode: str, n: int, m: int) -> tuple[int, int]:
    """Return the start and end of the mode's part of the n + m - 1 results."""
    if mode == "full":
        return 0, n + m - 1
    if mode == "same":
        return (m - 1) // 2, (m - 1) // 2 + n
    if mode == "valid":
        return m - 1, n
    raise ArgumentError(message(f'{name}{here()}: mode is "full", "same" or "valid"', f"got {mode!r}"))


_BEYOND = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _in_plane(name: str, x: Array, y: Array, mode: str, boundary: str, fillvalue: Any, precision: Any) -> Array:
    if boundary not in _BEYOND:
        raise ArgumentError(
            message(f"{name}{here()}: no such boundary", f"got {boundary!r}", help=f"there are {', '.join(_BEYOND)}")
        )
    plain = boundary == "fill" and isinstance(fillvalue, int | float | complex) and fillvalue == 0
    if plain or mode == "valid":
        return _convolved(name, x, y, mode, precision)
    ends = [_stretch(name, mode, n, m) for n, m in zip(x.shape, y.shape, strict=True)]
    options = {"constant_values": array_of(name, fillvalue).astype(x.dtype)} if boundary == "fill" else {}
    wider = pad(x, [(m - 1, m - 1) for m in y.shape], _BEYOND[boundary], **options)
    whole = _convolved(name, wider, y, "valid", precision)
    return cut(whole, [first for first, _ in ends], [last for _, last in ends], [1, 1])


__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "detrend", "fftconvolve"]

say(
    [globals()[name] for name in __all__],
    {
        "in1": "numbers [*n].",
        "in2": "numbers [*m], of as many axes. The result has their promoted dtype; integers become floats.",
        "mode": '"full" (n + m - 1 places along an axis), "same" (n, from the middle) or "valid" (both overlap).',
        "method": '"fft" multiplies Fourier transforms; "direct", and "auto" as in JAX, add products by definition.',
        "precision": "as of `lax.conv_general_dilated`.",
        "boundary": 'what in1 is beyond its ends: "fill" for `fillvalue`, "wrap" or "symm".',
        "fillvalue": "a number.",
    },
)
