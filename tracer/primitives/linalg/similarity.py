"""Eigenvalues and canonical forms of general matrices: eig, schur, hessenberg, tridiagonal.

    geev            x -> eigenvalues and vectors, as LAPACK packs them: of real matrices by real and imaginary parts
    eig             x -> complex eigenvalues and vectors of norm 1
    schur           A = Z T Z^H, with triangular T, or for real A with blocks of two rows for pairs of eigenvalues
    hessenberg      the reflectors of Q, and H = Q^H A Q below which nothing stands but one diagonal
    tridiagonal     the same of Hermitian matrices, with the diagonals of H

A matrix with elements that are not finite has eigenvalues and a Schur form of NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.primitive import Composite, Library, NoRule, Primitive, Zero
from tracer.ir.types import Type, array_type, tangent_type
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.elementwise.arithmetic import mul, neg, sub
from tracer.primitives.elementwise.comparison import gt, lt, select
from tracer.primitives.elementwise.complex import complex as complex_of
from tracer.primitives.elementwise.complex import conj
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.linalg.lapack_calls import by_columns, by_rows, call_stack
from tracer.primitives.linalg.matrix_stacks import (
    adjoint,
    along_columns,
    along_rows,
    diagonal,
    in_front,
    matrix_type,
    product,
)  # fmt: skip
from tracer.primitives.linalg.solve import solve
from tracer.primitives.linalg.spectral import resolved
from tracer.trace.trace import bind_all


def _outputs(infer: Any, x: Any, **params: Any) -> list[Any]:
    """Return new arrays for the results of an operation on `x`, a row for each matrix."""
    found = infer(array_type(x.dtype, x.shape), **params)
    return [np.zeros((shapes.size(x.shape[:-2]), shapes.size(t.shape[x.ndim - 2 :])), t.dtype) for t in found]


def _shaped(infer: Any, x: Any, rows: list[Any], **params: Any) -> tuple[Any, ...]:
    """Return rows as the results of an operation on `x`: matrices by columns, vectors as they are."""
    found = infer(array_type(x.dtype, x.shape), **params)
    pairs = zip(rows, found, strict=True)
    return tuple(by_rows(row, t.shape) if len(t.shape) == x.ndim else row.reshape(t.shape) for row, t in pairs)


# eig


def _geev_infer(x: Type, *, left: bool, right: bool) -> tuple[Type, ...]:
    found = matrix_type("eig", x)
    values = array_type(found.dtype, found.shape[:-1])
    parts = (values,) if dtypes.is_complex(found.dtype) else (values, values)
    return *parts, *[found] * (left + right)


def _geev_reference(x: Any, *, left: bool, right: bool) -> tuple[Any, ...]:
    form = {"left": left, "right": right}
    rows = _outputs(_geev_infer, x, **form)
    if x.size:
        names = [*(("wr",) if dtypes.is_complex(x.dtype) else ("wr", "wi")), *["vl"] * left, *["vr"] * right]
        given = {"n": x.shape[-1], "jobvl": "NV"[left], "jobvr": "NV"[right]}
        call_stack("geev", x.dtype, {"a": by_columns(x), **dict(zip(names, rows, strict=True))}, given)
    return _shaped(_geev_infer, x, rows, **form)


geev_p: Primitive = Primitive(
    name="geev", infer=_geev_infer, reference=_geev_reference,
    jvp=NoRule("geev has no derivative; eig has one"), transpose=NoRule("geev is not linear"),
    batch=lambda ctx, xs, axes, **params: in_front(ctx, xs, axes, params), lower=Library("geev"), multiple=True,
)  # fmt: skip


def _eig_infer(x: Type, *, left: bool, right: bool) -> tuple[Type, ...]:
    found = matrix_type("eig", x)
    dtype = dtypes.complex_dtype(found.dtype)
    matrix = array_type(dtype, found.shape)
    return array_type(dtype, found.shape[:-1]), *[matrix] * (left + right)


def _eig_reference(x: Any, *, left: bool, right: bool) -> tuple[Any, ...]:
    values, *others = _geev_reference(x, left=left, right=right)
    if dtypes.is_complex(x.dtype):
        return values, *others
    imaginary, *packed = others
    dtype = dtypes.complex_dtype(x.dtype)
    first, second = (imaginary > 0)[..., None, :], (imaginary < 0)[..., None, :]
    vectors = []
    for v in packed:
        after, before = np.roll(v, -1, -1), np.roll(v, 1, -1)
        real, imag = np.where(second, before, v), np.where(first, after, np.where(second, -v, 0))
        vectors.append(_joined(real, imag, dtype))
    return _joined(values, imaginary, dtype), *vectors


def _joined(x: Any, y: Any, dtype: Any) -> Any:
    result = np.empty(x.shape, dtype)
    result.real, result.imag = x, y
    return result


def _eig_expand(x: Any, *, left: bool, right: bool) -> list[Any]:
    """Join the parts of real matrices' results. A pair of vectors is packed as its real and its imaginary part."""
    found = list(bind_all(geev_p, [x], {"left": left, "right": right}))
    if dtypes.is_complex(x.type.dtype) or not x.type.shape[-1]:
        return found if dtypes.is_complex(x.type.dtype) else _of_nothing(found)
    real, imaginary, *packed = found
    first, second = (along_columns(sign(imaginary, 0), x.type.shape) for sign in (gt, lt))
    axis, n = len(x.type.shape) - 1, x.type.shape[-1]
    vectors = []
    for v in packed:
        parts = slice_in_dim(v, 0, 1, axis=axis), slice_in_dim(v, 0, n - 1, axis=axis)
        after = concatenate([slice_in_dim(v, 1, n, axis=axis), parts[0]], axis)
        before = concatenate([parts[0], parts[1]], axis)
        vectors.append(complex_of(select(second, before, v), select(first, after, select(second, neg(v), 0))))
    return [complex_of(real, imaginary), *vectors]


def _of_nothing(found: list[Any]) -> list[Any]:
    real, imaginary, *packed = found
    return [complex_of(real, imaginary), *(complex_of(v, v) for v in packed)]


def _eig_jvp(ctx: Any, xs: Any, dxs: Any, *, left: bool, right: bool) -> list[Any]:
    """Return dw = diag(C) and dV = V (F * C), less its part along V, for C = V^-1 dA V and F_ij = 1 / (w_j - w_i).

    The norms of vectors stay 1, and no tangent has a component along its vector. Left vectors are the right ones of
    A^H. Giles 2008, An extended collection of matrix derivative results, 3.1.
    """
    (x,), (dx,) = xs, dxs
    if isinstance(dx, Zero) or not x.type.shape[-1]:
        return [Zero(tangent_type(y.type)) for y in ctx.outputs]
    values, *vectors = ctx.outputs if right else eig(x, left=left, right=True)
    moved = convert_element_type(dx, values.type.dtype)
    inner = solve(vectors[-1], product(moved, vectors[-1]))
    tangents = [diagonal(inner)]
    if left:
        of_left = solve(vectors[0], product(adjoint(moved), vectors[0]))
        tangents.append(_vectors_tangent(conj(values), vectors[0], of_left))
    if right:
        tangents.append(_vectors_tangent(values, vectors[-1], inner))
    return tangents


def _vectors_tangent(values: Any, vectors: Any, inner: Any) -> Any:
    shape = vectors.type.shape
    factors = resolved(sub(along_columns(values, shape), along_rows(values, shape)), values)
    tangent = product(vectors, mul(factors, inner))
    along = reduce_sum(mul(conj(vectors), tangent), (len(shape) - 2,))
    return sub(tangent, mul(vectors, along_columns(along, shape)))


eig_p: Primitive = Primitive(
    name="eig", infer=_eig_infer, reference=_eig_reference,
    jvp=_eig_jvp, transpose=NoRule("eig is not linear; its derivative is"),
    batch=lambda ctx, xs, axes, **params: in_front(ctx, xs, axes, params), lower=Composite(_eig_expand, computes=True),
    multiple=True,
)  # fmt: skip


def eig(x: Any, *, left: bool = False, right: bool = False) -> list[Any]:
    """Return the eigenvalues, and the left and the right eigenvectors where wanted, all complex."""
    return list(bind_all(eig_p, [x], {"left": left, "right": right}))


# schur


def _schur_infer(x: Type, *, vectors: bool) -> tuple[Type, ...]:
    found = matrix_type("schur", x)
    return (found, found) if vectors else (found,)


def _schur_reference(x: Any, *, vectors: bool) -> tuple[Any, ...]:
    rows = _outputs(_schur_infer, x, vectors=vectors)
    rows[0] = by_columns(x)
    if x.size:
        arrays = {"a": rows[0], **({"vs": rows[1]} if vectors else {})}
        call_stack("gees", x.dtype, arrays, {"n": x.shape[-1], "jobvs": "NV"[vectors], "sort": "N"})
    return _shaped(_schur_infer, x, rows, vectors=vectors)


schur_p: Primitive = Primitive(
    name="schur", infer=_schur_infer, reference=_schur_reference,
    jvp=NoRule("its basis is a choice; eigvals, expm, logm, sqrtm and funm, which depend on none, have derivatives"),
    transpose=NoRule("schur is not linear"),
    batch=lambda ctx, xs, axes, **params: in_front(ctx, xs, axes, params), lower=Library("schur"), multiple=True,
)  # fmt: skip


def schur(x: Any, *, vectors: bool = True) -> list[Any]:
    """Return the Schur form T, and Z where wanted."""
    return list(bind_all(schur_p, [x], {"vectors": vectors}))


# hessenberg and tridiagonal


def _hessenberg_infer(x: Type) -> tuple[Type, ...]:
    found = matrix_type("hessenberg", x)
    return found, array_type(found.dtype, (*found.shape[:-2], max(found.shape[-1] - 1, 0)))


def _hessenberg_reference(x: Any) -> tuple[Any, ...]:
    rows = _outputs(_hessenberg_infer, x)
    rows[0] = by_columns(x)
    if x.size:
        call_stack("gehrd", x.dtype, {"a": rows[0], "tau": rows[1]}, {"n": x.shape[-1]})
    return _shaped(_hessenberg_infer, x, rows)


hessenberg_p: Primitive = Primitive(
    name="hessenberg", infer=_hessenberg_infer, reference=_hessenberg_reference,
    jvp=NoRule("its basis is a choice; eigvals, and solve, which depend on none, have derivatives"),
    transpose=NoRule("hessenberg is not linear"),
    batch=lambda ctx, xs, axes: in_front(ctx, xs, axes, {}), lower=Library("hessenberg"), multiple=True,
)  # fmt: skip


def hessenberg(x: Any) -> list[Any]:
    """Return H over the reflectors of Q, in one array, and the reflectors' factors."""
    return list(bind_all(hessenberg_p, [x], {}))


def _tridiagonal_infer(x: Type, *, lower: bool) -> tuple[Type, ...]:
    found = matrix_type("tridiagonal", x)
    *stack, n = found.shape[:-1]
    real, fewer = dtypes.real_dtype(found.dtype), (*stack, max(n - 1, 0))
    return found, array_type(real, (*stack, n)), array_type(real, fewer), array_type(found.dtype, fewer)


def _tridiagonal_reference(x: Any, *, lower: bool) -> tuple[Any, ...]:
    rows = _outputs(_tridiagonal_infer, x, lower=lower)
    rows[0] = by_columns(x)
    if x.size:
        arrays = dict(zip(("a", "d", "e", "tau"), rows, strict=True))
        call_stack("sytrd", x.dtype, arrays, {"n": x.shape[-1], "uplo": "UL"[lower]})
    return _shaped(_tridiagonal_infer, x, rows, lower=lower)


tridiagonal_p: Primitive = Primitive(
    name="tridiagonal", infer=_tridiagonal_infer, reference=_tridiagonal_reference,
    jvp=NoRule("its basis is a choice; eigh and eigvalsh have derivatives"),
    transpose=NoRule("tridiagonal is not linear"),
    batch=lambda ctx, xs, axes, **params: in_front(ctx, xs, axes, params), lower=Library("tridiagonal"),
    multiple=True,
)  # fmt: skip


def tridiagonal(x: Any, *, lower: bool) -> list[Any]:
    """Return H over the reflectors of Q, its diagonal, the one beside it, and the reflectors' factors."""
    return list(bind_all(tridiagonal_p, [x], {"lower": lower}))


SIMILARITY = (geev_p, eig_p, schur_p, hessenberg_p, tridiagonal_p)
"""The primitives of general matrices' eigenvalues and canonical forms."""
