"""Shared parts of the docstrings of `tracer.numpy`: operands and dtypes of ufuncs, and common parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tracer.trace.docstrings import parameters, say, with_paragraph

# One line each. `tracer.trace.docstrings.say` adds the lines of parameters that a docstring does not mention.
PHRASES: Final[Mapping[str, str]] = {
    "out": "an Array, which is rebound to the result, or a NumPy array, to which the result is written.",
    "where": "bools that broadcast with the array: the elements to include.",
    "keepdims": "whether the reduced axes stay, with size 1.",
    "inplace": "whether the array is rebound to the new values, as by x[i] = v. Returns them.",
    "overwrite_input": "ignored: arrays are immutable.",
    "interpolation": "the older name of `method`.",
    "device": 'where the array lives: "cpu" or None. Raises DeviceError for any other.',
    "precision": '"highest" keeps subnormal products of bf16, which some CPUs flush to zero; others act as None.',
    "preferred_element_type": "dtype of the result, by default the promoted dtype.",
}

# Functions that take complex numbers as well, unlike NumPy's loops.
_COMPLEX_TOO = frozenset(("deg2rad", "logaddexp", "logaddexp2", "rad2deg"))


def complete(function: Callable[..., Any]) -> None:
    """Complete the docstring of a public function with the shared parts."""
    theirs = getattr(np, function.__name__, None)
    if isinstance(theirs, np.ufunc):
        function.__doc__ = _of_elements(function, theirs)
    say((function,), PHRASES)


def _of_elements(function: Callable[..., Any], theirs: np.ufunc) -> str:
    """Return a ufunc's docstring completed with operands, shapes, dtypes (unless it has "Returns") and keywords."""
    text = function.__doc__ or ""
    operands = ", ".join(parameters(function)[: theirs.nin])
    types: list[str] = vars(function)["types"]
    lines = []
    if "Returns " not in text:
        if theirs.__name__ in _COMPLEX_TOO:
            types = [*types, "D->D"]
        shapes = " [*s]. Returns [*s]." if theirs.nin == 1 else ", whose shapes broadcast to [*s]. Returns [*s]."
        if theirs.signature:
            shapes = f". Shapes: {theirs.signature}, with leading axes that broadcast."
        lines += [f"{operands}: {_kinds(types)}{shapes}", _dtype(theirs, types)]
    lines.append(f"Keywords as in NumPy: {_OUT}")
    lines.append(f"{'' if theirs.signature else _WHERE}dtype, casting, order, subok.")
    return with_paragraph(text, lines)


_OUT = "out (an Array is rebound to the result, a NumPy array is written to),"
_WHERE = "where (the other elements keep the value of out, or are 0), "


def _kinds(types: list[str]) -> str:
    """Return the category of the operands' dtypes, according to the loops of NumPy's ufunc."""
    taken = {loop[0] for loop in types}
    found = "numbers" if "D" in taken else "real numbers" if "d" in taken else "integers"
    return f"{found} or bools" if "?" in taken else found


def _dtype(theirs: np.ufunc, types: list[str]) -> str:
    """Return the line on the dtype of the result, according to the loops of NumPy's ufunc."""
    if all(loop.endswith("->" + "?" * theirs.nout) for loop in types):
        return "dtype: bool."
    of_integers = [loop for loop in types if loop.startswith("l" * theirs.nin)]
    if all(loop.endswith("d") for loop in of_integers):
        inexact = "float or complex" if _kinds(types) == "numbers" else "float"
        return f"dtype: {inexact}. Integers are cast to float32 up to 32 bits, else to the default float."
    return "dtype: the promoted dtype." if theirs.nin > 1 else "dtype: the operand's."
