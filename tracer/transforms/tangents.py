"""Tangents and cotangents of the user: arrays with the types of their primals, float0 for integers.

Inside, a tangent that is zero by construction is a `Zero`. This module makes it an array of zeros for the user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, message
from tracer.ir.dtypes import FLOAT0, is_complex
from tracer.ir.primitive import Zero
from tracer.ir.program import Literal
from tracer.ir.types import ArrayType, Type, is_differentiable, same_up_to_weakness, tangent_type
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace import trees
from tracer.trace.array import Array, renewed
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.trace.trace import Operand
from tracer.transforms.context import Tangent


def match_tangents(
    given: Any, like: Sequence[Any], structure: trees.Structure, caller: str, root: str,
    values: Callable[[], Sequence[str]] | None = None,
) -> list[Tangent]:  # fmt: skip
    """Return tangents or cotangents as operands. They must have the structure, shapes and tangent dtypes of `like`.

    caller, root: name the transform, and `given`, in errors. values: returns the names of the primals. Raises
    ArgumentError for a wrong structure, shape or dtype. A cotangent of an integer counts for nothing. So any array of
    its shape is one, such as the result itself.
    """
    leaves, got = trees.flatten(given)
    if got != structure:
        path, wanted, found = trees.parting(structure, got, root)
        where = f" for {path}" if path != root else ""
        model = "outputs" if root == "cotangents" else "primals"
        raise ArgumentError(
            message(
                f"{caller}{here()}: {root} must have the structure of {model}",
                f"expected {trees.structure_text(wanted)}{where}",
                f"got {trees.structure_text(found)}",
                help="one leaf for each array, in the same containers",
            )
        )

    def name(number: int) -> str:
        path = trees.leaf_names(given, root)[number]
        return path if values is None else f"{path}, the tangent of {values()[number]},"

    return [
        _matched(leaf, x.type, caller, lambda number=number: name(number), backward=root == "cotangents")  # type: ignore[misc]
        for number, (leaf, x) in enumerate(zip(leaves, like, strict=True))
    ]


def _matched(leaf: Any, type: Type, caller: str, name: Callable[[], str], *, backward: bool) -> Tangent:
    """Return one tangent of a value of the type, as an operand. Raises ArgumentError for a wrong type."""
    wanted = tangent_type(type)
    empty = trees.is_float0(leaf)
    if not is_differentiable(type):
        given_shape = leaf.shape if empty else _converted(leaf, caller, name).shape
        if given_shape != type.shape or not (empty or backward):
            given = f"pass numpy.zeros({type.shape}, tracer.dtypes.float0), or make it a float"
            raise _wrong_type(leaf, wanted, caller, name(), f"{type} has no derivative: {given}")
        return Zero(wanted)
    if not empty:
        array: Any = leaf if isinstance(leaf, Array) else _converted(leaf, caller, name)
        complex_given = is_complex(array.dtype) and not is_complex(wanted.dtype)  # type: ignore[union-attr]
        if array.weak_type and array.shape == wanted.shape and not complex_given:
            array = convert_element_type(array, wanted.dtype)  # type: ignore[union-attr]
        if same_up_to_weakness(array.type, wanted):
            return array  # type: ignore[no-any-return]
    raise _wrong_type(leaf, wanted, caller, name(), _LIKE_THE_VALUES)


_LIKE_THE_VALUES = "tangents and cotangents have the shape and dtype of the values they belong to"


def _converted(leaf: Any, caller: str, name: Callable[[], str]) -> Array:
    with suppress(ArgumentError, DTypeError):
        return as_array(leaf, caller)
    return as_array(leaf, f"{caller}: {name()}")  # raises again, with the leaf's name


def _wrong_type(leaf: Any, wanted: Type, caller: str, name: str, remedy: str) -> ArgumentError:
    empty = trees.is_float0(leaf)
    got = f"float0[{','.join(map(str, leaf.shape))}]" if empty else _converted(leaf, caller, lambda: name).type
    return ArgumentError(
        message(f"{caller}{here()}: {name} has the wrong type", f"expected {wanted}, got {got}", help=remedy)
    )


def tangent_array(t: Tangent, of: Type | None = None) -> Any:
    """Return a tangent for the user: a `Zero` as zeros, and float0 as NumPy's empty dtype, as in JAX.

    of: the primal's type, if the result is to be weak where the primal is.
    """
    if isinstance(of, ArrayType) and of.weak and is_differentiable(of):
        return convert_element_type(tangent_array(t), of.dtype, weak=True)
    if isinstance(t, Zero):
        return zeros(t.type) if is_differentiable(t.type) else np.zeros(t.type.shape, FLOAT0)
    if isinstance(t, Literal):
        return broadcast_in_dim(t, (), ())
    return renewed(t)


def dense(tangent: Tangent) -> Operand:
    """Return a tangent as an operand: a symbolic zero as an array of zeros."""
    return tangent if isinstance(tangent, Array | Literal) else zeros(tangent.type)
