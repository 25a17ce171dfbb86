"""Triangular systems of equations: triangular_solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.ir import shape as shapes
from tracer.ir.primitive import Library, Primitive
from tracer.ir.types import Type
from tracer.primitives.base.rules import check_same_dtype, operand_of, per_operand
from tracer.primitives.base.shapes import moveaxis, reshape
from tracer.primitives.elementwise.arithmetic import neg
from tracer.primitives.linalg.matrix_stacks import (
    LETTERS,
    conjugate,
    in_front,
    matrix_type,
    product,
    scipy_linalg,
    stacked,
    steps_pay,
    triangle,
    turned,
)  # fmt: skip
from tracer.trace.source import here
from tracer.trace.trace import bind


def _infer(
    a: Type, b: Type, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Type:
    matrix_type("triangular_solve", a)
    found = matrix_type("triangular_solve", b, square=False)
    check_same_dtype("triangular_solve", (a, b))
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2 if left_side else -1]:
        raise ShapeError(
            message(
                f"triangular_solve{here()}: the sizes of the operands do not fit",
                f"got {a} and {b}, left_side={left_side}",
                help="a is [*s, n, n], and b [*s, n, k], or [*s, k, n] on the right; broadcast the leading axes",
            )
        )
    return found


# Value


def _reference(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    if not steps_pay(a.shape[-2:], shapes.size(a.shape[:-2])):
        return _by_blas(a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal)
    matrix, x = a.conj() if conjugate_a else a, b.copy() if left_side else np.swapaxes(b, -1, -2).copy()
    if transpose_a == left_side:  # X op(a) = b has op(a)^T X^T = b^T
        matrix, lower = np.swapaxes(matrix, -1, -2), not lower
    n = a.shape[-1]
    for i in range(n) if lower else reversed(range(n)):
        known = slice(0, i) if lower else slice(i + 1, n)
        row = x[..., i, :] - np.matmul(matrix[..., i, None, known], x[..., known, :])[..., 0, :]
        x[..., i, :] = row if unit_diagonal else row / matrix[..., i, i, None]
    return x if left_side else np.swapaxes(x, -1, -2).copy()


def _by_blas(
    a: Any, b: Any, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    solve = scipy_linalg("blas", f"{LETTERS[a.dtype]}trsm")
    result = np.empty(b.shape, b.dtype)
    if conjugate_a and not transpose_a:
        a, conjugate_a = a.conj(), False
    for place in stacked(b.shape):
        result[place] = solve(
            1, a[place], b[place], side=not left_side, lower=lower, trans_a=transpose_a * (1 + conjugate_a),
            diag=unit_diagonal,
        )  # fmt: skip
    return result


# Derivatives: op(a) x = b has op(a) dx = db - op(da) x


def _of_matrix(ctx: Any, da: Any, a: Any, b: Any, **params: Any) -> Any:
    (x,), left = ctx.outputs, params["left_side"]
    beyond = (-1 if params["lower"] else 1) if params["unit_diagonal"] else 0
    moved = triangle(da, lower=params["lower"], offset=beyond)
    moved = conjugate(moved) if params["conjugate_a"] else moved
    moved = turned(moved) if params["transpose_a"] else moved
    return solve_triangular(a, neg(product(moved, x) if left else product(x, moved)), **params)


def _transpose(ctx: Any, cts: Any, xs: Any, **params: Any) -> list[Any]:
    turned_over = {**params, "transpose_a": not params["transpose_a"]}
    return [None, solve_triangular(operand_of("triangular_solve", xs[0]), cts[0], **turned_over)]


def _batch(ctx: Any, xs: Any, axes: Any, **params: Any) -> Any:
    """Batch a solve. If lanes share the matrix, their right-hand sides are more columns."""
    (a, b), (of_a, of_b) = xs, axes
    if of_a is not None or len(a.type.shape) > 2:
        return in_front(ctx, xs, axes, params)
    left, size = params["left_side"], ctx.size
    place = 2 if left else 0
    together = moveaxis(b, of_b, place)
    rows, columns = b.type.shape[:of_b] + b.type.shape[of_b + 1 :]
    flat = reshape(together, (rows, columns * size) if left else (size * rows, columns))
    x = reshape(solve_triangular(a, flat, **params), together.shape)
    return [x], [place]


triangular_solve_p: Primitive = Primitive(
    name="triangular_solve", infer=_infer, reference=_reference,
    jvp=per_operand(_of_matrix, lambda ctx, db, a, b, **params: solve_triangular(a, db, **params)),
    transpose=_transpose, batch=_batch, lower=Library("triangular_solve"),
)  # fmt: skip


def solve_triangular(a: Any, b: Any, **params: Any) -> Any:
    """Bind `triangular_solve` with parameters that are known to fit, by default of a plain lower triangle."""
    given = {"left_side": True, "lower": True, "transpose_a": False, "conjugate_a": False, "unit_diagonal": False}
    return bind(triangular_solve_p, a, b, **{**given, **params})


TRIANGULAR = (triangular_solve_p,)
