"""Eigenvalues of Hermitian matrices, and singular values: eigh and svd, with the vectors where they are wanted.

    eigh    A = V diag(w) V^H, w ascending; only the lower triangle is read
    svd     A = U diag(s) V^H, s descending

Vectors are determined up to phases, and where values are equal up to rotations among theirs. Derivatives hold for
functions that do not depend on the choice. Reciprocals of differences that rounding explains are taken as zero. A
matrix with elements that are not finite has results of NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.primitive import Library, NoRule, Primitive, Zero
from tracer.ir.types import Type, array_type, tangent_type
from tracer.primitives.arrays.reductions.reductions import reduce_max
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.broadcasting import broadcast_in_dim, full
from tracer.primitives.elementwise.arithmetic import add, div, mul, neg, sub
from tracer.primitives.elementwise.comparison import le, select
from tracer.primitives.elementwise.complex import abs as modulus
from tracer.primitives.elementwise.complex import is_complex, real
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.stop_gradient import stop_gradient
from tracer.primitives.linalg.matrix_stacks import (
    adjoint,
    along_columns,
    along_rows,
    diagonal,
    halved,
    identity,
    in_front,
    matrix_type,
    product,
    stacked,
)  # fmt: skip
from tracer.trace.trace import bind_all


def resolved(differences: Any, values: Any) -> Any:
    """Return reciprocals of differences between values [*s, n], zero where rounding explains the difference.

    LAPACK's error bounds allow n roundings of the largest value. differences: [*s, n, n] or [*s, n].
    """
    n, dtype, shape = values.type.shape[-1], values.type.dtype, differences.type.shape
    largest = reduce_max(modulus(values), (len(values.type.shape) - 1,))
    allowed = mul(stop_gradient(largest), dtypes.real_dtype(dtype).type(n * np.finfo(dtype).eps))
    stack = tuple(range(len(allowed.type.shape)))
    none = le(modulus(differences), broadcast_in_dim(allowed, shape, stack))
    return select(none, 0, div(1, select(none, 1, differences)))


def like_matrix(values: Any, matrix: Any) -> Any:
    """Return real values in the dtype of a matrix."""
    return convert_element_type(values, matrix.type.dtype) if is_complex(matrix) else values


def real_part(x: Any) -> Any:
    """Return the real part; a real operand as it is."""
    return real(x) if is_complex(x) else x


# eigh


def _eigh_infer(x: Type, *, vectors: bool) -> tuple[Type, ...]:
    found = matrix_type("eigh", x)
    values = array_type(dtypes.real_dtype(found.dtype), found.shape[:-1])
    return (values, found) if vectors else (values,)


def _one_by_one(function: Any, x: Any, results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Write a function's results for each matrix of a stack; NaN for one that is not finite or does not converge."""
    found: Any
    for place in stacked(x.shape):
        try:
            found = function(x[place]) if np.isfinite(x[place]).all() else [None] * len(results)
        except np.linalg.LinAlgError:
            found = [None] * len(results)
        for result, part in zip(results, found, strict=True):
            result[place] = complex(np.nan, np.nan) if part is None and result.dtype.kind == "c" else part
    return results


def _eigh_reference(x: Any, *, vectors: bool) -> tuple[Any, ...]:
    def function(matrix: Any) -> tuple[Any, ...]:
        return tuple(np.linalg.eigh(matrix)) if vectors else (np.linalg.eigvalsh(matrix),)

    values = np.empty(x.shape[:-1], dtypes.real_dtype(x.dtype))
    results = (values, np.empty_like(x)) if vectors else (values,)
    if not np.isfinite(x).all():
        return _one_by_one(function, x, results)
    try:
        return tuple(np.asarray(part, like.dtype) for part, like in zip(function(x), results, strict=True))
    except np.linalg.LinAlgError:
        return _one_by_one(function, x, results)


def _eigh_jvp(ctx: Any, xs: Any, dxs: Any, *, vectors: bool) -> list[Any]:
    """Return dw = diag(V^H dA V) and dV = V (F * V^H dA V) with F_ij = 1 / (w_j - w_i) off the diagonal.

    Giles 2008, An extended collection of matrix derivative results, 3.1.
    """
    (x,), (dx,) = xs, dxs
    if isinstance(dx, Zero) or not x.type.shape[-1]:
        return [Zero(tangent_type(y.type)) for y in ctx.outputs]
    values, basis = ctx.outputs if vectors else eigh(x)
    inner = product(adjoint(basis), product(_hermitian(dx), basis))
    dvalues = real_part(diagonal(inner))
    if not vectors:
        return [dvalues]
    shape = x.type.shape
    factors = resolved(sub(along_columns(values, shape), along_rows(values, shape)), values)
    return [dvalues, product(basis, mul(like_matrix(factors, inner), inner))]


def _hermitian(x: Any) -> Any:
    """Return the Hermitian matrices of which `x` has the lower triangles."""
    half = halved(x)
    return add(half, adjoint(half))


eigh_p: Primitive = Primitive(
    name="eigh", infer=_eigh_infer, reference=_eigh_reference,
    jvp=_eigh_jvp, transpose=NoRule("eigh is not linear; its derivative is"),
    batch=lambda ctx, xs, axes, **params: in_front(ctx, xs, axes, params), lower=Library("eigh"), multiple=True,
)  # fmt: skip


def eigh(x: Any) -> tuple[Any, Any]:
    """Return the eigenvalues, ascending, and the eigenvectors of Hermitian matrices by their lower triangles."""
    values, vectors = bind_all(eigh_p, [x], {"vectors": True})
    return values, vectors


def eigvalsh(x: Any) -> Any:
    """Return the eigenvalues, ascending, of Hermitian matrices by their lower triangles."""
    (values,) = bind_all(eigh_p, [x], {"vectors": False})
    return values


# svd


def _svd_infer(x: Type, *, full_matrices: bool, compute_uv: bool) -> tuple[Type, ...]:
    found = matrix_type("svd", x, square=False)
    *stack, m, n = found.shape
    k = min(m, n)
    values = array_type(dtypes.real_dtype(found.dtype), (*stack, k))
    if not compute_uv:
        return (values,)
    left, right = ((m, m), (n, n)) if full_matrices else ((m, k), (k, n))
    return values, array_type(found.dtype, (*stack, *left)), array_type(found.dtype, (*stack, *right))


def _svd_reference(x: Any, *, full_matrices: bool, compute_uv: bool) -> tuple[Any, ...]:
    def function(matrix: Any) -> tuple[Any, ...]:
        if not compute_uv:
            return (np.linalg.svd(matrix, compute_uv=False),)
        left, values, right = np.linalg.svd(matrix, full_matrices=full_matrices)
        return values, left, right

    types = _svd_infer(array_type(x.dtype, x.shape), full_matrices=full_matrices, compute_uv=compute_uv)
    results = tuple(np.empty(t.shape, t.dtype) for t in types)  # type: ignore[union-attr]
    if not np.isfinite(x).all():
        return _one_by_one(function, x, results)
    try:
        return tuple(np.asarray(part, like.dtype) for part, like in zip(function(x), results, strict=True))
    except np.linalg.LinAlgError:
        return _one_by_one(function, x, results)


def _svd_jvp(ctx: Any, xs: Any, dxs: Any, *, full_matrices: bool, compute_uv: bool) -> list[Any]:
    """Return ds = diag(P) for P = U^H dA V, and dU = U W, dV = V Z with skew W and Z from P = W S + dS - S Z.

    Sum and difference of P and P^H give W + Z over s_j - s_i, and W - Z over s_j + s_i. Giles 2008, 3.2.
    """
    (x,), (dx,) = xs, dxs
    *stack, m, n = x.type.shape
    k = min(m, n)
    if isinstance(dx, Zero) or not k:
        return [Zero(tangent_type(y.type)) for y in ctx.outputs]
    values, left, right = ctx.outputs if compute_uv else svd(x, full_matrices=False)
    u, v = slice_in_dim(left, 0, k, axis=-1), adjoint(slice_in_dim(right, 0, k, axis=-2))
    moved = product(dx, v)
    inner = product(adjoint(u), moved)
    dvalues = real_part(diagonal(inner))
    if not compute_uv:
        return [dvalues]
    shape = (*stack, k, k)
    columns, rows = along_columns(values, shape), along_rows(values, shape)
    less, more = (like_matrix(resolved(x, values), inner) for x in (sub(columns, rows), add(columns, rows)))
    first = mul(less, add(inner, adjoint(inner)))
    second = mul(more, sub(inner, adjoint(inner)))
    half, scale = inner.type.dtype.type(0.5), like_matrix(resolved(values, values), inner)
    du = _turned_basis(left, mul(add(first, second), half), moved, scale)
    dv = _turned_basis(adjoint(right), mul(sub(first, second), half), product(adjoint(dx), u), scale)
    return [dvalues, du, adjoint(dv)]


def _turned_basis(basis: Any, turn: Any, moved: Any, scale: Any) -> Any:
    """Return the tangent of a basis: its first columns are turned among themselves, and towards `moved` beyond them.

    scale: the factors of the columns of `moved`. Further columns of the basis turn as they must to stay orthogonal.
    """
    (rows, columns), k = basis.type.shape[-2:], turn.type.shape[-1]
    first = slice_in_dim(basis, 0, k, axis=-1)
    tangent = product(first, turn)
    if rows == k:
        return tangent
    if columns == k:
        beyond = sub(moved, product(first, product(adjoint(first), moved)))
        return add(tangent, mul(beyond, along_columns(scale, beyond.type.shape)))
    others = slice_in_dim(basis, k, columns, axis=-1)
    inner = product(adjoint(others), moved)
    inner = mul(inner, along_columns(scale, inner.type.shape))
    return concatenate(
        [add(tangent, product(others, inner)), neg(product(first, adjoint(inner)))], len(basis.type.shape) - 1
    )


svd_p: Primitive = Primitive(
    name="svd", infer=_svd_infer, reference=_svd_reference,
    jvp=_svd_jvp, transpose=NoRule("svd is not linear; its derivative is"),
    batch=lambda ctx, xs, axes, **params: in_front(ctx, xs, axes, params), lower=Library("svd"), multiple=True,
)  # fmt: skip


def svd(x: Any, *, full_matrices: bool) -> tuple[Any, Any, Any]:
    """Return the singular values, descending, U and V^H."""
    *stack, m, n = x.type.shape
    if not m * n:  # nothing to decompose: any basis
        dtype, k = x.type.dtype, 0
        sides = ((m, m), (n, n)) if full_matrices else ((m, k), (k, n))
        left, right = (identity((*stack, *shape), dtype) for shape in sides)
        return full((*stack, k), 0, dtypes.real_dtype(dtype)), left, right
    values, left, right = bind_all(svd_p, [x], {"full_matrices": full_matrices, "compute_uv": True})
    return values, left, right


def svdvals(x: Any) -> Any:
    """Return the singular values, descending."""
    (values,) = bind_all(svd_p, [x], {"full_matrices": False, "compute_uv": False})
    return values


SPECTRAL = (eigh_p, svd_p)
"""The primitives of eigenvalues of Hermitian matrices and of singular values."""
