"""custom_linear_solve: derivatives are solutions, to every order, in batches, compiled and in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.laws.differences import difference
from tracer import lax
from tracer.errors import ArgumentError, NoRuleError


def conjugate_gradients(matvec: Any, b: Any) -> Any:
    """For symmetric positive definite maps of vectors."""

    def step(state: Any) -> Any:
        x, rest, way = state
        moved = matvec(way)
        size = rest @ rest
        length = size / (way @ moved)
        left = rest - length * moved
        return x + length * way, left, left + (left @ left) / size * way

    return lax.while_loop(lambda s: s[1] @ s[1] > 1e-26, step, (tnp.zeros_like(b), b, b))[0]


def jacobi(matvec: Any, b: Any) -> Any:
    """For maps that are nearly 4 times the identity."""
    return lax.fori_loop(0, 60, lambda _, x: x + (b - matvec(x)) / 4, b / 4)


A = np.eye(4) * 4 + np.sin(np.arange(16.0)).reshape(4, 4) / 2
B = np.array([1.0, -2.0, 0.5, 3.0])


def symmetric(a: Any, b: Any) -> Any:
    return lax.custom_linear_solve(lambda x: (a + a.T) @ x / 2, b, conjugate_gradients, symmetric=True)


def general(a: Any, b: Any) -> Any:
    return lax.custom_linear_solve(lambda x: a @ x, b, jacobi, jacobi)


FUNCTIONS = {"symmetric": (symmetric, lambda a, b: np.linalg.solve((a + a.T) / 2, b)),
             "general": (general, np.linalg.solve)}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_solutions_alone_compiled_and_in_batches(name: str) -> None:
    ours, theirs = FUNCTIONS[name]
    for call in (ours, tracer.jit(ours)):
        np.testing.assert_allclose(call(A, B), theirs(A, B), rtol=1e-10)
    matrices, sides = np.stack([A, A.T, 2 * np.eye(4)]), np.stack([B, B + 1, B - 1])
    for axes, given in (((0, 0), (matrices, sides)), ((None, 0), (A, sides)), ((0, None), (matrices, B))):
        expected = [
            theirs(*(x if axis is None else x[i] for x, axis in zip(given, axes, strict=True))) for i in range(3)
        ]
        for batched in (tracer.vmap(ours, axes), tracer.jit(tracer.vmap(ours, axes))):
            np.testing.assert_allclose(batched(*given), expected, rtol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_differences_in_both_modes_and_to_second_order(name: str, rng: np.random.Generator) -> None:
    ours, theirs = FUNCTIONS[name]
    da, db = rng.standard_normal((4, 4)), rng.standard_normal(4)

    def loss(a: Any, b: Any) -> Any:
        return tnp.sum(tnp.sin(ours(a, b)))

    ((slope, _),) = difference(lambda xs: [np.sum(np.sin(theirs(*xs)))], [A, B], [da, db])
    for wrap in (lambda f: f, tracer.jit):
        assert float(wrap(lambda *t: tracer.jvp(loss, (A, B), t)[1])(da, db)) == pytest.approx(float(slope), rel=1e-7)
        of_a, of_b = wrap(tracer.grad(loss, argnums=(0, 1)))(A, B)
        assert float(np.sum(of_a * da) + np.sum(of_b * db)) == pytest.approx(float(slope), rel=1e-7)
    gradient = tracer.grad(loss, argnums=(0, 1))
    seconds = difference(lambda xs: [np.asarray(g) for g in gradient(*xs)], [A, B], [da, db])
    for wrap in (lambda f: f, tracer.jit):
        pushed = wrap(lambda *t: tracer.jvp(gradient, (A, B), t)[1])(da, db)
        for found, (expected, _) in zip(pushed, seconds, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


def test_gradients_of_batches_and_in_loops() -> None:
    sides = np.stack([B, B + 1])
    both = tracer.jit(tracer.vmap(tracer.grad(lambda a, b: tnp.sum(general(a, b) ** 2)), (None, 0)))
    for found, side in zip(both(A, sides), sides, strict=True):
        x = np.linalg.solve(A, side)
        np.testing.assert_allclose(found, -np.outer(np.linalg.solve(A.T, 2 * x), x), rtol=1e-8)

    def repeated(a: Any) -> Any:
        return tnp.sum(lax.fori_loop(0, 3, lambda _, x: general(a, x), tnp.asarray(B)))

    ((slope, _),) = difference(
        lambda xs: [np.sum(np.linalg.solve(xs[0], np.linalg.solve(xs[0], np.linalg.solve(xs[0], B))))], [A], [np.eye(4)]
    )
    assert float(np.trace(tracer.jit(tracer.grad(repeated))(A))) == pytest.approx(float(slope), rel=1e-8)


def test_trees_auxiliary_results_and_complex_numbers() -> None:
    b = {"u": np.array([1.0, 2.0]), "v": np.array(3.0)}

    def scaled(k: Any) -> Any:
        def solve(matvec: Any, b: Any) -> Any:
            return tracer.tree.map(lambda x: x / k, b), {"rounds": tnp.asarray(7)}

        return lax.custom_linear_solve(
            lambda x: tracer.tree.map(lambda y: k * y, x), b, solve, symmetric=True, has_aux=True
        )

    x, aux = tracer.jit(scaled)(2.0)
    np.testing.assert_array_equal(x["u"], [0.5, 1.0])
    assert (float(x["v"]), int(aux["rounds"])) == (1.5, 7)
    gradient = tracer.grad(lambda k: tnp.sum(scaled(k)[0]["u"]) + scaled(k)[0]["v"])(2.0)
    assert float(gradient) == -6 / 4

    z = A + 0.5j * A.T
    found, pullback = tracer.vjp(lambda a: general(a, tnp.asarray(B + 0j)), tnp.asarray(z))
    np.testing.assert_allclose(found, np.linalg.solve(z, B), rtol=1e-9)
    ct = np.array([1.0, 1j, 2.0, -1.0])
    expected = tracer.vjp(lambda a: tnp.linalg.solve(a, B + 0j), tnp.asarray(z))[1](ct)[0]
    np.testing.assert_allclose(pullback(ct)[0], expected, rtol=1e-8)


def test_what_is_missing_or_does_not_fit_is_told() -> None:
    lacking = tracer.grad(lambda b: tnp.sum(lax.custom_linear_solve(lambda x: A @ x, b, jacobi)))
    with pytest.raises(NoRuleError, match=r"nothing solves the transposed equation\n  help: give it transpose_solve"):
        lacking(B)
    with pytest.raises(
        ArgumentError, match=r"matvec of custom_linear_solve at .* must return a tree like the right-hand"
    ):
        lax.custom_linear_solve(lambda x: x[:2], B, jacobi)
    with pytest.raises(ArgumentError, match=r"solve of custom_linear_solve at .* must return \(solution, aux\)"):
        lax.custom_linear_solve(lambda x: A @ x, B, jacobi, has_aux=True)
