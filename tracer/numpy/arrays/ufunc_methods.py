"""`add.reduce` and other methods of NumPy's binary ufuncs, as attributes of elementwise functions."""

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


# Signatures and docstrings of the methods for `help`; `_call` implements them.


def reduce(  # type: ignore[empty-body]
    a: Any, axis: int | Sequence[int] | None = 0, dtype: Any = None, *, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Array:  # fmt: skip
    """Fold the elements along axes from the first to the last.

    a: [*s]; axis: one or several, None for all; dtype: of the computation; keepdims: keep the axes with size 1;
    initial: the start value, by default the identity, or else the first element; where: bools that broadcast with a:
    the elements to include. Returns [*s minus axes]. Raises ArgumentError without a start value.

    >>> tnp.add.reduce(tnp.asarray([[1, 2], [3, 4]]))
    Array([4, 6], i64)
    """


def accumulate(a: Any, axis: int = 0, dtype: Any = None) -> Array:  # type: ignore[empty-body]
    """Return the folds of the first element along an axis, of the first two, and so on.

    a: [*s]; axis: by default the first; dtype: of the computation. Returns [*s].

    >>> tnp.maximum.accumulate(tnp.asarray([3, 1, 4, 1, 5]))
    Array([3, 3, 4, 4, 5], i64)
    """


def outer(a: Any, b: Any, /) -> Array:  # type: ignore[empty-body]
    """Apply the function to every element of one array with every element of another.

    a: [*s]; b: [*t]. Returns [*s, *t], in the function's dtype.

    >>> tnp.subtract.outer(tnp.asarray([1, 2]), tnp.asarray([10, 20, 30]))
    Array([[ -9, -19, -29],
           [ -8, -18, -28]], i64)
    """


def at(a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Array:  # type: ignore[empty-body]
    """Update x[i] = f(x[i], b[i]) at one index after the other; repeated indices count again.

    a: [*s]; indices: integers, or a tuple of them; b: an array that broadcasts with a[indices]; inplace: whether the
    array is rebound to the new values, as by x[i] = v. Returns them, in a's shape and dtype.

    >>> x = tnp.zeros(3); _ = tnp.add.at(x, [0, 2, 2], 1.0); x
    Array([1., 0., 2.], f64)
    """


def reduceat(a: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Array:  # type: ignore[empty-body]
    """Fold the segments of an axis that begin at given indices and end where the next begins.

    a: [*s]; indices: [n] concrete integers; axis: by default the first; dtype: of the computation. Returns [*s] with n
    in place of the axis. If the next index is not larger, the result is the element at the index, as in NumPy.

    >>> tnp.add.reduceat(tnp.arange(8), [0, 3, 5])
    Array([ 3,  7, 18], i64)
    """


METHODS = (accumulate, at, outer, reduce, reduceat)

# Methods with faster implementations of their own.
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_SCANS = {"add": "cumsum", "multiply": "cumprod"}
_UPDATES = {"add": "add", "multiply": "multiply", "maximum": "max", "minimum": "min"}


_DTYPES = frozenset("?bBhHiIlLqQefdFD")  # NumPy's letters for the supported dtypes


def attach(name: str, function: Callable[..., Any]) -> None:
    """Give an elementwise function the attributes of NumPy's ufunc of that name, and methods if it is binary."""
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
