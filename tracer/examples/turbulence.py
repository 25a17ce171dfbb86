"""The Kuramoto-Sivashinsky equation by Fourier modes, and the gradient of its later waves.

∂u/∂t = -u ∂u/∂x - ∂²u/∂x² - ∂⁴u/∂x⁴ on a circle: flames and thin films obey it, and its waves are chaotic. The linear
part is stiff, so exponentials integrate it exactly: ETDRK4 of Cox & Matthews 2002, J. Comput. Phys. 176, with the
coefficients' means over circles of Kassam & Trefethen 2005, SIAM J. Sci. Comput. 26(4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import jit, lax, value_and_grad

LENGTH = 32.0 * np.pi  # of the circle
STEP = 0.25  # in time


class Coefficients(NamedTuple):
    """Factors of one ETDRK4 step for each Fourier mode, float64 [n // 2 + 1]; `slope` is complex128."""

    half: tracer.Array
    whole: tracer.Array
    stage: tracer.Array
    first: tracer.Array
    middle: tracer.Array
    last: tracer.Array
    slope: tracer.Array


def grid(points: int) -> tracer.Array:
    """Return the places of the solution's values, float64 [points], evenly spaced on the circle."""
    return LENGTH * tnp.arange(points) / points


def coefficients(points: int, *, step: float = STEP) -> Coefficients:
    """Return the factors of a step for `points` values on the circle."""
    waves = 2.0 * np.pi * tnp.fft.rfftfreq(points, LENGTH / points)
    linear = waves**2 - waves**4
    # Means over 32 points of a circle around each value, where the formulas themselves would cancel.
    circle = tnp.exp(1j * np.pi * (tnp.arange(1, 33) - 0.5) / 32)
    z = step * linear[:, None] + circle

    def mean(f: tracer.Array) -> tracer.Array:
        return step * tnp.mean(f, axis=1).real

    return Coefficients(
        half=tnp.exp(step * linear / 2),
        whole=tnp.exp(step * linear),
        stage=mean((tnp.exp(z / 2) - 1) / z),
        first=mean((-4 - z + tnp.exp(z) * (4 - 3 * z + z**2)) / z**3),
        middle=mean((2 + z + tnp.exp(z) * (z - 2)) / z**3),
        last=mean((-4 - 3 * z - z**2 + tnp.exp(z) * (4 - z)) / z**3),
        slope=-0.5j * waves * (waves < 2 / 3 * tnp.max(waves)),  # without the modes that products alias
    )


def solution(initial: tracer.Array, steps: int, *, step: float = STEP) -> tracer.Array:
    """Return the values after each step, float64 [steps, n], from `initial`, float64 [n] with n even."""
    (points,) = initial.shape
    c = coefficients(points, step=step)

    def bend(modes: tracer.Array) -> tracer.Array:
        return c.slope * tnp.fft.rfft(tnp.fft.irfft(modes, points) ** 2)

    def advance(modes: tracer.Array, _: None) -> tuple[tracer.Array, tracer.Array]:
        start = bend(modes)
        a = c.half * modes + c.stage * start
        at_a = bend(a)
        b = c.half * modes + c.stage * at_a
        at_b = bend(b)
        end = bend(c.half * a + c.stage * (2 * at_b - start))
        modes = c.whole * modes + c.first * start + 2 * c.middle * (at_a + at_b) + c.last * end
        return modes, tnp.fft.irfft(modes, points)

    values: tracer.Array = lax.scan(advance, tnp.fft.rfft(initial), None, length=steps)[1]
    return values


def smooth_start(points: int) -> tracer.Array:
    """Return the initial values of Kassam & Trefethen 2005, float64 [points]."""
    x = grid(points)
    return tnp.cos(x / 16) * (1 + tnp.sin(x / 16))


@jit(static_argnames="steps")
def later_energy(initial: tracer.Array, *, steps: int) -> tuple[tracer.Array, tracer.Array]:
    """Return the mean of u² after `steps` steps, float64 [], and its gradient by the initial values, float64 [n]."""
    result: tuple[tracer.Array, tracer.Array] = value_and_grad(lambda start: tnp.mean(solution(start, steps)[-1] ** 2))(
        initial
    )
    return result
