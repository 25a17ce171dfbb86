"""Cotangents of slices that tile an array are laid side by side: no zeros are added where every element is reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.ir.visit import equations

X = np.random.default_rng(0).standard_normal((6, 8))


def counts(function: Callable[..., Any], *args: Any) -> dict[str, int]:
    program = tracer.make_program(tracer.grad(function))(*args)
    found: dict[str, int] = {}
    for equation in equations(program):
        found[equation.primitive.name] = found.get(equation.primitive.name, 0) + 1
    return found


@pytest.mark.parametrize(
    ("function", "joins"),
    [
        (lambda x: tnp.sum(tnp.roll(x, 2, 0) ** 3), 1),
        (lambda x: tnp.sum(tnp.roll(x, (2, -3), (0, 1)) ** 3), 2),
        (lambda x: sum(tnp.sum(part**n) for n, part in enumerate(tnp.split(x, 4, 1))), 1),
        (lambda x: tnp.sum(x[:3, :4] * x[3:, 4:] ** 2 * x[3:, :4] * x[:3, 4:]), 3),
        (lambda x: tnp.sum(tnp.roll(x, 1, 0) * tnp.roll(x, -1, 0) * tnp.roll(x, 1, 1)), 3),
        (lambda x: sum((row[0] * row[1:]).sum() for row in (x[i] for i in range(6))), None),
        (lambda x: tnp.sum(x[:3] * x[3:]) + tnp.sum(x[:2] ** 2) + tnp.sum(x[2:] ** 3), 2),
    ],
)
def test_no_zeros_where_slices_tile(function: Callable[..., Any], joins: int | None) -> None:
    found = counts(function, X)
    assert "pad" not in found
    assert "dynamic_update_slice" not in found
    if joins is not None:
        forward = {e.primitive.name: 0 for e in equations(tracer.make_program(function)(X))}
        for equation in equations(tracer.make_program(function)(X)):
            forward[equation.primitive.name] += 1
        assert found["concatenate"] - forward.get("concatenate", 0) == joins
    check(function, X)


def check(function: Callable[..., Any], x: np.ndarray[Any, Any]) -> None:
    """The gradient, compiled or not, beside central differences."""
    gradient = np.asarray(tracer.grad(function)(x))
    np.testing.assert_allclose(np.asarray(tracer.jit(tracer.grad(function))(x)), gradient, rtol=1e-12, atol=1e-12)
    wanted = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        wanted[place] = (float(function(x + step)) - float(function(x - step))) / 2e-6
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-6)


def test_slices_that_leave_something_out_are_spread_among_zeros() -> None:
    def function(x: Any) -> Any:
        return tnp.sum(x[1:-1] ** 2) + tnp.sum(x[:2] * x[4:])

    assert counts(function, X)["pad"] == 3
    check(function, X)


def test_empty_slices() -> None:
    check(lambda x: tnp.sum(x[:0]) + tnp.sum(x[:6] ** 2) + tnp.sum(x[6:]), X)
    assert tracer.grad(lambda x: tnp.sum(tnp.roll(x, 1)))(np.zeros(0)).shape == (0,)


@given(st.integers(0, 2**32 - 1))
def test_any_slices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(int(rng.integers(1, 8))):
        bounds = [sorted(rng.choice([0, 2, 3, n], 2, replace=False)) for n in (6, 8)]
        parts.append((tuple(slice(int(a), int(b)) for a, b in bounds), float(rng.integers(1, 5))))

    def function(x: Any) -> Any:
        return sum(tnp.sum(factor * x[part] ** 2) for part, factor in parts)

    wanted = np.zeros_like(X)
    for part, factor in parts:
        wanted[part] += 2 * factor * X[part]
    np.testing.assert_allclose(np.asarray(tracer.grad(function)(X)), wanted, rtol=1e-12)


def test_second_order_and_loops() -> None:
    def energy(x: Any) -> Any:
        step = lambda u, _: (u + 0.1 * (tnp.roll(u, 1) - 2 * u + tnp.roll(u, -1)), None)  # noqa: E731
        return tnp.sum(lax.scan(step, x, None, length=3)[0] ** 3)

    x = X[0]
    check(energy, x)
    hessian = np.asarray(tracer.hessian(energy)(x))
    wanted = np.stack([np.asarray(tracer.jvp(tracer.grad(energy), (x,), (e,))[1]) for e in np.eye(len(x))])
    np.testing.assert_allclose(hessian, wanted, rtol=1e-12, atol=1e-12)
