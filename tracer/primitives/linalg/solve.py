"""Systems of linear equations: solve.

It is one primitive, so that the derivative of a solution solves with the same matrix. Its expansion factors the matrix,
and equal factorisations within a program are shared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Composite, Primitive
from tracer.ir.types import Type
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.base.rules import check_same_dtype, operand_of, per_operand
from tracer.primitives.base.shapes import broadcast_in_dim, broadcasted_iota, moveaxis, reshape
from tracer.primitives.elementwise.arithmetic import mul, neg
from tracer.primitives.elementwise.comparison import eq
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.linalg.factorizations import lu, lu_p, permuted
from tracer.primitives.linalg.matrix_stacks import conjugate, in_front, matrix_type, product, turned
from tracer.primitives.linalg.triangular import solve_triangular, triangular_solve_p
from tracer.trace.source import here
from tracer.trace.trace import bind


def _infer(a: Type, b: Type, *, transpose_a: bool, conjugate_a: bool) -> Type:
    matrix_type("solve", a)
    found = matrix_type("solve", b, square=False)
    check_same_dtype("solve", (a, b))
    if a.shape[:-1] != b.shape[:-1]:
        raise ShapeError(
            message(
                f"solve{here()}: the sizes of the operands do not fit",
                f"got {a} and {b}",
                help="a is [*s, n, n] and b [*s, n, k]; broadcast the leading axes",
            )
        )
    return found


def _reference(a: Any, b: Any, *, transpose_a: bool, conjugate_a: bool) -> Any:
    matrix = a.conj() if conjugate_a else a
    matrix = np.swapaxes(matrix, -1, -2) if transpose_a else matrix
    try:
        return np.asarray(np.linalg.solve(matrix, b), b.dtype)
    except np.linalg.LinAlgError:
        factors, _, order = lu_p.reference(matrix)  # type: ignore[operator]  # as are all but NoRule
        rows = np.take_along_axis(b, order[..., None].astype(np.int64), -2)
        form = {"left_side": True, "transpose_a": False, "conjugate_a": False}
        solve: Any = triangular_solve_p.reference
        half = solve(factors, rows, lower=True, unit_diagonal=True, **form)
        return solve(factors, half, lower=False, unit_diagonal=False, **form)


def _expand(a: Any, b: Any, *, transpose_a: bool, conjugate_a: bool) -> Any:
    """Solve by P a = L U. For the transpose, U^T and L^T are solved first, and the rows permuted back."""
    factors, _, permutation = lu(a)
    form = {"transpose_a": transpose_a, "conjugate_a": conjugate_a}
    if not transpose_a:
        half = solve_triangular(factors, permuted(b, permutation), unit_diagonal=True, **form)
        return solve_triangular(factors, half, lower=False, **form)
    half = solve_triangular(factors, b, lower=False, **form)
    return permuted(solve_triangular(factors, half, unit_diagonal=True, **form), inverse_permutation(permutation))


def inverse_permutation(permutation: Any) -> Any:
    """Invert a permutation: the sum over i of i where permutation[i] is the row."""
    shape = permutation.type.shape
    n, rank = shape[-1], len(shape)
    places = (*shape, n)
    taken = broadcast_in_dim(permutation, places, tuple(range(rank)))
    found = convert_element_type(eq(taken, broadcasted_iota(dtypes.I32, places, rank)), dtypes.I32)
    return reduce_sum(mul(found, broadcasted_iota(dtypes.I32, places, rank - 1)), (rank - 1,))


def _of_matrix(ctx: Any, da: Any, a: Any, b: Any, **params: Any) -> Any:
    moved = conjugate(da) if params["conjugate_a"] else da
    moved = turned(moved) if params["transpose_a"] else moved
    return solve(a, neg(product(moved, ctx.outputs[0])), **params)


def _transpose(ctx: Any, cts: Any, xs: Any, *, transpose_a: bool, conjugate_a: bool) -> list[Any]:
    a = operand_of("solve", xs[0])
    return [None, solve(a, cts[0], transpose_a=not transpose_a, conjugate_a=conjugate_a)]


def _batch(ctx: Any, xs: Any, axes: Any, **params: Any) -> Any:
    """Batch a solve. If lanes share the matrix, their right-hand sides are more columns."""
    (a, b), (of_a, of_b) = xs, axes
    if of_a is not None or len(a.type.shape) > 2:
        return in_front(ctx, xs, axes, params)
    last = moveaxis(b, of_b, 2)
    flat = reshape(last, (last.shape[0], last.shape[1] * ctx.size))
    return [reshape(solve(a, flat, **params), last.shape)], [2]


solve_p: Primitive = Primitive(
    name="solve", infer=_infer, reference=_reference,
    jvp=per_operand(_of_matrix, lambda ctx, db, a, b, **params: solve(a, db, **params)),
    transpose=_transpose, batch=_batch, lower=Composite(_expand, computes=True),
)  # fmt: skip


def solve(a: Any, b: Any, *, transpose_a: bool = False, conjugate_a: bool = False) -> Any:
    """Return X with op(a) X = b. op is the transpose, the conjugate, both or neither."""
    return bind(solve_p, a, b, transpose_a=transpose_a, conjugate_a=conjugate_a)


SOLVES = (solve_p,)
