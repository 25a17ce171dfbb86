"""Slopes of cubic splines at their points: tridiagonal systems of equations.

De Boor 2001, A Practical Guide to Splines, chapter IV.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any, NamedTuple

from tracer.errors import ArgumentError, message
from tracer.lax.linalg import tridiagonal_solve
from tracer.numpy import concatenate, diff, stack, sum, zeros
from tracer.numpy.core.conversion import array_of
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here


def end_of(given: Any, values: Array) -> tuple[int, Array]:
    """Return the order of the derivative at an end, 0 for not-a-knot, and its value [s]."""
    zero = 0 * values[0]
    named = {"not-a-knot": 0, "clamped": 1, "natural": 2}
    if isinstance(given, str):
        if given in named:
            return named[given], zero
    elif len(given) == 2 and given[0] in (1, 2):
        return int(given[0]), zero + array_of("CubicSpline", given[1]).astype(values.dtype).ravel()
    known = '"not-a-knot", "clamped", "natural", "periodic" for both, (1, slope) or (2, second derivative)'
    raise ArgumentError(message(f"CubicSpline{here()}: no such end", f"got {given!r}", help=known))


def spline_slopes(places: Array, values: Array, ends: list[tuple[int, Array]]) -> Array:
    """Return slopes at the points: continuous second derivatives, and one equation at each end."""
    n, h = places.size, diff(places)
    m = diff(values, axis=0) / h[:, None]
    if n == 2:
        ends = [(1, m[0]) if order == 0 else (order, value) for order, value in ends]
    if n == 3 and ends[0][0] == ends[1][0] == 0:  # one parabola
        bend = (m[1] - m[0]) / (h[0] + h[1])
        return stack([m[0] - h[0] * bend, m[0] + h[0] * bend, m[1] + h[1] * bend])
    rows = _inner_rows(h, m)
    first, last = (
        _end_row(end, h[::outward], m[::outward], outward) for end, outward in zip(ends, (1, -1), strict=True)
    )
    zero = zeros(1, h.dtype)
    below = concatenate([zero, rows.below, last.beside[None]])
    main = concatenate([first.main[None], rows.main, last.main[None]])
    above = concatenate([first.beside[None], rows.above, zero])
    side = concatenate([first.side[None], rows.side, last.side[None]])
    return _tridiagonal(below, main, above, side)


class _Rows(NamedTuple):
    """Rows of the equations for inner points: the slope before, here and after; and their right sides [n - 2, s]."""

    below: Array
    main: Array
    above: Array
    side: Array


class _End(NamedTuple):
    """Row of an end: factors of the slope there and of the one beside it, and the right side [s]."""

    main: Array
    beside: Array
    side: Array


def _inner_rows(h: Array, m: Array) -> _Rows:
    """Return the rows by which second derivatives are continuous, for sizes [n - 1] and secants [n - 1, s]."""
    side = 3 * (h[1:, None] * m[:-1] + h[:-1, None] * m[1:])
    return _Rows(h[1:], 2 * (h[:-1] + h[1:]), h[:-1], side)


def _end_row(end: tuple[int, Array], h: Array, m: Array, outward: int) -> _End:
    """Return the row of an end, for sizes and secants counted from there; outward: 1 for the first point, -1."""
    order, value = end
    one = h[0] * 0 + 1
    if order == 1:
        return _End(one, 0 * one, value)
    if order == 2:
        return _End(2 * one, one, 3 * m[0] - outward * value * h[0] / 2)
    first, second = h[0], h[1]
    both = first + second
    return _End(second, both, ((first + 2 * both) * second * m[0] + first * first * m[1]) / both)


def _tridiagonal(below: Array, main: Array, above: Array, side: Array) -> Array:
    """Return the solution [n, s] in O(n) steps; the first of `below` and the last of `above` have no effect."""
    dl, d, du = (x.astype(side.dtype) for x in (below, main, above))
    return tridiagonal_solve(dl, d, du, side)


def periodic_slopes(places: Array, values: Array) -> Array:
    """Return slopes at the points of a periodic function: neighbours wrap around the ends."""
    known = concrete_value(values)
    if known is not None and not ((abs(known[0] - known[-1]) <= 1e-8 + 1e-5 * abs(known[-1])).all()):
        raise ArgumentError(
            message(f"CubicSpline{here()}: the first and the last value of a period must be equal", "they differ")
        )
    n, h = places.size - 1, diff(places)
    m = diff(values, axis=0) / h[:, None]
    if n == 1:
        return 0 * values
    if n == 2:
        slope = (m[0] / h[0] + m[1] / h[1]) / sum(1 / h)
        return stack([slope] * 3)
    before = concatenate([h[-1:], h[:-1]])
    earlier = concatenate([m[-1:], m[:-1]])
    side = 3 * (h[:, None] * earlier + before[:, None] * m)
    # The corners' elements are a matrix of rank one: Sherman & Morrison 1950, Ann. Math. Statist. 21(1). With the shift
    # g = -main[0] the other rows stay diagonally dominant, so the solution needs no pivots.
    main = 2 * (h + before)
    shift, up, low = -main[0], before[n - 1], h[0]  # elements [n - 1, 0] and [0, n - 1]
    main = main.at[0].add(-shift).at[n - 1].add(-up * low / shift)
    corner = zeros(n, h.dtype).at[0].set(shift).at[n - 1].set(up).astype(side.dtype)
    found = _tridiagonal(h, main, before, concatenate([side, corner[:, None]], 1))
    plain, bent = found[:, :-1], found[:, -1]
    row = (low / shift).astype(side.dtype)
    slopes = plain - bent[:, None] * ((plain[0] + row * plain[-1]) / (1 + bent[0] + row * bent[-1]))
    return concatenate([slopes, slopes[:1]])
