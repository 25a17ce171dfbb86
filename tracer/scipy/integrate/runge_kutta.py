"""Explicit Runge-Kutta steps of a tableau, with error control and an interpolant."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from functools import cache
from typing import Any

from tracer.numpy import asarray, clip, isfinite, sqrt, stack, where
from tracer.primitives.elementwise.stop_gradient import stop_gradient
from tracer.scipy.integrate.stepping import (
    GROW,
    SAFETY,
    SHRINK,
    Attempt,
    Counts,
    Interval,
    Method,
    Slope,
    State,
    Tolerances,
    norm,
    real,
)
from tracer.scipy.integrate.tableaus import Row, Tableau
from tracer.trace.array import Array


@cache
def explicit(tableau: Tableau) -> Method:
    """Return the method of a tableau. Its rows are the slopes of all stages."""

    def attempt(f: Slope, state: State, h: Array, tolerances: Tolerances) -> Attempt:
        size = h.astype(real(state.y.dtype))
        slopes = [state.slope]
        for node, weights in zip(tableau.nodes, tableau.weights, strict=True):
            slopes.append(f(state.t + node * h, state.y + size * _combined(weights, slopes)))
        y = state.y + size * _combined(tableau.final, slopes)
        slopes.append(f(state.t + h, y))
        error = _error(tableau, size, slopes, tolerances.atol + tolerances.rtol * _larger(state.y, y))
        wanted = SAFETY * where(error > 0, error, GROW ** -(tableau.order + 2)) ** (-1 / (tableau.order + 1))
        factor = where(isfinite(error), clip(wanted, SHRINK, where(error <= 1, GROW, 1)), SHRINK)
        return Attempt(y, slopes[-1], stack(slopes), error, factor, Counts(len(slopes) - 1, 0, 0), None)

    def coefficients(f: Slope, last: Interval) -> tuple[Array, int]:
        slopes = list(last.rows)
        size = last.h.astype(real(last.y.dtype))
        for node, weights in zip(tableau.more_nodes, tableau.more_weights, strict=True):
            slopes.append(f(last.t + node * last.h, last.y + size * _combined(weights, slopes)))
        powers = zip(*tableau.interpolant, strict=True)
        return stack([size * _combined(row, slopes) for row in powers]), len(tableau.more_nodes)

    return Method(tableau.order, len(tableau.final) + 1, lambda f, t, y: None, attempt, coefficients)


def _combined(weights: Row, slopes: list[Array]) -> Any:
    return sum(weight * slope for weight, slope in zip(weights, slopes, strict=True) if weight)


def _larger(before: Array, after: Array) -> Any:
    a, b = abs(before), abs(after)
    return where(b > a, b, a)


def _error(tableau: Tableau, h: Array, slopes: list[Array], scale: Array) -> Array:
    """Return the error relative to the scale. DOP853 weighs two estimates: Solving ODEs I, section II.10."""
    scale = stop_gradient(scale)
    found, *other = (norm(_combined(row, slopes[: len(row)]) / scale) for row in tableau.errors)
    if not other:
        return stop_gradient(abs(h) * found)
    both = found * found + 0.01 * other[0] * other[0]
    zero = both == 0
    return stop_gradient(abs(h) * where(zero, asarray(0, found.dtype), found * found / sqrt(where(zero, 1, both))))
