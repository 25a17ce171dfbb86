"""Plain values as arrays where nothing is traced: what `asarray` and `array` are given most often.

They come to the same as by `conversion`, which has all other values, and every error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.runtime.result_memory import LEAST
from tracer.settings import config, gate
from tracer.trace.array import Array, unowned

_OBJECTS = frozenset(map(id, dtypes.ONE_OBJECT.values()))  # they live as long as the process
_FLOATS, _INTEGERS, _LISTS = {float}, {int}, {list}


def plain_array(a: Any) -> Array | None:
    """A new array of a NumPy array's elements, of lists of Python's floats or integers, or of one; else None."""
    if gate.words[0]:  # as `gate.is_closed`
        return None
    kind = type(a)
    if kind is np.ndarray:
        is_plain = id(a.dtype) in _OBJECTS and a.nbytes < LEAST
        return unowned(a.copy(), False) if is_plain else None
    if kind is list:
        value = _stacked(a)
        return None if value is None else unowned(value, False)
    if kind is float:
        return unowned(np.array(a, config.default_float), True)
    if kind is int and -_LIMIT <= a < _LIMIT:
        return unowned(np.array(a, dtypes.I64), True)
    return None


_LIMIT = 1 << 63


def _stacked(x: list[Any]) -> np.ndarray[Any, Any] | None:
    kinds = set(map(type, x))
    if kinds == _LISTS:
        kinds = {type(item) for row in x for item in row}
    try:
        if kinds == _FLOATS:
            return np.array(x, config.default_float)
        if kinds == _INTEGERS:
            return np.array(x, dtypes.I64)
    except (OverflowError, ValueError):  # too large, or rows of unequal lengths
        pass
    return None
