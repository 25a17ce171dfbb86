"""Total order of floats as integers: -0 below +0, NaN beyond all. NumPy's max and min leave the sign of zeros open.

Complex numbers are ordered by real, then by imaginary part. The first with a NaN part is beyond all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.dtypes import DType


def ordered(x: Any, *, nan_above: bool) -> Any:
    """Map floats to integers of the same order, NaN above or below all of them. Return anything else as it is."""
    if not dtypes.is_float(x.dtype):
        return x
    nan = np.array(np.nan if nan_above else -np.nan, x.dtype)
    nan = np.copysign(nan, np.array(1 if nan_above else -1, x.dtype))
    bits = np.where(np.isnan(x), nan, x).view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def unordered(bits: Any, dtype: DType) -> Any:
    """Invert `ordered`. NaN gets a positive sign."""
    if not dtypes.is_float(dtype):
        return bits
    x = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits).view(dtype)
    return np.where(np.isnan(x), np.array(np.nan, dtype), x)


def exact_extreme(function: Callable[..., Any], *, is_max: bool) -> Callable[..., Any]:
    """Make a reference from a NumPy maximum or minimum, repeated on ordered integers if zeros came out.

    Among complex numbers that are equal or NaN, NumPy takes the first.
    """

    def reference(x: Any, **options: Any) -> Any:
        found = np.asarray(function(x, **options), x.dtype)
        if not dtypes.is_float(x.dtype) or found.all():
            return found
        return unordered(np.asarray(function(ordered(x, nan_above=is_max), **options)), x.dtype)

    return reference
