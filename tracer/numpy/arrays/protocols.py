"""How NumPy and other libraries treat our arrays: NumPy's functions become ours, and the array API's are found.

A ufunc or function of NumPy's on an array of ours is the function of the same name here. What does not exist here, and
what only takes arguments in as arrays, is NumPy's on values that are known; traced ones stay ours, or are refused, or
their derivative would be lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, TracerArrayError, message
from tracer.numpy.chapters.ufunc_options import cast_operands, masked, put
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.tracebacks import tidy

# ufuncs


def array_ufunc(self: Array, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy calls this for its ufuncs and their methods on arrays of ours; SciPy's special functions are ufuncs, too.

    out: an ndarray is written to, an Array is rebound; neither with a traced result. where: elsewhere the result of a
    call is what `out` holds, or 0; in a reduction, what counts. dtype: the operands are cast to it first, if `casting`
    allows that. It is a boundary for tracebacks itself.
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
"""Ours by NumPy's, those that were called."""


def _known_operand(x: Any) -> bool:
    """Whether the other operand is an array or number; else its own type is to decide."""
    return isinstance(x, Array | np.ndarray | np.generic | bool | int | float | complex | list | tuple)


_KNOWN = frozenset((Array, np.ndarray, np.float64, np.float32, np.int64, float, int))
"""What comes most often, found without a look at each."""


def _namespace() -> Any:
    return sys.modules["tracer.numpy"]


def _computed(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """By ours, where there is one with these options; else by NumPy's on known values."""
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
    """NumPy calls this for its functions on arrays of ours.

    Those that only take an argument in as an array, `np.atleast_1d` and its like, give a NumPy array of a value that is
    known, as `np.asarray` does. Arguments that ours does not take are left to NumPy's, where all values are known.
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
    except TypeError:  # None, text and objects among the arguments, options that ours lacks
        if state.innermost is None:
            with suppress(Exception):
                return _numpys(func.__name__, func, args, kwargs)
        raise


_TAKES_IN = frozenset((np.atleast_1d, np.atleast_2d, np.atleast_3d))
"""By which libraries make what a user's function returned an ndarray for their C code, as they do by `np.asarray`."""


def _is_traced(x: Any) -> bool:
    return isinstance(x, Array) and x._trace is not None


def _our_function(func: Callable[..., Any]) -> Any:
    """The function of the same name in tracer.numpy, or in its `linalg` and `fft`."""
    module = (func.__module__ or "").removeprefix("numpy").lstrip(".")
    found = _namespace()
    for part in filter(None, module.split(".")):
        found = getattr(found, part, None)
    ours = getattr(found, func.__name__, None)
    return ours if ours is not func else None


def _numpys(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """NumPy's function on the values."""

    def value(x: Any) -> Any:
        if not isinstance(x, Array):
            return x
        if x._trace is not None:
            raise TracerArrayError(
                message(
                    f"{name}{here()} is not among tracer's functions",
                    f"got a traced array {x.type}, which NumPy's function would turn into a constant",
                    help="use tracer.scipy's, compose it from tracer.numpy's, or call tracer.pure_callback",
                )
            )
        return np.asarray(x)

    return function(*trees.tree_map(value, tuple(args)), **trees.tree_map(value, dict(kwargs)))


# Namespaces


def array_namespace(self: Array, *, api_version: str | None = None) -> Any:
    """The module of the array API's functions: tracer.numpy."""
    del self
    if api_version is not None and api_version not in ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ArgumentError(message(f"__array_namespace__{here()}: unknown version {api_version!r} of the array API"))
    return _namespace()
