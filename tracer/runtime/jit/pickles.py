"""Pickles of jitted functions: the user's function by reference where it is found by name, else its programs as text.

A program travels as its printed form, with the types and trees of its call and its captured arrays. Reading it runs no
code of the file: the text is parsed by `tracer.ir.read`. Machine code is made at the first call, or comes from the
cache on disk.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from tracer.errors import ArgumentError, ProgramTextError, message
from tracer.ir.program import Program
from tracer.ir.read import read_program
from tracer.ir.text import program_text
from tracer.ir.types import Type
from tracer.primitives.arrays.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from tracer.primitives.catalogue import BY_NAME
from tracer.runtime.jit.signature import Key, Signature
from tracer.runtime.jit.trace_call import Traced
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.pickling import name_at_home, nameless, takes_functions
from tracer.trace.source import here
from tracer.trace.trees import Structure

if TYPE_CHECKING:
    from tracer.runtime.jit.jit import JitFunction

_ENUMS = {cls.__name__: cls for cls in (GatherScatterMode,)}
_RECORDS = {cls.__name__: cls for cls in (GatherDimensionNumbers, ScatterDimensionNumbers)}
_FORMAT = 1


class _Stored(NamedTuple):
    """Program of one signature, as plain data. donated: the leaves that its calls donate."""

    key: Key
    text: str
    captured: tuple[np.ndarray[Any, Any] | Array, ...]
    captured_types: tuple[Type, ...]
    structure: Structure
    donated: tuple[int, ...]


def reduced(f: JitFunction) -> Any:
    """Return the state that pickle stores of a jitted function.

    Raises ArgumentError if its function is not found by name and no program of it can be stored.
    """
    name = name_at_home(f)
    if name is not None:
        return name
    maker: Any = type(f)
    calls = f._calls
    if isinstance(calls.function, Unfound):
        stored = calls.function.stored
    elif takes_functions() or _is_found(calls.function):
        return _with_function, (maker, calls.function, calls.signature, calls.inline)
    else:
        stored = tuple(_stored(f, key, traced) for key, traced in calls.traces().items() if not key.axes)
    if not stored:
        _refuse(f, "it was not called yet, so there is no program to store")
    return _with_programs, (maker, _FORMAT, calls.signature, calls.inline, [tuple(each) for each in stored])


def _is_found(function: Any) -> bool:
    """Whether pickle stores a function by names alone."""
    if nameless(function) is not None:
        return False
    try:
        pickle.dumps(function)
    except Exception:  # pickling runs code of the user, such as `__reduce__`, which may raise any error
        return False
    return True


def _stored(f: JitFunction, key: Key, traced: Traced) -> _Stored:
    text = program_text(traced.program)
    try:
        same = _program(text).digest == traced.program.digest
    except ProgramTextError as error:
        _refuse(
            f, f"its program holds Python functions, as callbacks and custom rules do: {str(error).splitlines()[0]}"
        )
    if not same:
        _refuse(f, "its program holds a value that has no printed form")
    captured = tuple(x if isinstance(x, Array) else np.asarray(x) for x in traced.captured)
    donated = tuple(f._calls.cache[key].donated)
    return _Stored(key, text, captured, traced.captured_types, traced.structure, donated)


def _program(text: str) -> Program:
    return read_program(text, BY_NAME, enums=_ENUMS, records=_RECORDS)


def _refuse(f: JitFunction, why: str) -> NoReturn:
    function = f._calls.function
    raise ArgumentError(
        message(
            f"pickle{here()}: {f!r} cannot be stored",
            f"{nameless(function) or repr(function)} is not found by name where it is loaded, and {why}",
            help="define the function at the top of a module, or call the jitted function once with such arguments as "
            "it will get",
        )
    )


def _with_function(maker: Callable[..., Any], function: Any, signature: Signature, inline: bool) -> Any:
    return maker(function, signature, inline=inline)


class Unfound:
    """Function that another process had: a call says so, since only its programs came along."""

    def __init__(self, name: str, stored: tuple[_Stored, ...]) -> None:
        self.__name__ = self.__qualname__ = name
        self.stored = stored

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        shown = [f"({', '.join(map(str, each.key.types))})" for each in self.stored]
        raise ArgumentError(
            message(
                f"{self.__name__}{here()} came from a pickle without its function, and has no program for this call",
                f"got {_described(args, kwargs)}, expected one of {'; '.join(shown)}",
                help="call it with such arguments before it is pickled, or define it at the top of a module",
            )
        )


def _described(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    leaves = trees.flatten((args, kwargs))[0]
    return f"({', '.join(str(as_array(x).type) for x in leaves)})"


def _with_programs(
    maker: Callable[..., Any], version: int, signature: Signature, inline: bool, rows: list[tuple[Any, ...]]
) -> Any:
    if version != _FORMAT:
        raise ArgumentError(
            message(
                f"pickle{here()}: jit of {signature.name} is stored in another version's format",
                f"got {version}, expected {_FORMAT}",
                help="pickle it by the version of tracer that loads it",
            )
        )
    stored = tuple(_Stored(*row) for row in rows)
    f: JitFunction = maker(Unfound(signature.name, stored), signature, inline=inline)
    for key, text, captured, types, structure, donated in stored:
        f._calls.take(key, Traced(_program(text), captured, types, structure, ()), donated)
    return f
