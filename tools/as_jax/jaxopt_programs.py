"""Solvers, line searches, projections and implicit derivatives of jaxopt."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jaxopt
from jaxopt import projection, prox

from tools.as_jax.reporting import case

A = jnp.linspace(-1.0, 1.0, 30).reshape(10, 3) ** 2 + jnp.eye(10, 3)
B = jnp.cos(jnp.arange(10.0))


def ridge(w: Any, l2: Any = 0.1) -> Any:
    return jnp.mean((A @ w - B) ** 2) + l2 * jnp.sum(w**2)


def residual(w: Any) -> Any:
    return A @ jnp.tanh(w) - B


START = jnp.zeros(3)
SOLVERS = {
    "gradient descent": jaxopt.GradientDescent(ridge, maxiter=200),
    "bfgs": jaxopt.BFGS(ridge, maxiter=50),
    "lbfgs": jaxopt.LBFGS(ridge, maxiter=50),
    "nonlinear cg": jaxopt.NonlinearCG(ridge, maxiter=100),
    "gauss newton": jaxopt.GaussNewton(residual, maxiter=20),
    "levenberg marquardt": jaxopt.LevenbergMarquardt(residual, maxiter=30),
    "armijo sgd": jaxopt.ArmijoSGD(ridge, maxiter=50),
    "polyak sgd": jaxopt.PolyakSGD(ridge, maxiter=50),
}
for name, solver in SOLVERS.items():
    case(name, lambda solver=solver: solver.run(START).params)
case("proximal gradient", lambda: jaxopt.ProximalGradient(
    ridge, prox.prox_lasso, maxiter=200).run(START, hyperparams_prox=0.1).params)  # fmt: skip
case("projected gradient", lambda: jaxopt.ProjectedGradient(
    ridge, projection.projection_simplex, maxiter=200).run(jnp.ones(3) / 3).params)  # fmt: skip
case("implicit derivative", lambda: jax.jacobian(
    lambda l2: jaxopt.GradientDescent(ridge, maxiter=500, tol=1e-10).run(START, l2).params)(0.1))  # fmt: skip
case("bisection", lambda: jaxopt.Bisection(lambda x: x**3 - x - 2, 1.0, 2.0, check_bracket=False).run().params)
case("fixed point", lambda: jaxopt.FixedPointIteration(jnp.cos, maxiter=200, tol=1e-10).run(jnp.asarray(1.0)).params)
case("anderson", lambda: jaxopt.AndersonAcceleration(jnp.cos, maxiter=50, tol=1e-8).run(jnp.asarray(1.0)).params)
Z = jnp.array([0.5, -1.0, 2.0, 0.1])
for name in ("projection_simplex", "projection_l1_ball", "projection_l2_ball", "projection_non_negative"):
    case(name, lambda name=name: jax.jit(getattr(projection, name))(Z))
case("batch", lambda: jax.vmap(lambda target: jaxopt.LBFGS(
    lambda w: jnp.mean((A @ w - target) ** 2), maxiter=30).run(START).params)(jnp.stack([B, 2 * B])))  # fmt: skip
