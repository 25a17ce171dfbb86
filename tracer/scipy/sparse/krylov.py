"""Krylov iterations for linear systems on vectors [n]: conjugate gradients, BiCGSTAB, GMRES.

They are not differentiated.

Saad 2003, Iterative Methods for Sparse Linear Systems, second edition: algorithms 9.1, 7.7 (with a preconditioner on
the right) and 9.5. All start from zero and stop once the norm of the updated residual b - A x is at most `target`. They
return NaN if that norm is not finite, since no x is then known to be near the solution.

`solved` starts elsewhere: it adds to x the solution for the residual at x. The residual is scaled by a power of two so
that squares neither overflow nor underflow. Floats of 16 bits are carried in 32; the map receives its own dtype.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracer.lax import while_loop
from tracer.numpy import (
    absolute,
    arange,
    clip,
    conj,
    eye,
    finfo,
    frexp,
    hypot,
    imag,
    inf,
    ldexp,
    maximum,
    nan,
    ones,
    promote_types,
    real,
    sqrt,
    vdot,
    where,
    zeros,
    zeros_like,
)
from tracer.scipy.linalg import solve_triangular
from tracer.trace.array import Array

Map = Callable[[Array], Array]


class Limits(NamedTuple):
    """When an iteration ends: at this norm of the residual, or after this many steps."""

    target: Any
    steps: Any


class Tolerances(NamedTuple):
    """The tolerance of the user: a factor of the norm of b, or a norm, whichever is larger."""

    share: Any
    target: Any
    steps: Any


Iteration = Callable[[Map, Array, Limits, Map], Array]


def solved(
    iterate: Iteration, apply: Map, b: Array, x: Array, tolerances: Tolerances, precondition: Map
) -> Array:  # fmt: skip
    """Solve A x = b for x by an iteration, from an initial x."""
    wide = promote_types(b.dtype, "float32")

    def widened(function: Map) -> Map:
        return lambda v: function(v.astype(b.dtype)).astype(wide)

    rest = (b - apply(x)).astype(wide)
    scale = _power_of_two(rest)
    share, target = (limit.astype(scale.dtype) for limit in tolerances[:2])
    limits = Limits(maximum(share * _norm(b.astype(wide) / scale), target / scale), tolerances.steps)
    change = iterate(widened(apply), rest / scale, limits, widened(precondition))
    return x + (scale * change).astype(b.dtype)


def norm(x: Array) -> Array:
    """Return the Euclidean norm of a vector whose squares do not overflow; for floats of 16 bits, in 32."""
    wide = x.astype(promote_types(x.dtype, "float32"))
    scale = _power_of_two(wide)
    return scale * _norm(wide / scale)


def _norm(x: Array) -> Array:
    return sqrt(real(vdot(x, x)))


def _power_of_two(x: Array) -> Array:
    """Return the power of two just above the largest part of a vector; 1 for a zero vector."""
    largest = maximum(absolute(real(x)), absolute(imag(x))).max()
    found = ldexp(ones((), largest.dtype), clip(frexp(largest)[1], None, finfo(largest.dtype).maxexp - 1))
    return where((largest > 0) & (largest < inf), found, 1.0)


def conjugate_gradients(apply: Map, b: Array, limits: Limits, precondition: Map) -> Array:
    """Solve systems with hermitian positive definite maps and preconditioners."""

    def goes_on(state: Any) -> Any:
        return (_norm(state[1]) > limits.target) & (state[-1] < limits.steps)

    def step(state: Any) -> Any:
        x, rest, way, size, count = state
        moved = apply(way)
        length = size / real(vdot(way, moved))
        x, rest = x + length * way, rest - length * moved
        better = precondition(rest)
        left = real(vdot(rest, better))
        return x, rest, better + (left / size) * way, left, count + 1

    way = precondition(b)
    x, rest, *_ = while_loop(goes_on, step, (zeros_like(b), b, way, real(vdot(b, way)), 0))
    return _known(x, rest)


def stabilised_gradients(apply: Map, b: Array, limits: Limits, precondition: Map) -> Array:
    """Solve systems with any map. Ends also at a breakdown, when a product of vectors is 0."""

    def goes_on(state: Any) -> Any:
        _, rest, _, _, _, count, stuck = state
        return (_norm(rest) > limits.target) & (count < limits.steps) & ~stuck

    def step(state: Any) -> Any:
        x, rest, way, moved, (size, length, damping), count, _ = state
        now = vdot(b, rest)
        way = rest + _quotient(now, size) * _quotient(length, damping) * (way - damping * moved)
        ahead = precondition(way)
        moved = apply(ahead)
        length = _quotient(now, vdot(b, moved))
        rest = rest - length * moved
        aside = precondition(rest)
        turned = apply(aside)
        damping = _quotient(vdot(turned, rest), vdot(turned, turned))
        x, rest = x + length * ahead + damping * aside, rest - damping * turned
        return x, rest, way, moved, (now, length, damping), count + 1, (length == 0) | (damping == 0)

    one = zeros((), b.dtype) + 1
    still = zeros(b.shape, b.dtype)
    start = (still, b, still, still, (one, one, one), 0, zeros((), bool))
    x, rest, *_ = while_loop(goes_on, step, start)
    return _known(x, rest)


def minimal_residuals(
    apply: Map, b: Array, limits: Limits, precondition: Map, *, restart: int, early: bool
) -> Array:  # fmt: skip
    """Solve systems with any map. An iteration takes up to `restart` directions; `early`: only as many as needed."""

    def goes_on(state: Any) -> Any:
        return (_norm(state[1]) > limits.target) & (state[-1] < limits.steps)

    def step(state: Any) -> Any:
        x, rest, count = state
        x = x + precondition(_best(lambda v: apply(precondition(v)), rest, limits.target, restart, early))
        return x, b - apply(x), count + 1

    x, rest, _ = while_loop(goes_on, step, (zeros_like(b), b, 0))
    return _known(x, rest)


def _known(x: Array, rest: Array) -> Array:
    return where(_norm(rest) < inf, x, nan)


def _best(apply: Map, b: Array, target: Any, restart: int, early: bool) -> Array:
    """Return the combination of b, A b, A A b, ... that A brings closest to b.

    basis: orthonormal, in rows; turn: the product of Givens rotations that makes the map triangular on it.
    """
    size = _norm(b)
    indices = arange(restart)

    def goes_on(state: Any) -> Any:
        *_, left, count, complete = state
        more = (count < restart) & ~complete
        return more & (left > target) if early else more

    def step(state: Any) -> Any:
        basis, turn, triangle, used, _, k, _ = state
        moved = apply(basis[k])
        before = _norm(moved)
        moved, overlap = _orthogonal(moved, basis)
        after = _norm(moved)
        complete = ~(after > finfo(b.dtype).eps * before)
        after = where(complete, 0.0, after)
        basis = basis.at[k + 1].set(where(complete, 0.0, moved / where(complete, 1.0, after)))
        column = turn @ overlap.at[k + 1].set(after.astype(b.dtype))
        above, below = column[k], real(column[k + 1])
        length = hypot(absolute(above), below)
        exists = length > 16 * finfo(b.dtype).eps * before  # else the map gives nothing new, up to rounding
        safe = where(exists, length, 1.0)
        cosine, sine = where(exists, conj(above) / safe, 1.0), where(exists, below / safe, 0.0)
        first, second = turn[k], turn[k + 1]
        turn = turn.at[k].set(cosine * first + sine * second)
        turn = turn.at[k + 1].set(conj(cosine) * second - sine * first)
        column = where(indices == k, safe.astype(b.dtype), where(indices < k, column[:restart], 0.0))
        triangle = triangle.at[:, k].set(where(exists, column, (indices == k).astype(b.dtype)))
        used = used.at[k].set(exists)
        return basis, turn, triangle, used, size * absolute(turn[k + 1, 0]), k + 1, complete

    basis = zeros((restart + 1, b.size), b.dtype).at[0].set(_quotient(b, size.astype(b.dtype)))
    start = (
        basis, eye(restart + 1, dtype=b.dtype), eye(restart, dtype=b.dtype), zeros(restart, bool), size, 0,
        zeros((), bool),
    )  # fmt: skip
    basis, turn, triangle, used, *_ = while_loop(goes_on, step, start)
    weights = solve_triangular(triangle, where(used, size * turn[:restart, 0], 0.0))
    return weights @ basis[:restart]


def _orthogonal(x: Array, basis: Array) -> tuple[Array, Array]:
    """Return the part of x orthogonal to the rows of a basis, and the coefficients of its other part."""
    overlap = conj(basis) @ x
    x = x - overlap @ basis
    again = conj(basis) @ x  # removes rounding errors: Giraud, Langou & Rozložník 2005: twice is enough
    return x - again @ basis, overlap + again


def _quotient(x: Any, y: Any) -> Any:
    """Return x / y, and 0 where y is 0."""
    none = y == 0
    return where(none, 0.0, x / where(none, 1.0, y))
