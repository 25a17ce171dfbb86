"""Samples of vectors and matrices: the multivariate normal distribution, and orthogonal matrices."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import shape as shapes
from tracer.numpy import matrix_transpose, matvec
from tracer.numpy.core.conversion import unified
from tracer.numpy.core.promotion import promoted_real
from tracer.numpy.linalg import cholesky
from tracer.primitives.elementwise.complex import sign
from tracer.primitives.linalg import matrix_stacks
from tracer.primitives.linalg import orthogonal as factors
from tracer.random.arguments import Parameter, broadcasts_to, float_dtype, one_key, shape_of
from tracer.random.continuous import normal_of
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here

_NAME = "multivariate_normal"


def multivariate_normal(
    key: Parameter, mean: Any, cov: Any, shape: Any = None, dtype: Any = None, method: str = "cholesky"
) -> Array:
    """Draw samples from the normal distribution with a mean and a covariance matrix.

    mean: numbers [*b, n]; cov: symmetric and positive definite, [*c, n, n]; shape: [*s], to which b and c broadcast, by
    default their joint shape. Returns [*s, n]. dtype: a float dtype, by default the dtype of mean and cov. method:
    "cholesky". Raises ShapeError for shapes that do not fit, and ArgumentError for other methods. Raises LinAlgError if
    a concrete matrix is not positive definite.

    >>> mean, cov = tnp.asarray([1.0, -1.0]), tnp.asarray([[2.0, 1.0], [1.0, 2.0]])
    >>> tracer.random.multivariate_normal(tracer.random.key(0), mean, cov, (3,)).shape
    (3, 2)
    """
    if method != "cholesky":
        raise ArgumentError(
            message(
                f"random.{_NAME}{here()}: no such method",
                f"got {method!r}",
                help='leave it out: the factor is always by "cholesky"',
            )
        )
    keys = one_key(_NAME, key)
    centre, spread = unified(_NAME, [promoted_real(f"random.{_NAME}", x)[0] for x in (mean, cov)])
    if not centre.ndim or spread.ndim < 2 or spread.shape[-2:] != centre.shape[-1:] * 2:
        raise ShapeError(
            message(
                f"random.{_NAME}{here()}: mean is [*b, n] and cov [*c, n, n]",
                f"got {centre.type} and {spread.type}",
                help="cov has a row and a column for each element of mean",
            )
        )
    together = shapes.broadcast(centre.shape[:-1], spread.shape[:-2], operation=f"random.{_NAME}{here()}")
    sizes = together if shape is None else shape_of(_NAME, shape)
    if not broadcasts_to(together, sizes):
        text = f"random.{_NAME}{here()}: mean and cov broadcast to the shape"
        raise ShapeError(message(text, f"got {centre.type} and {spread.type} for {shapes.show(sizes)}"))
    chosen = float_dtype(_NAME, centre.dtype if dtype is None else dtype)
    samples = normal_of(keys, (*sizes, centre.shape[-1]), chosen)
    return centre.astype(chosen) + matvec(cholesky(spread.astype(chosen)), samples)


def orthogonal(key: Parameter, n: int, shape: Any = (), dtype: Any = None, m: int | None = None) -> Array:
    """Draw orthogonal matrices, or unitary ones, uniformly: by Haar's measure.

    n, m: rows and columns, by default as many; shape: [*s]. Returns [*s, n, m] with orthonormal columns, or rows where
    n < m. dtype: of floats or complex numbers, by default `config.default_float`. Mezzadri 2007, Notices AMS 54(5).

    >>> q = tracer.random.orthogonal(tracer.random.key(0), 3)
    >>> tnp.linalg.svdvals(q).round(8)
    Array([1., 1., 1.], f64)
    """
    name = "orthogonal"
    rows = integer(f"random.{name}", "n", n)
    columns = rows if m is None else integer(f"random.{name}", "m", m)
    if min(rows, columns) < 0:
        raise ArgumentError(message(f"random.{name}{here()}: sizes are not negative", f"got n={n}, m={m}"))
    chosen = float_dtype(name, dtype, of_complex=True)
    sizes = (*shape_of(name, shape), max(rows, columns), min(rows, columns))
    q, r = factors.qr(normal_of(one_key(name, key), sizes, chosen), full_matrices=False)
    found = q * sign(matrix_stacks.diagonal(r))[..., None, :]
    return matrix_transpose(found) if rows < columns else found
