"""Radau IIA of order 5, an implicit method for stiff problems: Hairer & Wanner, Solving ODEs II, section IV.8.

The stages solve a nonlinear system by Newton's method with one Jacobian per accepted step. The eigenvectors of the
method's matrix split its linear systems in two, one real and one complex. The stages have derivatives by the implicit
function theorem.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from tracer.lax import cond, custom_root, while_loop
from tracer.numpy import (
    absolute,
    asarray,
    clip,
    eye,
    finfo,
    inf,
    isfinite,
    maximum,
    minimum,
    result_type,
    sqrt,
    stack,
    where,
    zeros,
)
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
    interpolated,
    norm,
)
from tracer.scipy.linalg import lu_factor, lu_solve
from tracer.scipy.optimize.functions import linear_solution
from tracer.trace.array import Array

_ROOT = np.sqrt(6)
_NODES: Final = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1])
_MATRIX: Final = np.array([
    [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225],
    [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225],
    [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9],
])  # fmt: skip
_ERROR: Final = np.array([-13 - 7 * _ROOT, -13 + 7 * _ROOT, -1]) / 3
_ITERATIONS = 6  # of Newton's method in one step


class _Memory(NamedTuple):
    """Jacobian at the current value, and size and error of the last accepted step."""

    jacobian: Array
    h: Array
    error: Array


class _Newton(NamedTuple):
    stages: Array
    change: Array
    rate: Array
    iterations: Array
    converged: Array
    diverged: Array


def radau(jacobian: Callable[[Array, Array], Array]) -> Method:
    """Return the method for a function with this Jacobian, of the time and the value. Its rows are Z_i = Y_i - y."""

    def memory(f: Slope, t: Array, y: Array) -> _Memory:
        return _Memory(_constant(jacobian, t, y), asarray(0, t.dtype), asarray(1, y.dtype))

    return Method(3, 3, memory, partial(_attempt, jacobian), _coefficients)


def _constant(jacobian: Callable[[Array, Array], Array], t: Array, y: Array) -> Array:
    return stop_gradient(jacobian(stop_gradient(t), stop_gradient(y)))


def _attempt(
    jacobian: Callable[[Array, Array], Array], f: Slope, state: State, h: Array, tolerances: Tolerances
) -> Attempt:  # fmt: skip
    y, (current, last_h, last_error) = state.y, state.memory
    dtype = y.dtype
    size = h.astype(dtype)
    scale = stop_gradient(tolerances.atol + tolerances.rtol * absolute(y))
    share = ((state.t + asarray(_NODES, h.dtype) * h - state.last.t) / state.last.h).astype(dtype)
    before, _ = _coefficients(f, state.last)
    guess = stack([interpolated(state.last.y, before, s) - y for s in share])

    linear, whole = _linear_systems(current, size)
    tolerance = maximum(10 * finfo(dtype).eps / tolerances.rtol, minimum(0.03, sqrt(tolerances.rtol))).astype(dtype)

    def slopes(stages: Array) -> Array:
        times = [state.t + asarray(node, h.dtype) * h for node in _NODES]
        return stack([f(t, y + z) for t, z in zip(times, stages, strict=True)])

    def residual(flat: Array) -> Array:
        return flat - (size * asarray(_MATRIX, dtype) @ slopes(flat.reshape(3, -1))).ravel()

    found, end = custom_root(
        residual,
        stop_gradient(guess).ravel(),
        partial(_newton, size, whole, scale, tolerance),
        linear_solution,
        has_aux=True,
    )
    stages = found.reshape(3, -1)
    value = y + stages[2]
    spread = asarray(_ERROR, dtype) @ stop_gradient(stages) / size
    weight = stop_gradient(tolerances.atol + tolerances.rtol * maximum(absolute(y), absolute(value)))
    start = stop_gradient(state.slope)
    estimate = linear(start + spread)
    error = norm(estimate / weight)

    def filtered() -> Array:
        return norm(linear(stop_gradient(f(state.t, y + estimate)) + spread) / weight)

    error = cond((error > 1) & state.rejected, filtered, lambda: error)
    accepted = end.converged & (error <= 1)
    safety = SAFETY * (2 * _ITERATIONS + 1) / (2 * _ITERATIONS + end.iterations)
    growing = absolute(size) / where(last_h == 0, 1, absolute(last_h)).astype(dtype)
    positive = where(error > 0, error, 1e-20)
    multiplier = where(last_h == 0, 1, growing * (last_error / positive) ** 0.25)
    wanted = safety * minimum(1, multiplier) * positive**-0.25
    factor = where(isfinite(error), clip(wanted, SHRINK, where(accepted, GROW, 1)), SHRINK)
    factor = where(end.converged, factor, 0.5)
    t = state.t + h
    slope = f(t, value)
    new = cond(accepted, lambda: _constant(jacobian, t, value), lambda: current)
    kept = _Memory(new, *(stop_gradient(where(accepted, a, b)) for a, b in ((h, last_h), (positive, last_error))))
    counts = Counts(3 * end.iterations + 1, accepted.astype(int), 2)
    return Attempt(value, slope, stages, where(end.converged, error, inf), stop_gradient(factor), counts, kept)


def _linear_systems(jacobian: Array, h: Array) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Return solutions of (mu / h - J) x = b, for the real eigenvalue mu of the method, and of all three stages.

    The latter is (A^-1 / h - J) x = b of stages [3, n].
    """
    values, vectors = np.linalg.eig(np.linalg.inv(_MATRIX))
    real, pair = int(np.argmin(np.abs(values.imag))), int(np.argmax(values.imag))
    inverse = np.linalg.inv(vectors)
    n, h = len(jacobian), stop_gradient(h)
    one = eye(n, dtype=jacobian.dtype)
    first = lu_factor(float(values[real].real) / h * one - jacobian)
    wide = result_type(jacobian.dtype, np.complex64)
    second = lu_factor(asarray(complex(values[pair]), wide) / h * one - jacobian)

    def whole(side: Array) -> Array:
        turned = asarray(inverse, wide) @ side
        alone, paired = lu_solve(first, turned[real].real), lu_solve(second, turned[pair])
        back = asarray(vectors, wide)
        return back[:, real, None].real * alone + 2 * (back[:, pair, None] * paired).real

    return lambda side: lu_solve(first, side), whole


def _newton(
    h: Array, whole: Callable[[Array], Array], scale: Array, tolerance: Array, residual: Callable[[Array], Array],
    guess: Array,
) -> tuple[Array, _Newton]:  # fmt: skip
    """Solve for the stages. The error estimate of the method assumes no more accuracy than the tolerance."""
    n = guess.size // 3
    dtype = guess.dtype

    def iteration(s: _Newton) -> _Newton:
        # with r = z - h A f(z), the system is (A^-1 / h - J) dz = -(A h)^-1 r
        side = -(asarray(np.linalg.inv(_MATRIX), dtype) @ residual(s.stages).reshape(3, n)) / h
        step = whole(side)
        change = norm(step / scale)
        rate = where(s.iterations > 0, change / where(s.change > 0, s.change, 1), s.rate)
        later = s.iterations > 0
        left = _ITERATIONS - s.iterations
        hopeless = later & ((rate >= 1) | (rate**left / where(rate < 1, 1 - rate, 1) * change > tolerance))
        diverged = hopeless | ~isfinite(change)
        done = ~diverged & ((change == 0) | (later & (rate / where(rate < 1, 1 - rate, 1) * change < tolerance)))
        stages = where(diverged, s.stages, s.stages + step.ravel())
        return _Newton(stages, change, rate, s.iterations + 1, done, diverged)

    no = zeros((), bool)
    start = _Newton(guess, norm(scale), norm(scale) * 0 + 1, asarray(0, int), no, no)
    end = while_loop(lambda s: ~s.converged & ~s.diverged & (s.iterations < _ITERATIONS), iteration, start)
    return end.stages, end


def _coefficients(f: Slope, last: Interval) -> tuple[Array, int]:
    """Return the coefficients of the polynomial through the value and the three stages."""
    powers = np.linalg.inv(_NODES[:, None] ** np.array([1, 2, 3]))
    return asarray(powers, last.y.dtype) @ last.rows, 0
