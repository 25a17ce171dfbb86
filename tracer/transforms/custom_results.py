"""What a user's rule returned, as operands: tangents like the outputs, gradients like the arguments, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.ir.primitive import Zero
from tracer.ir.types import is_differentiable, same_up_to_weakness, tangent_type
from tracer.primitives.conversion import convert_element_type
from tracer.trace import trees
from tracer.trace.source import here
from tracer.transforms.functions import (
    as_output,
)
from tracer.transforms.symbolic_zeros import SymbolicZero


def checked_tangents(ys: Sequence[Any], structure: Any, dys: Any, name: str) -> tuple[list[Any], list[Any]]:
    """A rule's outputs and tangents as operands, of matching structures and types."""
    outputs = [as_output(y, name) for y in ys]
    tangents, got = trees.flatten(dys)
    if got != structure:
        raise ArgumentError(
            message(
                f"custom_jvp {name}{here()}: outputs and tangents must have the same structure",
                f"outputs {trees.structure_text(structure)}, tangents {trees.structure_text(got)}",
            )
        )
    checked = []
    for y, dy in zip(outputs, tangents, strict=True):
        wanted = tangent_type(y.type)
        if isinstance(dy, SymbolicZero) or not is_differentiable(y.type):
            checked.append(Zero(wanted))
            continue
        checked.append(_of_type(dy, wanted, f"custom_jvp {name}: a tangent"))
    return outputs, checked


def checked_gradients(result: Any, moving: Sequence[Any], structure: Any, types: Sequence[Any], name: str) -> list[Any]:
    """What `backward` returned, one entry a leaf of the arguments: None stands for zeros."""
    if not isinstance(result, tuple | list) or len(result) != len(moving):
        got = type(result).__name__ + (f" of {len(result)}" if isinstance(result, tuple | list) else "")
        raise ArgumentError(
            message(
                f"custom_vjp {name}{here()}: the backward function must return a tuple, one entry an argument",
                f"expected {len(moving)}, got {got}",
                help="a function of one argument returns (gradient,); None stands for no gradient",
            )
        )
    gradients: list[Any] = []
    remaining = list(types)
    for argument, part in zip(moving, result, strict=True):
        count = len(trees.flatten(argument)[0])
        own, remaining = remaining[:count], remaining[count:]
        if part is None:
            gradients += [Zero(tangent_type(t)) for t in own]
            continue
        leaves = trees.flatten(part)[0]
        if len(leaves) != count:
            raise ArgumentError(
                message(
                    f"custom_vjp {name}{here()}: a gradient must have the structure of its argument",
                    f"expected {trees.structure_text(trees.flatten(argument)[1])}",
                    f"got {trees.structure_text(trees.flatten(part)[1])}",
                    help="None stands for the gradient of a whole argument",
                )
            )
        for leaf, t in zip(leaves, own, strict=True):
            wanted = tangent_type(t)
            if not is_differentiable(t) or isinstance(leaf, SymbolicZero):
                gradients.append(Zero(wanted))
            else:
                gradients.append(_of_type(leaf, wanted, f"custom_vjp {name}: a gradient"))
    return gradients


def _of_type(value: Any, wanted: Any, what: str) -> Any:
    array = as_output(value, what)
    if array.type.shape == wanted.shape and not same_up_to_weakness(array.type, wanted) and array.type.weak:
        array = convert_element_type(array, wanted.dtype)
    if not same_up_to_weakness(array.type, wanted):
        raise ArgumentError(
            message(
                f"{what}{here()} has the wrong type",
                f"expected {wanted}, got {array.type}",
                help="it has the shape and dtype of the value that it belongs to",
            )
        )
    return array
