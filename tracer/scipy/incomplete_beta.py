"""The regularised incomplete beta function, always computed in float64.

With D = x^a (1 - x)^b / (a B(a, b)) and F the continued fraction of DLMF 8.17.22, by Lentz's method:

    I(a, b, x) = D F where x <= (a + 1) / (a + b + 2), otherwise 1 - I(b, a, 1 - x)

The complement 1 - I(a, b, x) uses the same terms, as 1 - D F below and D F above. For x near 0, I(b, a, 1 - x) would
lose x, as 1 - x rounds to 1. F converges after about 5 sqrt(max(a, b)) terms. The derivative by x is the density. The
derivatives by `a` and `b` differentiate the terms. They need a minimal number of terms, as F itself may end early if
`a` or `b` is whole. NIST Digital Library of Mathematical Functions, 8.17; Lentz 1976, Applied Optics 15(3).
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.ir import dtypes
from tracer.lax import while_loop
from tracer.numpy import (
    abs,
    any,
    broadcast_arrays,
    exp,
    inf,
    isnan,
    logical_and,
    maximum,
    ones_like,
    sqrt,
    where,
)
from tracer.numpy.core.conversion import cast
from tracer.scipy.saddle_points import log_beta_weight
from tracer.trace.array import Array
from tracer.transforms.custom.derivatives import custom_jvp
from tracer.transforms.jacobian_products import jvp

_TERMS = 20_000.0  # enough for a and b up to 1e7
_SETTLED = 2.0**-52


def incomplete_beta(a: Array, b: Array, x: Array) -> Array:
    """Return I(a, b, x) of arrays of one dtype; NaN for NaN, for a or b negative, and for x outside [0, 1].

    The limits at a or b of 0 or infinity are jumps, at x = 0 where a = 0 or b is infinite. They are at x = 1 where b =
    0 or a is infinite, and NaN where both say so.
    """
    return _at_shares(_inside, a, b, x, lambda x: x)


def incomplete_beta_rest(a: Array, b: Array, x: Array) -> Array:
    """Return 1 - I(a, b, x), exact where it or x is small; NaN as of `incomplete_beta`."""
    return _at_shares(_outside, a, b, x, lambda x: 1.0 - x)


def _at_shares(formula: Callable[..., Array], a: Array, b: Array, x: Array, at_ends: Callable[[Array], Array]) -> Array:
    dtype = x.dtype
    a, b, x = broadcast_arrays(*(cast(v, dtypes.F64) for v in (a, b, x)))
    at_zero, at_one = (a == 0) | (b == inf), (b == 0) | (a == inf)
    valid = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1) & ~(at_zero & at_one)
    inside = valid & (x > 0) & (x < 1) & ~at_zero & ~at_one
    computed = formula(where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5))
    end = where(at_zero & (x > 0), 1.0, where(at_one & (x < 1), 0.0, x))
    return cast(where(inside, computed, where(valid, at_ends(end), float("nan"))), dtype)


@custom_jvp
def _inside(a: Array, b: Array, x: Array) -> Array:
    return _terms(a, b, x, 0.0)


@custom_jvp
def _outside(a: Array, b: Array, x: Array) -> Array:
    return _terms(a, b, x, 0.0, rest=True)


def _lasting(a: Array, b: Array, x: Array) -> Array:
    return _terms(a, b, x, 15.0 + 5.0 * sqrt(maximum(a, b)))


def _terms(a: Array, b: Array, x: Array, min_terms: Any, *, rest: bool = False) -> Array:
    mirrored = x > (a + 1.0) / (a + b + 2.0)
    p, q, y = where(mirrored, b, a), where(mirrored, a, b), where(mirrored, 1.0 - x, x)
    found = _weight(a, b, x) / p * _fraction(p, q, y, min_terms)
    return where(mirrored ^ rest, 1.0 - found, found)


def _weight(a: Array, b: Array, x: Array) -> Array:
    """Return x^a (1 - x)^b / B(a, b)."""
    return exp(log_beta_weight(a, b, x, 1.0 - x))


def _fraction(a: Array, b: Array, x: Array, min_terms: Any) -> Array:
    """Return F, of at least `min_terms` terms."""

    def goes_on(carry: Any) -> Any:
        return logical_and(any(carry[-1]), carry[0] < _TERMS)

    def step(carry: Any) -> Any:
        m, c, d, value, active = carry
        even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        after_even = 1.0 / (1.0 + even * d)
        c_even = 1.0 + even / c
        new_d = 1.0 / (1.0 + odd * after_even)
        new_c = 1.0 + odd / c_even
        ratio = new_d * new_c
        new = value * after_even * c_even * ratio
        still = active & ((abs(ratio - 1.0) > _SETTLED) | (m < min_terms))
        return m + 1.0, where(active, new_c, c), where(active, new_d, d), where(active, new, value), still

    first = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    start = (1.0, ones_like(x), first, first, ~isnan(first))
    return while_loop(goes_on, step, start)[3]


_SLOPES = (
    lambda t, a, b, x: jvp(lambda v: _lasting(v, b, x), (a,), (t,))[1],
    lambda t, a, b, x: jvp(lambda v: _lasting(a, v, x), (b,), (t,))[1],
    lambda t, a, b, x: _weight(a, b, x) / (x * (1.0 - x)) * t,
)
_inside.defjvps(*(lambda t, _, a, b, x, slope=slope: slope(t, a, b, x) for slope in _SLOPES))
_outside.defjvps(*(lambda t, _, a, b, x, slope=slope: -slope(t, a, b, x) for slope in _SLOPES))
