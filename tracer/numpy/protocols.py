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

from tracer.errors import ArgumentError, DTypeError, ShapeError, TracerArrayError, message
from tracer.numpy.choosing import where as where_
from tracer.numpy.conversion import array_of, cast, dtype_of_argument
from tracer.numpy.manipulation import expand_dims
from tracer.numpy.writing import written
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.state import state

# ufuncs


def array_ufunc(self: Array, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy calls this for its ufuncs and their methods on arrays of ours.

    out: an ndarray is written to, an Array is rebound; neither with a traced result. where: elsewhere the result is
    what `out` holds, or 0. dtype: the inputs are cast to it first.
    """
    del self
    if any(not _known_operand(x) for x in inputs):
        return NotImplemented
    outs = kwargs.pop("out", None)
    where = kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    if dtype is not None:
        inputs = tuple(cast(array_of(ufunc.__name__, x), dtype_of_argument(ufunc.__name__, dtype)) for x in inputs)
    for option in ("casting", "order", "subok"):
        kwargs.pop(option, None)
    ours = _METHODS[method](ufunc, inputs, kwargs) if method in _METHODS else None
    if ours is None:
        ours = _numpys(f"the ufunc {ufunc.__name__}", getattr(ufunc, method), inputs, kwargs)
    if outs is None and where is True:
        return ours
    results = ours if isinstance(ours, tuple) else (ours,)
    targets = outs if isinstance(outs, tuple) else (None,) * len(results)
    written = tuple(_written(ufunc.__name__, r, t, where) for r, t in zip(results, targets, strict=True))
    return written if isinstance(ours, tuple) else written[0]


def _known_operand(x: Any) -> bool:
    """Whether the other operand is an array or number; else its own type is to decide."""
    return isinstance(x, Array | np.ndarray | np.generic | bool | int | float | complex | list | tuple)


def _namespace() -> Any:
    return sys.modules["tracer.numpy"]


def _call(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    ours = getattr(_namespace(), ufunc.__name__, None)
    return None if ours is None else ours(*inputs, **kwargs)


def _reduce(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = _REDUCTIONS.get(ufunc.__name__)
    if name is None:
        return None
    kwargs = {"axis": 0, **{k: v for k, v in kwargs.items() if v is not np._NoValue}}
    return getattr(_namespace(), name)(*inputs, **kwargs)


def _accumulate(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = {"add": "cumsum", "multiply": "cumprod"}.get(ufunc.__name__)
    return None if name is None else getattr(_namespace(), name)(*inputs, **{"axis": 0, **kwargs})


def _outer(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, y = (array_of(ufunc.__name__, v) for v in inputs)
    return _call(ufunc, (expand_dims(x, tuple(range(x.ndim, x.ndim + y.ndim))), y), kwargs)


_METHODS: dict[str, Callable[[np.ufunc, tuple[Any, ...], dict[str, Any]], Any]] = {
    "__call__": _call, "reduce": _reduce, "accumulate": _accumulate, "outer": _outer,
}  # fmt: skip
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip


def _written(name: str, result: Any, target: Any, where: Any) -> Any:
    """The result, merged with `target` where `where` does not hold, and written to it."""
    value = array_of(name, result)
    if where is not True:
        held = array_of(name, target) if target is not None else cast(array_of(name, 0), value.dtype)
        value = where_(where, value, cast(held, value.dtype))
    if target is None:
        return value
    if value.shape != target.shape:
        raise ShapeError(
            message(
                f"np.{name}{here()}: out= must have the result's shape", f"got {target.shape}, expected {value.shape}"
            )
        )
    if isinstance(target, np.ndarray) and not np.can_cast(value.dtype, target.dtype, "same_kind"):
        raise DTypeError(
            message(
                f"np.{name}{here()}: the result does not fit in out=",
                f"got {value.type} for an array of {target.dtype}",
                help="give out= another dtype, or leave it out and cast the result",
            )
        )
    written(f"np.{name}", target, value, True)
    return target


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
