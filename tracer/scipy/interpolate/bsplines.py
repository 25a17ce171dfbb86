"""B-splines along one axis of a grid: knots, basis functions, and coefficients of the spline through values.

De Boor 2001, A Practical Guide to Splines, chapters IX to XIII.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.numpy import arange, broadcast_to, clip, concatenate, moveaxis, searchsorted, zeros
from tracer.numpy.linalg import solve
from tracer.trace.array import Array


def through(places: Array, values: Array, axis: int, degree: int) -> Array:
    """Return coefficients, in place of values along an axis, of the not-a-knot spline of an odd degree."""
    n = places.size
    matrix: Any = zeros((n, n), places.dtype)
    rows = arange(n)
    for column, weight in basis(places, places, degree):
        matrix = matrix.at[rows, column].set(weight)
    first = moveaxis(values, axis, 0)
    flat = first.reshape(n, -1)
    found = solve(matrix.astype(flat.dtype), flat)
    return moveaxis(found.reshape(first.shape), 0, axis)


def basis(places: Array, x: Array, degree: int, nu: int = 0) -> list[tuple[Array, Array]]:
    """Return indices of the degree + 1 coefficients at points x [m], and derivatives of order nu of their B-splines."""
    knots = _not_a_knot(places, degree)
    last = clip(searchsorted(knots, x, side="right") - 1, degree, places.size - 1)  # knot to the left of x
    if nu > degree:
        return [(last - degree, 0 * x)]
    found: list[Any] = [1 + 0 * x]
    for d in range(1, degree + 1):
        differs = d > degree - nu
        raised: list[Any] = [0] * (d + 1)
        for j in range(d):  # one B-spline of degree d - 1 becomes parts of two of degree d
            low, high = knots[last + j - d + 1], knots[last + j + 1]
            share = (d if differs else x - low) * found[j] / (high - low)
            raised[j + 1] = raised[j + 1] + share
            raised[j] = raised[j] + (0 if differs else found[j]) - share
        found = raised
    return [(last - degree + j, weight) for j, weight in enumerate(found)]


def _not_a_knot(places: Array, degree: int) -> Array:
    """Return the knots of splines of an odd degree that have as many coefficients as there are places."""
    ends = [broadcast_to(end, degree + 1) for end in (places[0], places[-1])]
    skipped = (degree + 1) // 2
    return concatenate([ends[0], places[skipped : places.size - skipped], ends[1]])
