"""Types for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tracer.trace.array import Array

if TYPE_CHECKING:
    ArrayLike: TypeAlias = Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex
else:
    ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex  # without parameters, for isinstance
"""Types that functions take as one array: an Array, NumPy's arrays and scalars, Python numbers."""

DTypeLike: TypeAlias = Any  # anything np.dtype accepts, and tracer.numpy's own names: too many to list
"""Types that functions take as a dtype."""

Shape: TypeAlias = tuple[int, ...]
"""The sizes of an array's axes."""

__all__ = ["Array", "ArrayLike", "DTypeLike", "Shape"]


def __dir__() -> list[str]:
    return sorted(__all__)
