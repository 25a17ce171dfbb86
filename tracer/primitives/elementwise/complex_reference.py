"""Products and quotients of complex NumPy arrays, bit-identical to compiled loops (`schedule.elements.complex`).

NumPy's results differ: some processors' vector units leave products unrounded. NumPy's quotients are products with 1 /
|w|, which overflows for tiny w.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir import dtypes


def joined(real: Any, imag: Any) -> Any:
    """Make complex numbers of their parts. Nothing is computed, so infinite parts survive."""
    shape = real.shape
    if imag.shape not in ((), shape):
        shape = np.broadcast_shapes(shape, imag.shape)  # takes 32 axes at most
    result = np.empty(shape, dtypes.complex_dtype(real.dtype))
    result.real, result.imag = real, imag
    return result


def product(z: Any, w: Any) -> Any:
    """Compute z * w by the textbook formula, without recovering infinities. z, w: of one dtype; their shapes broadcast.

    >>> print(product(np.array([1 + 2j]), np.array([3 - 1j])))
    [5.+5.j]
    """
    x, y, u, v = z.real, z.imag, w.real, w.imag
    return joined(x * u - y * v, x * v + y * u)


def quotient(z: Any, w: Any) -> Any:
    """Compute z / w, scaled by the larger part of w. For w = 0, both parts of z are divided by zero.

    Smith 1962, Communications of the ACM 5(8).

    >>> print(quotient(np.array([1 + 1j]), np.array([5e-324 + 5e-324j])))
    [inf+0.j]
    """
    x, y, u, v = z.real, z.imag, w.real, w.imag
    real_larger = np.abs(u) >= np.abs(v)
    big, small = np.where(real_larger, u, v), np.where(real_larger, v, u)
    first, second = np.where(real_larger, x, y), np.where(real_larger, y, x)
    with np.errstate(all="ignore"):
        ratio = small / big
        scale = big + small * ratio
        cross = (second - first * ratio) / scale
        real, imag = (first + second * ratio) / scale, np.where(real_larger, cross, -cross)
        by_zero = w == 0
        return joined(np.where(by_zero, x / np.abs(u), real), np.where(by_zero, y / np.abs(u), imag))
