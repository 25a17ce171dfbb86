"""fft: one library call for all transforms of an array, along any axis.

Lengths of small factors are transformed by kernels of our own, eight lines side by side; a long line is cut in two
steps, of n1 and n2 with the product n. Lines of lengths with a large prime factor are convolved, by transforms of a
longer length. Other lengths go to NumPy's loops. The way depends on the length and on whether lines lie one behind the
other. So results depend on neither batches nor threads.
"""

from __future__ import annotations

from math import isqrt, prod
from typing import Final

from tracer.ir import dtypes
from tracer.ir.loop.build import constant
from tracer.ir.primitive import Library
from tracer.ir.program import Equation
from tracer.ir.types import ArrayType, array_type, size
from tracer.schedule.terms.cost import fft_cost
from tracer.schedule.terms.schedules import Schedule
from tracer.schedule.write.program_writer import BlockWriter

_KINDS: Final = ("FFT", "IFFT", "RFFT", "IRFFT")
_REAL: Final = ("RFFT", "IRFFT")
_MAX_FACTOR: Final = 13
"""Largest radix of our kernels."""
_MAX_OF_NUMPY: Final = 36
"""Largest prime factor that NumPy takes as a radix."""
_LANES: Final = 8
_AT_ONCE: Final = 128
"""Longest line that is transformed at once where it can be cut in two."""
_MAX: Final = 2048
"""Most of n1 and n2: buffers for eight lines take half a megabyte in f64."""
_MAX_AT_ONCE: Final = 8192
"""Longest line that is transformed at once."""
_LONGEST: Final = _MAX * _MAX
_LARGE: Final = 1 << 14
"""Complex numbers of a line that threads share: some 60 µs."""


def write_fft(writer: BlockWriter, equation: Equation) -> None:
    """Write the transforms of all lines along the axis."""
    (x,), (y,), params = equation.inputs, equation.outputs, equation.params
    target = writer.target_of(y)
    if not size(x.type):
        return
    assert isinstance(x.type, ArrayType)
    shape, axis, n = x.type.shape, params["axis"], params["length"]
    inner, part = prod(shape[axis + 1 :]), dtypes.real_dtype(x.type.dtype)
    real, rows = params["fft_type"] in _REAL, inner == 1
    steps, longer = first_step(n, real=real, rows=rows), 0
    if steps < 0 and rows and 2 * n <= _LONGEST and _largest_factor(n) > _MAX_OF_NUMPY:
        longer = longer_length(n)
        steps = first_step(longer, real=False, rows=True)
    memory = 3 * longer or (n // 2 if real else n)
    views = [writer.memory_of(x).view, target.view]
    if steps > 0 and (longer or memory) >= _LARGE:
        views.append(writer.allocate(array_type(part, (2 * memory,))).view)
    sizes = (_KINDS.index(params["fft_type"]), prod(shape[:axis]), n, inner, steps, longer)
    scale = constant(params["scale"], dtypes.F64)
    writer.builder.library(f"fft_{dtypes.short_name(part)}", *views, *sizes, scale)


def longer_length(n: int) -> int:
    """Return the length of the transforms that convolve lines of length n, a multiple of eight.

    >>> longer_length(1009)
    2048
    """
    length = -(-(2 * n - 1) // _LANES) * _LANES
    while first_step(length, real=False, rows=True) <= 0 and length < _LONGEST:
        length += _LANES
    return length


def first_step(n: int, *, real: bool, rows: bool) -> int:
    """Return n1 of a line that is cut in two, 0 for an uncut line, -1 where NumPy transforms it.

    real: whether n is a length of real numbers, which are half as many complex ones. rows: whether lines lie one behind
    the other.

    >>> [first_step(n, real=False, rows=True) for n in (1024, 64, 101)]
    [32, 0, -1]
    """
    h = n // 2 if real else n
    if (real and n % 2) or h < 2 or not _is_smooth(h):
        return -1
    if rows and h > _AT_ONCE:
        found = next((n1 for n1 in range(isqrt(h), _LANES - 1, -1) if h % n1 == 0), 0)
        if found and h // found <= _MAX:
            return found
    return 0 if h <= _MAX_AT_ONCE else -1


def _is_smooth(n: int) -> bool:
    return _largest_factor(n) <= _MAX_FACTOR


def _largest_factor(n: int) -> int:
    """Return the largest prime factor, or 1."""
    largest, factor = 1, 2
    while factor * factor <= n:
        while n % factor == 0:
            largest, n = factor, n // factor
        factor += 1
    return max(largest, n)


FFT: Final = Schedule(Library, "fft", fft_cost, write_fft)
