"""`minimize` beside SciPy: values, counts of evaluations, bounds, batches, and derivatives of solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import tracer
import tracer.numpy as tnp
from tracer import errors
from tracer.scipy.optimize import OptimizeResults, minimize

METHODS = ("BFGS", "L-BFGS-B", "Newton-CG")


def rosenbrock(x: Any) -> Any:
    return tnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def quartic(x: Any, a: Any) -> Any:
    return tnp.sum((x - a) ** 4 + 3 * (x - a) ** 2) + x[0] * x[1] * a[0]


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B"])
def test_iterations_are_scipy_s(method: str) -> None:
    start = np.linspace(-1.2, 1.3, 5)
    expected = scipy.optimize.minimize(scipy.optimize.rosen, start, jac=scipy.optimize.rosen_der, method=method)
    found = minimize(rosenbrock, start, method=method)
    assert bool(found.success)
    assert (int(found.status), found.message) == (0, "converged: the tolerances are met")
    assert (int(found.nit), int(found.nfev)) == (expected.nit, expected.nfev)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-5)
    if method == "BFGS":
        np.testing.assert_allclose(found.hess_inv, expected.hess_inv, rtol=1e-2)
    else:
        assert found.hess_inv is None


@pytest.mark.parametrize("method", METHODS)
def test_a_minimum_in_both_precisions_of_trees_and_of_batches(method: str) -> None:
    found = minimize(lambda t: rosenbrock(tnp.concatenate([t["a"][None], t["b"]])), {"a": 0.5, "b": np.zeros(2)},
                     method=method)  # fmt: skip
    np.testing.assert_allclose(found.x["b"], 1, atol=1e-3)
    assert found.x["a"].shape == found.jac["a"].shape == ()
    single = minimize(rosenbrock, np.array([-1.2, 1.0], "float32"), method=method)
    assert single.x.dtype == single.fun.dtype == np.float32
    np.testing.assert_allclose(single.x, 1, atol=2e-3)
    starts = tnp.asarray([[0.0, 0.0], [-1.2, 1.0], [1.0, 1.0]])
    batched = tracer.jit(tracer.vmap(lambda x: minimize(rosenbrock, x, method=method)))(starts)
    assert isinstance(batched, OptimizeResults)
    each = [minimize(rosenbrock, x, method=method) for x in starts]
    assert batched.nit.tolist() == [int(r.nit) for r in each]  # finished lanes stand still
    assert len(set(batched.nit.tolist())) == 3
    np.testing.assert_allclose(batched.x, [r.x for r in each], rtol=1e-6)


@pytest.mark.parametrize("bounds", [
    [(-2, 0.5), (None, None), (0.3, 2), (None, 0.1)], scipy.optimize.Bounds(0.2, [0.5, 2, 2, 2]),
    [(0.25, 0.25)] * 4,
])  # fmt: skip
def test_bounds_are_scipy_s(bounds: Any) -> None:
    start = np.array([-1.2, 1, 0.5, 0.0])
    expected = scipy.optimize.minimize(scipy.optimize.rosen, start, jac=scipy.optimize.rosen_der, bounds=bounds)
    found = minimize(rosenbrock, start, bounds=bounds)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
    assert bool(found.success)
    assert abs(int(found.nit) - expected.get("nit", 0)) <= 1


def test_bounded_quadratics_meet_the_conditions_of_a_minimum(rng: np.random.Generator) -> None:
    n = 30
    for _ in range(3):
        a = rng.normal(size=(n, n))
        a, b = a @ a.T + np.eye(n), 5 * rng.normal(size=n)
        found = minimize(
            lambda x, a, b: x @ a @ x / 2 - b @ x, np.zeros(n), (a, b), bounds=[(-0.1, 0.2)] * n, tol=1e-12
        )
        x, slope = np.asarray(found.x), np.asarray(found.jac)
        assert np.abs(x - np.clip(x - slope, -0.1, 0.2)).max() < 1e-4
        assert 0 < np.isin(x, [-0.1, 0.2]).sum() < n


@pytest.mark.parametrize("method", METHODS)
def test_solutions_have_derivatives_in_both_modes_by_args_and_captured_arrays(method: str) -> None:
    a = tnp.asarray([1.0, 2.0, 3.0])

    def solve(a: Any) -> Any:
        found = minimize(lambda x: quartic(x, a), tnp.zeros(3), method=method, tol=1e-8)
        return found.x, found.fun

    direction = np.array([0.3, -1.0, 0.7])
    ahead, behind = (solve(a + h * direction) for h in (1e-4, -1e-4))
    _, (dx, df) = tracer.jvp(solve, (a,), (tnp.asarray(direction),))
    np.testing.assert_allclose(dx, (ahead[0] - behind[0]) / 2e-4, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(df, (ahead[1] - behind[1]) / 2e-4, rtol=1e-3)
    by_args = tracer.jit(tracer.jacrev(lambda a: minimize(quartic, tnp.zeros(3), (a,), method=method, tol=1e-8).x))(a)
    np.testing.assert_allclose(by_args @ direction, dx, rtol=1e-6)


def test_second_derivatives_of_a_solution() -> None:
    def solve(a: Any) -> Any:  # x = a^2
        return minimize(lambda x: (x[0] - a * a) ** 2, tnp.zeros(1), method="BFGS").x[0]

    assert float(tracer.grad(tracer.grad(solve))(3.0)) == pytest.approx(2.0)


def test_active_bounds_hold_the_solution_and_have_derivatives() -> None:
    def solve(a: Any) -> Any:
        bounds = [(0, a[1] / 4), (0, None), (0, 2)]
        return minimize(quartic, tnp.zeros(3), (a,), bounds=bounds, tol=1e-9).x

    a, h = tnp.asarray([1.0, 2.0, 3.0]), 1e-5
    once = tracer.jit(solve)
    expected = np.stack([(once(a + h * e) - once(a - h * e)) / (2 * h) for e in np.eye(3)], 1)
    np.testing.assert_allclose(tracer.jacrev(solve)(a), expected, atol=1e-6)
    assert expected[0, 1] == pytest.approx(0.25)


def test_many_unknowns_are_differentiated_without_a_matrix(rng: np.random.Generator) -> None:
    target = tnp.asarray(rng.normal(size=400))

    def solve(a: Any) -> Any:
        return minimize(lambda x: tnp.sum(tnp.cosh(x - a)) + tnp.sum(x[1:] * x[:-1]) / 4, target * 0,
                        method="L-BFGS-B", tol=1e-12).x @ target  # fmt: skip

    text = str(tracer.jit(tracer.grad(solve)).lower(target).program())
    assert "f64[400,400]" not in text
    slope = tracer.grad(solve)(target)
    direction = rng.normal(size=400)
    expected = (solve(target + 1e-5 * direction) - solve(target - 1e-5 * direction)) / 2e-5
    assert float(slope @ direction) == pytest.approx(float(expected), rel=1e-4)


def test_what_does_not_converge_says_so() -> None:
    stopped = minimize(rosenbrock, np.array([-1.2, 1.0]), method="BFGS", options={"maxiter": 3})
    assert (int(stopped.status), int(stopped.nit), bool(stopped.success)) == (1, 3, False)
    assert "limit" in stopped.message
    for method in METHODS:
        undefined = minimize(lambda x: tnp.sum(tnp.log(x)), np.array([-1.0]), method=method)
        assert int(undefined.status) == 3
    # a wall of NaN beside the minimum is no obstacle
    for method in METHODS:
        near = minimize(lambda x: tnp.sum(x - tnp.log(x)), np.array([5.0, 0.01]), method=method)
        np.testing.assert_allclose(near.x, 1, atol=1e-3)


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(
        errors.ArgumentError, match=r"each lower bound is at most the upper one\n  got \[1.0, 0.0\] and"
    ):
        minimize(lambda x: (x**2).sum(), np.ones(2), bounds=[(1, 0), (0, 1)])
    with pytest.raises(errors.ArgumentError, match=r"^minimize at test_minimization.py:.*: no such method\n  got 'CG'"):
        minimize(rosenbrock, np.zeros(2), method="CG")
    with pytest.raises(errors.ArgumentError, match="BFGS takes no bounds"):
        minimize(rosenbrock, np.zeros(2), method="BFGS", bounds=[(0, 1)] * 2)
    with pytest.raises(errors.ArgumentError, match=r"no such option\n  got \['gtoll'\]"):
        minimize(rosenbrock, np.zeros(2), method="BFGS", options={"gtoll": 1e-3})
    with pytest.raises(errors.ShapeError, match=r"one pair of bounds for each of the 2 unknowns\n  got 3 pairs"):
        minimize(rosenbrock, np.zeros(2), bounds=[(0, 1)] * 3)
    with pytest.raises(errors.ShapeError, match=r"the function returns one real number\n  got f64\[2\]"):
        minimize(lambda x: x, np.zeros(2))
    with pytest.raises(errors.DTypeError, match="unknowns are real numbers"):
        minimize(lambda x: tnp.abs(x).sum(), np.zeros(2, complex))
    with pytest.raises(errors.ShapeError, match="x0 has no elements"):
        minimize(tnp.sum, np.zeros(0))


def test_a_list_of_trees_is_a_tree() -> None:
    found = minimize(lambda x: (x[0]["a"] - 1.0) ** 2 + (x[1]["b"] - 2.0) ** 2, [{"a": 0.5}, {"b": 0.0}], method="BFGS")
    assert (round(float(found.x[0]["a"]), 4), round(float(found.x[1]["b"]), 4)) == (1.0, 2.0)


@pytest.mark.parametrize("start", [[1.3, 0.7], (2, 1), [np.float64(1.3), tnp.asarray(0.7)]])
def test_lists_of_numbers_are_vectors(start: Any) -> None:
    found = minimize(lambda x: ((x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(), start, method="BFGS")
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=1e-4)
