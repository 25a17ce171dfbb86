"""Diffrax's quick start: solvers, adaptive steps, dense output, stochastic equations, and derivatives."""

from __future__ import annotations

from typing import Any

import diffrax
import jax
import jax.numpy as jnp

from tools.as_jax.reporting import case

Y0 = jnp.array([2.0, 3.0])
STEPS = diffrax.PIDController(rtol=1e-6, atol=1e-6)
TIMES = diffrax.SaveAt(ts=jnp.linspace(0.0, 1.0, 4))


def solved(y0: Any = Y0, rate: Any = 1.0, solver: Any = None, **options: Any) -> Any:
    term = diffrax.ODETerm(lambda t, y, args: -args * y)
    return diffrax.diffeqsolve(
        term, solver or diffrax.Dopri5(), t0=0.0, t1=1.0, dt0=0.1, y0=y0, args=rate, **options)  # fmt: skip


def slope(adjoint: Any) -> Any:
    return jax.grad(lambda rate: solved(rate=rate, adjoint=adjoint).ys.sum())(1.0)


def stochastic() -> Any:
    motion = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(), key=jax.random.key(0))
    noise = diffrax.ControlTerm(lambda t, y, args: 0.1 * t, motion)
    terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, args: -y), noise)
    return diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, dt0=0.05, y0=1.0, saveat=TIMES).ys


for kind in ("Euler", "Heun", "Midpoint", "Ralston", "Bosh3", "Tsit5", "Dopri5", "Dopri8"):
    case(kind, lambda kind=kind: solved(solver=getattr(diffrax, kind)()).ys)
case("adaptive steps", lambda: solved(saveat=TIMES, stepsize_controller=STEPS).ys)
case("dense output", lambda: solved(saveat=diffrax.SaveAt(dense=True)).evaluate(0.5))
case("under jit", lambda: jax.jit(lambda y: solved(y).ys)(Y0))
case(
    "batch", lambda: jax.vmap(lambda y: solved(y, saveat=TIMES, stepsize_controller=STEPS).ys)(jnp.stack([Y0, 2 * Y0]))
)
case("stochastic", stochastic)
case("gradient, DirectAdjoint", lambda: slope(diffrax.DirectAdjoint()))
case("tangent, ForwardMode", lambda: jax.jvp(
    lambda rate: solved(rate=rate, adjoint=diffrax.ForwardMode()).ys, (1.0,), (1.0,)))  # fmt: skip
case("implicit, Kvaerno5", lambda: solved(solver=diffrax.Kvaerno5(), stepsize_controller=STEPS).ys)
case("gradient, BacksolveAdjoint", lambda: slope(diffrax.BacksolveAdjoint()))
case("gradient, RecursiveCheckpointAdjoint", lambda: slope(diffrax.RecursiveCheckpointAdjoint()))
