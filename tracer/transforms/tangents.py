"""Tangents and cotangents as the user sees them: arrays like the values they belong to, float0 for integers.

Inside, a tangent that is zero by construction is a `Zero`; here it becomes an array of zeros, or an error says what
was given in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.primitive import Zero
from tracer.ir.program import Literal
from tracer.ir.types import is_differentiable, same_up_to_weakness, tangent_type
from tracer.primitives.broadcasting import broadcast_in_dim
from tracer.primitives.conversion import convert_element_type
from tracer.primitives.zeros import zeros
from tracer.trace import trees
from tracer.trace.array import renewed
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.transforms.context import Tangent

FLOAT0 = np.dtype([("float0", np.void, 0)])
"""The dtype of tangents and gradients of integers and booleans, as JAX users know it."""


def match_tangents(given: Any, like: Sequence[Any], structure: trees.Structure, what: str) -> list[Tangent]:
    """Tangents or cotangents as operands: they must have the structure, shapes and tangent dtypes of `like`."""
    leaves, got = trees.flatten(given)
    if got != structure:
        raise ArgumentError(
            message(
                f"{what}{here()} must have the structure of what they belong to",
                f"expected {trees.structure_text(structure)}",
                f"got {trees.structure_text(got)}",
                help="one leaf for each array, in the same containers",
            )
        )
    names = None
    result: list[Tangent] = []
    for number, (leaf, x) in enumerate(zip(leaves, like, strict=True)):
        wanted = tangent_type(x.type)
        if not is_differentiable(x.type):
            result.append(Zero(wanted))
            continue
        array: Any = as_array(leaf, what) if not (isinstance(leaf, np.ndarray) and leaf.dtype == FLOAT0) else None
        if array is not None and array.weak_type and array.shape == wanted.shape:
            array = convert_element_type(array, wanted.dtype)  # type: ignore[union-attr]
        if array is None or not same_up_to_weakness(array.type, wanted):
            names = names or trees.leaf_names(given, what.partition(" ")[0])
            raise ArgumentError(
                message(
                    f"{what}{here()}: {names[number]} has the wrong type",
                    f"expected {wanted}, got {'float0' if array is None else array.type}",
                    help="tangents and cotangents have the shape and dtype of the values they belong to",
                )
            )
        result.append(array)
    return result


def tangent_array(t: Tangent) -> Any:
    """A tangent for the user: zeros are arrays of zeros, and float0 is NumPy's empty dtype, as in JAX."""
    if isinstance(t, Zero):
        return zeros(t.type) if is_differentiable(t.type) else np.zeros(t.type.shape, FLOAT0)
    if isinstance(t, Literal):
        return broadcast_in_dim(t, (), ())
    return renewed(t)
