"""Orthogonal factors of matrices: qr, the reflectors that make it up, and their product.

    geqrf                   x -> R on and above the diagonal, reflectors below it, and their factors
    geqp3                   the same of x[:, order], where the diagonal of R descends in size
    householder_product     reflectors and factors -> the first columns of H_0 H_1 ...
    qr                      x -> Q, R, and the order of columns where it is chosen

A reflector is H_i = I - tau_i v_i v_i^H. v_i is 1 at i, stored below, and 0 above.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.primitive import Composite, Library, NoRule, Primitive, Zero
from tracer.ir.types import Type, array_type, tangent_type
from tracer.primitives.arrays.dynamic_slice import take_along
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.broadcasting import broadcast_in_dim, full
from tracer.primitives.base.rules import check_same_dtype
from tracer.primitives.base.shapes import broadcasted_iota
from tracer.primitives.elementwise.arithmetic import add, mul, neg, sub
from tracer.primitives.elementwise.complex import complex as complex_of
from tracer.primitives.elementwise.complex import imag, is_complex
from tracer.primitives.linalg.lapack_calls import by_columns, by_rows, call_stack
from tracer.primitives.linalg.matrix_stacks import (
    adjoint,
    along_rows,
    diagonal,
    diagonal_matrix,
    extended,
    in_front,
    leading,
    matrix_type,
    product,
    triangle,
)  # fmt: skip
from tracer.primitives.linalg.triangular import solve_triangular
from tracer.trace.source import here
from tracer.trace.trace import bind_all

# Reflectors


def _geqrf_infer(x: Type) -> tuple[Type, ...]:
    found = matrix_type("geqrf", x, square=False)
    return found, array_type(found.dtype, (*found.shape[:-2], min(found.shape[-2:])))


def _geqrf_reference(x: Any) -> tuple[Any, Any]:
    packed, taus = np.linalg.qr(x, mode="raw")
    return np.ascontiguousarray(np.swapaxes(packed, -1, -2)).astype(x.dtype), taus.astype(x.dtype)


def _geqp3_infer(x: Type) -> tuple[Type, ...]:
    found, taus = _geqrf_infer(x)
    return found, taus, array_type(dtypes.I32, (*found.shape[:-2], found.shape[-1]))


def _geqp3_reference(x: Any) -> tuple[Any, Any, Any]:
    *stack, m, n = x.shape
    count = shapes.size(tuple(stack))
    order, taus = np.zeros((count, n), np.int32), np.zeros((count, min(m, n)), x.dtype)
    a = by_columns(x)
    if taus.size:
        call_stack("geqp3", x.dtype, {"a": a, "jpvt": order, "tau": taus}, {"m": m, "n": n})
    else:
        order[...] = 1 + np.arange(n)
    return by_rows(a, x.shape), taus.reshape(*stack, min(m, n)), (order - np.int32(1)).reshape(*stack, n)


geqrf_p: Primitive = Primitive(
    name="geqrf", infer=_geqrf_infer, reference=_geqrf_reference,
    jvp=NoRule("geqrf has no derivative; qr has one"), transpose=NoRule("geqrf is not linear"),
    batch=lambda ctx, xs, axes: in_front(ctx, xs, axes, {}), lower=Library("geqrf"), multiple=True,
)  # fmt: skip
geqp3_p: Primitive = Primitive(
    name="geqp3", infer=_geqp3_infer, reference=_geqp3_reference,
    jvp=NoRule("geqp3 has no derivative; qr has one"), transpose=NoRule("geqp3 is not linear"),
    batch=lambda ctx, xs, axes: in_front(ctx, xs, axes, {}), lower=Library("geqp3"), multiple=True,
)  # fmt: skip


def reflectors(x: Any, *, pivoting: bool = False) -> list[Any]:
    """Return R over the reflectors, in one array, their factors, and with `pivoting` the order of columns."""
    *stack, m, n = x.type.shape
    if m:
        return list(bind_all(geqp3_p if pivoting else geqrf_p, [x], {}))
    order = [broadcasted_iota(dtypes.I32, (*stack, n), len(stack))] if pivoting else []  # any will do
    return [x, full((*stack, 0), 0, x.type.dtype), *order]


# Their product


def _product_infer(x: Type, taus: Type) -> Type:
    found = matrix_type("householder_product", x, square=False)
    check_same_dtype("householder_product", (x, taus))
    *stack, m, n = found.shape
    if tuple(stack) != taus.shape[:-1] or not taus.shape or not taus.shape[-1] <= n <= m:
        raise ShapeError(
            message(
                f"householder_product{here()}: the sizes of the operands do not fit",
                f"got {x} and {taus}",
                help="a is [*s, m, n] with m >= n, and taus [*s, k] with k <= n",
            )
        )
    return found


def _product_reference(x: Any, taus: Any) -> Any:
    *_, m, n = x.shape
    k = taus.shape[-1]
    a, factors = by_columns(x), np.array(taus.reshape(-1, k) if k else np.zeros((shapes.size(x.shape[:-2]), 1)))
    if x.size:
        call_stack("orgqr", x.dtype, {"a": a, "tau": factors.astype(x.dtype)}, {"m": m, "n": n, "k": k})
    return by_rows(a, x.shape)


def compact(x: Any, taus: Any) -> tuple[Any, Any, Any, Any]:
    """Return V, T, S and U with H_0 ... H_k-1 = I - V T V^H: T = U^-1 D, U = I + D S, S from V^H V above its diagonal.

    D has the factors. Schreiber & Van Loan 1989, SIAM J. Sci. Stat. Comput. 10(1).
    """
    m, k = x.type.shape[-2], taus.type.shape[-1]
    vectors = triangle(leading(x, m, k), lower=True, of_ones=True)
    inner = triangle(product(adjoint(vectors), vectors), lower=False, offset=1)
    scaled = mul(along_rows(taus, inner.type.shape), inner)
    return vectors, solve_triangular(scaled, diagonal_matrix(taus), lower=False, unit_diagonal=True), inner, scaled


def _product_jvp(ctx: Any, xs: Any, dxs: Any) -> list[Any]:
    """Return the tangent of the first columns of I - V T V^H. (I + D S) dT = dD - (dD S + D dS) T."""
    (x, taus), (n, k) = xs, (xs[0].type.shape[-1], xs[1].type.shape[-1])
    if all(isinstance(dx, Zero) for dx in dxs) or not k:
        return [Zero(tangent_type(ctx.outputs[0].type))]
    dx, dtaus = (ctx.instantiate(t) for t in dxs)
    vectors, middle, inner, scaled = compact(x, taus)
    moved = triangle(leading(dx, x.type.shape[-2], k), lower=True, offset=-1)
    half = product(adjoint(vectors), moved)
    dinner = triangle(add(half, adjoint(half)), lower=False, offset=1)
    shape = inner.type.shape
    change = add(mul(along_rows(dtaus, shape), inner), mul(along_rows(taus, shape), dinner))
    dmiddle = solve_triangular(
        scaled, sub(diagonal_matrix(dtaus), product(change, middle)), lower=False, unit_diagonal=True
    )
    top, dtop = (adjoint(leading(v, n, k)) for v in (vectors, moved))
    whole = add(product(moved, middle), product(vectors, dmiddle))
    return [neg(add(product(whole, top), product(product(vectors, middle), dtop)))]


householder_product_p: Primitive = Primitive(
    name="householder_product", infer=_product_infer, reference=_product_reference,
    jvp=_product_jvp, transpose=NoRule("householder_product is not linear; its derivative is"),
    batch=lambda ctx, xs, axes: in_front(ctx, xs, axes, {}), lower=Library("householder_product"),
)  # fmt: skip


def householder_product(x: Any, taus: Any) -> Any:
    """Return the first columns of the product of reflectors, as many as `x` has."""
    (found,) = bind_all(householder_product_p, [x, taus], {})
    return found


# qr


def _qr_infer(x: Type, *, full_matrices: bool, pivoting: bool) -> tuple[Type, ...]:
    found = matrix_type("qr", x, square=False)
    *stack, m, n = found.shape
    k = m if full_matrices else min(m, n)
    order = (array_type(dtypes.I32, (*stack, n)),) if pivoting else ()
    return array_type(found.dtype, (*stack, m, k)), array_type(found.dtype, (*stack, k, n)), *order


def _qr_reference(x: Any, *, full_matrices: bool, pivoting: bool) -> tuple[Any, ...]:
    if not pivoting:
        found = np.linalg.qr(x, mode="complete" if full_matrices else "reduced")
        return tuple(np.asarray(part, x.dtype) for part in found)
    packed, taus, order = _geqp3_reference(x)
    *stack, m, n = x.shape
    k = m if full_matrices else min(m, n)
    columns = np.zeros((*stack, m, k), x.dtype)
    columns[..., : min(n, k)] = packed[..., : min(n, k)]
    return _product_reference(columns, taus), np.triu(packed[..., :k, :]), order


def _qr_expand(x: Any, *, full_matrices: bool, pivoting: bool) -> list[Any]:
    *_, m, n = x.type.shape
    packed, taus, *order = reflectors(x, pivoting=pivoting)
    k = m if full_matrices else min(m, n)
    columns = extended(slice_in_dim(packed, 0, min(n, k), axis=-1), m, k)
    upper = triangle(slice_in_dim(packed, 0, k, axis=-2), lower=False)
    return [householder_product(columns, taus), upper, *order]


def _qr_jvp(ctx: Any, xs: Any, dxs: Any, *, full_matrices: bool, pivoting: bool) -> list[Any]:
    """Return dQ = Q W and dR = (X - W) R, with X = Q^H dA R^-1 and W its skew part below the diagonal.

    Columns of a full Q beyond A's are turned by W alone. Rows of dA beyond Q's columns stay unchanged. A wide matrix is
    factored by its first columns. Walter & Lehmann 2010, Numer. Algorithms 54.
    """
    (dx,), (q, r, *order) = dxs, ctx.outputs
    *_, m, n = xs[0].type.shape
    k, still = min(m, n), [Zero(tangent_type(x.type)) for x in order]
    if isinstance(dx, Zero) or not k:
        return [*(Zero(tangent_type(y.type)) for y in (q, r)), *still]
    dx = columns_taken(dx, order[0]) if order else dx
    square, rows = leading(r, k, k), q.type.shape[-1]
    right = solve_triangular(square, slice_in_dim(dx, 0, k, axis=-1), left_side=False, lower=False)
    inner = product(adjoint(q), right)
    below = triangle(extended(inner, rows, rows), lower=True, offset=-1)
    turning = sub(below, adjoint(below))
    if is_complex(turning):
        phase = imag(diagonal(extended(inner, rows, rows)))
        turning = add(turning, diagonal_matrix(complex_of(mul(phase, 0.0), phase)))
    dq = product(q, turning)
    if rows < m:
        dq = add(dq, sub(right, product(q, inner)))
    dr = product(sub(leading(inner, k, k), leading(turning, k, k)), square)
    if n > k:
        rest = product(adjoint(q), slice_in_dim(dx, k, n, axis=-1))
        dr = concatenate([dr, sub(rest, product(turning, slice_in_dim(r, k, n, axis=-1)))], len(dr.type.shape) - 1)
    return [dq, extended(dr, rows, n), *still]


def columns_taken(x: Any, order: Any) -> Any:
    """Reorder the columns of matrices, each by its order."""
    shape, rank = x.type.shape, len(x.type.shape)
    columns = broadcast_in_dim(order, shape, (*range(rank - 2), rank - 1))
    return take_along(x, columns, rank - 1, unique_indices=True)


qr_p: Primitive = Primitive(
    name="qr", infer=_qr_infer, reference=_qr_reference,
    jvp=_qr_jvp, transpose=NoRule("qr is not linear; its derivative is"),
    batch=lambda ctx, xs, axes, **params: in_front(ctx, xs, axes, params), lower=Composite(_qr_expand, computes=True),
    multiple=True,
)  # fmt: skip


def qr(x: Any, *, full_matrices: bool, pivoting: bool = False) -> list[Any]:
    """Return Q and R with x = Q R. With `pivoting`, return also the order p of columns, with x[:, p] = Q R."""
    return list(bind_all(qr_p, [x], {"full_matrices": full_matrices, "pivoting": pivoting}))


ORTHOGONAL = (geqrf_p, geqp3_p, householder_product_p, qr_p)
"""The primitives of orthogonal factors."""
