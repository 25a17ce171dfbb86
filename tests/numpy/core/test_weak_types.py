"""Which results are weak, as in JAX 0.10.2 with x64 on, where Python numbers pass through functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import grad, jit, lax, nn, vmap

W = np.ones(2, np.float32)

# of a traced number; the dtypes of results, with a star where they are weak
TRACED: dict[str, tuple[Callable[[Any], Any], Any, str]] = {
    "a power of a number": (lambda i: W / (1 - 0.9**i), 3, "float32"),
    "powers": (lambda i: (tnp.power(0.5, i), 2 ** tnp.asarray([1, 2]), W**i), 3, "float64* int64 float32"),
    "lax.pow": (lambda s: lax.pow(s, 2.0) * W, 0.5, "float32"),
    "remainders": (lambda i: (i % 4, tnp.fmod(i, 3), *divmod(i, 3)), 5, "int64* int64* int64* int64*"),
    "integers": (lambda i: (i / 2, i // 2, -i, i**2, i << 1, i & 1), 5, "float64* int64* int64* int64* int64* int64*"),
    "signs": (lambda s: (tnp.sign(s), tnp.sinc(s), tnp.deg2rad(s), tnp.degrees(s)), 0.5, "float64* " * 4),
    "of lax": (
        lambda s: (lax.add(s, 1.0), lax.max(s, 0.0), lax.rem(s, 2.0), lax.atan2(s, 1.0), lax.clamp(0.0, s, 1.0)), 0.5,
        "float64* " * 5,
    ),
    "two numbers": (lambda s: (tnp.hypot(s, 1.0), tnp.heaviside(s, 1.0), tnp.logaddexp(s, 1.0)), 0.5, "float64* " * 3),
    "parts": (lambda s: (*tnp.modf(s), tnp.real(s), tnp.imag(s)), 0.5, "float64* " * 4),
    "like numbers": (lambda s: (tnp.zeros_like(s), tnp.ones_like(s), tnp.full_like(s, 2)), 0.5, "float64* " * 3),
    "lists": (lambda s: (tnp.array([s, s]), tnp.stack([s, s])), 0.5, "float64 float64*"),
    "choices": (lambda s: (tnp.where(s > 0, s, 1.0), tnp.clip(s, 0, 1), nn.relu(s)), 0.5, "float64* " * 3),
    "mapped": (lambda s: vmap(lambda w: w * s)(W), 0.5, "float32"),
    "a heaviside step of an array": (lambda s: tnp.heaviside(np.ones(2, np.int8), s), 0.5, "float64"),
    "a polynomial": (lambda s: tnp.polyval(W, s), 0.5, "float32"),
}  # fmt: skip

GRADIENTS: dict[str, tuple[Callable[[], Any], str]] = {
    "grad": (lambda: grad(lambda s: (s * W).sum())(0.5), "float64*"),
    "grad under jit": (lambda: jit(grad(lambda s: s * s))(0.5), "float64*"),
    "of both": (lambda: grad(lambda s, w: tnp.sum(w * s), (0, 1))(0.5, W), "float64* float32"),
    "value_and_grad": (lambda: tracer.value_and_grad(tnp.sin)(0.5), "float64* float64*"),
    "jvp": (lambda: tracer.jvp(lambda s: s * s, (0.5,), (1.0,)), "float64* float64*"),
    "vjp": (lambda: tracer.vjp(lambda s: s * s, 0.5)[1](1.0), "float64*"),
    "jacfwd": (lambda: tracer.jacfwd(lambda s: s * W)(0.5), "float32"),
    "jacrev": (lambda: tracer.jacrev(lambda s: s * W)(0.5), "float64*"),
    "jacrev of both": (lambda: tracer.jacrev(lambda s, w: s * w, (0, 1))(0.5, W), "float64* float32"),
    "jacfwd of a number by an array": (lambda: tracer.jacfwd(lambda w: (2.0, w))(W), "float64* float32"),
    "hessian by an array's factor": (lambda: tracer.hessian(lambda s: tnp.sum(s * s * W))(0.5), "float64*"),
    "hessian": (lambda: tracer.hessian(lambda s: s**3)(0.5), "float64*"),
    "a step": (lambda: tnp.asarray(W) - 0.1 * grad(lambda s: (s * W).sum())(0.5), "float32"),
    "a loop": (lambda: lax.fori_loop(0, 5, lambda i, w: w - 0.1 * w / (1 - 0.9 ** (i + 1)), tnp.asarray(W)), "float32"),
    "zeros like leaves": (lambda: tracer.tree.map(tnp.zeros_like, {"a": 0.5, "b": W}), "float64* float32"),
}


def shown(tree: Any) -> list[str]:
    return [f"{x.dtype}{'*' * x.weak_type}" for x in tracer.tree.leaves(tree)]


@pytest.mark.parametrize("name", TRACED)
def test_numbers_stay_weak_through_functions(name: str) -> None:
    function, number, dtypes = TRACED[name]
    assert shown(jit(function)(number)) == dtypes.split()


@each("name", GRADIENTS)
def test_derivatives_of_numbers_are_weak(name: str) -> None:
    function, dtypes = GRADIENTS[name]
    assert shown(function()) == dtypes.split()


def test_a_rules_weak_tangents_fit_the_carries_of_loops() -> None:
    @tracer.custom_jvp
    def square(x: Any) -> Any:
        return x * x

    square.defjvp(lambda xs, dxs: tracer.jvp(lambda x: x * x, xs, dxs))

    def twice(x: Any) -> Any:
        return lax.scan(lambda c, _: (square(c), None), x, None, length=2)[0]

    for function in (grad(twice), jit(grad(twice)), lambda x: tracer.jvp(twice, (x,), (1.0,))[1]):
        assert float(function(1.5)) == 4 * 1.5**3
