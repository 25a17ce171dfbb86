"""Fast conversion of plain values to arrays for `asarray` and `array`, where no trace is open.

Results equal `conversion`'s, which takes all other values and raises all errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.types import KeyType
from tracer.runtime.native.result_pool import LARGE_BYTES
from tracer.runtime.system.ignore_fp_warnings import quietly
from tracer.settings import config, gate
from tracer.trace.array import Array, unowned

Value = np.ndarray[Any, Any]

_OBJECTS = frozenset(map(id, dtypes.ONE_OBJECT.values()))  # they live as long as the process
_LISTS, _NUMBERS = {list, tuple}, {int, float}
_KINDS = {int: dtypes.I64, bool: dtypes.BOOL, np.float64: dtypes.F64, np.int64: dtypes.I64}  # of elements
_INTEGERS = frozenset("iu")
_INT64 = range(-(2**63), 2**63)
_CHECKED = frozenset(map(id, (*dtypes.SIGNED, dtypes.U8, dtypes.U16, dtypes.U32)))  # NumPy raises on overflow
_REAL = frozenset("biuf")


def plain_array(a: Any, dtype: Any = None) -> Array | None:
    """Return a new array of a NumPy array, of lists of Python scalars or of arrays, or of a scalar; else None.

    dtype: of the result; None to infer it.
    """
    if gate.words[0]:  # a trace is open, or a thread overrides settings
        return None
    if _Default.version != gate.words[1]:
        _Default.read()
    wanted = None
    if dtype is not None:
        wanted = _named(dtype)
        if wanted is None or _Default.dtype is not dtypes.F64 or _Default.integer is not dtypes.I64:
            return None
    kind = type(a)
    weak = False
    try:
        if kind is list or kind is tuple:
            value = _stacked(a, wanted)
        elif kind is np.ndarray:
            if id(a.dtype) not in _OBJECTS or a.nbytes >= LARGE_BYTES:
                return None
            value = a.copy() if wanted is None or a.dtype is wanted else _cast(a, wanted)
        else:
            if kind is float or kind is int:
                if wanted is not None and (found := plain_number(a, wanted)) is not None:
                    return found
                value, weak = np.array(a, _Default.dtype if kind is float else dtypes.I64), wanted is None
            elif kind is bool or (isinstance(a, np.generic) and id(a.dtype) in _OBJECTS):
                value = np.array(a)
            else:
                return None
            if wanted is not None and value.dtype is not wanted:
                value = _cast(value, wanted)
    except (OverflowError, ValueError):  # too large, or rows of unequal lengths
        return None
    return None if value is None else unowned(value, weak)


def plain_number(number: float, wanted: DType) -> Array | None:
    """Return a float or an int as an array of a dtype; None where NumPy converts otherwise, or the value overflows."""
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


_LARGE = 3e38  # below the maximum of f32: NumPy warns when larger values become infinite


def known_value(x: Any) -> Value | None:
    """Return the NumPy array of an `Array` while no trace is open; None for traced arrays, keys and other objects."""
    if gate.words[0] or type(x) is not Array or type(x._type) is KeyType:
        return None
    return x._value if type(x._value) is np.ndarray else None


def new_array(value: Value) -> Array | None:
    """Wrap a NumPy array that no other object holds; None if a trace is open, or the layout or dtype needs a copy."""
    if gate.words[0] or value.base is not None or id(value.dtype) not in _OBJECTS or not value.flags.c_contiguous:
        return None
    return unowned(value, False)


class _Default:
    """Cache of `config.default_float` and `default_int` while the gate is open, when all threads have one value.

    version: of the gate, at which the value was read. elements: dtype of a list by the type of its items.
    """

    version = -1
    dtype = dtypes.F64
    integer = dtypes.I64
    elements: dict[Any, DType]

    @classmethod
    def read(cls) -> None:
        version, cls.dtype, cls.integer = gate.words[1], config.default_float, config.default_int
        cls.elements = {**_KINDS, float: cls.dtype, int: cls.integer}
        cls.version = version


def _default_float() -> DType:
    if _Default.version != gate.words[1]:
        _Default.read()
    return _Default.dtype


_DEEPEST = 8  # lists in lists


def _stacked(x: Any, wanted: DType | None) -> Value | None:
    """Return nested lists of scalars, or a list of arrays, as a NumPy array; else None."""
    kind = _kind_of(x)
    if kind is Array:
        value = _of_arrays(x)
        return value if value is None or wanted is None or value.dtype is wanted else _cast(value, wanted)
    if kind is list:
        items = x
        for _ in range(_DEEPEST):
            inner: list[Any] = []
            for row in items:
                inner += row
            items, kind = inner, _kind_of(inner)
            if kind is not list:
                break
    dtype = _Default.elements.get(kind)
    if dtype is None:
        return None
    if wanted is None or wanted is dtype:
        return np.array(x, dtype)
    if wanted is dtypes.F32 and dtype is dtypes.F64:  # equals a cast from f64; NumPy warns of new infinities
        return quietly(np.array, x, wanted)
    return np.array(x, wanted) if kind is int and id(wanted) in _CHECKED else _cast(np.array(x, dtype), wanted)


def _kind_of(items: Any) -> type | None:
    """Return the type of all items, None if they differ: float for floats and 64-bit integers, list for tuples."""
    if not items:
        return None
    kind = type(items[0])
    for item in items:
        if type(item) is not kind:
            kinds = {*map(type, items)}
            if kinds == _NUMBERS and not [n for n in items if type(n) is int and n not in _INT64]:
                return float
            return list if kinds == _LISTS else None
    return list if kind is tuple else kind


def _of_arrays(x: Any) -> Value | None:
    """Return arrays of one shape and dtype stacked as a NumPy array; None for unequal arrays, and for large results."""
    first = x[0]._value
    values = []
    for item in x:
        value = item._value
        if type(value) is not np.ndarray or value.dtype is not first.dtype or value.shape != first.shape:
            return None
        if type(item._type) is KeyType:
            return None
        values.append(value)
    return np.array(values, first.dtype) if first.nbytes * len(values) < LARGE_BYTES else None


def _named(dtype: Any) -> DType | None:
    """Return the dtype of a usual name, class or dtype; None for other specifications."""
    if dtype is float:
        return dtypes.F64
    kind = type(dtype)
    found = _NAMES.get(dtype) if kind is str or kind is type else getattr(dtype, "dtype", dtype)
    return found if id(found) in _OBJECTS else None


_NAMES: dict[Any, DType] = {int: dtypes.I64, bool: dtypes.BOOL}
_NAMES |= {name: dtype for dtype in dtypes.OF_NUMPY for name in (dtype.name, dtype.type)}


def _cast(value: Value, wanted: DType) -> Value | None:
    """Return a copy in another dtype; None where NumPy may cast otherwise than tracer, or integers overflow."""
    if value.dtype.isbuiltin != 1:
        return None
    kind = value.dtype.kind
    if (wanted is dtypes.F64 or wanted is dtypes.F32) and kind in _REAL:  # NumPy warns of floats alone
        return quietly(value.astype, wanted, "C") if kind == "f" else value.astype(wanted, "C")
    if kind in _INTEGERS and wanted.kind in _INTEGERS:
        found: Value = value.astype(wanted, "C")
        same = (found == value).all() if value.ndim else found.item() == value.item()
        return found if same else None
    return None
