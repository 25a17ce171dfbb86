"""Eager elementwise functions whose frequent calls run in compiled code alone.

`Quick` stands in front of a public function: calls on arrays of one shape are compiled once for all shapes, see
`kernels`; those on arrays that are broadcast are replayed, see `replay`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from time import perf_counter
from typing import Any

import numpy as np

from tracer.errors import TracerError
from tracer.ir import dtypes
from tracer.ir.types import ArrayType, array_type
from tracer.runtime.eager.call_cache import Calls
from tracer.runtime.eager.elementwise_kernels import Types, kernel
from tracer.settings import gate
from tracer.trace.array import Array, unowned
from tracer.trace.state import state

Function = Callable[..., Any]

_NUMBERS = {int: dtypes.I64, float: dtypes.F64, complex: dtypes.C128}
_NUMPYS = {dtype.type: dtype for dtype in dtypes.OF_NUMPY}
_WIDE = (dtypes.I64, dtypes.F32, dtypes.F64, dtypes.C64, dtypes.C128)
# Which arrays numbers may stand beside, without an int and with one: whether an int fits others is for Python to see.
_BESIDE = {False: (*_WIDE, dtypes.I32, dtypes.BOOL), True: _WIDE}


class Quick(Calls):
    """A function of arrays and numbers whose frequent kinds of calls run in compiled code.

    `call` is the whole: a chain of entries, each for one kind of operands, and the Python function at its end.
    """

    def _reset(self) -> None:
        super()._reset()
        self._frequent: dict[Hashable, int] = {}
        self._compiled: set[Hashable] = set()
        self._chain = 0

    def slowly(self, *operands: Any, **options: Any) -> Any:
        """A call by way of Python."""
        if state.innermost is not None or not gate.is_open_here:
            return self.function(*operands, **options)
        kind = None if options else _kind(operands)
        if (kind is None or kind in self._compiled) and not _NUMPYS.keys().isdisjoint(map(type, operands)):
            return self._of_numpys(operands, options)
        if kind is None:
            return super().slowly(*operands, **options)
        start = perf_counter()
        result = self.function(*operands)
        if type(result) is Array and kind not in self._compiled:
            self._count(kind, result, 1 + int((perf_counter() - start) / often.short))
        return result

    def _of_numpys(self, operands: Sequence[Any], options: dict[str, Any]) -> Any:
        """A call with numbers of NumPy's, which beside an array of ours are as arrays without axes."""
        if options:
            return self.function(*operands, **options)
        return self.call(*[unowned(np.array(x), False) if type(x) in _NUMPYS else x for x in operands])

    def _count(self, kind: tuple[Types, tuple[bool, ...]], result: Array, calls: int) -> None:
        """Compile for this kind of operands, if it came often enough. calls: so many short ones took as long."""
        with self.lock:
            if self.version != gate.version:
                self._reset()
            count = self._frequent[kind] = self._frequent.get(kind, 0) + min(calls, max(1, often.calls // 4))
            if count < often.calls or self._chain == often.kinds:
                return
            self._compiled.add(kind)  # once, whatever comes of it
        types, scalars = kind
        entry = self._entry(types, scalars, result)
        if entry is not None:
            with self.lock:
                entry.trust_settings(self.version)
                self.call = entry.entry(self.call)
                self._chain += 1

    def _entry(self, types: Types, scalars: tuple[bool, ...], result: Array) -> Any:
        def flat(inputs: list[Any]) -> list[Any]:
            return [self.function(*inputs)]

        try:
            expected = (array_type(result.dtype, (), result._weak),)
            return kernel(flat, types, scalars, expected)
        except TracerError:
            return None


def elementwise(function: Function) -> Function:
    """A decorator: the function of elementwise operands alone, with frequent kinds of calls run in compiled code."""
    quick = Quick(function)

    @wraps(function)
    def call(*operands: Any) -> Any:
        return quick.call(*operands)

    return call


class _Often:
    """When a kind of calls is worth compiling, and how many kinds of one function are."""

    calls = 500  # compiling costs as much as some thousand calls by Python
    short = 3e-5  # seconds: a call that takes longer counts for more
    kinds = 8


often = _Often()


def _is_known(x: Any) -> bool:
    """Whether an operand is an array of elements that are at hand, ours or NumPy's."""
    if type(x) is Array:
        return x._trace is None and (x._type is None or isinstance(x._type, ArrayType))
    return type(x) is np.ndarray and x.dtype.isnative and x.dtype in dtypes.SHORT_NAMES


def _kind(operands: Sequence[Any]) -> tuple[Types, tuple[bool, ...]] | None:
    """Dtypes and weakness of the operands and which are Python numbers; None for calls that stay Python's."""
    types: list[ArrayType] = []
    scalars: list[bool] = []
    shape: tuple[int, ...] | None = None
    dtype = None
    for x in operands:
        if _is_known(x):
            value, weak = (x._value, x._weak) if type(x) is Array else (x, False)
            if shape is None:
                shape, dtype = value.shape, value.dtype
            elif shape != value.shape:
                return None
            types.append(array_type(value.dtype, (), weak))
            scalars.append(False)
        elif type(x) in _NUMBERS:
            types.append(array_type(_NUMBERS[type(x)], (), True))
            scalars.append(True)
        elif type(x) in _NUMPYS:
            types.append(array_type(_NUMPYS[type(x)], ()))
            scalars.append(True)
        else:
            return None
    builtin = not _NUMBERS.keys().isdisjoint(map(type, operands))
    if dtype is None or (builtin and dtype not in _BESIDE[int in map(type, operands)]):
        return None
    return tuple(types), tuple(scalars)
