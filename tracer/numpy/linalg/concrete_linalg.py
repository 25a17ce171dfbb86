"""Solutions, inverses, determinants and factors of one small concrete matrix, by NumPy's LAPACK functions.

They are the functions that `numpy.linalg` calls, in the same precision, so results keep their bits. Calling them
directly skips checks that take longer than a small matrix. In unusual cases the answer is None, and the primitives
compute the result or raise the error.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.runtime.system.fork_safety import LARGE, apart_from_forks
from tracer.runtime.system.ignore_fp_warnings import quietly
from tracer.settings import gate
from tracer.trace.array import Array, unowned

Value = np.ndarray[Any, Any]

_LAPACK: Any = getattr(np.linalg, "_umath_linalg", None)
_REAL = (dtypes.F32, dtypes.F64)


def solution(a: Any, b: Any) -> Array | None:
    """Return x with a x = b, for one matrix and a vector or matrix of its dtype."""
    x, y = _matrix(a), _real(b)
    if x is None or y is None or x.dtype is not y.dtype or y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        return None
    return _finite(_LAPACK.solve1 if y.ndim == 1 else _LAPACK.solve, x, y) if y.size else None


def inverse(a: Any) -> Array | None:
    """Return the inverse of one matrix."""
    x = _matrix(a)
    return None if x is None else _finite(_LAPACK.inv, x)


def lower_factor(a: Any) -> Array | None:
    """Return the lower Cholesky factor of the Hermitian part of one matrix."""
    x = _matrix(a)
    return None if x is None else _finite(_LAPACK.cholesky_lo, 0.5 * (x + x.T))


def determinant(a: Any) -> Array | None:
    """Return the determinant of one matrix of more than three rows."""
    x = _matrix(a)
    if x is None or len(x) <= 3:
        return None
    return unowned(np.asarray(quietly(_in_double, _LAPACK.det, (x,))), False)


def sign_and_logarithm(a: Any) -> tuple[Array, Array] | None:
    """Return the sign of the determinant of one matrix, and the logarithm of its absolute value."""
    x = _matrix(a)
    if x is None:
        return None
    function = apart_from_forks(_LAPACK.slogdet) if x.size > LARGE else _LAPACK.slogdet
    sign, logarithm = quietly(function, x if x.dtype is dtypes.F64 else x.astype(dtypes.F64))
    return unowned(np.array(sign, x.dtype), False), unowned(np.array(logarithm, x.dtype), False)


def _matrix(a: Any) -> Value | None:
    x = _real(a)
    return x if x is not None and x.ndim == 2 and x.shape[0] == x.shape[1] != 0 else None


def _real(a: Any) -> Value | None:
    """Return the NumPy array of real floats behind an Array; None for other values, and while tracing."""
    if type(a) is not Array or gate.words[0] or a._weak or _LAPACK is None:
        return None
    value = a._value
    return value if type(value) is np.ndarray and value.dtype in _REAL else None


def _in_double(function: Callable[..., Any], values: tuple[Value, ...]) -> Any:
    """Return the function's result, computed in float64, in the dtype of the values."""
    dtype = values[0].dtype
    if values[0].size > LARGE:
        function = apart_from_forks(function)
    if dtype is dtypes.F64:
        return function(*values)
    return function(*(value.astype(dtypes.F64) for value in values)).astype(dtype)


def _finite(function: Callable[..., Value], *values: Value) -> Array | None:
    run = apart_from_forks(_with_size) if values[0].size > LARGE else _with_size
    found = quietly(run, function, values)
    return None if found is None else unowned(found, False)


def _with_size(function: Callable[..., Value], values: tuple[Value, ...]) -> Value | None:
    """Return the result; None if an element, or the sum of the squares, is not finite."""
    found: Value = _in_double(function, values)
    return found if isfinite(np.vdot(found, found)) else None
