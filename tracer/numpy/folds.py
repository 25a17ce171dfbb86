"""`add.reduce` and its like: NumPy's methods of functions of two arrays, as attributes of ours."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.lazy import LazyModule
from tracer.trace.tracebacks import boundary

if TYPE_CHECKING:
    from tracer.numpy import ufuncs
else:
    ufuncs = LazyModule("tracer.numpy.ufuncs")

METHODS = ("accumulate", "at", "outer", "reduce", "reduceat")

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
            setattr(function, method, boundary(partial(_call, theirs.__name__, method, function)))


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
