"""Matrices assembled by a pattern, from arrays or from their size alone."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.numpy import abs as absolute
from tracer.numpy import asarray, atleast_2d, concatenate, conj, diag, eye, pad, ravel, where, zeros
from tracer.numpy.core.conversion import array_of, unified
from tracer.numpy.core.promotion import promoted_inexact
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here


def _vector(name: str, x: Any, least: int = 1) -> Array:
    """Return a vector of at least so many elements. Raises ShapeError otherwise."""
    found = array_of(name, x)
    if found.ndim != 1 or found.size < least:
        raise ShapeError(
            message(f"{name}{here()} takes a vector of at least {least} elements", f"got {found.type}", help="see vmap")
        )
    return found


def _by_size(name: str, n: Any, *given: Any, dtype: Any = None) -> Array:
    """Return SciPy's matrix of a size, of floats by default. Raises ArgumentError for sizes that it refuses."""
    size = integer(name, "n", n)
    if size > 2**16:  # 32 GiB of floats, which SciPy begins to compute
        raise ShapeError(message(f"{name}{here()}: the matrix is too large", f"got n={size}"))
    try:
        found = getattr(importlib.import_module("scipy.linalg"), name)(size, *given)
    except (ValueError, IndexError) as error:  # helmert indexes an element that a size of 0 lacks
        raise ArgumentError(message(f"{name}{here()}: {error}", f"got n={size}")) from None
    return asarray(found if found.dtype.kind in "fc" else found.astype(float), dtype=dtype)


def block_diag(*arrs: Any) -> Array:
    """Return the block diagonal matrix of the given matrices.

    arrs: matrices [n_i, m_i], vectors as rows, numbers; none for [1, 0]. Returns [sum of n_i, sum of m_i], of the dtype
    to which all are promoted. Raises ShapeError for more axes.

    >>> tracer.scipy.linalg.block_diag(tnp.ones((1, 2)), 3.0)
    Array([[1., 1., 0.],
           [0., 0., 3.]], f64)
    """
    blocks = [atleast_2d(array_of("block_diag", a)) for a in arrs] or [array_of("block_diag", np.zeros((1, 0)))]
    for block in blocks:
        if block.ndim > 2:
            raise ShapeError(message(f"block_diag{here()} takes matrices", f"got {block.type}", help="see vmap"))
    columns = [block.shape[1] for block in blocks]
    before = np.cumsum([0, *columns]).tolist()
    rows = [
        pad(block, ((0, 0), (first, before[-1] - last)))
        for block, first, last in zip(unified("block_diag", blocks), before[:-1], before[1:], strict=True)
    ]
    return concatenate(rows, 0)


def toeplitz(c: Any, r: Any = None) -> Array:
    """Return the matrix that is constant along its diagonals, given its first column and its first row.

    c: [n], flattened; r: [m], whose first element is ignored; by default the conjugate of c. Returns [n, m], of the
    dtype to which both are promoted.

    >>> tracer.scipy.linalg.toeplitz(tnp.asarray([1, 2]), tnp.asarray([0, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], i64)
    """
    column = ravel(array_of("toeplitz", c))
    row = conj(column) if r is None else ravel(array_of("toeplitz", r))
    column, row = unified("toeplitz", [column, row])
    n, m = column.size, row.size
    places = m - 1 + np.arange(n)[:, None] - np.arange(m)  # the reversed row in front of the column
    return concatenate([row[:0:-1], column])[places] if n and m else column[:, None] * row


def hankel(c: Any, r: Any = None) -> Array:
    """Return the matrix that is constant along its antidiagonals, given its first column and its last row.

    c: [n], flattened; r: [m], whose first element is ignored; zeros by default. Returns [n, m], of the dtype to which
    both are promoted.

    >>> tracer.scipy.linalg.hankel(tnp.asarray([1, 2]), tnp.asarray([0, 5, 6]))
    Array([[1, 2, 5],
           [2, 5, 6]], i64)
    """
    column = ravel(array_of("hankel", c))
    row = zeros(column.shape, column.dtype) if r is None else ravel(array_of("hankel", r))
    column, row = unified("hankel", [column, row])
    n, m = column.size, row.size
    return concatenate([column, row[1:]])[np.arange(n)[:, None] + np.arange(m)] if n and m else column[:, None] * row


def circulant(c: Any) -> Array:
    """Return matrices whose columns are the first one, turned by one place more each.

    c: [*s, n]. Returns [*s, n, n], of c's dtype.

    >>> tracer.scipy.linalg.circulant(tnp.asarray([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], i64)
    """
    column = array_of("circulant", c)
    if not column.ndim:
        raise ShapeError(message(f"circulant{here()} takes vectors", f"got {column.type}"))
    n = column.shape[-1]
    return column[..., (np.arange(n)[:, None] - np.arange(n)) % max(n, 1)]


def companion(a: Any) -> Array:
    """Return the companion matrix of a polynomial: its eigenvalues are the roots.

    a: coefficients [n], n > 1, of the highest power first. Returns floats or complex numbers [n - 1, n - 1].

    >>> tracer.scipy.linalg.companion(tnp.asarray([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], f64)
    """
    (coefficients,) = promoted_inexact("companion", _vector("companion", a, 2))
    first = -coefficients[1:] / coefficients[0]
    n = first.size
    return concatenate([first[None], eye(n - 1, n, dtype=first.dtype)], 0)


def fiedler(a: Any) -> Array:
    """Return the symmetric matrix of the distances between elements: |a[i] - a[j]|.

    a: [n]. Returns [n, n].

    >>> tracer.scipy.linalg.fiedler(tnp.asarray([1, 4]))
    Array([[0, 3],
           [3, 0]], i64)
    """
    x = _vector("fiedler", a, 0)
    return absolute(x[:, None] - x)


def fiedler_companion(a: Any) -> Array:
    """Return Fiedler's companion matrix of a polynomial, with five diagonals: its eigenvalues are the roots.

    a: coefficients [n], n > 1, of the highest power first. Returns floats or complex numbers [n - 1, n - 1]. Fiedler
    2003, Linear Algebra Appl. 372.

    >>> tracer.scipy.linalg.fiedler_companion(tnp.asarray([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], f64)
    """
    (coefficients,) = promoted_inexact("fiedler_companion", _vector("fiedler_companion", a, 2))
    monic = -coefficients / coefficients[0]
    n = monic.size - 1
    which, ones = np.zeros((n, n), int), np.zeros((n, n), bool)  # the coefficient at each place, 0 for none
    which[0, 0] = 1
    for i in range(0, n - 1, 2):
        which[i, i + 1] = i + 2
    for i in range(2, n, 2):
        which[i, i - 1] = i + 1
    ones[1:2, 0] = True
    ones[range(0, n - 2, 2), range(2, n, 2)] = True
    ones[range(3, n, 2), range(1, n - 2, 2)] = True
    return where(ones, 1, where(which > 0, monic[which], 0)).astype(monic.dtype)


def leslie(f: Any, s: Any) -> Array:
    """Return the matrix of a population by age: fecundities in the first row, survival below the diagonal.

    f: [n]; s: [n - 1]. Returns [n, n], of the dtype to which both are promoted.

    >>> tracer.scipy.linalg.leslie(tnp.asarray([0.0, 2.0]), tnp.asarray([0.5]))
    Array([[0. , 2. ],
           [0.5, 0. ]], f64)
    """
    born, survive = unified("leslie", [_vector("leslie", f), _vector("leslie", s, 0)])
    if survive.size != born.size - 1:
        raise ShapeError(
            message(f"leslie{here()}: s has one element fewer than f", f"got {born.type} and {survive.type}")
        )
    below = pad(diag(survive), ((0, 0), (0, 1)))
    return concatenate([born[None], below], 0)


def convolution_matrix(a: Any, n: int, mode: str = "full") -> Array:
    """Return the matrix whose product with v [n] is the convolution of a and v.

    a: [m], m > 0, of any dtype; n: positive; mode: "full", "same" or "valid", as in `tracer.numpy.convolve`. Returns [m
    + n - 1, n], [max(m, n), n] or [|m - n| + 1, n].

    >>> tracer.scipy.linalg.convolution_matrix(tnp.asarray([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], i64)
    """
    x, n = _vector("convolution_matrix", a), integer("convolution_matrix", "n", n)
    m = x.size
    if n < 1 or mode not in ("full", "same", "valid"):
        raise ArgumentError(
            message(
                f'convolution_matrix{here()}: n is positive, and mode "full", "same" or "valid"',
                f"got n={n}, mode={mode!r}",
            )
        )
    whole = toeplitz(concatenate([x, zeros(n - 1, x.dtype)]), zeros(n, x.dtype))
    if mode == "full":
        return whole
    rows = max(m, n) if mode == "same" else abs(m - n) + 1
    first = (min(m, n) - 1) // 2 if mode == "same" else min(m, n) - 1
    return whole[first : first + rows]


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """Return the matrix of the discrete Fourier transform.

    n: positive; scale: None, "sqrtn" or "n", by which it is divided; dtype: complex128 by default. Returns [n, n].

    >>> tracer.scipy.linalg.dft(2).real
    Array([[ 1.,  1.],
           [ 1., -1.]], f64)
    """
    return _by_size("dft", n, scale, dtype=dtype)


def hadamard(n: int, dtype: Any = int) -> Array:
    """Return Sylvester's matrix of ones and minus ones with orthogonal columns.

    n: a power of two; dtype: integers by default. Returns [n, n].

    >>> tracer.scipy.linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], i64)
    """
    return _by_size("hadamard", n, dtype=dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Return Helmert's orthogonal matrix, without its first row of equal elements unless `full`.

    n: positive. Returns f64 [n - 1, n], or [n, n].

    >>> tracer.scipy.linalg.helmert(2)
    Array([[ 0.70710678, -0.70710678]], f64)
    """
    return _by_size("helmert", n, full)


def hilbert(n: int) -> Array:
    """Return Hilbert's matrix, 1 / (i + j + 1).

    n: a size. Returns f64 [n, n].

    >>> tracer.scipy.linalg.hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333333]], f64)
    """
    return _by_size("hilbert", n)


def invhilbert(n: int) -> Array:
    """Return the inverse of Hilbert's matrix, whose elements are integers.

    n: a size. Returns f64 [n, n].

    >>> tracer.scipy.linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], f64)
    """
    return _by_size("invhilbert", n)


def pascal(n: int, kind: str | None = None) -> Array:
    """Return Pascal's triangle as a matrix.

    n: a size; kind: "symmetric" (the default), "lower" or "upper". Returns f64 [n, n].

    >>> tracer.scipy.linalg.pascal(2)
    Array([[1., 1.],
           [1., 2.]], f64)
    """
    return _by_size("pascal", n, "symmetric" if kind is None else kind)


def invpascal(n: int, kind: str | None = None) -> Array:
    """Return the inverse of `pascal`, whose elements are integers.

    n, kind: as in `pascal`. Returns f64 [n, n].

    >>> tracer.scipy.linalg.invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], f64)
    """
    return _by_size("invpascal", n, "symmetric" if kind is None else kind)
