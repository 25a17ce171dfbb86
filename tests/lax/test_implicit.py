"""Roots of equations are differentiated by what defines them, not by how they were found."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracer
from tracer import lax


def newton(f: Any, x: Any) -> Any:
    derivative = tracer.grad(f)
    return lax.while_loop(lambda x: abs(f(x)) > 1e-12, lambda x: x - f(x) / derivative(x), x)


def divided(g: Any, y: Any) -> Any:
    return y / g(1.0)


def cube_root(y: Any) -> Any:
    return lax.custom_root(lambda x: x * x * x - y, 1.0, newton, divided)


def test_a_root_has_the_derivatives_of_its_formula() -> None:
    np.testing.assert_allclose(cube_root(5.0), 5 ** (1 / 3), rtol=1e-12)
    first, second = 5 ** (-2 / 3) / 3, -2 / 9 * 5 ** (-5 / 3)
    for compiled in (lambda f: f, tracer.jit):
        np.testing.assert_allclose(compiled(tracer.grad(cube_root))(5.0), first, rtol=1e-10)
        np.testing.assert_allclose(compiled(tracer.grad(tracer.grad(cube_root)))(5.0), second, rtol=1e-10)
        np.testing.assert_allclose(compiled(tracer.jacfwd(cube_root))(5.0), first, rtol=1e-10)
    many = np.array([1.0, 5.0, 8.0])
    np.testing.assert_allclose(tracer.vmap(tracer.grad(cube_root))(many), many ** (-2 / 3) / 3, rtol=1e-10)


def test_aux_comes_along_without_a_derivative() -> None:
    def solved(y: Any) -> Any:
        solve = lambda f, x: (newton(f, x), {"steps": 3})  # noqa: E731
        return lax.custom_root(lambda x: x * x - y, 1.0, solve, divided, has_aux=True)

    value, aux = solved(4.0)
    np.testing.assert_allclose(value, 2.0)
    assert int(aux["steps"]) == 3
    np.testing.assert_allclose(tracer.grad(lambda y: solved(y)[0])(4.0), 0.25)


def test_a_root_of_constants_has_no_derivative() -> None:
    root = lambda y: y * lax.custom_root(lambda x: x * x - 4.0, 1.0, newton, divided)  # noqa: E731
    np.testing.assert_allclose(tracer.grad(root)(3.0), 2.0)


def test_the_initial_guess_does_not_move_the_root() -> None:
    start = lambda guess: lax.custom_root(lambda x: x * x - 4.0, guess, newton, divided)  # noqa: E731
    assert float(np.asarray(tracer.grad(start)(1.0))) == 0
