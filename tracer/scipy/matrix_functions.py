"""Functions of matrices: the exponential."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.ir import dtypes
from tracer.lax import fori_loop
from tracer.numpy import abs as absolute
from tracer.numpy import ceil, clip, exp2, eye, linalg, log2, nan, where
from tracer.numpy.core.promotion import promoted_inexact
from tracer.primitives.linalg import matrix_stacks
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.transforms.vectorize import vmap

# Diagonal Padé approximants by dtype: the largest norm for each, and its coefficients
_SINGLE = (3.925724783138660, (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1))
_DOUBLE = (
    5.371920351148152,
    (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
     670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1),
)  # fmt: skip


def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Return the exponential of a matrix, the sum of A^k / k!, by scaling and squaring.

    A: floating or complex [..., n, n]; integers are cast. Returns the same shape. NaN where more than `max_squarings`
    doublings of A would be needed, at norms of some 350,000 (f64). `upper_triangular` has no effect. Derivatives of
    every order, in both modes. Higham 2005, SIAM J. Matrix Anal. Appl. 26(4).

    >>> tracer.scipy.linalg.expm(tnp.asarray([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], f64)
    """
    del upper_triangular
    (a,), limit = promoted_inexact("expm", A), integer("expm", "max_squarings", max_squarings)
    matrix_stacks.matrix_type("expm", a.type, square=True)

    def exponential(matrix: Array) -> Array:
        return _exponential(matrix, limit)

    for _ in range(a.ndim - 2):
        exponential = vmap(exponential)
    return exponential(a) if a.size else a


def _exponential(a: Array, max_squarings: int) -> Array:
    """Return the exponential of one matrix: the approximant of A / 2^s, squared s times."""
    limit, coefficients = _DOUBLE if dtypes.real_dtype(a.dtype) == dtypes.F64 else _SINGLE
    norm = absolute(a).sum(0).max()
    doublings = clip(ceil(log2(norm / limit)), 0, max_squarings + 1).astype("int32")
    scale = exp2(-doublings.astype(norm.dtype))
    found = _approximant(a * scale, coefficients)
    found = fori_loop(0, doublings, lambda _, r: r @ r, found)
    return where(doublings > max_squarings, nan, found)


def _approximant(a: Array, coefficients: tuple[int, ...]) -> Array:
    """Return p(A) / p(-A) for a polynomial p, by its even and its odd part."""
    square = a @ a
    powers = [eye(a.shape[0], dtype=a.dtype), square]
    while 2 * len(powers) < len(coefficients):
        powers.append(powers[-1] @ square)
    scaled = [c / coefficients[0] for c in coefficients]
    even, odd = (_combined(powers, scaled[first::2]) for first in (0, 1))
    odd = a @ odd
    return linalg.solve(even - odd, even + odd)


def _combined(powers: list[Array], coefficients: list[float]) -> Array:
    total = powers[0] * coefficients[0]
    for power, coefficient in zip(powers[1:], coefficients[1:], strict=True):
        total = total + power * coefficient
    return total
