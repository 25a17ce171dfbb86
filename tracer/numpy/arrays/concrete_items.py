"""`x[i]` and `x[i] = v` on concrete arrays, by NumPy, with a copy of the elements as the result.

So every index and scalar has one cost, where a staged operation would serve one of each. `x[i] = v` writes into the
array's own memory if no other object holds it, by its reference count. So a loop over n elements takes O(n) time.
Threads that write to one handle, or read it meanwhile, race as on NumPy arrays. Large copies run without the
interpreter's lock (docs/transforms.md, Writing to arrays).
"""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.types import KeyType
from tracer.numpy.arrays.lost_writes import references
from tracer.numpy.shapes import indexing
from tracer.runtime.eager.call_cache import cached
from tracer.runtime.system.ignore_fp_warnings import quietly
from tracer.trace.array import Array, concrete, unowned
from tracer.trace.state import state
from tracer.trace.tracebacks import tidy

_get = cached(indexing.get, named=False)
_BASIC = frozenset((int, slice, type(None), EllipsisType))
_REFUSED = type(NotImplemented)
_ONE = frozenset((int, slice))
_INTEGERS, _BOOLS = {int}, {bool}


def getitem(self: Array, index: Any) -> Array:
    """Return the elements of an array at an index, as a new array."""
    if self._trace is None and state.staging is None and type(self._type) is not KeyType:
        kind = type(index)
        try:
            if kind in _ONE and state.innermost is None:
                return unowned(self._value[index, ...].copy(), self._weak)
            if kind is tuple and _BASIC.issuperset(map(type, index)):
                return concrete(self._value[_with_axes(index)].copy(), self._weak)
            parts = _numpys(index)
            if parts is not None:
                return concrete(_taken(self._value, parts), self._weak)
        except (IndexError, OverflowError, TypeError, ValueError):
            pass
    try:
        return _get(self, index)
    except BaseException as error:
        error.__traceback__ = tidy(error)
        raise


def _numpys(index: Any) -> tuple[Any, ...] | None:
    """Return an index as a tuple for NumPy; None for one that is traced, or that NumPy does not take."""
    if type(index) is not tuple:
        one = index if type(index) in _BASIC else _known_places(index)
        return None if one is NotImplemented else (one,)
    parts = tuple([part if type(part) in _BASIC else _known_places(part) for part in index])
    return None if _REFUSED in map(type, parts) else parts


def _taken(x: np.ndarray[Any, Any], parts: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """Return the elements at an index, in C-contiguous memory of their own."""
    found: np.ndarray[Any, Any] = x[parts if np.ndarray in map(type, parts) else _with_axes(parts)]
    return found if found.base is None and found.flags.c_contiguous else found.copy()


def _with_axes(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the index with an ellipsis, so that NumPy returns an array, not a scalar."""
    return parts if EllipsisType in map(type, parts) else (*parts, ...)


def _known_places(part: Any) -> Any:
    """Return a concrete index array or mask as a NumPy array or an integer; NotImplemented for other parts.

    u64 is left out, since NumPy takes values beyond i64 for negative indices.
    """
    if type(part) is Array:
        if part._trace is not None or isinstance(part._type, KeyType):
            return NotImplemented
        part = part._value
    elif type(part) is list:
        kinds = set(map(type, part))
        return np.array(part) if kinds in (_INTEGERS, _BOOLS) else NotImplemented
    elif not isinstance(part, np.ndarray | np.generic):
        return NotImplemented
    kind = part.dtype.kind
    if kind in "iu" and not part.ndim:
        return int(part)
    return np.asarray(part) if kind == "b" or (kind in "iu" and part.dtype != np.uint64) else NotImplemented


def written(
    x: Array, index: Any, value: Any, combine: np.ufunc | None = None, *, in_place: bool = False
) -> Array | None:
    """Return an array with a value written at an index, or combined with the elements there, by NumPy.

    in_place: whether the caller rebinds the handle to the result, so that memory it alone holds may be overwritten.

    Return None for cases that `updates` handles. These are traced arrays, casts that NumPy makes otherwise,
    combinations at indices that may repeat, and errors.
    """
    if x._trace is not None or x._weak or state.innermost is not None or type(x._type) is KeyType:
        return None
    old, kind = x._value, type(index)
    if type(old) is not np.ndarray or not old.size:  # donated, or without elements
        return None
    if combine is not None and (kind is int or kind is tuple) and old.dtype is dtypes.F64 and combine in _OF_NUMBERS:
        combined = _combined(x, old, index, value, _OF_NUMBERS[combine])
        if combined is not None:
            return combined
    if kind not in _BASIC and not (kind is tuple and _BASIC.issuperset(map(type, index))):
        index = None if combine is not None else _numpys(index)
        if index is None:
            return None
    if type(value) is Array:
        if value._trace is not None or type(value._type) is KeyType:
            return None
        value = value._value
    if not _fits(old.dtype, value):
        return None
    alone = in_place and not x._owner and state.outside is None and references(old) <= _ALONE and _is_own(old)
    new = old if alone else old.copy()
    try:
        if combine is None:
            new[index] = value
        else:
            place = new[index if kind is slice else _with_axes(index if kind is tuple else (index,))]
            quietly(combine, place, value, place)
    except (IndexError, OverflowError, TypeError, ValueError):
        return None  # nothing is written: NumPy checks indices and shapes first
    return unowned(new, False)


_OF_NUMBERS = {np.add: operator.add, np.multiply: operator.mul}


def _combined(x: Array, old: np.ndarray[Any, Any], index: Any, value: Any, combine: Any) -> Array | None:
    """Return an f64 array with one element combined with a scalar by Python, whose bits equal NumPy's; else None."""
    place = index if type(index) is tuple else (index,)
    if len(place) != old.ndim or not (type(value) is float or (type(value) is int and _fits(old.dtype, value))):
        return None
    if place is index and not _INTEGERS.issuperset(map(type, place)):
        return None
    try:
        combined = combine(old.item(place), value)
        new = old.copy()
        new[place] = combined
    except (IndexError, OverflowError):
        return None
    return unowned(new, False)


def _is_own(value: np.ndarray[Any, Any]) -> bool:
    return value.base is None and value.flags.owndata and value.flags.writeable


def _references_of_one_handle() -> int:
    """Return the reference count that `written` finds for a value of one handle; 0 if a second one is not counted."""

    def found(x: Array) -> int:
        old = x._value
        return references(old)

    x = unowned(np.zeros(1), False)
    alone = found(x)
    other = unowned(x._value, False)
    return alone if found(other) == alone + 1 else 0


_ALONE = _references_of_one_handle()


def _fits(dtype: np.dtype[Any], value: Any) -> bool:
    """Whether NumPy casts a value to the dtype as tracer does."""
    kind = type(value)
    if kind is float or kind is np.float64:
        return dtype is dtypes.F64 or (dtype is dtypes.F32 and not _MIN_SINGLE < abs(value) < np.inf)
    if kind is np.ndarray:
        return value.dtype is dtype
    if kind is int:
        exact = (dtype is dtypes.F64 or dtype is dtypes.F32) and abs(value) < _MAX_EXACT
        return exact or dtype.kind in "iu"  # NumPy refuses integers that do not fit
    if kind is np.int64:
        return dtype is dtypes.I64
    return kind is bool and dtype.kind == "b"


_MAX_EXACT = 1 << 24  # f32 and f64 represent all smaller integers
_MIN_SINGLE = 3e38  # larger floats may overflow in f32
