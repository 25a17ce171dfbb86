"""Folding of transposes into matrix products, which read their operands in either layout.

Sums of products have no fixed order, so no bits are promised.
"""

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
    """Rewrite a product with a transposed matrix, or a stack of them, to one that contracts the other axis.

    Matrices of bf16 stay: pairs along the contracted axis must be contiguous.
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
    """Whether only the last two axes swap, the other axes are the batch, and one of the two is contracted."""
    stack = tuple(range(len(permutation) - 2))
    last = len(permutation) - 1
    return permutation == (*stack, last, last - 1) and batch == stack and len(contracted) == 1


TRANSPOSE_FOLDING: Final[Rules] = (((dot_general_p,), (product_of_transpose,)),)
