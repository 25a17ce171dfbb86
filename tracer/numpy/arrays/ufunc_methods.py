"""`add.reduce` and its like: NumPy's methods of functions of two arrays, as attributes of ours."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.lazy import LazyModule
from tracer.trace.array import Array
from tracer.trace.tracebacks import boundary

if TYPE_CHECKING:
    from tracer.numpy.arrays import ufuncs
else:
    ufuncs = LazyModule("tracer.numpy.arrays.ufuncs")


# The methods as `help` shows them; `_call` is what they do.


def reduce(  # type: ignore[empty-body]
    a: Any, axis: int | Sequence[int] | None = 0, dtype: Any = None, *, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Array:  # fmt: skip
    """The elements along axes folded from the first to the last.

    a: [*s]; axis: one or several, None for all; dtype: what to compute in; keepdims: keep the axes with size 1;
    initial: what to start with, by default the identity, or else the first element; where: bools that broadcast with
    a: which elements count. Returns [*s minus axes]. Raises ArgumentError where there is nothing to start with.

    >>> tnp.add.reduce(tnp.asarray([[1, 2], [3, 4]]))
    Array([4, 6], i64)
    """


def accumulate(a: Any, axis: int = 0, dtype: Any = None) -> Array:  # type: ignore[empty-body]
    """The folds of the first elements along an axis: of one, of two, and so on.

    a: [*s]; axis: the one; dtype: what to compute in. Returns [*s].

    >>> tnp.maximum.accumulate(tnp.asarray([3, 1, 4, 1, 5]))
    Array([3, 3, 4, 4, 5], i64)
    """


def outer(a: Any, b: Any, /) -> Array:  # type: ignore[empty-body]
    """The function of every element of one array with every element of another.

    a: [*s]; b: [*t]. Returns [*s, *t], of the function's dtype.

    >>> tnp.subtract.outer(tnp.asarray([1, 2]), tnp.asarray([10, 20, 30]))
    Array([[ -9, -19, -29],
           [ -8, -18, -28]], i64)
    """


def at(a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Array:  # type: ignore[empty-body]
    """x[i] = f(x[i], b[i]), at one index after the other: repeated ones count again.

    a: [*s]; indices: integers, or a tuple of them; b: what broadcasts with a[indices]; inplace: whether the array
    itself stands for the new values, as by x[i] = v, or stays as it is. Returns them, of a's shape and dtype.

    >>> x = tnp.zeros(3); _ = tnp.add.at(x, [0, 2, 2], 1.0); x
    Array([1., 0., 2.], f64)
    """


def reduceat(a: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Array:  # type: ignore[empty-body]
    """The folds of the stretches of an axis that begin at indices, and end where the next begin.

    a: [*s]; indices: [n] integers that are known; axis: the one; dtype: what to compute in. Returns [*s] with n in
    place of the axis. Where the next index is not greater, the element at the index alone, as NumPy has it.

    >>> tnp.add.reduceat(tnp.arange(8), [0, 3, 5])
    Array([ 3,  7, 18], i64)
    """


METHODS = (accumulate, at, outer, reduce, reduceat)

# What are functions and updates of their own, and quicker.
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_SCANS = {"add": "cumsum", "multiply": "cumprod"}
_UPDATES = {"add": "add", "multiply": "multiply", "maximum": "max", "minimum": "min"}


_DTYPES = frozenset("?bBhHiIlLqQefdFD")  # NumPy's letters for the dtypes that we have as well


def attach(name: str, function: Callable[..., Any]) -> None:
    """Give a function what NumPy's ufunc of the name says of itself; and the methods, if that is of two arrays."""
    theirs = getattr(np, name, None)
    if isinstance(theirs, np.ufunc):
        for field in ("nin", "nout", "nargs", "identity", "signature"):
            setattr(function, field, getattr(theirs, field))
        types = [loop for loop in theirs.types if _DTYPES.issuperset(loop.replace("->", ""))]
        vars(function).update(types=types, ntypes=len(types))
    if isinstance(theirs, np.ufunc) and (theirs.nin, theirs.nout, theirs.signature) == (2, 1, None):
        for method in METHODS:
            call = partial(_call, theirs.__name__, method.__name__, function)
            setattr(function, method.__name__, boundary(update_wrapper(call, method)))


def _call(name: str, method: str, function: Callable[..., Any], a: Any, *args: Any, **options: Any) -> Any:
    quicker = {"reduce": _REDUCTIONS, "accumulate": _SCANS}.get(method, {}).get(name)
    if quicker is not None:
        options = dict(zip(("axis", "dtype"), args, strict=False)) | options
        if not (quicker in ("max", "min", "all", "any") and "dtype" in options):
            return getattr(importlib.import_module("tracer.numpy"), quicker)(a, **{"axis": 0, **options})
        args = ()
    if method == "at" and name in _UPDATES and len(args) == 2:
        return ufuncs.update(_UPDATES[name], a, *args, **options)
    return getattr(ufuncs.of_numpys(function, name), method)(a, *args, **options)
