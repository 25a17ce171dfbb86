"""BlackJAX's quick start: NUTS, window adaptation, and other samplers, on a normal of unknown location and scale."""

from __future__ import annotations

from typing import Any

import blackjax
import jax
import jax.numpy as jnp
from jax.scipy import stats

from tools.as_jax.reporting import case

OBSERVED = 10.0 + 20.0 * jax.random.normal(jax.random.key(5), (100,))
INVERSE = jnp.array([0.5, 0.01])
START = {"loc": 1.0, "log_scale": 1.0}


def logdensity(p: Any) -> Any:
    scale = jnp.exp(p["log_scale"])
    return p["log_scale"] + jnp.sum(stats.norm.logpdf(OBSERVED, p["loc"], scale))


def drawn(kernel: Any, position: Any = START, count: int = 40) -> Any:
    """Return the last position of a chain."""
    state = kernel.init(position)
    keys = jax.random.split(jax.random.key(0), count)
    return jax.lax.scan(lambda s, k: (kernel.step(k, s)[0], None), state, keys)[0].position


case("nuts", lambda: drawn(blackjax.nuts(logdensity, 1e-1, INVERSE)))
case("hmc", lambda: drawn(blackjax.hmc(logdensity, 1e-2, INVERSE, 10)))
case("mala", lambda: drawn(blackjax.mala(logdensity, 1e-3)))
case("random walk", lambda: drawn(blackjax.additive_step_random_walk(
    logdensity, blackjax.mcmc.random_walk.normal(jnp.array([0.1, 0.1])))))  # fmt: skip
case("window adaptation", lambda: blackjax.window_adaptation(blackjax.nuts, logdensity).run(
    jax.random.key(1), START, num_steps=20)[0].state.position)  # fmt: skip
case(
    "chains",
    lambda: jax.vmap(lambda loc: drawn(blackjax.hmc(logdensity, 1e-2, INVERSE, 5), {"loc": loc, "log_scale": 1.0}, 10))(
        jnp.arange(3.0)
    ),
)
