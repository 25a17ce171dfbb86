"""Losses of residuals: functions that grow more slowly than the square, so that outliers count less.

A residual r counts as s^2 rho((r / s)^2) / 2 for a scale s. Weights of residuals and Jacobians, with the correction for
the curvature of rho. From Triggs, McLauchlan, Hartley & Fitzgibbon 2000, Bundle Adjustment, section 4.3.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracer.errors import ArgumentError, ShapeError, message
from tracer.numpy import arctan, log1p, maximum, sqrt, sum, vdot, where
from tracer.numpy.core.conversion import array_of
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import call_user

_Rho = Callable[[Array], tuple[Array, Array, Array]]  # of z: the value, the first and the second derivative


class Loss(NamedTuple):
    """Loss of residuals, and the residual beyond which they are outliers."""

    rho: _Rho
    scale: Array


def _soft_l1(z: Array) -> tuple[Array, Array, Array]:
    root = sqrt(1 + z)
    return 2 * z / (1 + root), 1 / root, -0.5 / root**3


def _huber(z: Array) -> tuple[Array, Array, Array]:
    near = z <= 1
    root = sqrt(where(near, 1, z))
    return where(near, z, 2 * root - 1), where(near, 1, 1 / root), where(near, 0, -0.5 / root**3)


def _cauchy(z: Array) -> tuple[Array, Array, Array]:
    share = 1 / (1 + z)
    return log1p(z), share, -share * share


def _arctan(z: Array) -> tuple[Array, Array, Array]:
    share = 1 / (1 + z * z)
    return arctan(z), share, -2 * z * share * share


_LOSSES: dict[str, _Rho] = {"soft_l1": _soft_l1, "huber": _huber, "cauchy": _cauchy, "arctan": _arctan}


def loss_of(name: str, given: Any) -> _Rho | None:
    """Return a loss by its name, or a user's; None for "linear". Raises ArgumentError for another name."""
    if callable(given):

        def own(z: Array) -> tuple[Array, Array, Array]:
            found = array_of(name, call_user(given, (z,), {}))
            if found.shape != (3, *z.shape):
                text = f"{name}{here()}: loss returns its value and two derivatives for each residual, [3, m]"
                raise ShapeError(message(text, f"got {found.type} for {z.type}"))
            return found[0].astype(z.dtype), found[1].astype(z.dtype), found[2].astype(z.dtype)

        return own
    if isinstance(given, str) and (given == "linear" or given in _LOSSES):
        return _LOSSES.get(given)
    known = f"linear, {', '.join(_LOSSES)}, or a function"
    raise ArgumentError(message(f"{name}{here()}: no such loss", f"got {given!r}", help=known))


def weighed(loss: Loss | None, residual: Array, jacobian: Array) -> tuple[Array, Array, Array]:
    """Return twice the cost, and residuals [m] and a Jacobian [m, n] whose plain squares are a model of it."""
    if loss is None:
        return vdot(residual, residual), residual, jacobian
    size, slope, bend = _parts(loss, residual)
    # outliers keep a tenth of their weight, or the model would have no curvature for them
    factor = sqrt(maximum(slope + 2 * bend * (residual / loss.scale) ** 2, 0.1 * slope))
    return size, residual * slope / factor, jacobian * factor[:, None]


def twice_cost(loss: Loss | None, residual: Array) -> Array:
    """Return twice the cost."""
    return vdot(residual, residual) if loss is None else _parts(loss, residual)[0]


def cost_slopes(loss: Loss | None, residual: Array) -> Array:
    """Return the derivative of the cost by each residual [m]."""
    return residual if loss is None else residual * _parts(loss, residual)[1]


def _parts(loss: Loss, residual: Array) -> tuple[Array, Array, Array]:
    value, slope, bend = loss.rho((residual / loss.scale) ** 2)
    return sum(value) * loss.scale**2, slope, bend
