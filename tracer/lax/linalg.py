"""`tracer.lax.linalg`: factorisations of stacks of matrices, and triangular systems, with JAX's names.

They compute in f32, f64, c64 and c128, and never raise for values. A matrix that is not positive definite has a factor
of NaN. A singular matrix has a zero on the diagonal of U.
"""

from __future__ import annotations

from typing import Any

from tracer.absent import absent
from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.lax.decompositions import (
    cholesky_update,
    eig,
    eigh,
    hessenberg,
    householder_product,
    ormqr,
    qdwh,
    qr,
    schur,
    svd,
    symmetric_product,
    tridiagonal,
    tridiagonal_solve,
)
from tracer.lax.loops import fori_loop
from tracer.primitives.arrays.dynamic_slice import dynamic_slice, take_along
from tracer.primitives.base.shapes import broadcast_in_dim, broadcasted_iota, expand_dims, squeeze
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.comparison import eq, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.linalg import factorizations
from tracer.primitives.linalg.matrix_stacks import adjoint, matrix_type
from tracer.primitives.linalg.triangular import solve_triangular
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "cholesky", "cholesky_update", "eig", "eigh", "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation",
    "ormqr", "qdwh", "qr", "schur", "svd", "symmetric_product", "triangular_solve", "tridiagonal", "tridiagonal_solve",
]  # fmt: skip


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L with L L^H = x, for Hermitian positive definite x; zeros above its diagonal.

    x: [*s, n, n]. symmetrize_input: factor (x + x^H) / 2, else read the lower triangle alone. If x is not positive
    definite, the triangle is NaN. Returns x's shape and dtype.

    >>> tracer.lax.linalg.cholesky(tnp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], f64)
    """
    matrix = as_array(x, "cholesky")
    matrix_type("cholesky", matrix.type)
    if symmetrize_input:
        matrix = mul(add(matrix, adjoint(matrix)), 0.5)
    result: Array = factorizations.cholesky(matrix)
    return result


def lu(x: Any) -> tuple[Array, Array, Array]:
    """Factor matrices with row exchanges: x[permutation] = L U.

    x: [*s, m, n]. Returns (factors, pivots, permutation). factors [*s, m, n] has U on and above the diagonal and L,
    with unit diagonal, below. Step i exchanged row i and row pivots[i] (i32 [*s, min(m, n)]). permutation (i32 [*s, m])
    is the product of all exchanges.

    >>> factors, pivots, permutation = tracer.lax.linalg.lu(tnp.asarray([[1.0, 2.0], [4.0, 4.0]]))
    >>> factors
    Array([[4.  , 4.  ],
           [0.25, 1.  ]], f64)
    >>> permutation
    Array([1, 0], i32)
    """
    return factorizations.lu(as_array(x, "lu"))


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """Return the permutation of `permutation_size` rows made by exchanging row i and row pivots[i], in order.

    pivots: integers [*s, k], k <= permutation_size. Returns i32 [*s, permutation_size].

    >>> tracer.lax.linalg.lu_pivots_to_permutation(tnp.asarray([2, 2]), 3)
    Array([2, 0, 1], i32)
    """
    steps = as_array(pivots, "lu_pivots_to_permutation")
    permutation_size = integer("lu_pivots_to_permutation", "permutation_size", permutation_size)
    *stack, count = steps.shape or (permutation_size + 1,)
    if not dtypes.is_integer(steps.dtype) or count > permutation_size:
        raise ArgumentError(
            message(
                f"lu_pivots_to_permutation{here()} takes integers, at most as many as there are rows",
                f"got {steps.type} for {permutation_size} rows",
                help="the second result of tracer.lax.linalg.lu",
            )
        )
    rank, whole = len(stack), (*stack, permutation_size)
    rows = broadcasted_iota(dtypes.I32, whole, len(stack))

    def spread(x: Any) -> Any:
        return broadcast_in_dim(x, whole, tuple(range(len(x.shape))))

    def exchange(i: Any, order: Array) -> Any:
        at = [*[0] * rank, i]
        other = convert_element_type(dynamic_slice(steps, at, (*stack, 1)), dtypes.I32)
        mine, theirs = dynamic_slice(order, at, (*stack, 1)), take_along(order, other, rank)
        moved = select(eq(rows, spread(other)), spread(mine), order)
        return select(eq(rows, spread(convert_element_type(i, dtypes.I32))), spread(theirs), moved)

    return fori_loop(0, count, exchange, rows)  # type: ignore[no-any-return]  # the tree that entered


def triangular_solve(
    a: Any, b: Any, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False,
    conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Array:  # fmt: skip
    """Solve op(a) X = b (`left_side`) or X op(a) = b for X, with triangular a.

    a: [*s, n, n]; only the triangle chosen by `lower` is read, without its diagonal if `unit_diagonal`; transpose_a,
    conjugate_a: whether op transposes and conjugates, neither by default. b: [*s, n, k] on the left, [*s, k, n] on the
    right, or a vector [*s, n]. Returns X of the shape and dtype of b.

    >>> a = tnp.asarray([[2.0, 0.0], [1.0, 4.0]])
    >>> tracer.lax.linalg.triangular_solve(a, tnp.asarray([2.0, 9.0]), left_side=True, lower=True)
    Array([1., 2.], f64)
    """
    matrix, side = (as_array(x, "triangular_solve") for x in (a, b))
    vector = side.ndim == matrix.ndim - 1
    axis = side.ndim if left_side else side.ndim - 1
    result = solve_triangular(
        matrix, expand_dims(side, (axis,)) if vector else side, left_side=bool(left_side), lower=bool(lower),
        transpose_a=bool(transpose_a), conjugate_a=bool(conjugate_a) and dtypes.is_complex(matrix.dtype),
        unit_diagonal=bool(unit_diagonal),
    )  # fmt: skip
    return squeeze(result, (axis,)) if vector else result  # type: ignore[no-any-return]  # arrays give arrays


set_boundaries(
    globals(), ("cholesky", "lu", "lu_pivots_to_permutation", "triangular_solve"), cached
)  # they look at no elements


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
