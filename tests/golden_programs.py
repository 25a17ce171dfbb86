"""Ten programs whose texts at every stage are kept in tests/golden/programs: see `tests.test_golden_programs`."""

from __future__ import annotations

from typing import Any, Final

import tracer.numpy as tnp
from tracer import ShapeDtypeStruct, lax, nn


def softmax(x: Any) -> Any:
    shifted = x - tnp.max(x, axis=1, keepdims=True)
    weights = tnp.exp(shifted)
    return weights / tnp.sum(weights, axis=1, keepdims=True)


def layernorm(x: Any, scale: Any, shift: Any) -> Any:
    mean = tnp.mean(x, axis=1, keepdims=True)
    variance = tnp.mean((x - mean) ** 2, axis=1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    hidden = nn.gelu(x @ w1 + b1)
    return hidden @ w2 + b2


def attention(query: Any, key: Any, value: Any) -> Any:
    scores = query @ key.T / 8.0
    return nn.softmax(scores, axis=1) @ value


def convolution(images: Any, filters: Any) -> Any:
    return nn.relu(lax.conv(images, filters, window_strides=(1, 1), padding="SAME"))


def scan_rnn(state: Any, inputs: Any, weights: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        state = tnp.tanh(weights @ state + x)
        return state, tnp.sum(state)

    return lax.scan(step, state, inputs)


def newton(x: Any) -> Any:
    def step(root: Any) -> Any:
        return 0.5 * (root + x / root)

    return lax.while_loop(lambda root: tnp.abs(root * root - x) > 1e-6 * x, step, x)


def embedding(table: Any, tokens: Any, positions: Any) -> Any:
    return table[tokens] + positions


def stencil(u: Any) -> Any:
    inside = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]
    return u.at[1:-1, 1:-1].add(0.1 * inside)


def argmax(x: Any) -> Any:
    return tnp.argmax(x, axis=1)


def _f32(*shape: int) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, "float32")


PROGRAMS: Final = {
    softmax: [_f32(64, 1000)],
    layernorm: [_f32(64, 512), _f32(512), _f32(512)],
    mlp: [_f32(128, 64), _f32(64, 128), _f32(128), _f32(128, 10), _f32(10)],
    attention: [_f32(128, 64), _f32(128, 64), _f32(128, 64)],
    convolution: [_f32(2, 3, 32, 32), _f32(8, 3, 3, 3)],
    scan_rnn: [_f32(16), _f32(50, 16), _f32(16, 16)],
    newton: [_f32()],
    embedding: [_f32(1000, 64), ShapeDtypeStruct((32,), "int32"), _f32(32, 64)],
    stencil: [_f32(200, 200)],
    argmax: [_f32(64, 1000)],
}
"""Each function with the shapes of its arguments."""
