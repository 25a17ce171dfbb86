"""NumPy's dispatch protocols: ufuncs and functions of NumPy on Arrays call tracer's functions of the same name.

Functions without a counterpart here run in NumPy on concrete values. They refuse traced arrays, because a NumPy result
would be a constant without a derivative. Functions that only convert arguments return traced arrays unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, TracerArrayError, message
from tracer.numpy.chapters.ufunc_options import cast_operands, masked, put
from tracer.trace import trees
from tracer.trace.array import Array, is_recorded
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.tracebacks import tidy

# ufuncs


def array_ufunc(self: Array, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Handle NumPy's ufuncs and their methods on Arrays, including SciPy's special functions, which are ufuncs.

    out: an ndarray is written to, an Array is rebound; a traced result fits neither. where: the other elements keep the
    value of `out`, or are 0; in a reduction, the elements to include. dtype: operands are cast to it first, if
    `casting` allows it. The function tidies tracebacks itself.
    """
    del self
    try:
        if not kwargs and method == "__call__" and _KNOWN.issuperset(map(type, inputs)):
            ours = _functions.get(ufunc)
            if ours is not None:
                return ours(*inputs)
        return _by_ours(ufunc, method, inputs, kwargs)
    except BaseException as error:
        error.__traceback__ = tidy(error)
        raise


def _by_ours(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not all(map(_known_operand, inputs)):
        return NotImplemented
    if not kwargs and method == "__call__":
        return _computed(ufunc, method, inputs, kwargs)
    options = {k: v for k, v in kwargs.items() if v is not np._NoValue and k not in ("order", "out", "subok")}
    where = options.pop("where", True) if method == "__call__" else True
    if method in ("__call__", "outer"):
        inputs = cast_operands(ufunc, inputs, options.pop("dtype", None), options.pop("casting", None))
    ours = _computed(ufunc, method, masked(ufunc, inputs, where), options)
    outs = kwargs.get("out")
    if outs is None and where is True:
        return None if method == "at" else ours
    results = ours if isinstance(ours, tuple) else (ours,)
    targets = outs if isinstance(outs, tuple) else (None,) * len(results)
    casting, grows = kwargs.get("casting"), method == "__call__"
    new = tuple(put(ufunc.__name__, r, t, where, casting, grows=grows) for r, t in zip(results, targets, strict=True))
    return new if isinstance(ours, tuple) else new[0]


_functions: dict[np.ufunc, Callable[..., Any]] = {}
"""Counterparts of NumPy's ufuncs that were called."""


def _known_operand(x: Any) -> bool:
    """Return whether the other operand is an array or number; otherwise its own type decides."""
    return isinstance(x, Array | np.ndarray | np.generic | bool | int | float | complex | list | tuple)


_KNOWN = frozenset((Array, np.ndarray, np.float64, np.float32, np.int64, float, int))
"""Common types, tested by one lookup."""


def _namespace() -> Any:
    return sys.modules["tracer.numpy"]


def _computed(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call the counterpart if there is one with these options, else NumPy's ufunc on concrete values."""
    name = ufunc.__name__
    ours = getattr(_namespace(), name, None) or getattr(_namespace().special, name, None)
    if method != "__call__":
        ours = getattr(ours, method, None)
    elif ours is not None and not options:
        _functions[ufunc] = ours
        return ours(*inputs)
    unknown = sorted(options.keys() - _OPTIONS.get(method, frozenset()))
    if ours is None or unknown:
        shown = f"the ufunc {name}{'' if method == '__call__' else f'.{method}'}{' with ' * bool(unknown)}"
        return _numpys(shown + ", ".join(f"{option}=" for option in unknown), getattr(ufunc, method), inputs, options)
    return ours(*inputs, **options)


_OPTIONS = {
    "reduce": frozenset(("axis", "dtype", "initial", "keepdims", "where")),
    "accumulate": frozenset(("axis", "dtype")), "reduceat": frozenset(("axis", "dtype")),
}  # fmt: skip


# Other functions


def array_function(self: Array, func: Callable[..., Any], types: Iterable[type], args: Any, kwargs: Any) -> Any:
    """Handle NumPy's functions on Arrays.

    Functions that only convert arguments, as `np.atleast_1d`, return NumPy arrays of concrete values, as `np.asarray`
    does. Calls with arguments that the counterpart refuses go to NumPy if all values are concrete.
    """
    del self
    if any(not issubclass(t, Array | np.ndarray) and hasattr(t, "__array_function__") for t in types):
        return NotImplemented
    ours = _our_function(func)
    if func in _TAKES_IN and state.innermost is None and not any(_is_traced(x) for x in args):
        return func(*(np.array(x) if isinstance(x, Array) else x for x in args))
    if ours is None:
        return _numpys(f"{func.__module__}.{func.__name__}", func, args, kwargs)
    try:
        return ours(*args, **kwargs)
    except ShapeError:
        raise
    except TypeError:  # arguments or options that the counterpart does not take
        if state.innermost is None:
            with suppress(*_OF_ARGUMENTS):
                return _numpys(func.__name__, func, args, kwargs)
        raise


_OF_ARGUMENTS = (ArithmeticError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError)
"""Errors by which NumPy refuses arguments too. The error of our function has the user's line."""
_TAKES_IN = frozenset((np.atleast_1d, np.atleast_2d, np.atleast_3d))
"""Functions by which libraries convert a user's results to ndarray for C code, as by `np.asarray`."""


def _is_traced(x: Any) -> bool:
    return isinstance(x, Array) and is_recorded(x)


def _our_function(func: Callable[..., Any]) -> Any:
    """Return the function of the same name in tracer.numpy, or in its `linalg` or `fft`."""
    module = (func.__module__ or "").removeprefix("numpy").lstrip(".")
    found = _namespace()
    for part in filter(None, module.split(".")):
        found = getattr(found, part, None)
    ours = getattr(found, func.__name__, None)
    return ours if ours is not func else None


def _numpys(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call NumPy's function on concrete values. Raises TracerArrayError for traced arrays."""

    def value(x: Any) -> Any:
        if not isinstance(x, Array):
            return x
        if is_recorded(x):
            raise TracerArrayError(
                message(
                    f"{name}{here()} is not implemented in tracer",
                    f"got a traced array {x.type}, which NumPy's function would turn into a constant",
                    help="use tracer.scipy's, compose it from tracer.numpy's, or call tracer.pure_callback",
                )
            )
        return np.asarray(x)

    return function(*trees.tree_map(value, tuple(args)), **trees.tree_map(value, dict(kwargs)))


# Namespaces


def array_namespace(self: Array, *, api_version: str | None = None) -> Any:
    """Return the module of the array API's functions: tracer.numpy."""
    del self
    if api_version is not None and api_version not in ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ArgumentError(message(f"__array_namespace__{here()}: unknown version {api_version!r} of the array API"))
    return _namespace()
