"""Linear algebra: norms and products. Solutions and determinants are in `solving`. `tracer.numpy.linalg`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, cast
from tracer.numpy.core.docstrings import PHRASES
from tracer.numpy.core.numpy_fallbacks import by_value
from tracer.numpy.core.promotion import promoted_inexact
from tracer.numpy.elementwise.arithmetic import absolute
from tracer.numpy.elementwise.powers import power
from tracer.numpy.linalg.solving import cholesky, det, inv, slogdet, solve, tensorinv, tensorsolve
from tracer.numpy.reduce.einsum import einsum
from tracer.numpy.reduce.matmul import cross as _cross
from tracer.numpy.reduce.matmul import matmul, tensordot, vecdot
from tracer.numpy.reduce.matmul import outer as _outer
from tracer.numpy.reduce.reductions import max, min, sum
from tracer.numpy.shapes.manipulation import broadcast_to, expand_dims, matrix_transpose, moveaxis, ravel
from tracer.numpy.shapes.matrices import diagonal as _diagonal
from tracer.numpy.shapes.matrices import eye
from tracer.numpy.shapes.matrices import trace as _trace
from tracer.primitives.base.broadcasting import axis_of
from tracer.primitives.elementwise import comparison, powers
from tracer.primitives.elementwise import complex as parts
from tracer.runtime.eager.call_cache import cached
from tracer.runtime.values.fresh_handles import makes_new
from tracer.trace.array import Array
from tracer.trace.docstrings import say
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "cholesky", "cross", "det", "diagonal", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_transpose",
    "multi_dot", "norm", "outer", "slogdet", "solve", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot",
    "vector_norm",
]  # fmt: skip


def norm(x: Any, ord: Any = None, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """Return the norm of vectors along one axis, or of matrices along two; without an axis and `ord`, of all elements.

    x: [*s]; axis: one, two, or None for all elements; ord: for vectors None or 2 (Euclidean), 1, inf, -inf, 0 (the
    number of nonzeros), or any power; for matrices None or "fro", 1, -1, inf, -inf; keepdims: keep the axes with size
    1. Returns floats [*s minus axes], of x's precision; integers are cast. The derivative at 0 is 0. Raises
    ArgumentError for another ord.

    >>> tnp.linalg.norm(tnp.asarray([3.0, 4.0]))
    Array(5., f64)
    """
    (value,) = promoted_inexact("norm", x)
    if axis is None and ord is None:
        flat = ravel(value)
        result = _euclidean(flat, 0)
        return result.reshape((1,) * value.ndim) if keepdims else result
    axes = tuple(range(value.ndim)) if axis is None else tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    axes = tuple(axis_of("norm", a, value.ndim) for a in axes)  # type: ignore[arg-type]
    if len(axes) == 1:
        return vector_norm(value, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) == 2:
        return _matrix_norm(value, "fro" if ord is None else ord, axes, keepdims)
    raise ShapeError(
        message(f"norm{here()} takes vectors or matrices", f"got {value.type}, axis={axis}", help="give axis=")
    )


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return the vector product of vectors of three components along an axis.

    x1, x2: [*s], 3 along `axis`, by default the last; the other axes broadcast. Returns [*s] in the promoted dtype.
    Raises ShapeError for vectors of two components, for which `tracer.numpy.cross` returns the third.

    >>> tnp.linalg.cross(tnp.asarray([1, 0, 0]), tnp.asarray([0, 1, 0]))
    Array([0, 0, 1], i64)
    """
    for x in (array_of("cross", x1), array_of("cross", x2)):
        if x.shape[axis_of("cross", axis, x.ndim)] != 3:
            raise ShapeError(message(f"cross{here()} takes vectors of 3 components", f"got {x.type}, axis={axis}"))
    return _cross(x1, x2, axis=axis)


def vector_norm(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Return the norm of vectors along one or more axes, taken together.

    x: [*s]; axis: one or several, by default all; keepdims: keep them with size 1; ord: as in `norm`. Returns floats
    [*s minus axes].

    >>> tnp.linalg.vector_norm(tnp.asarray([3.0, -4.0]), ord=1)
    Array(7., f64)
    """
    (value,) = promoted_inexact("vector_norm", x)
    if ord == 2:
        return _euclidean(value, axis, keepdims)
    size = absolute(value)
    if ord == np.inf:
        return max(size, axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return min(size, axis, keepdims=keepdims)
    if ord == 0:
        return sum(cast(comparison.ne(value, 0), size.dtype), axis, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ArgumentError(message(f"norm{here()}: no vector norm {ord!r}", help="2, 1, inf, -inf, 0, or any power"))
    return power(sum(power(size, ord), axis, keepdims=keepdims), 1.0 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return the norm of matrices in the last two axes: "fro", 1, -1, inf or -inf; if concrete also 2, -2 and "nuc".

    x: [*s, m, n]; keepdims: keep both axes with size 1; ord: which norm. Returns floats [*s], of x's precision;
    integers are cast. Raises ArgumentError for another ord.

    >>> tnp.linalg.matrix_norm(tnp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., f64)
    """
    (value,) = promoted_inexact("matrix_norm", x)
    return _matrix_norm(value, ord, (value.ndim - 2, value.ndim - 1), keepdims)


def _matrix_norm(x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    rows, columns = axes
    if ord == "fro":
        return _euclidean(x, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        summed, kept = (rows, columns) if ord in (1, -1) else (columns, rows)
        totals = sum(absolute(x), summed, keepdims=True)
        is_max = ord in (1, np.inf)
        extreme = max(totals, kept, keepdims=True, initial=0) if is_max else min(totals, kept, keepdims=True)
        return extreme if keepdims else extreme.squeeze(axes)
    if ord in (2, -2, "nuc"):
        singular = by_value(np.linalg.svdvals, "")(moveaxis(x, axes, (-2, -1)))
        found: Array = max(singular, -1, initial=0) if ord == 2 else (min if ord == -2 else sum)(singular, -1)
        return expand_dims(found, axes) if keepdims else found
    raise ArgumentError(
        message(f"norm{here()}: no matrix norm {ord!r}", help='ord is "fro", "nuc", 1, -1, 2, -2, inf or -inf')
    )


def _euclidean(x: Array, axis: Any, keepdims: bool = False) -> Array:
    squares = sum(
        parts.real(x * parts.conj(x)) if dtypes.is_complex(x.dtype) else powers.square(x), axis, keepdims=keepdims
    )
    zero = comparison.eq(squares, 0)
    root = powers.sqrt(comparison.select(zero, 1, squares))
    return comparison.select(zero, 0, root)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Return the diagonal of matrices in the last two axes.

    x: [*s, r, c]; offset: above the main diagonal if positive. Returns [*s, n], in x's dtype.

    >>> tnp.linalg.diagonal(tnp.asarray([[1, 2], [3, 4]]))
    Array([1, 4], i64)
    """
    return _diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Return the sum over the diagonal of matrices in the last two axes.

    x: [*s, r, c]; offset: above the main diagonal if positive; dtype: of the sum, by default x's, 64 bits for bools and
    small integers. Returns [*s].

    >>> tnp.linalg.trace(tnp.asarray([[1, 2], [3, 4]]))
    Array(5, i64)
    """
    return _trace(x, offset, -2, -1, dtype)


def outer(x1: Any, x2: Any, /) -> Array:
    """Return the products of each element of one vector with each element of another.

    x1: [m]; x2: [n]; other shapes are flattened. Returns [m, n], in the promoted dtype.

    >>> tnp.linalg.outer(tnp.asarray([1, 2]), tnp.asarray([3, 4]))
    Array([[3, 4],
           [6, 8]], i64)
    """
    return _outer(x1, x2)


@makes_new
def matrix_power(a: Any, n: int) -> Array:
    """Return a square matrix to an integer power, by repeated squaring; for n < 0, the power of its inverse.

    a: [*s, n, n]; n: a concrete integer. Returns [*s, n, n], in a's dtype, floats if n < 0. Raises ShapeError for other
    shapes, and the errors of `inv`.

    >>> tnp.linalg.matrix_power(tnp.asarray([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], i64)
    """
    x, n = array_of("matrix_power", a), integer("matrix_power", "n", n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(message(f"matrix_power{here()} takes square matrices", f"got {x.type}, n={n}"))
    if n < 0:
        x, n = inv(x), -n
    result = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        x, n = (matmul(x, x) if n > 1 else x), n >> 1
    return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape) if result is None else result


@makes_new
def multi_dot(arrays: Sequence[Any]) -> Array:
    """Return the product of two or more matrices, multiplied in the cheapest order.

    arrays: [m, k], [k, l], ...; the first and the last may be vectors. Returns [m, n], without the axis of a vector, in
    the promoted dtype. Raises ShapeError if neighbours do not fit.

    >>> tnp.linalg.multi_dot([tnp.ones((2, 3)), tnp.ones((3, 4)), tnp.ones((4, 2))]).shape
    (2, 2)
    """
    letters = "abcdefghijklmnopqrstuvwxyz"
    terms = [letters[i : i + 2] for i in range(len(arrays))]
    ranks = [np.ndim(x) if not isinstance(x, Array) else x.ndim for x in arrays]
    if ranks[0] == 1:
        terms[0] = terms[0][1]
    if ranks[-1] == 1:
        terms[-1] = terms[-1][0]
    result = (terms[0][0] if ranks[0] == 2 else "") + (terms[-1][-1] if ranks[-1] == 2 else "")
    return einsum(f"{','.join(terms)}->{result}", *arrays, optimize="optimal")


# Factorisations without a primitive: NumPy's functions on concrete values

LinAlgError = np.linalg.LinAlgError

_FACTORISATIONS = {
    "cond": "Return the condition number: the ratio of the extreme singular values, or of other norms.",
    "eig": "Return the eigenvalues and right eigenvectors of matrices, always complex.",
    "eigh": "Return the eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.",
    "eigvals": "Return the eigenvalues of matrices, always complex.",
    "eigvalsh": "Return the eigenvalues of Hermitian matrices, in ascending order.",
    "lstsq": "Return the x that minimises |A x - b|, with residuals, rank and singular values.",
    "matrix_rank": "Return the number of singular values that are not negligible.",
    "pinv": "Return the Moore-Penrose inverses of matrices.",
    "qr": "Return orthonormal Q and triangular R with A = Q R.",
    "svd": "Return U, the singular values S in descending order, and V^H with A = U S V^H.",
    "svdvals": "Return the singular values of matrices, in descending order.",
}

_SHAPES = {
    "cond": (
        'x: [*s, m, n]; p: None or 2 for matrices of any shape; 1, -1, inf, -inf, -2, "fro" or "nuc". Returns [*s].'
    ),
    "eig": ("a: [*s, n, n]. Returns eigenvalues [*s, n] and eigenvectors [*s, n, n], as columns."),
    "eigh": (
        'a: [*s, n, n]; UPLO: "L" reads the lower triangle, "U" the upper. Returns eigenvalues [*s, n] and\n'
        "eigenvectors [*s, n, n], as columns."
    ),
    "eigvals": "a: [*s, n, n]. Returns [*s, n], unordered.",
    "eigvalsh": ('a: [*s, n, n]; UPLO: "L" reads the lower triangle, "U" the upper. Returns [*s, n].'),
    "lstsq": (
        "a: [m, n]; b: [m] or [m, k]; rcond: singular values below it times the largest count as 0. Returns x [n] or\n"
        "[n, k], residuals [0] or [k], the rank, and singular values [min(m, n)]."
    ),
    "matrix_rank": (
        "A: [*s, m, n]; tol, rtol: the negligible size, absolute or relative to the largest; hermitian: whether A is.\n"
        "Returns [*s]."
    ),
    "pinv": (
        "a: [*s, m, n]; rcond, rtol: singular values below it times the largest count as 0; hermitian: whether a is.\n"
        "Returns [*s, n, m]."
    ),
    "qr": (
        'a: [*s, m, n]. mode: "reduced", for Q [*s, m, k] and R [*s, k, n] with k = min(m, n); "complete",\n'
        'for Q [*s, m, m] and R [*s, m, n]; "r", for R alone.'
    ),
    "svd": (
        "a: [*s, m, n]; full_matrices: whether U is [*s, m, m] and V^H [*s, n, n], or [*s, m, k] and [*s, k, n] with\n"
        "k = min(m, n); compute_uv=False returns S [*s, k] alone; hermitian: whether a is."
    ),
    "svdvals": "x: [*s, m, n]. Returns [*s, min(m, n)].",
}

_EXAMPLES = {
    "cond": ("tnp.linalg.cond(tnp.asarray([[2.0, 0.0], [0.0, 4.0]]))", "Array(2., f64)"),
    "eig": ("tnp.linalg.eig(tnp.asarray([[2.0, 0.0], [0.0, 3.0]])).eigenvalues", "Array([2.+0.j, 3.+0.j], c128)"),
    "eigh": ("tnp.linalg.eigh(tnp.asarray([[3.0, 0.0], [0.0, 2.0]])).eigenvalues", "Array([2., 3.], f64)"),
    "eigvals": ("tnp.linalg.eigvals(tnp.asarray([[0.0, -1.0], [1.0, 0.0]]))", "Array([0.+1.j, 0.-1.j], c128)"),
    "eigvalsh": ("tnp.linalg.eigvalsh(tnp.asarray([[3.0, 0.0], [0.0, 2.0]]))", "Array([2., 3.], f64)"),
    "lstsq": ("tnp.linalg.lstsq(tnp.asarray([[1.0], [1.0]]), tnp.asarray([1.0, 3.0]))[0]", "Array([2.], f64)"),
    "matrix_rank": ("tnp.linalg.matrix_rank(tnp.ones((2, 2)))", "Array(1, i64)"),
    "pinv": ("tnp.linalg.pinv(tnp.asarray([[2.0], [0.0]]))", "Array([[0.5, 0. ]], f64)"),
    "qr": ("tnp.linalg.qr(tnp.ones((3, 2))).R.shape", "(2, 2)"),
    "svd": ("tnp.linalg.svd(tnp.asarray([[3.0, 0.0], [0.0, 4.0]])).S", "Array([4., 3.], f64)"),
    "svdvals": ("tnp.linalg.svdvals(tnp.asarray([[3.0, 0.0], [0.0, 4.0]]))", "Array([4., 3.], f64)"),
}


def _always_complex(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with complex results, so that dtypes follow from dtypes; NumPy's follow from values."""

    def complex_of(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return x.astype(np.result_type(x.dtype, np.complex64), copy=False)

    @wraps(theirs)
    def function(*args: Any, **kwargs: Any) -> Any:
        found = theirs(*args, **kwargs)
        return type(found)(*map(complex_of, found)) if isinstance(found, tuple) else complex_of(found)

    return function


_THEIRS = {name: getattr(np.linalg, name) for name in _FACTORISATIONS}
_THEIRS |= {name: _always_complex(_THEIRS[name]) for name in ("eig", "eigvals")}
globals().update(
    {
        name: by_value(_THEIRS[name], summary, *_EXAMPLES[name], _SHAPES[name])
        for name, summary in _FACTORISATIONS.items()
    }
)
__all__ += ["LinAlgError", *_FACTORISATIONS]  # noqa: PLE0604

_CACHED = (
    "diagonal",
    "matrix_norm",
    "matrix_power",
    "multi_dot",
    "norm",
    "outer",
    "trace",
    "vector_norm",
)  # by types alone
set_boundaries(globals(), _CACHED, cached)
set_boundaries(globals(), [name for name in __all__ if name not in _CACHED])
say([globals()[name] for name in __all__ if name not in _FACTORISATIONS and name != "LinAlgError"], PHRASES)
