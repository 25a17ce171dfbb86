"""Least-squares fits of polynomials to points, and roots of polynomials."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tracer.errors import MatrixError, ShapeError, TracerArrayError, message
from tracer.ir import dtypes
from tracer.lax.loops import while_loop
from tracer.numpy.chapters.polynomials import polyder, polyval, vander
from tracer.numpy.core.conversion import array_of, cast
from tracer.numpy.core.promotion import promoted_inexact
from tracer.numpy.elementwise.arithmetic import absolute
from tracer.numpy.elementwise.logic import isfinite
from tracer.numpy.elementwise.powers import power, sqrt
from tracer.numpy.elementwise.rounding import conjugate, real
from tracer.numpy.elementwise.transcendental import exp
from tracer.numpy.reduce.matmul import matmul, outer
from tracer.numpy.reduce.reductions import any, max, sum
from tracer.numpy.shapes.creation import zeros
from tracer.numpy.shapes.joining import concatenate, stack
from tracer.numpy.shapes.matrices import eye
from tracer.numpy.shapes.ranges import arange
from tracer.numpy.shapes.where import where
from tracer.trace.array import Array, concrete_value, is_recorded
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.transforms.custom.derivatives import custom_jvp

_MAX_ITERATIONS = 500  # enough for roots of multiplicity 10, where convergence is linear


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: bool | str = False
) -> Any:
    """Return the coefficients, the highest power first, of the least-squares polynomial through points.

    x: [n]; y: [n] or [n, k]; deg: at least 0, concrete. Returns floats or complex numbers [deg + 1] or [deg + 1, k]. w:
    [n], weights of distances, not of squares. cov: return also the covariance of the coefficients, scaled so that the
    distances have variance 1, or "unscaled".

    full: return also the sums of squared distances, the rank, the singular values of the scaled powers, and rcond.
    rcond: singular values below it times the largest count as 0, by default n times the machine's epsilon.

    Concrete points with fewer than deg + 1 distinct x, and `rcond` or `full`, use singular values. These give the
    solution of least norm. In all other cases Householder reflections of the scaled powers are used. They compile and
    differentiate, and need deg + 1 distinct x. Raises ShapeError for fewer points, TracerArrayError for `rcond` and
    `full` of traced points.

    >>> tnp.polyfit(tnp.asarray([0.0, 1.0, 2.0, 3.0]), tnp.asarray([1.0, 3.0, 7.0, 13.0]), 2).round(6)
    Array([1., 1., 1.], f64)
    """
    points, values, weights, count = _checked(x, y, w, deg)
    operands = [v for v in (points, values, weights) if v is not None]
    known = [np.asarray(v) for v in operands if not is_recorded(v)]
    is_deficient = len(known) == len(operands) and not cov and len(np.unique(known[0])) < count
    if points.shape[0] and (full or rcond is not None or is_deficient):
        if len(known) < len(operands):
            raise TracerArrayError(
                message(
                    f"polyfit{here()}: full= and rcond= need the singular values of concrete points",
                    f"got {', '.join(str(v.type) for v in operands if is_recorded(v))}, traced",
                    help="call it outside jit and grad, or omit both",
                )
            )
        return _by_singular_values(known, count - 1, rcond, full, cov)
    if points.shape[0] < count:
        raise ShapeError(message(f"polyfit{here()}: {count} coefficients need as many points", f"got {points.type}"))
    return _by_reflections(points, values, weights, count, cov)


def _checked(x: Any, y: Any, w: Any, deg: int) -> tuple[Array, Array, Array | None, int]:
    """Return points, values, weights and the number of coefficients. Raises ShapeError for shapes that do not fit."""
    points, values = _apart(x, y)
    count = integer("polyfit", "deg", deg) + 1
    if points.ndim != 1 or values.ndim not in (1, 2) or values.shape[0] != points.shape[0] or count < 1:
        raise ShapeError(
            message(
                f"polyfit{here()} takes x [n], y [n] or [n, k], deg >= 0", f"got {points.type}, {values.type}, {deg}"
            )
        )
    weights = None if w is None else cast(array_of("polyfit", w), dtypes.real_dtype(points.dtype))
    if weights is not None and weights.shape != points.shape:
        raise ShapeError(
            message(f"polyfit{here()} takes one weight for each point", f"got {weights.type} for {points.type}")
        )
    return points, values, weights, count


def _by_reflections(points: Array, values: Array, weights: Array | None, count: int, cov: bool | str) -> Any:
    """Return the fit, and its covariance if `cov`, by Householder reflections of the scaled powers."""
    powers, wanted = vander(points, count), values
    if weights is not None:
        powers, wanted = powers * weights[:, None], (values.T * weights).T
    scale = sqrt(sum(_squares(powers), axis=0))
    scaled = powers / scale
    triangle, rotated = _triangular(scaled, wanted if wanted.ndim == 2 else wanted[:, None])
    solved = _back_substituted(triangle, rotated[:count])
    found = (solved if values.ndim == 2 else solved[:, 0]).T / scale
    if not cov:
        return found.T
    if dtypes.is_complex(points.dtype):  # NumPy has no conjugate here
        base = _back_substituted(*_triangular(matmul(scaled.T, scaled), eye(count, dtype=points.dtype)))
    else:
        inverse = _back_substituted(triangle, eye(count, dtype=points.dtype))
        base = matmul(inverse, inverse.T)
    base = base / outer(scale, scale)
    if values.ndim == 2:
        base = base[:, :, None]
    if cov != "unscaled":
        if points.shape[0] <= count:
            raise ShapeError(message(f"polyfit{here()}: a covariance needs more points than coefficients"))
        rest = sum(_squares(rotated[count:]), axis=0) / (points.shape[0] - count)
        base = base * (rest if values.ndim == 2 else rest[0])
    return found.T, base


def _by_singular_values(known: list[Any], degree: int, rcond: float | None, full: bool, cov: bool | str) -> Any:
    """Return NumPy's fit to concrete points; narrow floats are fitted in float32."""
    dtype = known[0].dtype
    points = [v.astype(np.float32) if dtype.itemsize == 2 else v for v in known]
    fit: Any = np.polyfit  # its stubs do not take `full` as a bool
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.RankWarning)
            found = fit(points[0], points[1], degree, rcond, full, *points[2:], cov=cov)
    except ValueError as error:  # NumPy's covariance fails if the rank is deficient
        said = str(error) if isinstance(error, np.linalg.LinAlgError) else "a covariance needs independent powers"
        raise MatrixError(message(f"polyfit{here()}: {said}", f"got {len(points[0])} points, deg={degree}")) from None
    parts = [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]
    kinds = {"f": known[0].real.dtype, "c": np.result_type(*known)}  # the rank alone is an integer
    arrays = tuple(array_of("polyfit", part.astype(kinds.get(part.dtype.kind, part.dtype))) for part in parts)
    return arrays if isinstance(found, tuple) else arrays[0]


def _apart(x: Any, y: Any) -> list[Array]:
    """Return x and y as floats of one precision, in their own shapes; a real one stays real beside complex numbers."""
    given = [array_of("polyfit", v) for v in (x, y)]
    dtype = promoted_inexact("polyfit", *(v.ravel()[:1] for v in given))[0].dtype
    return [cast(v, dtype if dtypes.is_complex(v.dtype) else dtypes.real_dtype(dtype)) for v in given]


def _squares(x: Array) -> Array:
    """Return the squared absolute values."""
    return real(x * conjugate(x)) if dtypes.is_complex(x.dtype) else x * x


def _triangular(matrix: Array, right: Array) -> tuple[Array, Array]:
    """Return R and Q' b of matrix = Q R, by a reflection for each column.

    Golub & Van Loan, Matrix Computations 5.2.
    """
    rows, columns = matrix.shape
    place = arange(rows)
    for k in range(columns if rows > columns else rows - 1):
        column = where(place >= k, matrix[:, k], 0)
        size = sqrt(sum(_squares(column)))
        axis = where(place == k, _direction(column[k]) * size, 0)
        normal = column + axis
        factor, row = 2 / sum(_squares(normal)), conjugate(normal)
        matrix = matrix - factor * outer(normal, matmul(row, matrix))
        right = right - factor * outer(normal, matmul(row, right))
    return matrix[:columns], right


def _direction(x: Array) -> Array:
    """Return x / |x|, and 1 for 0."""
    if not dtypes.is_complex(x.dtype):
        return where(x < 0, -1, 1)
    safe = where(x == 0, 1, x)
    return safe / absolute(safe)


def _back_substituted(triangle: Array, right: Array) -> Array:
    """Return the solution of an upper triangular system."""
    found: list[Array] = []
    for k in reversed(range(triangle.shape[0])):
        rest = right[k] - matmul(triangle[k, k + 1 :], stack(found)) if found else right[k]
        found.insert(0, rest / triangle[k, k])
    return stack(found)


def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """Return the roots of a polynomial with the given coefficients, the highest power first: complex [degree].

    p: coefficients [n], concrete unless strip_zeros=False. Returns complex numbers of p's precision, unordered.

    strip_zeros: leading zeros lower the degree, and trailing ones are roots 0. False uses the first coefficient, which
    must not be 0, and works under `jit`. By the simultaneous iteration of Aberth (1973), Math. Comp. 27(122).
    Derivatives hold for simple roots.

    >>> tnp.sort(tnp.roots(tnp.asarray([1.0, -3.0, 2.0])).real)
    Array([1., 2.], f64)
    """
    (given,) = promoted_inexact("roots", p)
    if given.ndim != 1:
        raise ShapeError(message(f"roots{here()} takes a vector of coefficients", f"got {given.type}"))
    at_zero = 0
    if strip_zeros:
        value = concrete_value(array_of("roots", p))  # as given: jit stages the conversion of integers
        if value is None:
            raise TracerArrayError(
                message(
                    f"roots{here()}: the number of roots depends on traced coefficients",
                    f"got {given.type}",
                    help="strip_zeros=False, if the first is not 0",
                )
            )
        nonzero = np.flatnonzero(value)
        if not nonzero.size:
            return zeros(0, dtype=dtypes.complex_dtype(given.dtype))
        at_zero = given.shape[0] - 1 - int(nonzero[-1])
        given = given[int(nonzero[0]) : int(nonzero[-1]) + 1]
    own = dtypes.complex_dtype(given.dtype)
    found = _roots(cast(given, own)) if given.shape[0] > 1 else zeros(0, dtype=own)
    return concatenate([found, zeros(at_zero, dtype=own)]) if at_zero else found


@custom_jvp
def _roots(p: Array) -> Array:
    degree = p.shape[0] - 1
    slope, order = polyder(p), np.arange(1, degree + 1)
    radius = 2 * max(power(absolute(p[1:] / p[0]), 1 / order))  # Fujiwara's bound
    start = radius * exp(1j * (2 * np.pi * np.arange(degree) / degree + 0.4)) - p[1] / (degree * p[0])
    precision = float(np.finfo(real(p).dtype).eps)
    others = ~np.eye(degree, dtype=bool)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        z, _, count = state
        value, derivative = polyval(p, z), polyval(slope, z)
        newton = where(derivative == 0, 0, value / where(derivative == 0, 1, derivative))
        apart = where(others, z[:, None] - z, 1)
        push = sum(where(others, 1 / where(apart == 0, 1, apart), 0), axis=1)
        change = newton / (1 - newton * push)
        change = where(isfinite(change), change, newton)
        return cast(z - change, p.dtype), absolute(change) > precision * absolute(z), count + 1

    def goes_on(state: tuple[Array, Array, Array]) -> Array:
        return any(state[1]) & (state[2] < _MAX_ITERATIONS)

    found: Array = while_loop(goes_on, step, (cast(start, p.dtype), np.ones(degree, bool), 0))[0]
    return where(absolute(found.imag) <= 8 * precision * absolute(found), cast(real(found), p.dtype), found)


@_roots.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (p,), (dp,) = primals, tangents
    found = _roots(p)
    return found, -polyval(dp, found) / polyval(polyder(p), found)
