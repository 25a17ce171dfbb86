"""`x[i]` of a value that is known: NumPy's indexing finds the elements, of which the result is a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir.types import KeyType
from tracer.numpy import indexing
from tracer.runtime.replay import replayed
from tracer.trace.array import Array, concrete, unowned
from tracer.trace.state import state
from tracer.trace.tracebacks import tidy

_get = replayed(indexing.get, named=False)
_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))
_ONE = frozenset((int, slice))
_INTEGERS, _BOOLS = {int}, {bool}


def getitem(self: Array, index: Any) -> Array:
    """The elements that an index takes."""
    if type(index) in _ONE and self._trace is None and state.innermost is None and type(self._type) is not KeyType:
        try:
            return unowned(self._value[index, ...].copy(), self._weak)
        except (IndexError, OverflowError, TypeError):
            pass
    if self._trace is None and state.staging is None and not isinstance(self._type, KeyType):
        found = _found(self, index)
        if found is not None:
            return found
    try:
        return _get(self, index)  # type: ignore[no-any-return]
    except BaseException as error:
        error.__traceback__ = tidy(error)
        raise


def _found(x: Array, index: Any) -> Array | None:
    """What NumPy finds; None for indices that are not known, or of no use to NumPy."""
    parts = index if type(index) is tuple else (index,)
    if not _BASIC.issuperset(map(type, parts)):
        parts = tuple([part if type(part) in _BASIC else _known_places(part) for part in parts])
        for part in parts:
            if part is NotImplemented:
                return None
            if type(part) is np.ndarray:
                return _gathered(x, parts)
    try:
        found = x._value[parts if Ellipsis in parts else (*parts, ...)]  # an array, though it have no axes
    except (IndexError, OverflowError, TypeError):
        return None
    return concrete(found.copy(), x._weak)


def _gathered(x: Array, parts: tuple[Any, ...]) -> Array | None:
    """The same where one of the indices is an array with axes, or a mask: NumPy's result is new."""
    try:
        found = x._value[parts]
    except (IndexError, OverflowError, TypeError):
        return None
    return concrete(found if found.flags.c_contiguous and found.base is None else found.copy(), x._weak)


def _known_places(part: Any) -> Any:
    """An index array or a mask with values, as NumPy's, or an integer; NotImplemented for everything else.

    NumPy takes u64 beyond i64 for negative indices.
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
