"""Training steps with JAX and Optax as their users write them: the models of the examples, on drawn data.

A step changes the state that it keeps, and waits for the loss or for the parameters. Nothing of tracer is imported, so
that JAX may have a Python of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steps import shapes


def _linear(rng: Any, n: int, m: int) -> dict[str, Any]:
    bound = n**-0.5
    draw = partial(rng.uniform, -bound, bound)
    return {"w": jnp.asarray(draw((n, m)), "float32"), "b": jnp.asarray(draw(m), "float32")}


def _apply(p: Any, x: Any) -> Any:
    return x @ p["w"] + p["b"]


def _cross_entropy(logits: Any, labels: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def _stepping(loss: Callable[..., Any], params: Any, tx: Any, *batch: Any) -> Callable[[], Any]:
    @partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, opt: Any, *batch: Any) -> Any:
        (value, extra), grads = jax.value_and_grad(loss, has_aux=True)(params, *batch)
        updates, opt = tx.update(grads, opt, params)
        return optax.apply_updates(params, updates), opt, value, extra

    state = [params, tx.init(params)]

    def run() -> None:
        state[0], state[1], value, _ = step(*state, *batch)
        float(value)

    return run


def _decayed(rate: Any, decay: float) -> Any:
    return optax.adamw(rate, weight_decay=decay, mask=lambda params: jax.tree.map(lambda p: p.ndim >= 2, params))


def _images(rng: Any) -> tuple[Any, Any]:
    return rng.standard_normal((64, 1, 8, 8), "float32"), rng.integers(0, 10, 64)


def mlp() -> Callable[[], Any]:
    """Digits by one hidden layer."""
    rng = np.random.default_rng(0)
    params = {"one": _linear(rng, 64, 128), "two": _linear(rng, 128, 10)}

    def loss(p: Any, x: Any, y: Any) -> Any:
        hidden = jax.nn.relu(_apply(p["one"], x.reshape(len(x), -1)))
        return _cross_entropy(_apply(p["two"], hidden), y), None

    return _stepping(loss, params, _decayed(2e-3, 0.05), *_images(rng))


def cnn() -> Callable[[], Any]:
    """Digits by two convolutions with batch norms."""
    rng = np.random.default_rng(0)

    def block(n: int, m: int) -> dict[str, Any]:
        bound = (9 * n) ** -0.5
        weight = jnp.asarray(rng.uniform(-bound, bound, (m, n, 3, 3)), "float32")
        return {"w": weight, "b": jnp.zeros(m), "scale": jnp.ones(m), "shift": jnp.zeros(m)}

    params = {"one": block(1, 32), "two": block(32, 64), "head": _linear(rng, 256, 10)}

    def apply(p: Any, x: Any) -> tuple[Any, Any]:
        x = jax.lax.conv(x, p["w"], (1, 1), "SAME") + p["b"][:, None, None]
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
        x = (x - mean[:, None, None]) * (p["scale"] * jax.lax.rsqrt(var + 1e-5))[:, None, None]
        x = jax.nn.relu(x + p["shift"][:, None, None])
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"), (mean, var)

    def loss(p: Any, x: Any, y: Any) -> Any:
        x, one = apply(p["one"], x)
        x, two = apply(p["two"], x)
        return _cross_entropy(_apply(p["head"], x.reshape(len(x), -1)), y), (one, two)

    return _stepping(loss, params, _decayed(2e-3, 0.05), *_images(rng))


def _text(rate: float) -> Any:
    schedule = optax.warmup_cosine_decay_schedule(0.0, rate, 100, 3000)
    return optax.chain(optax.clip_by_global_norm(1.0), _decayed(schedule, 0.01))


def lstm(kinds: int = 103, dim: int = 256) -> Callable[[], Any]:
    """Characters by an LSTM."""
    rng = np.random.default_rng(0)
    params = {
        "embed": jnp.asarray(rng.standard_normal((kinds, dim)), "float32"),
        "x": _linear(rng, dim, 4 * dim), "h": _linear(rng, dim, 4 * dim), "head": _linear(rng, dim, kinds),
    }  # fmt: skip

    def loss(p: Any, windows: Any) -> Any:
        gates = _apply(p["x"], p["embed"][windows[:, :-1]])

        def cell(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(x + _apply(p["h"], h), 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((len(windows), dim))
        _, hidden = jax.lax.scan(cell, (zero, zero), gates.swapaxes(0, 1))
        return _cross_entropy(_apply(p["head"], hidden.swapaxes(0, 1)), windows[:, 1:]), None

    return _stepping(loss, params, _text(4e-3), rng.integers(0, kinds, (16, 65)))


def _rotary(x: Any) -> Any:
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[-2])[:, None] * 1e4 ** (-jnp.arange(half) / half)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)


def _norm(p: Any, x: Any) -> Any:
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p["w"] + p["b"]


def gpt(kinds: int = 103, dim: int = 128, heads: int = 4, depth: int = 4) -> Callable[[], Any]:
    """Characters by a GPT with rotary positions."""
    rng = np.random.default_rng(0)
    norm = lambda: {"w": jnp.ones(dim), "b": jnp.zeros(dim)}  # noqa: E731
    block = lambda: {  # noqa: E731
        **{name: _linear(rng, dim, dim) for name in "qkvo"}, "norm1": norm(), "norm2": norm(),
        "up": _linear(rng, dim, 4 * dim), "down": _linear(rng, 4 * dim, dim),
    }  # fmt: skip
    embed = jnp.asarray(0.02 * rng.standard_normal((kinds, dim)), "float32")
    params = {"embed": embed, "blocks": [block() for _ in range(depth)], "norm": norm()}

    def attention(p: Any, x: Any) -> Any:
        b, t, _ = x.shape
        q, k, v = (_apply(p[name], x).reshape(b, t, heads, -1).swapaxes(1, 2) for name in "qkv")
        scores = _rotary(q) @ _rotary(k).swapaxes(-1, -2) / np.sqrt(dim // heads).astype("float32")
        weights = jax.nn.softmax(jnp.where(jnp.tri(t, dtype=bool), scores, -jnp.inf))
        return _apply(p["o"], (weights @ v).swapaxes(1, 2).reshape(b, t, dim))

    def loss(p: Any, windows: Any) -> Any:
        x = p["embed"][windows[:, :-1]]
        for layer in p["blocks"]:
            x = x + attention(layer, _norm(layer["norm1"], x))
            x = x + _apply(layer["down"], jax.nn.gelu(_apply(layer["up"], _norm(layer["norm2"], x))))
        return _cross_entropy(_norm(p["norm"], x) @ p["embed"].T, windows[:, 1:]), None

    return _stepping(loss, params, _text(2e-3), rng.integers(0, kinds, (16, 65)))


def update(shapes: list[tuple[int, ...]]) -> Callable[[], Any]:
    """AdamW alone, with donated parameters and moments."""
    rng, tx = np.random.default_rng(0), optax.adamw(1e-3)
    params = [jnp.asarray(rng.standard_normal(shape), "float32") for shape in shapes]
    grads = [jnp.asarray(rng.standard_normal(shape), "float32") for shape in shapes]

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, opt: Any, grads: Any) -> Any:
        updates, opt = tx.update(grads, opt, params)
        return optax.apply_updates(params, updates), opt

    state = [params, tx.init(params)]

    def run() -> None:
        state[:] = step(*state, grads)
        jax.block_until_ready(state[0])

    return run


def step(row: str, peer: str) -> Callable[[], Any]:
    """Make the step of a row."""
    if row.startswith("AdamW"):
        return update(shapes(row))
    return {"MLP": mlp, "CNN": cnn, "LSTM": lstm, "GPT": gpt}[row.split()[0]]()
