"""The heat equation on a rod, stepped to its steady state, and the steady state's derivative by the initial state.

∂u/∂t = ∂²u/∂x² on 0 ≤ x ≤ 1, with both ends held at their initial temperature. The number of steps is not known
beforehand. `while_loop` runs until the largest change of a step is below a tolerance.
"""

from __future__ import annotations

from typing import NamedTuple

import tracer
import tracer.numpy as tnp
from tracer import jacfwd, jit, lax

DIFFUSION_NUMBER = 0.4  # Δt/Δx²; explicit Euler is stable up to 1/2
TOLERANCE = 1e-12  # bound of the largest change in one step, in the unit of the temperature


class Steady(NamedTuple):
    """The steady state, float64 [n], and the number of steps to it, an integer."""

    temperature: tracer.Array
    steps: tracer.Array


@jit
def steady_state(initial: tracer.Array) -> Steady:
    """Step the heat equation from `initial`, float64 [n] at n evenly spaced points, to its steady state.

    The exact solution is a straight line between the two ends.
    """

    def still_moving(state: tuple[tracer.Array, tracer.Array, tracer.Array]) -> tracer.Array:
        _, change, _ = state
        return change > TOLERANCE

    def step(
        state: tuple[tracer.Array, tracer.Array, tracer.Array],
    ) -> tuple[tracer.Array, tracer.Array, tracer.Array]:
        u, _, steps = state
        flow = DIFFUSION_NUMBER * (u[:-2] - 2.0 * u[1:-1] + u[2:])
        return u.at[1:-1].add(flow), tnp.max(tnp.abs(flow)), steps + 1

    temperature, _, steps = lax.while_loop(still_moving, step, (initial, tnp.asarray(tnp.inf), tnp.asarray(0)))
    return Steady(temperature, steps)


def sensitivity(initial: tracer.Array) -> tracer.Array:
    """Return d(steady temperature at i)/d(initial temperature at j), float64 [n, n], in forward mode through the loop.

    Only the ends have an effect. The first column falls from 1 to 0 along the rod and the last one rises.
    All between are zero.
    """
    jacobian: tracer.Array = jacfwd(lambda u: steady_state(u).temperature)(initial)
    return jacobian


def hot_middle(points: int = 17) -> tracer.Array:
    """Return a rod at 1 on the left, 0 on the right and hot in the middle, float64 [points]."""
    x = tnp.linspace(0.0, 1.0, points)
    return 1.0 - x + tnp.sin(tnp.pi * x)
