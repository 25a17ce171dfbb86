"""Functions of mpmath on arrays, and errors beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np


def exact(function: Callable[..., Any], *operands: Any, digits: int = 30) -> list[Any]:
    """The exact values, as numbers of mpmath."""
    with mpmath.workdps(digits):
        convert = lambda x: mpmath.mpc(complex(x)) if np.iscomplexobj(x) else mpmath.mpf(float(x))  # noqa: E731
        arrays = np.broadcast_arrays(*operands)
        return [function(*map(convert, values)) for values in zip(*(a.ravel() for a in arrays), strict=True)]


def errors(found: Any, expected: list[Any], scale: Any = 0.0) -> Any:
    """Errors relative to the exact values, or to a scale that is larger."""
    scales = np.broadcast_to(scale, len(expected))
    with mpmath.workdps(30):
        pairs = zip(np.asarray(found).ravel(), expected, scales, strict=True)
        return np.asarray([float(abs(mpmath.mpmathify(complex(x)) - e) / max(abs(e), s)) for x, e, s in pairs])
