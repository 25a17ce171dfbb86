"""Roots of systems of equations, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors
from tracer.scipy.optimize import root


def helical(x: Any) -> Any:
    turn = tnp.arctan2(x[1], x[0]) / (2 * np.pi)
    return tnp.stack([10 * (x[2] - 10 * turn), 10 * (tnp.hypot(x[0], x[1]) - 1), x[2]])


PROBLEMS = [
    (lambda x: tnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]]), [-1.2, 1.0]),
    (lambda x: tnp.stack([1e4 * x[0] * x[1] - 1, tnp.exp(-x[0]) + tnp.exp(-x[1]) - 1.0001]), [0.0, 1.0]),
    (helical, [-1.0, 0.1, 0.0]),
    (lambda x: tnp.concatenate([x[:-1] + tnp.sum(x) - (x.size + 1), tnp.prod(x)[None] - 1]), [0.5] * 5),
]


@pytest.mark.parametrize("method", ["hybr", "lm"])
@pytest.mark.parametrize("problem", range(len(PROBLEMS)))
def test_roots_of_moré_s_problems(method: str, problem: int) -> None:
    """Problems 1, 3, 7 and 27 of Moré, Garbow & Hillstrom 1981, ACM Trans. Math. Softw. 7(1)."""
    f, start = PROBLEMS[problem]
    found = root(f, np.array(start), method=method)
    assert bool(found.success), found.message
    np.testing.assert_allclose(f(found.x), 0, atol=1e-8)
    np.testing.assert_allclose(found.fun, f(found.x), atol=1e-14)


def test_a_system_without_a_root_is_no_success() -> None:
    for method in ("hybr", "lm"):
        assert not bool(root(lambda x: x**2 + 1, np.array([2.0]), method=method).success)


def test_roots_of_trees_batches_and_single_precision() -> None:
    found = root(lambda t: {"a": t["b"] ** 2 - 2, "b": t["a"] - t["b"]}, {"a": 1.0, "b": 1.0})
    assert float(found.x["a"]) == pytest.approx(np.sqrt(2))
    cubes = tracer.jit(tracer.vmap(lambda a: root(lambda x: x**3 - a, tnp.ones(2)).x))(tnp.asarray([[1, 2.0], [3, 4]]))
    np.testing.assert_allclose(cubes, np.cbrt([[1, 2], [3, 4]]))
    assert root(lambda x: x**2 - 2, np.ones(1, "float32"), method="lm").x.dtype == np.float32


def test_derivatives_of_roots_of_every_order() -> None:
    def solve(a: Any) -> Any:
        return root(lambda x, b: tnp.stack([x[0] * x[1] - a, x[0] - b * x[1]]), tnp.ones(2), (2.0 * a,)).x

    # x0 = sqrt(2) a, x1 = sqrt(1/2)
    for derivative in (tracer.jacfwd(solve), tracer.jit(tracer.jacrev(solve))):
        np.testing.assert_allclose(derivative(3.0), [np.sqrt(2), 0], atol=1e-10)
    np.testing.assert_allclose(tracer.jacfwd(tracer.jacrev(solve))(3.0), [0, 0], atol=1e-9)


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match=r"^root at test_nonlinear_systems.py:.*method is \"hybr\" or"):
        root(lambda x: x, np.ones(1), method="krylov")
    with pytest.raises(errors.ShapeError, match="got 1 equations for 2 unknowns"):
        root(lambda x: x.sum(), np.ones(2))
