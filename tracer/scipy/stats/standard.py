"""What distributions share: standard variables, supports, and logarithms of probabilities near 1.

NaN stands for every parameter that a distribution has not, and so wherever one is; beyond the ends of a support, and at
infinity, results are constants, whose derivatives are 0.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.numpy import absolute, floor, inf, log, log1p, nan, where
from tracer.trace.array import Array


def standard(x: Any, loc: Any, scale: Any, *conditions: Any) -> Array:
    """(x - loc) / scale; NaN unless scale is positive and the conditions hold."""
    valid = scale > 0
    for condition in conditions:
        valid = valid & condition
    return where(valid, (x - loc) / where(valid, scale, 1.0), nan)


def within(
    y: Array, low: Any, high: Any, formula: Callable[[Array], Any], *, below: Any, above: Any, safe: Any
) -> Array:
    """The formula from low to high where y is finite, constants on both sides. safe: a place within, or several."""
    under, over = (y < low) | (y == -inf), (y > high) | (y == inf)
    inside = formula(where(under | over, safe, y))
    return where(y != y, nan, where(under, below, where(over, above, inside)))


def at_counts(
    k: Array, loc: Any, low: Any, high: Any, formula: Callable[[Array], Any], *conditions: Any, safe: Any
) -> Array:
    """The formula at whole k - loc from low to high, -inf elsewhere; NaN unless the conditions hold."""
    y = k - loc
    valid = y == y
    for condition in conditions:
        valid = valid & condition
    inside = (y >= low) & (y <= high) & (floor(y) == y) & (absolute(y) < inf)
    return where(valid, where(inside, formula(where(inside, y, safe)), -inf), nan)


def fraction(q: Array, formula: Callable[[Array], Any], loc: Any, scale: Any, *conditions: Any) -> Array:
    """loc + scale formula(q) for q between 0 and 1; NaN elsewhere, and unless the conditions hold."""
    valid = (q >= 0) & (q <= 1) & (scale > 0)
    for condition in conditions:
        valid = valid & condition
    return where(valid, loc + scale * formula(where(valid, q, 0.5)), nan)


def log_probability(probability: Array, others: Array) -> Array:
    """The logarithm of a probability by it and by that of the contrary, whichever is the more exact."""
    likely, none = probability > 0.5, probability == 0
    log_part = log(where(likely | none, 0.5, probability))
    return where(likely, log1p(-where(likely, others, 0.5)), where(none, -inf, log_part))


def log1p_square(y: Array, v: Any) -> Array:
    """log(1 + y² / v), for large |y| without overflow."""
    ratio = absolute(y) / v**0.5
    large = ratio > 1e8
    small = where(large, 1.0, ratio)
    return where(large, 2.0 * log(where(large, ratio, 1.0)), log1p(small * small))
