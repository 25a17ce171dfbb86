"""NumPy's functions of values that are known: factorisations and transforms, until there are primitives for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from textwrap import indent
from typing import Any

import numpy as np

from tracer.errors import TracerArrayError, message
from tracer.numpy.conversion import array_of, inexact_dtype
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here


def by_value(theirs: Callable[..., Any], summary: str, call: str = "", shown: str = "", shapes: str = "") -> Any:
    """NumPy's function on arrays, whose results are arrays of ours; TracerArrayError for a traced one.

    Tuples with names keep their names. summary, call, shown, shapes: of the docstring: an example,
    what it shows, and what arguments are.
    """
    name = theirs.__name__
    operands = [parameter for parameter in inspect.signature(theirs).parameters if parameter in _OPERANDS]

    def function(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(_floating, args[: len(operands)])) + args[len(operands) :]
        kwargs = {key: _floating(x) if key in operands else x for key, x in kwargs.items()}
        return _ours(name, theirs(*trees.tree_map(_value, args), **trees.tree_map(_value, kwargs)))

    def _value(x: Any) -> Any:
        if not isinstance(x, Array):
            return x
        if x._trace is not None:
            raise TracerArrayError(
                message(
                    f"{name}{here()}: there is no primitive for it yet, and NumPy's needs values",
                    f"got a traced array {x.type}",
                    help="call it before jit and grad, or through tracer.pure_callback",
                )
            )
        return np.asarray(x)

    function.__name__ = function.__qualname__ = name
    function.__signature__ = inspect.signature(theirs)  # type: ignore[attr-defined]
    rest = (
        f"Arguments are those of {theirs.__module__}.{name}, and results have its dtypes, but for integers,\n"
        "which become the floats that all functions give. Raises TracerArrayError under jit, vmap and grad: there is\n"
        "no primitive for it yet."
    )
    function.__doc__ = indent("\n\n".join(filter(None, (summary, shapes, rest))), "    ").strip() + "\n"
    if call:
        function.__doc__ += "\n".join(("", f"    >>> {call}", *(f"    {line}" for line in shown.splitlines()), ""))
    return function


_OPERANDS = frozenset(("A", "a", "b", "x"))  # what NumPy calls the arrays of these functions


def _floating(x: Any) -> Any:
    """Integers of ours as the floats that all functions of them are computed in."""
    return x.astype(inexact_dtype(x.dtype)) if isinstance(x, Array | np.ndarray) else x


def _ours(name: str, result: Any) -> Any:
    if isinstance(result, tuple):
        parts = [_ours(name, part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return array_of(name, result) if isinstance(result, np.ndarray | np.generic) else result
