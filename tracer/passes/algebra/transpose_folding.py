"""Products of transposed matrices read them as they lie. Sums of products have no order, so no bit is promised here."""

from __future__ import annotations

from typing import Final

from tracer.ir import dtypes
from tracer.ir.program import Atom, Equation
from tracer.ir.types import ArrayType
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.base.rules import Rules
from tracer.primitives.base.shapes import transpose_p
from tracer.primitives.linalg.dot_general import dot_general_p
from tracer.primitives.linalg.matvec_strategies import Axes


def product_of_transpose(equation: Equation, at: Rewriter) -> Atom | None:
    """A product with a transposed matrix, or a stack of them, is one along the other axis of what was transposed.

    Matrices of bf16 stay, whose pairs must lie next to each other.
    """
    contracted, batch = equation.params["dimension_numbers"]
    operands, axes = list(equation.inputs), list(contracted)
    for side, operand in enumerate(equation.inputs):
        inner = at.definition(operand, transpose_p)
        if inner is None or not _turns_matrices(inner.params["permutation"], contracted[side], batch[side]):
            continue
        if isinstance(operand.type, ArrayType) and operand.type.dtype == dtypes.BF16:
            continue
        (axis,) = contracted[side]
        operands[side], axes[side] = inner.inputs[0], (2 * len(operand.type.shape) - 3 - axis,)
    if axes == list(contracted):
        return None
    params = {**equation.params, "dimension_numbers": ((axes[0], axes[1]), batch)}
    return at.emit(dot_general_p, *operands, **params)


def _turns_matrices(permutation: Axes, contracted: Axes, batch: Axes) -> bool:
    """Whether the last two axes change places, the others being the batch's, and one of the two is contracted."""
    stack = tuple(range(len(permutation) - 2))
    last = len(permutation) - 1
    return permutation == (*stack, last, last - 1) and batch == stack and len(contracted) == 1


TURNING: Final[Rules] = (((dot_general_p,), (product_of_transpose,)),)
