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
        if name == function.__name__:
            function.__doc__ = _documented(function.__doc__ or "", theirs, types)
    if isinstance(theirs, np.ufunc) and (theirs.nin, theirs.nout, theirs.signature) == (2, 1, None):
        for method in METHODS:
            setattr(function, method, boundary(partial(_call, theirs.__name__, method, function)))


def _documented(text: str, theirs: np.ufunc, types: list[str]) -> str:
    """A docstring with what all functions of elements have in common, before its example."""
    summary, prompt, example = text.partition(">>> ")
    if theirs.signature:
        shapes = f"Shapes: {theirs.signature}, with leading axes that broadcast."
    elif theirs.nin == 1:
        shapes = "Of an array [*s] or a number; returns [*s]."
    else:
        shapes = "Of arrays and numbers whose shapes broadcast to [*s]; returns [*s]."
    lines = [
        shapes,
        *_result_dtype(theirs, types),
        "Keywords as in NumPy: out (an array of ours stands for the result from then on, NumPy's is written to),",
        f"{'' if theirs.signature else _WHERE}dtype, casting, order, subok.",
    ]
    return f"{summary.rstrip()}\n\n    " + "\n    ".join(lines) + f"\n\n    {prompt}{example}"


_WHERE = "where (elsewhere the result is what out holds, or 0), "


def _result_dtype(theirs: np.ufunc, types: list[str]) -> list[str]:
    """What NumPy's loops say of ours, which follow from dtypes in the same way; nothing of special ones."""
    if all(loop.endswith("->" + "?" * theirs.nout) for loop in types):
        return ["dtype: bool."]
    of_integers = [loop for loop in types if loop.startswith("l" * theirs.nin)]
    if all(loop.endswith("d") for loop in of_integers):
        return ["dtype: a float or complex one, to which integers are cast."]
    if any(len(set(loop.replace("->", ""))) > 1 for loop in types):
        return []
    return ["dtype: that to which the operands are promoted." if theirs.nin > 1 else "dtype: the operand's."]


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
