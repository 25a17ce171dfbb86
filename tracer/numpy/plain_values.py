"""Plain values as arrays where nothing is traced: what `asarray` and `array` are given most often.

They come to the same as by `conversion`, which has all other values, and every error.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.types import KeyType
from tracer.runtime.quiet import quietly
from tracer.runtime.result_memory import LEAST
from tracer.settings import config, gate
from tracer.trace.array import Array, unowned

Value = np.ndarray[Any, Any]

_OBJECTS = frozenset(map(id, dtypes.ONE_OBJECT.values()))  # they live as long as the process
_LISTS = {list, tuple}
_FLOATS = (dtypes.F32, dtypes.F64)
_KINDS = {int: dtypes.I64, bool: dtypes.BOOL, np.float64: dtypes.F64, np.int64: dtypes.I64}  # of elements
_NUMBERS = {int, float}
_INTEGERS = frozenset("iu")
_REAL = frozenset("biuf")


def plain_array(a: Any, dtype: Any = None) -> Array | None:
    """A new array of a NumPy array's elements, of lists of Python's numbers or of arrays, or of one number; else None.

    dtype: what is asked for; None where nothing is.
    """
    if gate.words[0]:  # as `gate.is_closed`
        return None
    default = _default_float()
    wanted = None
    if dtype is not None:
        wanted = _named(dtype)
        if wanted is None or default is not dtypes.F64:
            return None
    kind = type(a)
    weak = False
    try:
        if kind is list or kind is tuple:
            value = _stacked(a, default)
        elif kind is np.ndarray:
            value = a.copy() if id(a.dtype) in _OBJECTS and a.nbytes < LEAST else None
        elif kind is float or kind is int:
            if wanted is not None and (found := plain_number(a, wanted)) is not None:
                return found
            value, weak = np.array(a, default if kind is float else dtypes.I64), wanted is None
        else:
            value = np.array(a) if kind is bool or (isinstance(a, np.generic) and id(a.dtype) in _OBJECTS) else None
        if value is not None and wanted is not None and value.dtype is not wanted:
            value = _cast(value, wanted)
    except (OverflowError, ValueError):  # too large, or rows of unequal lengths
        return None
    return None if value is None else unowned(value, weak)


def plain_number(number: float, wanted: DType) -> Array | None:
    """A float or an int as an array of a dtype; None where NumPy does not make it so, and where it does not fit."""
    if gate.words[0]:
        return None
    if type(number) is int:
        direct = wanted.kind in _INTEGERS and wanted.isbuiltin == 1
    else:
        direct = wanted is dtypes.F64 or (wanted is dtypes.F32 and -_LARGE < number < _LARGE)
        direct = direct and _default_float() is dtypes.F64
    try:
        return unowned(np.array(number, wanted), False) if direct else None
    except OverflowError:
        return None


_LARGE = 3e38  # below the greatest float32: larger numbers become infinite, of which NumPy warns


def known_value(x: Any) -> Value | None:
    """The elements of an array of ours, where nothing is traced, and nobody notes what is read; else None."""
    if gate.words[0] or type(x) is not Array or type(x._type) is KeyType:
        return None
    return x._value if type(x._value) is np.ndarray else None


def new_array(value: Value) -> Array | None:
    """An array of elements that nobody else holds, not copied; None where a trace or the layout wants other ways."""
    if gate.words[0] or value.base is not None or id(value.dtype) not in _OBJECTS or not value.flags.c_contiguous:
        return None
    return unowned(value, False)


class _Default:
    """`config.default_float` where the gate is open: no thread has another, and it changes with the gate's version."""

    version = -1
    dtype = dtypes.F64


def _default_float() -> DType:
    version = gate.words[1]
    if _Default.version != version:
        _Default.dtype, _Default.version = config.default_float, version
    return _Default.dtype


_DEEPEST = 8  # lists in lists


def _stacked(x: Any, default: DType) -> Value | None:
    """Numbers in lists, or arrays in one."""
    kinds, items = {*map(type, x)}, x
    for _ in range(_DEEPEST):
        if not kinds or not kinds <= _LISTS:
            break
        items = [*chain.from_iterable(items)]
        kinds = {*map(type, items)}
    if len(kinds) > 1:
        return np.array(x, default) if kinds == _NUMBERS else None
    for kind in kinds:
        if kind is float:
            return np.array(x, default)
        if kind is Array:
            return _of_arrays(x) if items is x else None
        if kind in _KINDS:
            return np.array(x, _KINDS[kind])
    return None


def _of_arrays(x: Any) -> Value | None:
    """Arrays of ours, of one shape and dtype, one after another."""
    values = [item._value for item in x]
    first = values[0]
    if not all(type(v) is np.ndarray and v.dtype is first.dtype and v.shape == first.shape for v in values):
        return None
    if first.nbytes * len(values) >= LEAST or any(type(item._type) is KeyType for item in x):
        return None
    return np.array(values, first.dtype)


def _named(dtype: Any) -> DType | None:
    """The dtype that is asked for in one of the usual ways; None for others."""
    if dtype is float:
        return dtypes.F64
    kind = type(dtype)
    found = _NAMES.get(dtype) if kind is str or kind is type else getattr(dtype, "dtype", dtype)
    return found if id(found) in _OBJECTS else None


_NAMES: dict[Any, DType] = {int: dtypes.I64, bool: dtypes.BOOL}
_NAMES |= {name: dtype for dtype in dtypes.OF_NUMPY for name in (dtype.name, dtype.type)}


def _cast(value: Value, wanted: DType) -> Value | None:
    """The value in another dtype; None where NumPy may cast otherwise than we do, and where integers do not fit."""
    if value.dtype.isbuiltin != 1:
        return None
    kind = value.dtype.kind
    if wanted in _FLOATS and kind in _REAL:
        return quietly(value.astype, wanted)  # type: ignore[no-any-return]
    if kind in _INTEGERS and wanted.kind in _INTEGERS:
        found: Value = value.astype(wanted)
        same = (found == value).all() if value.ndim else found.item() == value.item()
        return found if same else None
    return None
