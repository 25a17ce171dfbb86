"""What docstrings of `tracer.numpy` have in common: of all functions of elements, and of parameters that many have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tracer.trace.docstrings import parameters, say, with_paragraph

# One line each; `tracer.trace.docstrings.say` puts those of parameters that a docstring says nothing of into it.
PHRASES: Final[Mapping[str, str]] = {
    "out": "an array that stands for the result from then on; one of NumPy's is written to.",
    "where": "bools that broadcast with the array: which elements count.",
    "keepdims": "whether these axes stay, with size 1.",
    "inplace": "whether the array itself stands for the new values, as by x[i] = v, or stays as it is. Returns them.",
    "overwrite_input": "changes nothing: arrays are values.",
    "interpolation": "an older name of `method`.",
    "device": 'where the array lives: "cpu", or None for that. Raises DeviceError for others.',
    "precision": '"highest" keeps the subnormal products of bf16, which some processors take for zeros; else as None.',
    "preferred_element_type": "the dtype of the result, by default the promoted one.",
}

# Their loops take complex numbers as well, where NumPy's do not.
_COMPLEX_TOO = frozenset(("deg2rad", "logaddexp", "logaddexp2", "rad2deg"))


def complete(function: Callable[..., Any]) -> None:
    """Add to the docstring of a public function what is not its alone."""
    theirs = getattr(np, function.__name__, None)
    if isinstance(theirs, np.ufunc):
        function.__doc__ = _of_elements(function, theirs)
    say((function,), PHRASES)


def _of_elements(function: Callable[..., Any], theirs: np.ufunc) -> str:
    """The docstring with operands, shapes, dtypes and keywords; what it says of the first three itself is enough."""
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


_OUT = "out (an array of ours stands for the result from then on, NumPy's is written to),"
_WHERE = "where (elsewhere the result is what out holds, or 0), "


def _kinds(types: list[str]) -> str:
    """Which dtypes the operands may have; NumPy's loops say it."""
    taken = {loop[0] for loop in types}
    found = "numbers" if "D" in taken else "real numbers" if "d" in taken else "integers"
    return f"{found} or bools" if "?" in taken else found


def _dtype(theirs: np.ufunc, types: list[str]) -> str:
    """The line on the dtype of the result, which follows from those of the operands as that of NumPy's does."""
    if all(loop.endswith("->" + "?" * theirs.nout) for loop in types):
        return "dtype: bool."
    of_integers = [loop for loop in types if loop.startswith("l" * theirs.nin)]
    if all(loop.endswith("d") for loop in of_integers):
        inexact = "float or complex" if _kinds(types) == "numbers" else "float"
        return f"dtype: a {inexact} one, to which integers are cast: float32 up to 32 bits, else the default."
    return "dtype: that to which the operands are promoted." if theirs.nin > 1 else "dtype: the operand's."
