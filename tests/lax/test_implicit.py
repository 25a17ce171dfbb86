"""Roots of equations are differentiated by what defines them, not by how they were found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


def newton_of(y: Any) -> Any:
    """A solver that closes over what the root is differentiated by."""
    return lambda f, x: lax.fori_loop(0, 40, lambda _, x: x - (x**3 - y) / (3 * x * x), x)


def divided_at(y: Any) -> Any:
    return lambda g, residual: residual / (3 * y ** (2 / 3))


ROOTS: dict[str, Any] = {
    "f": lambda y: lax.custom_root(lambda x: x**3 - y, 1.0, newton, divided),
    "solve": lambda y: lax.custom_root(lambda x: x**3 - y, 1.0, newton_of(y), divided),
    "tangent_solve": lambda y: lax.custom_root(lambda x: x**3 - y, 1.0, newton, divided_at(y)),
    "all": lambda y: lax.custom_root(lambda x: x**3 - y, 1.0, newton_of(y), divided_at(y)),
}
grad, jit, vmap = tracer.grad, tracer.jit, tracer.vmap


@pytest.mark.parametrize("root", ROOTS.values(), ids=list(ROOTS))
def test_all_functions_may_close_over_what_is_differentiated(root: Any) -> None:
    first, second = 1 / 12, -1 / 144
    many = np.array([8.0, 1.0])
    with_many = [first, 1 / 3]
    for found, expected in (
        (grad(root)(8.0), first), (jit(grad(root))(8.0), first), (grad(jit(root))(8.0), first),
        (tracer.jvp(root, (8.0,), (1.0,))[1], first), (tracer.jvp(jit(root), (8.0,), (1.0,))[1], first),
        (grad(grad(root))(8.0), second), (jit(grad(grad(root)))(8.0), second), (grad(jit(grad(root)))(8.0), second),
        (vmap(grad(root))(many), with_many), (grad(lambda y: vmap(root)(y).sum())(many), with_many),
        (jit(vmap(grad(jit(root))))(many), with_many), (vmap(root)(many), [2.0, 1.0]),
        (grad(lambda y: lax.scan(lambda c, _: (c + root(y), None), 0.0, None, length=2)[0])(8.0), 2 * first),
        (grad(lambda y: lax.scan(lambda c, _: (root(c), None), y, None, length=2)[0])(8.0), 8 ** (-8 / 9) / 9),
    ):  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_python_loops_find_roots_where_values_are_known() -> None:
    def bisect(f: Any, x: Any) -> Any:
        low, high = 0.0, 10.0
        while high - low > 1e-14:
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) < 0 else (low, middle)
        return x * 0 + low

    root = lambda y: lax.custom_root(lambda x: x**3 - y, 1.0, bisect, divided)  # noqa: E731
    np.testing.assert_allclose(grad(root)(8.0), 1 / 12, rtol=1e-12)
    np.testing.assert_allclose(grad(grad(root))(8.0), -1 / 144, rtol=1e-12)


def test_functions_may_close_over_traced_integers() -> None:
    def root(y: Any, n: Any) -> Any:
        solve = lambda f, x: lax.fori_loop(0, 30 + n, lambda _, x: x - f(x) / grad(f)(x), x)  # noqa: E731
        return lax.custom_root(lambda x: x**n - y, 1.0, solve, divided)

    for derived in (grad(root), jit(grad(root)), grad(jit(root)), vmap(grad(jit(root)), (None, None), axis_size=1)):
        np.testing.assert_allclose(np.ravel(derived(8.0, 3)), [1 / 12], rtol=1e-12)
