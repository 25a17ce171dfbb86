"""Pseudoinverses and least squares: pinv and lstsq, both of the rank that singular values above a bound make up.

    pinv    A -> P with A P A = A, P A P = P, and Hermitian A P and P A
    lstsq   A, B -> X = P B, the least-squares solution of least norm

Where the rank is surely full, A = Q R gives them, elsewhere R by singular values. The product of the Frobenius
norms of R and its inverse is above the quotient of the extreme singular values. Times the bound, it must be below 1.
Small matrices, of which lanes take many, always go by singular values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tracer.errors import ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Composite, NoRule, Primitive
from tracer.ir.types import Type, array_type
from tracer.primitives.arrays.reductions.reductions import reduce_and, reduce_max
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.broadcasting import broadcast_in_dim, full, reduce_sum
from tracer.primitives.base.rules import check_same_dtype, operand_of, per_operand
from tracer.primitives.base.shapes import moveaxis, reshape
from tracer.primitives.control.cond import cond_branches
from tracer.primitives.elementwise.arithmetic import add, div, mul, sub
from tracer.primitives.elementwise.arithmetic import max as larger
from tracer.primitives.elementwise.comparison import gt, lt, select
from tracer.primitives.elementwise.complex import abs as modulus
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.linalg.matrix_stacks import (
    SMALL,
    adjoint,
    along_rows,
    identity,
    in_front,
    matrix_type,
    product,
    triangle,
    turned,
)  # fmt: skip
from tracer.primitives.linalg.orthogonal import qr, reflectors
from tracer.primitives.linalg.spectral import like_matrix, svd, svd_p
from tracer.primitives.linalg.triangular import solve_triangular
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.trace import bind

_MARGIN: Final = 0.1
"""Part of the bound's reciprocal up to which a condition number is surely below it: its own error is far smaller."""


def _pinv_infer(a: Type, bound: Type) -> Type:
    found = matrix_type("pinv", a, square=False)
    *stack, m, n = found.shape
    _check_bound("pinv", a, bound)
    return array_type(found.dtype, (*stack, n, m))


def _lstsq_infer(a: Type, b: Type, bound: Type) -> Type:
    found, side = (matrix_type("lstsq", t, square=False) for t in (a, b))
    check_same_dtype("lstsq", (a, b))
    _check_bound("lstsq", a, bound)
    if found.shape[:-1] != side.shape[:-1]:
        raise _misfit("lstsq", f"got {a} and {b}", "a is [*s, m, n] and b [*s, m, k]")
    return array_type(found.dtype, (*found.shape[:-2], found.shape[-1], side.shape[-1]))


def _check_bound(name: str, a: Any, bound: Any) -> None:
    if bound != array_type(dtypes.real_dtype(a.dtype), a.shape[:-2]):
        raise _misfit(name, f"got {a} and a bound {bound}", "the bound is real, [*s] for matrices [*s, m, n]")


def _misfit(name: str, got: str, help: str) -> ShapeError:
    return ShapeError(message(f"{name}{here()}: the operands do not fit", got, help=help))


# Meaning


def _pinv_reference(a: Any, bound: Any) -> Any:
    return np.matmul(*_factors_reference(a, bound))


def _lstsq_reference(a: Any, b: Any, bound: Any) -> Any:
    v, rest = _factors_reference(a, bound)
    return np.matmul(v, np.matmul(rest, b))


def _factors_reference(a: Any, bound: Any) -> tuple[Any, Any]:
    """Return V and S^+ U^H, in NumPy."""
    values, left, right = _svd_reference(a)
    kept = values > np.expand_dims(bound, -1) * values.max(-1, keepdims=True, initial=0)
    with np.errstate(all="ignore"):
        inverted = np.where(kept, 1 / np.where(kept, values, 1), 0 * values).astype(values.dtype)
        return _adjoint(right), inverted[..., :, None] * _adjoint(left)


def _svd_reference(a: Any) -> tuple[Any, Any, Any]:
    rule: Any = svd_p.reference
    found: tuple[Any, Any, Any] = rule(a, full_matrices=False, compute_uv=True)
    return found


def _adjoint(x: Any) -> Any:
    return np.swapaxes(x.conj(), -1, -2)


# By singular values


def _by_values(a: Any, bound: Any) -> tuple[Any, Any]:
    """Return V and S^+ U^H, with zeros in S^+ for singular values up to the bound times the largest."""
    values, left, right = svd(a, full_matrices=False)
    shape, last = values.type.shape, len(values.type.shape) - 1
    stack = tuple(range(last))
    limit = mul(bound, reduce_max(values, (last,)))
    kept = gt(values, broadcast_in_dim(limit, shape, stack))
    inverted = select(kept, div(1, select(kept, values, 1)), mul(values, 0))  # NaN stays NaN
    scaled = adjoint(left)
    return adjoint(right), mul(along_rows(like_matrix(inverted, scaled), scaled.type.shape), scaled)


def _pinv_by_values(a: Any, bound: Any) -> Any:
    return product(*_by_values(a, bound))


def _lstsq_by_values(a: Any, b: Any, bound: Any) -> Any:
    v, rest = _by_values(a, bound)
    return product(v, product(rest, b))


# By Q and R


def _surely_full(r: Any, bound: Any, size: int) -> tuple[Any, Any]:
    """Return whether triangles [*s, k, k] surely have no singular value up to the bound times the largest; R^-1.

    size: rows or columns of A. Their number of roundings is the least bound for which computed norms tell.
    """
    inverse = solve_triangular(r, identity(r.type.shape, r.type.dtype), lower=False)
    real = bound.type.dtype
    at_least = larger(bound, real.type(size * np.finfo(real).eps))
    found = mul(mul(_squares(r), _squares(inverse)), mul(at_least, at_least))
    return lt(found, real.type(_MARGIN**2)), inverse


def _squares(x: Any) -> Any:
    sizes, rank = modulus(x), len(x.type.shape)
    return reduce_sum(mul(sizes, sizes), (rank - 2, rank - 1))


def _pinv_expand(a: Any, bound: Any) -> Any:
    """Return R^+ Q^H, as R and A have equal singular values."""
    *_, m, n = a.type.shape
    if not m * n:
        return full(_pinv_infer(a.type, bound.type).shape, 0, a.type.dtype)
    if max(m, n) <= SMALL:
        return _pinv_by_values(a, bound)
    q, r = qr(a if m >= n else adjoint(a), full_matrices=False)
    is_full, inverse = _surely_full(r, bound, max(m, n))
    ways = lambda r, inverse, _: inverse, lambda r, _, bound: _pinv_by_values(r, bound)
    found = _either(is_full, *ways, [r, inverse, bound])
    return product(found, adjoint(q)) if m >= n else product(q, adjoint(found))


def _lstsq_expand(a: Any, b: Any, bound: Any) -> Any:
    """Return R^+ Q^H b, or Q (R^H)^+ b for a wide matrix, A = R^H Q^H."""
    (*stack, m, n), k = a.type.shape, b.type.shape[-1]
    if not m * n:
        return full((*stack, n, k), 0, a.type.dtype)
    if max(m, n) <= SMALL:
        return _lstsq_by_values(a, b, bound)
    if m < n:
        q, r = qr(adjoint(a), full_matrices=False)
    else:
        r, b = _beside(a, b)
    is_full, _ = _surely_full(r, bound, max(m, n))

    def by_factors(r: Any, b: Any, _: Any) -> Any:
        return solve_triangular(r, b, lower=m < n)

    found = _either(is_full, by_factors, _lstsq_by_values, [r if m >= n else adjoint(r), b, bound])
    return found if m >= n else product(q, found)


def _beside(a: Any, b: Any) -> tuple[Any, Any]:
    """Return R and Q^H b. Reflectors of a few more columns take less than Q does."""
    n, k = a.type.shape[-1], b.type.shape[-1]
    if k > n:
        q, r = qr(a, full_matrices=False)
        return r, product(adjoint(q), b)
    packed, _ = reflectors(concatenate([a, b], len(a.type.shape) - 1))
    top = slice_in_dim(packed, 0, n, axis=-2)
    return triangle(slice_in_dim(top, 0, n, axis=-1), lower=False), slice_in_dim(top, n, n + k, axis=-1)


def _either(is_full: Any, by_factors: Callable[..., Any], by_values: Callable[..., Any], operands: list[Any]) -> Any:
    """Return the result by factors; by singular values for matrices whose rank may be smaller, if there are any.

    Which way a matrix goes depends on itself alone.
    """
    stack = is_full.type.shape

    def mixed(xs: list[Any]) -> list[Any]:
        slow = by_values(*xs[:-1])
        if not stack:
            return [slow]
        chosen = broadcast_in_dim(xs[-1], slow.type.shape, tuple(range(len(stack))))
        return [select(chosen, by_factors(*xs[:-1]), slow)]

    given = [*operands, is_full]
    types = [x.type for x in given]
    ways = (mixed, lambda xs: [by_factors(*xs[:-1])])
    programs = tuple(stage(way, types, name="least_squares").program for way in ways)
    index = convert_element_type(reduce_and(is_full, tuple(range(len(stack)))), dtypes.I32)
    (found,) = cond_branches(index, programs, *given)
    return found


# Derivatives, at constant rank


def pinv_tangent(p: Any, a: Any, da: Any) -> Any:
    """Return -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P.

    Golub & Pereyra 1973, SIAM J. Numer. Anal. 10(2).
    """
    dh, ph = adjoint(da), adjoint(p)
    first = product(product(p, ph), dh)
    second = product(dh, product(ph, p))
    total = add(sub(first, product(product(first, a), p)), sub(second, product(p, product(a, second))))
    return sub(total, product(p, product(da, p)))


def _of_matrix(ctx: Any, da: Any, a: Any, b: Any, bound: Any) -> Any:
    """Return P P^H dA^H (b - A x) + (I - P A) dA^H P^H x - P dA x."""
    (x,), p = ctx.outputs, pinv(a, bound)
    dh, ph = adjoint(da), adjoint(p)
    beyond = product(dh, product(ph, x))
    inner = add(product(da, x), product(a, beyond))
    rest = product(ph, product(dh, sub(b, product(a, x))))
    return add(product(p, sub(rest, inner)), beyond)


def _transpose(ctx: Any, cts: Any, xs: Any) -> list[Any]:
    a, bound = (operand_of("lstsq", xs[i]) for i in (0, 2))
    return [None, lstsq(turned(a), cts[0], bound), None]


def _batch(ctx: Any, xs: Any, axes: Any) -> Any:
    """Batch least squares. If lanes share the matrix, their right-hand sides are more columns."""
    (a, b, bound), (of_a, of_b, of_bound) = xs, axes
    if of_a is not None or of_bound is not None or len(a.type.shape) > 2:
        return in_front(ctx, xs, axes, {})
    last = moveaxis(b, of_b, 2)
    m, k, size = last.shape
    x = lstsq(a, reshape(last, (m, k * size)), bound)
    return [reshape(x, (a.type.shape[-1], k, size))], [2]


pinv_p: Primitive = Primitive(
    name="pinv", infer=_pinv_infer, reference=_pinv_reference,
    jvp=per_operand(lambda ctx, da, a, bound: pinv_tangent(ctx.outputs[0], a, da), None),
    transpose=NoRule("pinv is not linear; its derivative is"),
    batch=lambda ctx, xs, axes: in_front(ctx, xs, axes, {}), lower=Composite(_pinv_expand, computes=True),
)  # fmt: skip
lstsq_p: Primitive = Primitive(
    name="lstsq", infer=_lstsq_infer, reference=_lstsq_reference,
    jvp=per_operand(_of_matrix, lambda ctx, db, a, b, bound: product(pinv(a, bound), db), None),
    transpose=_transpose, batch=_batch, lower=Composite(_lstsq_expand, computes=True),
)  # fmt: skip


def pinv(a: Any, bound: Any) -> Any:
    """Return the pseudoinverses of matrices [*s, m, n]: [*s, n, m].

    bound: [*s], the part of the largest singular value up to which singular values count as zero.
    """
    return bind(pinv_p, a, bound)


def lstsq(a: Any, b: Any, bound: Any) -> Any:
    """Return the x of least norm that minimise |a x - b|: [*s, n, k] for a [*s, m, n] and b [*s, m, k].

    bound: as in `pinv`.
    """
    return bind(lstsq_p, a, b, bound)


LEAST_SQUARES = (pinv_p, lstsq_p)
"""The primitives of pseudoinverses and least squares."""
