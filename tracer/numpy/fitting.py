"""Polynomials fitted to points, and their roots."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, TracerArrayError, message
from tracer.ir import dtypes
from tracer.lax.loops import while_loop
from tracer.numpy.arithmetic import absolute
from tracer.numpy.choosing import where
from tracer.numpy.conversion import array_of, cast
from tracer.numpy.creation import arange, zeros
from tracer.numpy.joining import concatenate, stack
from tracer.numpy.logic import isfinite
from tracer.numpy.matrices import eye
from tracer.numpy.polynomials import polyder, polyval, vander
from tracer.numpy.powers import power, sqrt
from tracer.numpy.products import matmul, outer
from tracer.numpy.promotion import promoted_inexact
from tracer.numpy.reductions import any, max, sum
from tracer.numpy.rounding import real
from tracer.numpy.transcendental import exp
from tracer.trace.array import Array, concrete_value
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.transforms.custom import custom_jvp

_ROUNDS = 500  # enough for roots of multiplicity 10, to which steps go by a factor


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: bool | str = False
) -> Any:
    """The coefficients, the highest power first, of the polynomial nearest to points by least squares.

    x: [n]; y: [n] or [n, k]; deg: at least 0, known while tracing. Returns floats or complex numbers [deg + 1] or [deg
    + 1, k]. w: [n], weights of distances, not of squares. cov: also their covariance, scaled so that the distances have
    variance 1, or not if "unscaled".

    By Householder reflections of the scaled powers, which are to be independent: of deg + 1 different x at least.
    Raises ShapeError where there are fewer points; ArgumentError for `rcond` and `full`, which need singular values.

    >>> tnp.polyfit(tnp.asarray([0.0, 1.0, 2.0, 3.0]), tnp.asarray([1.0, 3.0, 7.0, 13.0]), 2).round(6)
    Array([1., 1., 1.], f64)
    """
    if full or rcond is not None:
        raise ArgumentError(
            message(f"polyfit{here()}: full= and rcond= need singular values", help="leave them at their defaults")
        )
    places, values = promoted_inexact("polyfit", x, y) if np.ndim(x) == np.ndim(y) else _apart(x, y)
    count = integer("polyfit", "deg", deg) + 1
    if places.ndim != 1 or values.ndim not in (1, 2) or values.shape[0] != places.shape[0] or count < 1:
        raise ShapeError(
            message(f"polyfit{here()}: x is [n], y [n] or [n, k], deg >= 0", f"got {places.type}, {values.type}, {deg}")
        )
    if places.shape[0] < count:
        raise ShapeError(message(f"polyfit{here()}: {count} coefficients need as many points", f"got {places.type}"))
    powers, wanted = vander(places, count), values
    if w is not None:
        weights = cast(array_of("polyfit", w), places.dtype)
        powers, wanted = powers * weights[:, None], (values.T * weights).T
    scale = sqrt(sum(powers * powers, axis=0))
    triangle, rotated = _triangular(powers / scale, wanted if wanted.ndim == 2 else wanted[:, None])
    solved = _back_substituted(triangle, rotated[:count])
    found = (solved if values.ndim == 2 else solved[:, 0]).T / scale
    if not cov:
        return found.T
    inverse = _back_substituted(triangle, eye(count, dtype=places.dtype))
    base = matmul(inverse, inverse.T) / outer(scale, scale)
    if values.ndim == 2:
        base = base[:, :, None]
    if cov != "unscaled":
        if places.shape[0] <= count:
            raise ShapeError(message(f"polyfit{here()}: a covariance needs more points than coefficients"))
        rest = sum(rotated[count:] ** 2, axis=0) / (places.shape[0] - count)
        base = base * (rest if values.ndim == 2 else rest[0])
    return found.T, base


def _apart(x: Any, y: Any) -> list[Array]:
    """x and y in one float dtype, their shapes as they are."""
    dtype = promoted_inexact("polyfit", array_of("polyfit", x).ravel()[:1], array_of("polyfit", y).ravel()[:1])[0].dtype
    return [cast(array_of("polyfit", v), dtype) for v in (x, y)]


def _triangular(matrix: Array, right: Array) -> tuple[Array, Array]:
    """R and Q' b of a matrix = Q R, by one reflection for each column: Golub & Van Loan, Matrix Computations, 5.2."""
    rows, columns = matrix.shape
    place = arange(rows)
    for k in range(columns if rows > columns else rows - 1):
        column = where(place >= k, matrix[:, k], 0)
        size = sqrt(sum(column * column))
        axis = where(place == k, where(column[k] < 0, -size, size), 0)
        normal = column + axis
        factor = 2 / sum(normal * normal)
        matrix = matrix - factor * outer(normal, matmul(normal, matrix))
        right = right - factor * outer(normal, matmul(normal, right))
    return matrix[:columns], right


def _back_substituted(triangle: Array, right: Array) -> Array:
    """The solution of an upper triangular system."""
    found: list[Array] = []
    for k in reversed(range(triangle.shape[0])):
        rest = right[k] - matmul(triangle[k, k + 1 :], stack(found)) if found else right[k]
        found.insert(0, rest / triangle[k, k])
    return stack(found)


def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial whose coefficients are given, the highest power first: complex, [degree], in no order.

    p: coefficients [n], known ones unless strip_zeros=False. Returns complex numbers of p's precision.

    strip_zeros: leading zeros lower the degree, and trailing ones are roots 0; the coefficients must be known.
    False takes the first coefficient, which is not to be 0, as it is, and works under jit.
    By the simultaneous iteration of Aberth (1973), Math. Comp. 27(122). Derivatives are those of simple roots.

    >>> tnp.sort(tnp.roots(tnp.asarray([1.0, -3.0, 2.0])).real)
    Array([1., 2.], f64)
    """
    (given,) = promoted_inexact("roots", p)
    if given.ndim != 1:
        raise ShapeError(message(f"roots{here()} takes a vector of coefficients", f"got {given.type}"))
    at_zero = 0
    if strip_zeros:
        value = concrete_value(given)
        if value is None:
            raise TracerArrayError(
                message(
                    f"roots{here()}: how many roots there are depends on traced coefficients",
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
        return any(state[1]) & (state[2] < _ROUNDS)

    found: Array = while_loop(goes_on, step, (cast(start, p.dtype), np.ones(degree, bool), 0))[0]
    return where(absolute(found.imag) <= 8 * precision * absolute(found), cast(real(found), p.dtype), found)


@_roots.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (p,), (dp,) = primals, tangents
    found = _roots(p)
    return found, -polyval(dp, found) / polyval(polyder(p), found)
