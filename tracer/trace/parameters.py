"""Errors of calls whose arguments Python refuses, reworded for the function that the user called."""

from __future__ import annotations

import re

from tracer.errors import message
from tracer.trace.source import here

# Parameters of NumPy's functions that are not taken, and why; ufuncs' parameters have one entry each.
NOT_TAKEN: dict[str, str] = {
    "axes": "matmul, matvec, vecdot, vecmat: moveaxis first",
    "axis": "matmul, matvec, vecmat: moveaxis first",
    "einsum_call": "private to NumPy",
    "keepdims": "matmul, matvec, vecdot, vecmat: expand_dims of the result",
    "like": "results are always tracer arrays",
    "ndmax": "an array has the axes that its lists have",
    "order": "partition, argpartition: elements have no fields",
    "signature": "of ufuncs: loops follow from the dtypes",
    "subok": "arrays have no subclasses",
}

_CALL = re.compile(r"[\w.<>]+\(\) (got an unexpected keyword argument '(\w+)'.*|(?:missing|takes) .* arguments?\b.*)")
_WANTED = (
    (re.compile(r"'(\w+)' object cannot be interpreted as an integer"), "an integer is wanted"),
    (re.compile(r"could not convert string to float: (.+)"), "a number is wanted"),
)


def refused_call(error: BaseException, name: str) -> str | None:
    """Return Python's error about a call's arguments, reworded for the function that the user called, else None."""
    found = _CALL.fullmatch(str(error))
    if found is None:
        return None
    said, parameter = found.groups()
    if parameter is None:
        return f"{name}() {said}"
    return message(f"{name}{here()} takes no {parameter}=", help=_why(parameter, name))


def _why(parameter: str, name: str) -> str | None:
    """Return why a parameter is not taken, or None if the reason concerns other functions."""
    why = NOT_TAKEN.get(parameter)
    functions = re.match(r"((?:\w+, )*\w+): ", why or "")
    return why if functions is None or name in functions[1].split(", ") else None


def refused_value(error: BaseException, name: str) -> str | None:
    """Return Python's error about an argument that is not a number, reworded; None for other errors."""
    for pattern, wanted in _WANTED:
        found = pattern.fullmatch(str(error))
        if found is not None:
            return message(f"{name}{here()}: {wanted}", f"got {found[1]}")
    return None
