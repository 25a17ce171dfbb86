"""What is said of calls whose arguments Python refuses: for the function that the user called, and why."""

from __future__ import annotations

import re

from tracer.errors import message
from tracer.trace.source import here

# Parameters of NumPy's functions that are not taken, and why; those of ufuncs are told once.
NOT_TAKEN: dict[str, str] = {
    "axes": "matmul, matvec, vecdot, vecmat: moveaxis first",
    "axis": "matmul, matvec, vecmat: moveaxis first",
    "einsum_call": "private to NumPy",
    "keepdims": "matmul, matvec, vecdot, vecmat: expand_dims of the result",
    "like": "what is made are arrays of ours",
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
    """The text of Python's error about a call's arguments, for the function that the user called; None for others."""
    found = _CALL.fullmatch(str(error))
    if found is None:
        return None
    said, parameter = found.groups()
    if parameter is None:
        return f"{name}() {said}"
    return message(f"{name}{here()} takes no {parameter}=", help=_why(parameter, name))


def _why(parameter: str, name: str) -> str | None:
    """Why a parameter is not taken; None where that is said of other functions."""
    why = NOT_TAKEN.get(parameter)
    functions = re.match(r"((?:\w+, )*\w+): ", why or "")
    return why if functions is None or name in functions[1].split(", ") else None


def refused_value(error: BaseException, name: str) -> str | None:
    """The same for Python's error about an argument that is no number."""
    for pattern, wanted in _WANTED:
        found = pattern.fullmatch(str(error))
        if found is not None:
            return message(f"{name}{here()}: {wanted}", f"got {found[1]}")
    return None
