"""Orthogonal and spectral decompositions of stacks of matrices, for `tracer.numpy.linalg`.

Concrete matrices whose eigenvalues or singular values do not exist raise, as in NumPy; compiled, the results are NaN,
as in JAX. Derivatives of vectors hold for functions that do not depend on signs and phases.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import ArgumentError, MatrixError, message
from tracer.numpy.elementwise.arithmetic import absolute
from tracer.numpy.linalg.solving import hermitian_part, matrices, which
from tracer.numpy.reduce.sorting import argsort
from tracer.numpy.shapes.manipulation import matrix_transpose
from tracer.numpy.shapes.take import take_along_axis
from tracer.numpy.shapes.where import where
from tracer.primitives.linalg import matrix_stacks, orthogonal, similarity, spectral
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries


class QRResult(NamedTuple):
    """Unitary and triangular factors."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values, and right singular vectors as conjugate rows."""

    U: Array
    S: Array
    Vh: Array


class EighResult(NamedTuple):
    """Eigenvalues of Hermitian matrices, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """Complex eigenvalues, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


def _converged(name: str, x: Array, values: Array, problem: str) -> None:
    """Raise MatrixError if concrete values are NaN."""
    known = concrete_value(values)
    if known is not None and known.size and np.isnan(known).any():
        raise MatrixError(
            message(
                f"{name}{here()}: {problem}",
                f"got {x.type}{which(np.isnan(known).any(-1))}",
                help="check the matrix for NaN and infinities, tnp.isfinite(a).all()",
            )
        )


# qr


def qr(a: Any, mode: str = "reduced") -> Any:
    """Return orthonormal Q and triangular R with A = Q R.

    a: [*s, m, n]; mode: "reduced", for Q [*s, m, k] and R [*s, k, n] with k = min(m, n); "complete", for Q [*s, m, m]
    and R [*s, m, n]; "r", for R alone; "raw", for the reflectors h [*s, n, m] and their factors [*s, k]. Returns floats
    or complex numbers; integers are cast. Raises ArgumentError for another mode. Derivatives need independent columns
    among the first k.

    >>> tnp.linalg.qr(tnp.ones((3, 2))).R.shape
    (2, 2)
    """
    x = matrices("qr", a, square=False)
    if mode == "raw":
        packed, taus = orthogonal.reflectors(x)
        return matrix_transpose(packed), taus
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(
            message(f"qr{here()}: no such mode", f"got {mode!r}", help='"reduced", "complete", "r" or "raw"')
        )
    q, r = orthogonal.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


# eigh


def _of_triangle(name: str, a: Any, UPLO: Any, symmetrize_input: bool | None) -> Array:
    """Return matrices whose lower triangles determine the Hermitian ones that are meant."""
    x = matrices(name, a)
    letter = "L" if UPLO is None else str(UPLO).upper()
    if letter not in ("L", "U"):
        raise ArgumentError(message(f'{name}{here()}: UPLO is "L" or "U"', f"got {UPLO!r}"))
    if symmetrize_input or (symmetrize_input is None and UPLO is None):
        return hermitian_part(x)
    return x if letter == "L" else matrix_stacks.adjoint(x)


_UNSETTLED = "Eigenvalues did not converge"


def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool | None = None) -> EighResult:
    """Return the eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.

    a: [*s, n, n]; UPLO: "L" reads the lower triangle alone, "U" the upper; symmetrize_input: decompose (a + a^H) / 2,
    the default without UPLO. Returns real numbers [*s, n] and eigenvectors [*s, n, n], as columns. Raises LinAlgError
    if a concrete matrix has elements that are not finite; a traced one has results of NaN. Signs and phases of vectors
    are any. Where eigenvalues are equal, derivatives hold for functions of the space of their vectors and of their sum.
    They do not hold for V f(w) V^H: between equal eigenvalues, its tangent has the factor f'(w). The tangents of V and
    w follow from a rule that knows no f. `tracer.scipy.linalg` has `expm`, `sqrtm`, `logm` and `funm`, whose
    derivatives hold there.

    >>> tnp.linalg.eigh(tnp.asarray([[3.0, 0.0], [0.0, 2.0]])).eigenvalues
    Array([2., 3.], f64)
    """
    x = _of_triangle("eigh", a, UPLO, symmetrize_input)
    result = EighResult(*spectral.eigh(x))
    _converged("eigh", x, result.eigenvalues, _UNSETTLED)
    return result


def eigvalsh(a: Any, UPLO: str | None = None, *, symmetrize_input: bool | None = None) -> Array:
    """Return the eigenvalues of Hermitian matrices, in ascending order.

    a, UPLO, symmetrize_input: as in `eigh`. Returns real numbers [*s, n].

    >>> tnp.linalg.eigvalsh(tnp.asarray([[3.0, 0.0], [0.0, 2.0]]))
    Array([2., 3.], f64)
    """
    x = _of_triangle("eigvalsh", a, UPLO, symmetrize_input)
    values: Array = spectral.eigvalsh(x)
    _converged("eigvalsh", x, values, _UNSETTLED)
    return values


# svd


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Return U, the singular values S in descending order, and V^H with A = U S V^H.

    a: [*s, m, n]; full_matrices: whether U is [*s, m, m] and V^H [*s, n, n], or [*s, m, k] and [*s, k, n] with k =
    min(m, n); compute_uv: whether not S alone is wanted; hermitian: whether a is, which is faster. S is real numbers
    [*s, k]; integers are cast. Raises LinAlgError if a concrete matrix has elements that are not finite; a traced one
    has results of NaN.

    >>> tnp.linalg.svd(tnp.asarray([[3.0, 0.0], [0.0, 4.0]])).S
    Array([4., 3.], f64)
    """
    x = matrices("svd", a, square=bool(hermitian))
    if not compute_uv:
        return singular_values("svd", x, hermitian=bool(hermitian))
    left, values, right = _of_hermitian(x) if hermitian else _svd(x, bool(full_matrices))
    _converged("svd", x, values, "SVD did not converge")
    return SVDResult(left, values, right)


def _svd(x: Array, full_matrices: bool) -> tuple[Array, Array, Array]:
    values, left, right = spectral.svd(x, full_matrices=full_matrices)
    return left, values, right


@partial(cached, named=False)
def _of_hermitian(x: Array) -> tuple[Array, Array, Array]:
    """Return the singular values and vectors of Hermitian matrices: the eigenvalues' sizes, and signs for V."""
    eigenvalues, vectors = spectral.eigh(hermitian_part(x))
    order = argsort(-absolute(eigenvalues))
    left = take_along_axis(vectors, order[..., None, :], -1)
    sorted_values = take_along_axis(eigenvalues, order, -1)
    right = left * where(sorted_values < 0, -1, 1).astype(eigenvalues.dtype)[..., None, :]
    return left, absolute(sorted_values), matrix_stacks.adjoint(right)


def singular_values(name: str, x: Array, *, hermitian: bool = False) -> Array:
    """Return the singular values of matrices. name: for errors. Raises MatrixError for concrete NaN and infinities."""
    values: Array = _sizes(x) if hermitian else spectral.svdvals(x)
    _converged(name, x, values, "SVD did not converge")
    return values


@partial(cached, named=False)
def _sizes(x: Array) -> Array:
    """Return the sizes of the eigenvalues of Hermitian matrices, in descending order."""
    found = absolute(spectral.eigvalsh(hermitian_part(x)))
    return take_along_axis(found, argsort(-found), -1)


def svdvals(x: Any, /) -> Array:
    """Return the singular values of matrices, in descending order.

    x: [*s, m, n]. Returns real numbers [*s, min(m, n)]. Raises as `svd`.

    >>> tnp.linalg.svdvals(tnp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], f64)
    """
    return singular_values("svdvals", matrices("svdvals", x, square=False))


# eig


_NOT_FINITE = "Array must not contain infs or NaNs"


def eig(a: Any) -> EigResult:
    """Return the eigenvalues and right eigenvectors of matrices, always complex.

    a: [*s, n, n]. Returns eigenvalues [*s, n], in any order, and eigenvectors of norm 1 [*s, n, n], as columns. Raises
    LinAlgError if a concrete matrix has elements that are not finite; a traced one has results of NaN. The tangent of
    a vector is orthogonal to it.

    >>> tnp.linalg.eig(tnp.asarray([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    Array([2.+0.j, 3.+0.j], c128)
    """
    x = matrices("eig", a)
    result = EigResult(*similarity.eig(x, right=True))
    _converged("eig", x, result.eigenvalues, _NOT_FINITE)
    return result


def eigvals(a: Any) -> Array:
    """Return the eigenvalues of matrices, always complex.

    a: [*s, n, n]. Returns [*s, n], in any order. Raises as `eig`.

    >>> tnp.linalg.eigvals(tnp.asarray([[0.0, -1.0], [1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], c128)
    """
    x = matrices("eigvals", a)
    (values,) = similarity.eig(x)
    _converged("eigvals", x, values, _NOT_FINITE)
    return values


set_boundaries(globals(), ["eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"])
