"""Equinox's core: modules as trees, filtered transforms, layers, state, serialisation and bounded loops."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox import internal

from tools.as_jax.reporting import case

KEY = jax.random.key(0)
X = jnp.linspace(-1.0, 1.0, 12).reshape(4, 3)
MODEL = eqx.nn.MLP(3, 2, 8, 2, key=KEY)


def loss(model: Any, x: Any) -> Any:
    return jnp.mean(jax.vmap(model)(x) ** 2)


def stored() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.eqx"
        eqx.tree_serialise_leaves(path, MODEL)
        return eqx.filter(eqx.tree_deserialise_leaves(path, MODEL), eqx.is_array)


def normalised() -> Any:
    layer, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, axis_name="batch", mode="batch")
    return jax.vmap(layer, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(X, state)[0]


@eqx.filter_custom_vjp
def product(y: Any, z: Any) -> Any:
    return y * z


product.def_fwd(lambda perturbed, y, z: (y * z, z))
product.def_bwd(lambda z, g, perturbed, y, _: g * z)


def repeated(kind: str, factor: Any, count: Any = 5) -> Any:
    return internal.while_loop(
        lambda c: c[0] < count, lambda c: (c[0] + 1, c[1] * factor), (0, jnp.asarray(1.0)), max_steps=10, kind=kind
    )[1]


case("forward", lambda: jax.vmap(MODEL)(X))
case("filter_jit", lambda: eqx.filter_jit(lambda m, x: jax.vmap(m)(x))(MODEL, X))
case("filter_grad", lambda: eqx.filter_grad(loss)(MODEL, X))
case("filter_value_and_grad", lambda: eqx.filter_jit(eqx.filter_value_and_grad(loss))(MODEL, X))
case("filter_vmap", lambda: eqx.filter_vmap(MODEL)(X))
case("ensemble", lambda: eqx.filter_vmap(lambda m, x: m(x), in_axes=(eqx.if_array(0), None))(
    eqx.filter_vmap(lambda k: eqx.nn.Linear(3, 2, key=k))(jax.random.split(KEY, 3)), X[0]))  # fmt: skip
case("convolution", lambda: eqx.nn.Conv2d(1, 2, 3, key=KEY)(jnp.ones((1, 5, 5))))
case("pooling", lambda: eqx.nn.MaxPool2d(2, 2)(jnp.arange(16.0).reshape(1, 4, 4)))
case("GRU", lambda: eqx.nn.GRUCell(3, 4, key=KEY)(X[0], jnp.zeros(4)))
case("LSTM", lambda: eqx.nn.LSTMCell(3, 4, key=KEY)(X[0], (jnp.zeros(4), jnp.zeros(4))))
case("layer norm", lambda: eqx.nn.LayerNorm(3)(X[0]))
case("batch norm", normalised)
case(
    "attention", lambda: eqx.nn.MultiheadAttention(2, 4, key=KEY)(jnp.ones((3, 4)), jnp.ones((3, 4)), jnp.ones((3, 4)))
)
case("dropout", lambda: eqx.nn.Dropout(0.5)(X[0], key=KEY))
case("embedding", lambda: eqx.nn.Embedding(5, 3, key=KEY)(jnp.asarray(2)))
case("tree_at", lambda: eqx.filter(eqx.tree_at(lambda m: m.layers[0].bias, MODEL, jnp.zeros(8)), eqx.is_array))
case("serialisation", stored)
case("closure conversion", lambda: eqx.filter_closure_convert(lambda v: v * X[0], X[0])(X[0]))
case("checkpoint", lambda: eqx.filter_grad(eqx.filter_checkpoint(lambda m: loss(m, X)))(MODEL))
case("custom vjp", lambda: jax.grad(lambda y: product(y, jnp.asarray(3.0)))(jnp.asarray(2.0)))
case("error_if", lambda: eqx.filter_jit(lambda x: eqx.error_if(x, x.sum() > 99.0, "too large"))(X))
for kind in ("lax", "bounded", "checkpointed"):
    case(f"{kind} loop", lambda kind=kind: repeated(kind, 1.5))
    case(f"{kind} loop, batch", lambda kind=kind: jax.vmap(lambda n: repeated(kind, 1.5, n))(jnp.arange(4)))
for kind in ("bounded", "checkpointed"):
    case(f"{kind} loop, gradient", lambda kind=kind: jax.grad(lambda a: repeated(kind, a))(1.5))
case("filter_jvp", lambda: eqx.filter_jvp(lambda x: loss(MODEL, x), (X,), (jnp.ones_like(X),)))
