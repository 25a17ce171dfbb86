"""What a traced function reads by name outside itself, closure variables and globals, looked at again at every call.

A guard is a place and the object that was there when the function was traced. Functions that are named are looked into,
since they run within the trace. Modules, classes and functions of libraries are taken to stay what they are; attributes
and items of objects are constants of the trace. Values of arrays that tracing looked at are compared in the same way:
see `tracer.trace.outside`.
"""

from __future__ import annotations

import ctypes
import dis
import sysconfig
from collections.abc import Iterator
from functools import lru_cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.types import Type, array_type
from tracer.once import once
from tracer.trace.array import Array
from tracer.trace.outside import Seen, same_bits
from tracer.trace.source import is_ours

_DEEPEST = 8  # functions that call each other
_NOTHING: Any = object()  # what a name stands for that is not bound
_PLAIN = (int, float, complex, str, bytes, bool, type(None))


Captured = Array | np.ndarray[Any, Any]


class Guard:
    """holder: a cell, or a module's globals, where `name` is looked up. expected: the address of `value`."""

    __slots__ = ("expected", "holder", "name", "value")

    def __init__(self, holder: CellType | dict[str, Any], name: str) -> None:
        self.holder = holder
        self.name = name
        self.value = self.now()
        self.expected = ctypes.c_void_p(id(self.value))

    def now(self) -> Any:
        """The object that is there at present."""
        if isinstance(self.holder, dict):
            return self.holder.get(self.name, _NOTHING)
        try:
            return self.holder.cell_contents
        except ValueError:  # not assigned
            return _NOTHING

    def holds(self) -> bool:
        """Whether it is the same object, or an equal number or string, which is expected from now on."""
        now = self.now()
        if now is self.value:
            return True
        if type(now) is not type(self.value) or type(now) not in _PLAIN or repr(now) != repr(self.value):
            return False
        self.value, self.expected.value = now, id(now)
        return True

    def change(self) -> str:
        """In words, what became of it."""
        kind = "global" if isinstance(self.holder, dict) else "closure variable"
        now = self.now()
        if type(now) in _PLAIN and type(self.value) in _PLAIN:
            return f"{kind} '{self.name}': {self.value!r:.60} -> {now!r:.60}"
        return f"{kind} '{self.name}' is {'not bound any more' if now is _NOTHING else f'another {_noun(now)}'}"


def _noun(value: Any) -> str:
    if isinstance(value, Array | np.ndarray):
        return "array: as an argument it would not be compiled for"
    return "function" if isinstance(value, FunctionType) else type(value).__name__


def type_of(array: Captured) -> Type | None:
    """The type that a captured array has now; None for a dtype that tracer does not have."""
    if isinstance(array, Array):
        return array.type
    dtype = array.dtype.newbyteorder("=")
    return array_type(dtypes.ONE_OBJECT[dtype], array.shape) if dtype in dtypes.ONE_OBJECT else None


class ValueGuard:
    """A value that tracing looked at. expected: the address of `value`, for the handle that had it."""

    __slots__ = ("expected", "holder", "value")

    def __init__(self, seen: Seen) -> None:
        self.holder, self.value = seen
        self.expected = ctypes.c_void_p(id(self.value))

    def holds(self) -> bool:
        """Whether the array has the value still, or a handle an equal one, which is expected from now on."""
        if isinstance(self.holder, np.ndarray):
            return same_bits(self.holder, self.value)
        now = self.holder._value
        if now is self.value:
            return True
        if self.holder._trace is not None or not same_bits(now, self.value):
            return False
        self.value, self.expected.value = now, id(now)
        return True

    def change(self) -> str:
        """In words, what became of it."""
        kind = "NumPy array" if isinstance(self.holder, np.ndarray) else "array"
        before, now = (np.array2string(v, threshold=4) for v in (self.value, np.asarray(self.holder)))
        return f"the values of a captured {kind} that tracing looked at: {before:.40} -> {now:.40}"


def guards_of(function: Any) -> list[Guard]:
    """Guards on what a function names, and the functions that it names, each place once."""
    found: dict[tuple[int, str], Guard] = {}
    seen: set[int] = set()

    def visit(value: Any, depth: int) -> None:
        if depth and id(value) not in seen:
            seen.add(id(value))
            for guard in _named(value):
                if _may_change(guard.value):
                    found.setdefault((id(guard.holder), guard.name), guard)
                visit(guard.value, depth - 1)
            for inner in _behind(value):
                visit(inner, depth - 1)

    visit(function, _DEEPEST)
    return list(found.values())


def _named(value: Any) -> Iterator[Guard]:
    """The places that a user's function names."""
    if not isinstance(value, FunctionType) or is_ours(value.__code__) or _is_library(value.__code__):
        return
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        yield Guard(cell, name)
    for name in _globals_of(value.__code__):
        if name in value.__globals__:
            yield Guard(value.__globals__, name)


def _behind(value: Any) -> Iterator[Any]:
    """Functions that a function or a callable object runs without naming them."""
    if isinstance(value, FunctionType) and is_ours(value.__code__):
        for cell in value.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not assigned
                continue
    elif isinstance(value, MethodType):
        yield value.__func__
    elif isinstance(value, partial):
        yield value.func
    elif not isinstance(value, type):
        yield getattr(value, "__wrapped__", None)


def _may_change(value: Any) -> bool:
    if isinstance(value, ModuleType | type | BuiltinFunctionType | np.ufunc):
        return False
    return not (isinstance(value, FunctionType) and (is_ours(value.__code__) or _is_library(value.__code__)))


@lru_cache(maxsize=4096)
def _is_library(code: CodeType) -> bool:
    return code.co_filename.startswith(_libraries())


@once
def _libraries() -> tuple[str, ...]:
    """The folders of installed modules."""
    return tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


@lru_cache(maxsize=4096)
def _globals_of(code: CodeType) -> tuple[str, ...]:
    """The global names that the code of a function, and of those defined in it, reads."""
    names = {str(i.argval): None for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(dict.fromkeys(_globals_of(constant)))
    return tuple(names)
