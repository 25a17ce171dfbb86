"""Every optimiser of Optax on a small model, its schedules and its losses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from optax import contrib

from tools.as_jax.reporting import case

X = jnp.linspace(-1.0, 1.0, 24).reshape(8, 3)
Y = jnp.sin(X @ jnp.array([1.0, -2.0, 0.5]))
START = {"w": jnp.linspace(0.1, 0.6, 12).reshape(3, 4), "b": jnp.zeros(4), "v": jnp.array([0.3, -0.2, 0.1, 0.4])}


def loss(params: Any) -> Any:
    return jnp.mean((jnp.tanh(X @ params["w"] + params["b"]) @ params["v"] - Y) ** 2)


def trained(optimizer: Any) -> Any:
    """Return the parameters after 20 steps."""
    extra = isinstance(optimizer, optax.GradientTransformationExtraArgs)

    @jax.jit
    def step(params: Any, state: Any) -> Any:
        value, slope = jax.value_and_grad(loss)(params)
        given = {"value": value, "grad": slope, "value_fn": loss} if extra else {}
        updates, state = optimizer.update(slope, state, params, **given)
        return optax.apply_updates(params, updates), state

    params, state = START, optimizer.init(START)
    for _ in range(20):
        params, state = step(params, state)
    return params


OPTIMIZERS = (
    "adabelief", "adadelta", "adan", "adafactor", "adagrad", "adam", "adamax", "adamaxw", "adamw", "amsgrad",
    "fromage", "lamb", "lars", "lbfgs", "lion", "nadam", "nadamw", "noisy_sgd", "novograd", "optimistic_adam_v2",
    "optimistic_gradient_descent", "polyak_sgd", "radam", "rmsprop", "rprop", "sgd", "sign_sgd", "sm3", "yogi",
)  # fmt: skip
for name in OPTIMIZERS:
    if hasattr(optax, name):
        make = getattr(optax, name)
        case(name, lambda make=make: trained(make() if make is optax.lbfgs else make(1e-2)))
for name in ("acprop", "ademamix", "adopt", "cocob", "dadapt_adamw", "muon", "prodigy"):
    if hasattr(contrib, name):
        make = getattr(contrib, name)
        case(f"contrib.{name}", lambda make=make, name=name: trained(make() if name in ("cocob",) else make(1e-2)))
CHAINS = {
    "clipping": optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-2)),
    "accumulation": optax.MultiSteps(optax.adam(1e-2), every_k_schedule=4),
    "masked": optax.masked(optax.sgd(1e-2), {"w": True, "b": False, "v": True}),
    "partition": optax.partition(
        {"a": optax.adam(1e-2), "b": optax.sgd(1e-1)}, {"w": "a", "b": "b", "v": "a"}),
    "injected": optax.inject_hyperparams(optax.adam)(learning_rate=optax.cosine_decay_schedule(1e-2, 20)),
    "decayed": optax.chain(optax.add_decayed_weights(1e-2), optax.scale_by_adam(), optax.scale(-1e-2)),
}  # fmt: skip
for name, chain in CHAINS.items():
    case(name, lambda chain=chain: trained(chain))
SCHEDULES = {
    "cosine": optax.cosine_decay_schedule(1.0, 20), "exponential": optax.exponential_decay(1.0, 5, 0.9),
    "warmup": optax.warmup_cosine_decay_schedule(0.0, 1.0, 5, 20), "one cycle": optax.cosine_onecycle_schedule(20, 1.0),
    "polynomial": optax.polynomial_schedule(1.0, 0.1, 2, 20),
    "piecewise": optax.piecewise_constant_schedule(1.0, {5: 0.5, 10: 0.1}),
}  # fmt: skip
for name, schedule in SCHEDULES.items():
    case(f"schedule {name}", lambda schedule=schedule: [schedule(n) for n in range(0, 24, 3)])
LOGITS, LABELS = X @ START["w"], jnp.array([0, 1, 2, 3, 0, 1, 2, 3])
case("cross entropy", lambda: jax.value_and_grad(
    lambda z: optax.softmax_cross_entropy_with_integer_labels(z, LABELS).mean())(LOGITS))  # fmt: skip
case("huber", lambda: optax.huber_loss(LOGITS, jnp.ones_like(LOGITS)))
case("hinge", lambda: optax.hinge_loss(LOGITS, jnp.sign(LOGITS)))
case("ctc", lambda: jax.value_and_grad(lambda z: optax.ctc_loss(
    z[None], jnp.zeros((1, 8)), jnp.array([[1, 2, 1]]), jnp.zeros((1, 3))).sum())(LOGITS))  # fmt: skip
case("projection", lambda: optax.projections.projection_simplex(LOGITS[0]))
