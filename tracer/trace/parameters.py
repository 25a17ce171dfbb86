"""Errors of calls whose arguments Python refuses, reworded for the function that the user called."""

from __future__ import annotations

import re

from tracer import torch_names
from tracer.errors import ArgumentError, message
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
_WRONG = re.compile(
    r"'[\w.]+' object is not (iterable|subscriptable)|object of type '[\w.]+' has no len\(\)|unhashable type: .*"
    r"|cannot unpack non-iterable .*|(not enough|too many) values to unpack .*|Cannot (interpret|construct) .* dtype.*"
    r"|Cannot interpret .* as a data type|data type .* not understood|Field elements must be .*|.*inhomogeneous shape.*"
    r"|Tuple must have size 2, .*|'utf-8' codec can't encode .*"
    r"|The truth value of an (empty array|array with more than one element) is ambiguous.*"
    r"|only integer scalar arrays can be converted to a scalar index"
)
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
        return message(f"{name}() {said}", help=torch_names.CALLS.get(name))
    return message(
        f"{name}{here()} takes no {parameter}=", help=_why(parameter, name) or torch_names.PARAMETERS.get(parameter)
    )


OF_OBJECTS = (TypeError, ValueError, AttributeError)
_OF_ARRAYS = frozenset(("dtype", "ndim", "shape", "size", "type"))


def refused_object(error: BaseException, name: str) -> ArgumentError | None:
    """Return Python's error about an argument of the wrong form as one of ours; None for other errors."""
    if isinstance(error, AttributeError):
        if error.name not in _OF_ARRAYS or not _is_argument(error.obj, error):
            return None
        said = f"{name}{here()} takes arrays and scalars"
        remedy = "convert it with tracer.numpy.asarray"
        return ArgumentError(message(said, f"got {type(error.obj).__name__}", help=remedy))
    for pattern, wanted in _WANTED:
        found = pattern.fullmatch(str(error))
        if found is not None:
            return ArgumentError(message(f"{name}{here()}: {wanted}", f"got {found[1]}"))
    if _WRONG.fullmatch(str(error)) is None:
        return None
    remedy = f"compare the call with the parameters that help({name}) describes"
    return ArgumentError(
        message(f"{name}{here()}: an argument is not of the expected form", f"got: {error}", help=remedy)
    )


def _is_argument(value: object, error: BaseException) -> bool:
    """Whether the call that met the error has an argument of the value's type: `args` and `kwargs` of its frame."""
    met = {} if error.__traceback__ is None else error.__traceback__.tb_frame.f_locals
    return any(type(value) is type(x) for x in (*met.get("args", ()), *met.get("kwargs", {}).values()))


def _why(parameter: str, name: str) -> str | None:
    """Return why a parameter is not taken, or None if the reason concerns other functions."""
    why = NOT_TAKEN.get(parameter)
    functions = re.match(r"((?:\w+, )*\w+): ", why or "")
    return why if functions is None or name in functions[1].split(", ") else None
