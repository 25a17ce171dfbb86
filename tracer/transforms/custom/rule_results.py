"""Results of a user's rule as operands: tangents like the outputs, gradients like the arguments, or an error.

Only arrays among the residuals become operands. Scalars and NumPy arrays are constant for the function. They are kept
unchanged, so that the backward function may compute with them in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.dtypes import is_complex, is_inexact
from tracer.ir.primitive import Zero
from tracer.ir.types import ArrayType, is_differentiable, same_up_to_weakness, tangent_type
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace import trees
from tracer.trace.convert import native
from tracer.trace.source import here
from tracer.transforms.custom.symbolic_zeros import SymbolicZero
from tracer.transforms.functions import argument_names, as_output


class Residuals(NamedTuple):
    """Tree of residuals without its arrays. fixed: its leaves, and None where an array stands."""

    structure: trees.Structure
    fixed: list[tuple[Any] | None]

    @classmethod
    def of(cls, tree: Any, name: str) -> tuple[Residuals, list[Any]]:
        """Return the tree without its arrays, and the arrays."""
        leaves, structure = trees.flatten(tree)
        fixed = [(_copied(leaf, name),) if isinstance(leaf, _FIXED) else None for leaf in leaves]
        arrays = [as_output(leaf, name) for leaf, one in zip(leaves, fixed, strict=True) if one is None]
        return cls(structure, fixed), arrays

    def tree(self, arrays: Sequence[Any]) -> Any:
        """Return the tree with these arrays."""
        given = iter(arrays)
        return trees.unflatten(self.structure, [next(given) if one is None else one[0] for one in self.fixed])


_FIXED = bool | int | float | complex | np.generic | np.ndarray


def _copied(leaf: Any, name: str) -> Any:
    """Return the leaf, copied if it is a NumPy array, which the user might write to."""
    return native(leaf, f"a residual of custom_vjp {name}") if isinstance(leaf, np.ndarray) else leaf


def checked_pair(result: Any, where: str, wanted: str, remedy: str) -> tuple[Any, Any]:
    """Return the result of a user's rule if it is a pair. Raises ArgumentError otherwise."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(message(f"{where}{here()}: {wanted}", f"got {type(result).__name__}", help=remedy))
    return result


def checked_tangents(ys: Sequence[Any], structure: Any, dys: Any, name: str) -> tuple[list[Any], list[Any]]:
    """Return a rule's outputs and tangents as operands. Raises ArgumentError if structures or types do not match."""
    outputs = [as_output(y, name) for y in ys]
    tangents, got = trees.flatten(dys)
    if got != structure:
        raise ArgumentError(
            message(
                f"custom_jvp {name}{here()}: outputs and tangents must have the same structure",
                f"outputs {trees.structure_text(structure)}, tangents {trees.structure_text(got)}",
            )
        )
    names = trees.leaf_names(trees.unflatten(structure, list(ys)), "*")
    checked = []
    for y, dy, path in zip(outputs, tangents, names, strict=True):
        wanted = tangent_type(y.type)
        if isinstance(dy, SymbolicZero) or not is_differentiable(y.type):
            checked.append(Zero(wanted))
            continue
        place = path.removeprefix("*")
        checked.append(_of_type(dy, wanted, f"custom_jvp {name}", "the tangent" + (f" of {place}" if place else "")))
    return outputs, checked


def checked_gradients(result: Any, moving: Sequence[Any], structure: Any, types: Sequence[Any], name: str) -> list[Any]:
    """Return the result of `backward`, one entry for each leaf of the arguments: None stands for zeros.

    Raises ArgumentError if structures or types do not match the arguments.
    """
    if not isinstance(result, tuple | list) or len(result) != len(moving):
        got = type(result).__name__ + (f" of {len(result)}" if isinstance(result, tuple | list) else "")
        raise ArgumentError(
            message(
                f"custom_vjp {name}{here()}: the backward function must return a tuple, one entry an argument",
                f"expected {len(moving)}, got {got}",
                help="a function of one argument returns (gradient,); None stands for no gradient",
            )
        )
    leaves: list[Any] = []
    for argument, part in zip(moving, result, strict=True):
        try:
            leaves += _spread(part, argument)
        except ValueError:
            raise ArgumentError(
                message(
                    f"custom_vjp {name}{here()}: a gradient must have the structure of its argument",
                    f"expected {trees.structure_text(trees.flatten(argument)[1])}",
                    f"got {trees.structure_text(trees.flatten(part)[1])}",
                    help="None stands for the gradient of a whole argument, or of a part of it",
                )
            ) from None
    names = argument_names(moving)
    gradients: list[Any] = []
    for leaf, t, place in zip(leaves, types, names, strict=True):
        wanted = tangent_type(t)
        if leaf is None or not is_differentiable(t) or isinstance(leaf, SymbolicZero):
            gradients.append(Zero(wanted))
        else:
            gradients.append(_of_type(leaf, wanted, f"custom_vjp {name}", f"the gradient of {place}", weak=_is_weak(t)))
    return gradients


def _spread(part: Any, argument: Any) -> list[Any]:
    """Return one entry of the gradient for each leaf of the argument, or None below a None in the gradient."""
    if part is None:
        return [None] * len(trees.flatten(argument)[0])
    if trees.is_leaf(argument):
        if not trees.is_leaf(part):
            raise ValueError
        return [part]
    return [entry for below, child in trees.matched_children(part, argument) for entry in _spread(below, child)]


def _is_weak(type: Any) -> bool:
    return isinstance(type, ArrayType) and type.weak


def _of_type(value: Any, wanted: Any, where: str, caller: str, *, weak: bool = False) -> Any:
    """Return the value as an array of the type. Raises ArgumentError if it has another type.

    weak: whether it belongs to a Python scalar, whose gradient may have any dtype of its kind.
    """
    array = as_output(value, where)
    of_kind = weak and is_inexact(array.dtype) and is_complex(array.dtype) == is_complex(wanted.dtype)
    if array.type.shape == wanted.shape and (_is_weak(array.type) or of_kind):  # programs carry no weak tangents
        array = convert_element_type(array, wanted.dtype)
    if not same_up_to_weakness(array.type, wanted):
        raise ArgumentError(
            message(
                f"{where}{here()}: {caller} has the wrong type",
                f"expected {wanted}, got {array.type}",
                help="it has the shape and dtype of the value that it belongs to",
            )
        )
    return array
