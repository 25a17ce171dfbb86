"""NumPy's functions applied to concrete values: factorisations and transforms without a primitive."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from textwrap import indent
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, AxisError, DTypeError, MatrixError, TracerArrayError, TracerError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, inexact_dtype
from tracer.numpy.core.fast_asarray import known_value, new_array
from tracer.runtime.system.fork_safety import LARGE, apart_from_forks
from tracer.settings import gate
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here


def by_value(theirs: Callable[..., Any], summary: str, call: str = "", shown: str = "", shapes: str = "") -> Any:
    """Return NumPy's function `theirs` on Arrays. Raises TracerArrayError for a traced argument.

    Named tuples keep their names. summary, shapes, call, shown: parts of the docstring: its first line, the arguments
    and results, an example and its output.
    """
    name, called = theirs.__name__, apart_from_forks(theirs)
    operands = [parameter for parameter in inspect.signature(theirs).parameters if parameter in _OPERANDS]

    def function(*args: Any, **kwargs: Any) -> Any:
        known = _known(args, kwargs)
        if known is not None:
            values, size = known
            try:
                return _ours(name, (called if size > LARGE else theirs)(*values, **kwargs))
            except (TypeError, ValueError, IndexError):  # reported below
                pass
        args = tuple(_floating(name, x) for x in args[: len(operands)]) + args[len(operands) :]
        kwargs = {key: _floating(name, x) if key in operands else x for key, x in kwargs.items()}
        values, options = trees.tree_map(partial(_value, name), args), trees.tree_map(partial(_value, name), kwargs)
        try:
            result = called(*values, **options)
        except (TypeError, ValueError, IndexError) as error:
            shown = [x.type for x in (*args, *kwargs.values()) if isinstance(x, Array)]
            raise _refusal(name, error, shown) from None
        return _ours(name, result)

    function.__name__ = function.__qualname__ = name
    function.__signature__ = inspect.signature(theirs)  # type: ignore[attr-defined]
    function.__doc__ = _documentation(f"{theirs.__module__}.{name}", summary, shapes, call, shown)
    return function


def _documentation(theirs: str, summary: str, shapes: str, call: str, shown: str) -> str:
    rest = (
        f"Arguments and result dtypes are as in {theirs}, except that integers are cast to floats:\n"
        "float32 up to 32 bits, else the default. Raises TracerArrayError under jit, vmap and grad: there is no\n"
        "primitive for it yet."
    )
    example = f">>> {call}\n{shown}" if call else ""
    return indent("\n\n".join(filter(None, (summary, shapes, rest, example))), "    ").strip() + "\n    "


def _value(name: str, x: Any) -> Any:
    """Return a concrete Array as a NumPy array, and other values as they are. Raises TracerArrayError if traced."""
    if not isinstance(x, Array):
        return x
    if x._trace is not None:
        raise TracerArrayError(
            message(
                f"{name}{here()}: there is no primitive for it yet, and NumPy's function needs concrete values",
                f"got a traced array {x.type}",
                help="call it before jit and grad, or through tracer.pure_callback",
            )
        )
    return np.asarray(x)


_OPERANDS = frozenset(("A", "a", "b", "x"))  # NumPy's names of the array parameters


def _known(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], int] | None:
    """Return the arguments with arrays replaced by their values, and the largest size; None in unusual cases."""
    if gate.words[0] or (kwargs and not _PLAIN.issuperset(map(type, kwargs.values()))):
        return None
    found, size = [], 0
    for x in args:
        if type(x) is Array:
            value = known_value(x)
            if value is None or value.dtype not in _COMPUTED_IN:
                return None
            found.append(value.view())  # a view has a base, so a result that is an argument is copied
            size = max(size, value.size)
        elif type(x) in _PLAIN:
            found.append(x)
        else:
            return None
    return found, size


_PLAIN = frozenset((bool, int, float, str, type(None)))
_COMPUTED_IN = (dtypes.F64, dtypes.C128, dtypes.F32, dtypes.C64)


def _floating(name: str, x: Any) -> Any:
    """Convert an array to an Array in the machine's byte order, integers cast to floats; return others unchanged."""
    if not isinstance(x, Array | np.ndarray | np.generic):
        return x
    array = array_of(name, x, copy=False)
    return array.astype(inexact_dtype(array.dtype))


def _refusal(name: str, error: Exception, shown: list[Any]) -> TracerError:
    """Return NumPy's error as the tracer error of the same family."""
    got = (f"got {', '.join(map(str, shown))}",) if shown else ()
    # An IndexError that is not NumPy's AxisError comes from indexing a tuple of sizes.
    if isinstance(error, IndexError) and not isinstance(error, np.exceptions.AxisError):
        return AxisError(message(f"{name}{here()}: the array has no such axis", *got))
    text = message(f"{name}{here()}: {error}", *got)
    if isinstance(error, np.linalg.LinAlgError):
        return MatrixError(text)
    if isinstance(error, np.exceptions.AxisError):
        return AxisError(text)
    return DTypeError(text) if isinstance(error, TypeError) else ArgumentError(text)


def _ours(name: str, result: Any) -> Any:
    if type(result) is np.ndarray and (found := new_array(result)) is not None:
        return found
    if isinstance(result, tuple):
        parts = [_ours(name, part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return array_of(name, result) if isinstance(result, np.ndarray | np.generic) else result
