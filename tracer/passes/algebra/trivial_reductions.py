"""Rewrites of reductions over axes of size 1 and broadcast axes, and of argmax over axes of size 1."""

from __future__ import annotations

from typing import Final

from tracer.ir import dtypes, shape
from tracer.ir.program import Atom, Equation, literal
from tracer.ir.types import ArrayType
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.base.rules import Rules
from tracer.primitives.arrays.reductions.reductions import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)
from tracer.primitives.base.broadcasting import broadcast_in_dim_p, reduce_sum_p
from tracer.primitives.base.shapes import squeeze_p
from tracer.primitives.elementwise.arithmetic import add_p

_IDEMPOTENT = (reduce_max_p, reduce_min_p, reduce_and_p, reduce_or_p)
_REDUCTIONS = (reduce_sum_p, reduce_prod_p, reduce_xor_p, *_IDEMPOTENT)


def reduce_ones(equation: Equation, at: Rewriter) -> Atom | None:
    """Drop the axes of a reduction over axes of size 1. A float sum adds 0: sums start there, and -0 + 0 is +0."""
    x, axes = equation.inputs[0], equation.params["axes"]
    if any(x.type.shape[axis] != 1 for axis in axes):
        return None
    result = at.emit(squeeze_p, x, dimensions=axes) if axes else x
    type = x.type
    if equation.primitive is reduce_sum_p and isinstance(type, ArrayType) and dtypes.is_inexact(type.dtype):
        return at.emit(add_p, result, literal(0, type.dtype, type.weak))
    return result


def reduce_broadcast(equation: Equation, at: Rewriter) -> Atom | None:
    """Reduce before broadcasting, for idempotent reductions over axes that the broadcast made."""
    inner = at.definition(equation.inputs[0], broadcast_in_dim_p)
    if inner is None or 0 in equation.inputs[0].type.shape:
        return None
    x, dims, axes = inner.inputs[0], inner.params["broadcast_dimensions"], equation.params["axes"]
    if not any(axis not in dims for axis in axes):
        return None
    own = tuple(position for position, axis in enumerate(dims) if axis in axes)
    reduced = at.emit(equation.primitive, x, axes=own) if own else x
    rest = tuple(axis - sum(a < axis for a in axes) for axis in dims if axis not in axes)
    return at.spread(reduced, shape.drop(inner.params["shape"], axes), rest)


def extreme_of_one(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite the index of the extreme along an axis of size 1 to 0."""
    if equation.inputs[0].type.shape[equation.params["axis"]] != 1:
        return None
    return at.number(0, equation.outputs[0].type)


TRIVIAL_REDUCTIONS: Final[Rules] = (
    (_REDUCTIONS, (reduce_ones,)),
    (_IDEMPOTENT, (reduce_broadcast,)),
    ((argmax_p, argmin_p), (extreme_of_one,)),
)
