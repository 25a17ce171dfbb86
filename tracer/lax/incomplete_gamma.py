"""The incomplete gamma functions and their derivatives, always computed in float64.

With D = x^a exp(-x) / Gamma(a + 1), and L the derivative of log x by `a` at constant P(a, x):

    x < a + 1:   P = D S,          L = ((digamma(a + 1) - log x) S + T) / a
                 S = sum of r_n, T = sum of r_n (1/(a + 1) + ... + 1/(a + n)), r_n = r_{n-1} x / (a + n), r_0 = 1
    otherwise:   1 - P = D a F,    L = (log x - digamma(a)) F + dF/da
                 F = Legendre's continued fraction, 1/(x + 1 - a - (1 - a)/(x + 3 - a - 2 (2 - a)/(x + 5 - a - ...

and dP/da = -D a L. All terms of a sum have one sign. About 8 sqrt(a) terms are needed for x near a; from a = 1e6 on,
the first terms of Temme's uniform expansion suffice. NIST Digital Library of Mathematical Functions, 8.7.1, 8.9.2 and
8.12.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.errors import DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.types import Shape
from tracer.lax.loops import while_loop
from tracer.primitives.base.broadcasting import broadcast_in_dim, full_like
from tracer.primitives.elementwise.arithmetic import clamp, max, min
from tracer.primitives.elementwise.bits import and_, not_, or_
from tracer.primitives.elementwise.comparison import eq, ge, gt, lt, ne, select
from tracer.primitives.elementwise.complex import abs, sign
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.exponential import exp, log, log1p
from tracer.primitives.elementwise.powers import sqrt
from tracer.primitives.elementwise.special import digamma, erfc, lgamma
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.transforms.custom.derivatives import custom_jvp
from tracer.transforms.vectorize import vmap

_EPS = 2.0**-53
_SETTLED = 16 * _EPS  # a step of the continued fraction rounds by half as much
_STIRLING = 16.0  # above, log Gamma by its asymptotic series, without cancellation in D
_UNIFORM = 1e6  # above, Temme's expansion, whose next term is 1e-16 of the first
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def igamma(a: Any, x: Any) -> Array:
    """Return the regularised lower incomplete gamma function P(a, x).

    It is the gamma distribution's probability of at most x.

    a, x: floats [*s], a > 0 and x >= 0, NaN elsewhere. The relative error in float64 is 1e-13 for `a` up to 1e4, and
    grows as sqrt(a).

    Returns their dtype, [*s]. Raises DTypeError for other dtypes, ShapeError for unequal shapes.

    >>> tracer.lax.igamma(tnp.asarray([1.0, 5.0]), tnp.asarray([1.0, 5.0]))
    Array([0.63212056, 0.55950671], f64)
    """
    return in_double("igamma", _lower, a, x)


def igammac(a: Any, x: Any) -> Array:
    """Return the regularised upper incomplete gamma function 1 - P(a, x), without cancellation for large x.

    a, x: floats [*s] of one dtype, as of `igamma`. Returns that dtype, [*s]. Raises DTypeError for other dtypes,
    ShapeError for unequal shapes.

    >>> tracer.lax.igammac(tnp.asarray([1.0, 5.0]), tnp.asarray([1.0, 50.0]))
    Array([3.67879441e-01, 5.44970198e-17], f64)
    """
    return in_double("igammac", _upper, a, x)


def igamma_grad_a(a: Any, x: Any) -> Array:
    """Return the derivative of `igamma(a, x)` by `a`.

    a, x: floats [*s] of one dtype, as of `igamma`. Returns that dtype, [*s]. Raises DTypeError for other dtypes,
    ShapeError for unequal shapes.

    >>> tracer.lax.igamma_grad_a(tnp.asarray([1.0]), tnp.asarray([1.0]))
    Array([-0.43172971], f64)
    """
    return in_double("igamma_grad_a", _grad_a, a, x)


def random_gamma_grad(a: Any, sample: Any) -> Array:
    """Return the derivative of a gamma sample by `a` at constant quantile: -(dP/da) / (dP/dx).

    a, sample: floats [*s] of one dtype. Returns that dtype, [*s]. Raises DTypeError for other dtypes, ShapeError for
    unequal shapes.

    >>> tracer.lax.random_gamma_grad(tnp.asarray([1.0]), tnp.asarray([1.0]))
    Array([1.17356303], f64)
    """
    return in_double("random_gamma_grad", _quantile_derivative, a, sample)


def log_gamma_grad(a: Array, log_sample: Array) -> Array:
    """Return the derivative of a gamma sample's logarithm by `a` at constant quantile.

    It is finite even if the sample underflows.
    """
    return in_double("log_gamma_grad", _log_derivative, a, log_sample)


def in_double(name: str, function: Any, *values: Any) -> Array:
    """Return a function of floats of one dtype and one shape, computed in float64, in their dtype."""
    arrays = [as_array(value, name) for value in values]
    strong = [x for x in arrays if not x.weak_type] or arrays
    types = " and ".join(str(x.type) for x in arrays)
    if not dtypes.is_float(strong[0].dtype) or any(x.dtype != strong[0].dtype for x in strong):
        raise DTypeError(
            message(f"{name}{here()} takes floats of one dtype", f"got {types}",
                    help='cast them, as in x.astype("float64")')
        )  # fmt: skip
    shapes = [x.shape for x in arrays if x.shape] or [()]
    if any(shape != shapes[0] for shape in shapes):
        raise ShapeError(
            message(f"{name}{here()} takes arrays of one shape", f"got {types}",
                    help="broadcast them with tracer.numpy.broadcast_arrays")
        )  # fmt: skip
    wide = (_spread(convert_element_type(x, dtypes.F64), shapes[0]) for x in arrays)
    return convert_element_type(function(*wide), strong[0].dtype, weak=strong is arrays and arrays[0].weak_type)


def _spread(x: Array, shape: Shape) -> Array:
    return x if x.shape == shape else broadcast_in_dim(x, shape, ())


@custom_jvp
def _lower(a: Array, x: Array) -> Array:
    return _probabilities(a, x)[0]


@custom_jvp
def _upper(a: Array, x: Array) -> Array:
    return _probabilities(a, x)[1]


def _density(a: Array, x: Array) -> Array:
    """Return dP/dx; at 0 the limit."""
    inside = _weight(a, select(gt(x, 0), x, 1)) * a / select(gt(x, 0), x, 1)
    at_zero = select(lt(a, 1), full_like(a, math.inf), select(eq(a, 1), full_like(a, 1), full_like(a, 0)))
    return select(gt(x, 0), inside, at_zero)


_lower.defjvps(lambda t, _, a, x: _grad_a(a, x) * t, lambda t, _, a, x: _density(a, x) * t)
_upper.defjvps(lambda t, _, a, x: -_grad_a(a, x) * t, lambda t, _, a, x: -_density(a, x) * t)


def _probabilities(a: Array, x: Array) -> tuple[Array, Array]:
    """Return P and 1 - P."""
    inside = and_(and_(gt(a, 0), lt(a, math.inf)), and_(gt(x, 0), lt(x, math.inf)))
    a_in, x_in = select(inside, a, 1), select(inside, x, 1)
    weight, left, wide = _weight(a_in, x_in), lt(x_in, a_in + 1), gt(a_in, _UNIFORM)
    by_series, by_fraction = and_(left, not_(wide)), not_(or_(left, wide))
    lower = min(weight * _by_element(_series, a_in, select(by_series, x_in, 0))[0], 1)
    ends = select(by_fraction, a_in, 1), select(by_fraction, x_in, 2)
    upper = min(weight * a_in * _by_element(_fraction, *ends)[0], 1)
    distance, skew = _uniform(a_in, x_in)
    normal, correction = distance * sqrt(a_in / 2), weight * (1 + 1 / (12 * a_in)) * skew
    lower = select(wide, erfc(-normal) / 2 - correction, lower)
    upper = select(wide, erfc(normal) / 2 + correction, upper)
    nothing = and_(ge(a, 0), and_(ge(x, 0), ne(a, x)))  # ends of the domain that have a limit
    at_end = select(nothing, select(gt(x, a), full_like(a, 1), full_like(a, 0)), full_like(a, math.nan))
    at_end = select(and_(eq(x, 0), gt(a, 0)), 0, at_end)
    return (
        select(inside, select(left, lower, 1 - upper), at_end),
        select(inside, select(left, 1 - lower, upper), 1 - at_end),
    )


def _grad_a(a: Array, x: Array) -> Array:
    inside = and_(and_(gt(a, 0), lt(a, math.inf)), and_(gt(x, 0), lt(x, math.inf)))
    a_in, x_in = select(inside, a, 1), select(inside, x, 1)
    result = -_weight(a_in, x_in) * a_in * _log_derivative(a_in, log(x_in))
    outside = select(and_(gt(a, 0), ge(x, 0)), full_like(a, 0), full_like(a, math.nan))
    return select(inside, result, outside)


def _quantile_derivative(a: Array, x: Array) -> Array:
    positive = gt(x, 0)
    derivative = x * _log_derivative(a, log(select(positive, x, 1)))
    return select(positive, derivative, x * 0)


def _weight(a: Array, x: Array) -> Array:
    """Return D, for positive finite a and x."""
    large = gt(a, _STIRLING)
    small_a, large_a = select(large, 1, a), select(large, a, _STIRLING)
    direct = exp(small_a * log(x) - x - lgamma(small_a + 1))
    large_x = select(large, x, large_a)
    excess = (large_x - large_a) / large_a
    near = gt(excess, -0.5)  # far below, 1 + excess would lose x
    logarithm = select(near, log1p(select(near, excess, 0)), log(select(near, 1, large_x / large_a)))
    inverse, correction = 1 / large_a, full_like(a, 0)
    for coefficient in reversed(_SERIES):
        correction = correction * (inverse * inverse) + coefficient
    shape = large_a * (logarithm - excess) - correction * inverse
    return select(large, exp(shape) / sqrt(large_a * (2 * math.pi)), direct)


def _log_derivative(a: Array, log_x: Array) -> Array:
    """Return L, for positive finite a and x."""
    x = exp(log_x)
    left, wide = lt(x, a + 1), gt(a, _UNIFORM)
    by_series, by_fraction = and_(left, not_(wide)), not_(or_(left, wide))
    total, weighted = _by_element(_series_and_slope, a, select(by_series, x, 0))
    series = ((digamma(a + 1) - log_x) * total + weighted) / a
    ends = select(by_fraction, a, 1), select(by_fraction, x, 2)
    fraction, slope = _by_element(_fraction_and_slope, *ends)
    continued = (log_x - digamma(select(by_fraction, a, 1))) * fraction + slope
    distance, skew = _uniform(a, x)
    excess = (x - a) / a
    moved = select(eq(excess, 0), 1, excess)
    ratio = select(eq(excess, 0), 1, log1p(moved) / moved)
    # the quantile is erfc(-sqrt(a / 2) (eta - skew / a + eta skew^2 / (2 a))) / 2, with skew = -1/3 + eta / 12
    uniform = (ratio - (skew - distance / 36) * select(eq(excess, 0), 1, distance / moved) / (2 * a)) / a
    return select(wide, uniform, select(left, series, continued))


def _uniform(a: Array, x: Array) -> tuple[Array, Array]:
    """Return Temme's eta, eta^2 / 2 = x/a - 1 - log(x/a) with the sign of x - a, and coefficients of his S."""
    excess = (x - a) / a
    near = clamp(-1e-3, excess, 1e-3)
    taylor = (near * near) * (1 / 2 - near * (1 / 3 - near * (1 / 4 - near * (1 / 5 - near / 6))))
    eta = sign(excess) * sqrt(2 * select(eq(near, excess), taylor, excess - log1p(excess)))
    part = clamp(-1, eta, 1)
    return eta, -1 / 3 + part * (1 / 12 - part * (2 / 135 - part / 864)) - 1 / (540 * a)


def _by_element(function: Any, a: Array, x: Array) -> tuple[Array, ...]:
    """Return a function of two numbers at every element, so that each of them ends its loop by itself."""
    if not x.ndim:
        return function(a, x)
    return tuple(found.reshape(x.shape) for found in vmap(function)(a.ravel(), x.ravel()))


def _series(a: Array, x: Array) -> tuple[Array]:
    """Return S."""

    def step(state: Any) -> Any:
        n, term, total = state
        term = term * (x / (a + n))
        return n + 1, term, total + term

    one = full_like(x, 1)
    *_, total = while_loop(lambda state: gt(state[1], state[2] * _EPS), step, (1.0, one, one))
    return (total,)


def _series_and_slope(a: Array, x: Array) -> tuple[Array, Array]:
    """Return S and T."""

    def unfinished(state: Any) -> Array:
        _, term, harmonic, total, weighted = state
        return or_(gt(term, total * _EPS), gt(term * harmonic, weighted * _EPS))

    def step(state: Any) -> Any:
        n, term, harmonic, total, weighted = state
        term = term * (x / (a + n))
        harmonic = harmonic + 1 / (a + n)
        return n + 1, term, harmonic, total + term, weighted + term * harmonic

    zero, one = full_like(x, 0), full_like(x, 1)
    *_, total, weighted = while_loop(unfinished, step, (1.0, one, zero, one, zero))
    return total, weighted


def _fraction(a: Array, x: Array) -> tuple[Array]:
    """Return F, by Lentz's method as modified by Thompson & Barnett 1986."""

    def step(state: Any) -> Any:
        n, c, d, value, _ = state
        numerator, divisor = -n * (n - a), x + 1 - a + 2 * n
        d, c = 1 / (numerator * d + divisor), divisor + numerator / c
        return n + 1, c, d, value * (c * d), abs(c * d - 1)

    first = 1 / (x + 1 - a)
    start = (1.0, full_like(x, 1e300), first, first, full_like(x, 1))
    *_, value, _ = while_loop(lambda state: gt(state[-1], _SETTLED), step, start)
    return (value,)


def _fraction_and_slope(a: Array, x: Array) -> tuple[Array, Array]:
    """Return F and its derivative by `a`, by Lentz's method as modified by Thompson & Barnett 1986."""

    def unfinished(state: Any) -> Array:
        return gt(state[-1], _SETTLED)

    def step(state: Any) -> Any:
        n, c, dc, d, dd, value, slope, _ = state
        numerator, divisor = -n * (n - a), x + 1 - a + 2 * n
        d, dd_inner = 1 / (numerator * d + divisor), n * d + numerator * dd - 1
        dd = -(d * d) * dd_inner
        c, dc = divisor + numerator / c, n / c - numerator * dc / (c * c) - 1
        factor = c * d
        after = slope * factor + value * (c * dd + dc * d)
        change = max(abs(factor - 1), abs(after - slope) / max(abs(after), abs(value * factor)))
        return n + 1, c, dc, d, dd, value * factor, after, change

    first = 1 / (x + 1 - a)
    start = (1.0, full_like(x, 1e300), full_like(x, 0), first, first * first, first, first * first, full_like(x, 1))
    *_, value, slope, _ = while_loop(unfinished, step, start)
    return value, slope
