"""Eager elementwise functions as compiled loops that serve arrays of every shape.

`Kernel` compiles a function for kinds of operands: dtypes, not shapes. Eager execution runs the primitives by it whose
results are not NumPy's to the bit, so that `f(x)` and `jit(f)(x)` call one and the same exponential. `Quick` stands in
front of a public function: calls on kinds that come often are recognised and run in compiled code alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.errors import TracerError
from tracer.ir import dtypes
from tracer.ir.types import ArrayType, Type, array_type, with_shape
from tracer.lazy import LazyModule
from tracer.runtime.locks import ForkSafeLock
from tracer.settings import gate
from tracer.trace.array import Array
from tracer.trace.stage import stage
from tracer.trace.state import state

if TYPE_CHECKING:
    from tracer.passes import pipeline
    from tracer.runtime import compile as compiling
    from tracer.runtime import cost
    from tracer.runtime import entry as entries
    from tracer.schedule import any_size
else:
    any_size = LazyModule("tracer.schedule.any_size")
    compiling = LazyModule("tracer.runtime.compile")
    cost = LazyModule("tracer.runtime.cost")
    entries = LazyModule("tracer.runtime.entry")
    pipeline = LazyModule("tracer.passes.pipeline")

Function = Callable[..., Any]
Types = tuple[ArrayType, ...]  # an array's has no shape here

_NUMBERS = {int: dtypes.I64, float: dtypes.F64, complex: dtypes.C128}
_WIDE = (dtypes.I64, dtypes.F32, dtypes.F64, dtypes.C64, dtypes.C128)
# Which arrays numbers may stand beside, without an int and with one: whether an int fits others is for Python to see.
_BESIDE = {False: (*_WIDE, dtypes.I32, dtypes.BOOL), True: _WIDE}


def kernel(
    function: Callable[[list[Any]], Sequence[Any]],
    types: Sequence[Type],
    scalars: Sequence[bool],
    expected: Types | None = None,
) -> Any:
    """An entry's `Recognised` for a function of arrays and scalars of the types, for arrays of any one shape.

    None where the function is more than one loop over the elements, or its results are not of the expected types,
    or entries do not run here.
    """
    if not entries.entries_enabled():
        return None
    size = any_size.SIZE
    given = [t if scalar else with_shape(t, (size,)) for t, scalar in zip(types, scalars, strict=True)]
    staged = stage(function, given, name="elementwise")
    results = staged.program.output_types
    if staged.constants or not all(isinstance(t, ArrayType) and t.shape == (size,) for t in results):
        return None
    if expected is not None and tuple(with_shape(t, ()) for t in results) != expected:
        return None
    scheduled = any_size.schedule_for_any_size(pipeline.optimize(staged.program))
    if scheduled is None:
        return None
    compiled = compiling.compile_scheduled(staged.program, scheduled)
    return entries.Recognised.elementwise(compiled, scalars, cost.long_from(staged.program, size))


class Quick:
    """A function of arrays and numbers whose frequent kinds of calls run in compiled code.

    `call` is the whole: a chain of entries, each for one kind of operands, and the Python function at its end.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._lock = ForkSafeLock()
        self._reset()

    def _reset(self) -> None:
        self.call: Function = self._slowly
        self._version = gate.version
        self._counts: dict[Hashable, int] = {}
        self._chain = 0

    def _slowly(self, *operands: Any) -> Any:
        result = self._function(*operands)
        if state.innermost is None and gate.is_open_here:
            self._count(operands, result)
        return result

    def _count(self, operands: Sequence[Any], result: Any) -> None:
        """Compile for this kind of operands, if it came often enough."""
        kind = _kind(operands)
        if kind is None or type(result) is not Array:
            return
        with self._lock:
            if self._version != gate.version:
                self._reset()
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            if count != often.calls or self._chain == often.kinds:
                return
        types, scalars = kind
        entry = self._entry(types, scalars, result)
        if entry is not None:
            with self._lock:
                entry.trust_settings(self._version)
                self.call = entry.entry(self.call)
                self._chain += 1

    def _entry(self, types: Types, scalars: tuple[bool, ...], result: Array) -> Any:
        def flat(inputs: list[Any]) -> list[Any]:
            return [self._function(*inputs)]

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
        else:
            return None
    if dtype is None or (any(scalars) and dtype not in _BESIDE[int in map(type, operands)]):
        return None
    return tuple(types), tuple(scalars)
