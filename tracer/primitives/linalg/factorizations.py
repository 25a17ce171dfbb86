"""Factorisations of matrices: cholesky and lu.

    cholesky    A = L L^H        for Hermitian positive definite A; only the lower triangle is read
    lu          P A = L U        with pivots of the largest |Re| + |Im| (LAPACK's choice)

A matrix that is not positive definite gets a factor of NaN. A singular matrix gets a zero on the diagonal of U.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.primitive import Library, NoRule, Primitive, Zero
from tracer.ir.types import Type, array_type, tangent_type
from tracer.primitives.arrays.dynamic_slice import take_along
from tracer.primitives.arrays.slice_pad_concatenate import pad, slice_in_dim
from tracer.primitives.base.rules import per_operand
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.primitives.elementwise.arithmetic import add
from tracer.primitives.linalg.matrix_stacks import (
    LETTERS,
    adjoint,
    halved,
    identity,
    in_front,
    matrix_type,
    product,
    scipy_linalg,
    stacked,
    steps_pay,
    triangle,
)  # fmt: skip
from tracer.primitives.linalg.triangular import solve_triangular
from tracer.trace.trace import as_literal, bind, bind_all

# cholesky


def _cholesky_reference(x: Any) -> Any:
    """Factor by NumPy; if a matrix of the stack is not positive definite, one by one."""
    try:
        factor = np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        factor = np.empty_like(x)
        for place in stacked(x.shape):
            try:
                factor[place] = np.linalg.cholesky(x[place])
            except np.linalg.LinAlgError:
                factor[place] = np.nan
    if x.shape[-1]:
        lost = np.isnan(factor[..., -1:, -1:]) & np.tri(x.shape[-1], dtype=bool)
        factor[lost] = _nan(x.dtype)
    return np.tril(factor)


def _nan(dtype: Any) -> Any:
    return dtype.type(complex(np.nan, np.nan) if dtypes.is_complex(dtype) else np.nan)


def _cholesky_tangent(ctx: Any, dx: Any, x: Any) -> Any:
    """Return dL = L phi(L^-1 dA L^-H). phi halves the diagonal of the lower triangle. Murray 2016, arXiv:1602.07527."""
    factor = ctx.outputs[0]
    half = halved(dx)
    moved = add(half, adjoint(half))
    right = solve_triangular(factor, moved, left_side=False, transpose_a=True, conjugate_a=True)
    return product(factor, halved(solve_triangular(factor, right)))


cholesky_p: Primitive = Primitive(
    name="cholesky", infer=lambda x: matrix_type("cholesky", x), reference=_cholesky_reference,
    jvp=per_operand(_cholesky_tangent), transpose=NoRule("cholesky is not linear; its derivative is"),
    batch=lambda ctx, xs, axes: in_front(ctx, xs, axes, {}), lower=Library("cholesky"),
)  # fmt: skip


def cholesky(x: Any) -> Any:
    """Return the triangular factor L, zeros above its diagonal, from the lower triangles of matrices."""
    return bind(cholesky_p, x)


# lu


def _lu_infer(x: Type) -> tuple[Type, ...]:
    found = matrix_type("lu", x, square=False)
    *stack, m, n = found.shape
    return found, array_type(dtypes.I32, (*stack, min(m, n))), array_type(dtypes.I32, (*stack, m))


def _lu_reference(x: Any) -> tuple[Any, Any, Any]:
    stack, (m, n) = x.shape[:-2], x.shape[-2:]
    every_step = steps_pay((m, n), shapes.size(stack)) or not m * n  # LAPACK reports empty matrices
    lu, pivots = (_by_columns if every_step else _by_lapack)(x.reshape(shapes.size(stack), m, n))
    permutation = np.broadcast_to(np.arange(m, dtype=np.int32), (len(lu), m)).copy()
    every = np.arange(len(lu))
    for k in range(min(m, n)):
        chosen = permutation[every, pivots[:, k]]
        permutation[every, pivots[:, k]] = permutation[:, k]
        permutation[:, k] = chosen
    return lu.reshape(x.shape), pivots.reshape(*stack, min(m, n)), permutation.reshape(*stack, m)


def _by_columns(x: Any) -> tuple[Any, Any]:
    """Factor one column after another, all matrices at once."""
    lu, every, (m, n) = x.copy(), np.arange(len(x)), x.shape[1:]
    pivots = np.zeros((len(x), min(m, n)), np.int32)
    for k in range(min(m, n)):
        below = lu[:, k:, k]
        sizes = np.nan_to_num(np.abs(below.real) + np.abs(below.imag), nan=-1.0, posinf=np.inf)
        pivots[:, k] = k + np.argmax(sizes, axis=1)
        rows = lu[every, pivots[:, k]]
        lu[every, pivots[:, k]] = lu[:, k]
        lu[:, k] = rows
        pivot = lu[:, k, k]
        lu[:, k + 1 :, k] /= np.where(pivot == 0, 1, pivot)[:, None]
        lu[:, k + 1 :, k + 1 :] -= lu[:, k + 1 :, k, None] * lu[:, None, k, k + 1 :]
    return lu, pivots


def _by_lapack(x: Any) -> tuple[Any, Any]:
    factor = scipy_linalg("lapack", f"{LETTERS[x.dtype]}getrf")
    lu, pivots = np.empty_like(x), np.empty((len(x), min(x.shape[1:])), np.int32)
    for place, matrix in enumerate(x):
        lu[place], pivots[place], _ = factor(matrix)
    return lu, pivots


def _lu_jvp(ctx: Any, xs: Any, dxs: Any) -> list[Any]:
    """Return dL = L tril(X, -1) and dU = triu(X) U with X = L^-1 P dA U^-1, L and U made square by the identity."""
    (dx,), (lu, pivots, permutation) = dxs, ctx.outputs
    still = [Zero(tangent_type(pivots.type)), Zero(tangent_type(permutation.type))]
    if isinstance(dx, Zero):
        return [Zero(tangent_type(lu.type)), *still]
    m, n = lu.type.shape[-2:]
    k = min(m, n)
    lower = _squared(triangle(slice_in_dim(lu, 0, k, axis=-1), lower=True, of_ones=True), m)
    upper = _squared(triangle(slice_in_dim(lu, 0, k, axis=-2), lower=False), n)
    half = solve_triangular(lower, permuted(dx, permutation), unit_diagonal=True)
    inner = solve_triangular(upper, half, left_side=False, lower=False)
    of_lower, of_upper = triangle(inner, lower=True, offset=-1), triangle(inner, lower=False)
    return [add(product(lower, of_lower), product(of_upper, upper)), *still]


def _squared(x: Any, n: int) -> Any:
    """Extend a triangle to n rows and columns by rows and columns of the identity."""
    shape, dtype = x.type.shape, x.type.dtype
    rows, columns = n - shape[-2], n - shape[-1]
    if not (rows or columns):
        return x
    config = [*[(0, 0, 0)] * (len(shape) - 2), (0, rows, 0), (0, columns, 0)]
    k = min(shape[-2:])
    rest = [*[(0, 0, 0)] * (len(shape) - 2), (k, 0, 0), (k, 0, 0)]
    zero = as_literal(dtype.type(0), dtype)
    return add(pad(x, zero, config), pad(identity((*shape[:-2], n - k, n - k), dtype), zero, rest))


def permuted(x: Any, permutation: Any) -> Any:
    """Reorder the rows of matrices, each by its permutation."""
    shape, rank = x.type.shape, len(x.type.shape)
    rows = broadcast_in_dim(permutation, shape, tuple(range(rank - 1)))
    return take_along(x, rows, rank - 2, unique_indices=True)


lu_p: Primitive = Primitive(
    name="lu", infer=_lu_infer, reference=_lu_reference,
    jvp=_lu_jvp, transpose=NoRule("lu is not linear; its derivative is"),
    batch=lambda ctx, xs, axes: in_front(ctx, xs, axes, {}), lower=Library("lu"), multiple=True,
)  # fmt: skip


def lu(x: Any) -> tuple[Any, Any, Any]:
    """Return L (below the diagonal) and U in one array, the pivot row of each step, and the permutation."""
    factors, pivots, permutation = bind_all(lu_p, [x], {})
    return factors, pivots, permutation


FACTORIZATIONS = (cholesky_p, lu_p)
