"""SciPy's optimisers, solvers and integrators on compiled functions, with every method that takes derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize

import tracer
import tracer.numpy as tnp
from tests.foreign.outcomes import kind_of, record
from tracer import grad, hessian, hvp, jacfwd, jit

LIBRARY = "SciPy, numerical methods"
STARTS: dict[str, Callable[[Any], Any]] = {"ndarray": np.asarray, "Array": tnp.asarray}
start_as = pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)


def valley(x: Any) -> Any:
    return tnp.sum(20.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def bowl(x: Any) -> Any:
    """Convex: what `dogleg` asks for."""
    return tnp.sum(tnp.cosh(x - 1.0) * tnp.arange(1.0, 1.0 + x.shape[0]))


def minimised(f: Any, start: Any, method: str, tolerance: float = 1e-3, **options: Any) -> Any:
    found = optimize.minimize(jit(f), start([1.3, 0.7, 0.8, 1.9]), method=method, **options)
    assert found.success, found.message
    np.testing.assert_allclose(found.x, 1.0, atol=tolerance)
    record(LIBRARY, f"minimize {method}", "eager", kind_of(found.x))
    return found


GRADIENT = ["CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "SLSQP", "trust-constr"]
HESSIAN = ["Newton-CG", "trust-constr", "dogleg", "trust-ncg", "trust-krylov", "trust-exact"]
PRODUCT = ["Newton-CG", "trust-constr", "trust-ncg", "trust-krylov"]


@start_as
@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "COBYLA", "COBYQA"])
def test_minimisers_that_take_no_derivatives(method: str, start: Any) -> None:
    minimised(bowl, start, method)


@start_as
@pytest.mark.parametrize("method", GRADIENT)
def test_minimisers_take_gradients(method: str, start: Any) -> None:
    found = minimised(valley, start, method, jac=jit(grad(valley)))
    reference = optimize.minimize(
        lambda x: float(valley(x)),
        np.array([1.3, 0.7, 0.8, 1.9]),
        method=method,
        jac=lambda x: np.array(grad(valley)(tnp.asarray(x))),
    )
    assert found.nit == reference.nit


@start_as
@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "SLSQP"])
def test_minimisers_take_values_and_gradients_at_once(method: str, start: Any) -> None:
    found = optimize.minimize(jit(tracer.value_and_grad(valley)), start([1.3, 0.7, 0.8]), method=method, jac=True)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-3)


@start_as
@pytest.mark.parametrize("method", HESSIAN)
def test_minimisers_take_hessians(method: str, start: Any) -> None:
    f = bowl if method == "dogleg" else valley
    minimised(f, start, method, jac=jit(grad(f)), hess=jit(hessian(f)))


@start_as
@pytest.mark.parametrize("method", PRODUCT)
def test_minimisers_take_products_with_hessians(method: str, start: Any) -> None:
    product = jit(lambda x, v: hvp(valley, (x,), (v.astype(x.dtype),))[0])  # trust-constr asks with integers
    minimised(valley, start, method, jac=jit(grad(valley)), hessp=product)


@start_as
@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP", "trust-constr"])
def test_minimisers_keep_bounds(method: str, start: Any) -> None:
    found = optimize.minimize(
        jit(bowl), start([1.3, 0.7, 0.8]), method=method, jac=jit(grad(bowl)), bounds=[(1.2, 3.0)] * 3
    )
    np.testing.assert_allclose(found.x, 1.2, atol=1e-3)


@start_as
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_minimisers_keep_constraints(method: str, start: Any) -> None:
    def circle(x: Any) -> Any:
        return tnp.sum(x**2) - 1.0

    constraint: Any = {"type": "eq", "fun": jit(circle), "jac": jit(grad(circle))}
    if method == "trust-constr":
        second = jit(lambda x, v: v[0] * hessian(circle)(x))
        constraint = optimize.NonlinearConstraint(jit(circle), 0.0, 0.0, jac=jit(grad(circle)), hess=second)
    found = optimize.minimize(
        jit(tnp.sum), start([0.5, -0.6]), method=method, jac=jit(grad(tnp.sum)), constraints=[constraint]
    )
    np.testing.assert_allclose(found.x, -np.sqrt(0.5), atol=1e-3)


def residuals(x: Any) -> Any:
    return tnp.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0], x[0] * x[1] - 1.0])


@start_as
@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares_takes_jacobians(method: str, start: Any) -> None:
    found = optimize.least_squares(jit(residuals), start([-1.0, 2.0]), jac=jit(jacfwd(residuals)), method=method)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
    record(LIBRARY, f"least_squares {method}", "eager", kind_of(found.x))
    if method != "lm":
        found = optimize.least_squares(
            jit(residuals),
            start([-1.0, 2.0]),
            jac=jit(jacfwd(residuals)),
            method=method,
            loss="soft_l1",
            bounds=(-2, 2),
        )
        np.testing.assert_allclose(found.x, 1.0, atol=1e-6)


def crossing(x: Any) -> Any:
    return tnp.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]])


ROOTS = ["hybr", "lm", "broyden1", "broyden2", "anderson", "diagbroyden", "krylov", "df-sane"]


@start_as
@pytest.mark.parametrize("method", ROOTS)
def test_roots(method: str, start: Any) -> None:
    options = {"jac": jit(jacfwd(crossing))} if method in ("hybr", "lm") else {}
    found = optimize.root(jit(crossing), start([0.5, 0.2]), method=method, **options)
    assert found.success
    np.testing.assert_allclose(found.x, [0.8411639, 0.1588361], atol=1e-5)
    record(LIBRARY, f"root {method}", "eager", kind_of(found.x))


@start_as
@pytest.mark.parametrize("method", ["linearmixing", "excitingmixing"])
def test_roots_by_mixing(method: str, start: Any) -> None:
    """Which converge where a step along the residual does."""
    found = optimize.root(jit(lambda x: tnp.cos(x) - x), start([0.5, 0.2]), method=method)
    assert found.success
    np.testing.assert_allclose(found.x, 0.7390851, atol=1e-5)
    record(LIBRARY, f"root {method}", "eager", kind_of(found.x))


def cubic(x: Any) -> Any:
    return x**3 - 2.0


@pytest.mark.parametrize("method", ["newton", "halley", "bisect", "brentq", "brenth", "ridder", "toms748", "secant"])
def test_roots_of_one_variable(method: str) -> None:
    slopes: dict[str, Any] = {"fprime": jit(grad(cubic)), "fprime2": jit(grad(grad(cubic)))}
    options: dict[str, Any] = {
        "newton": {"x0": 1.5, "fprime": slopes["fprime"]},
        "halley": {"x0": 1.5, **slopes},
        "secant": {"x0": 1.5, "x1": 1.0},
    }.get(method, {"bracket": (0.0, 2.0)})
    found = optimize.root_scalar(jit(cubic), method=method, **options)
    assert found.converged
    assert float(found.root) == pytest.approx(2.0 ** (1 / 3), rel=1e-9)
    record(LIBRARY, f"root_scalar {method}", "eager", kind_of(found.root))


@pytest.mark.parametrize("method", ["brent", "bounded", "golden"])
def test_minima_of_one_variable(method: str) -> None:
    found = optimize.minimize_scalar(
        jit(lambda x: tnp.cosh(x - 1.0)), method=method, bounds=(0, 3) if method == "bounded" else None
    )
    assert float(found.x) == pytest.approx(1.0, abs=1e-5)
    record(LIBRARY, f"minimize_scalar {method}", "eager", kind_of(found.x))


def test_curves_are_fitted() -> None:
    def curve(t: Any, a: Any, b: Any) -> Any:
        return a * tnp.exp(-b * t)

    def slopes(t: Any, a: Any, b: Any) -> Any:
        return tnp.stack(jacfwd(curve, argnums=(1, 2))(t, a, b), axis=-1)

    t = np.linspace(0.0, 2.0, 20)
    for times in (t, tnp.asarray(t)):
        found, covariance = optimize.curve_fit(jit(curve), times, curve(times, 2.0, 1.5), (1.0, 1.0), jac=jit(slopes))
        np.testing.assert_allclose(found, [2.0, 1.5], rtol=1e-6)
        assert np.shape(covariance) == (2, 2)
        record(LIBRARY, "curve_fit", "eager", kind_of(found))


def test_older_names() -> None:
    start = np.array([1.3, 0.7, 0.8])
    calls: dict[str, Any] = {
        "fmin_bfgs": lambda: optimize.fmin_bfgs(jit(valley), start, jit(grad(valley)), disp=False),
        "fmin_cg": lambda: optimize.fmin_cg(jit(valley), start, jit(grad(valley)), disp=False),
        "fmin_l_bfgs_b": lambda: optimize.fmin_l_bfgs_b(jit(valley), start, jit(grad(valley)))[0],
        "fmin_slsqp": lambda: optimize.fmin_slsqp(jit(valley), start, fprime=jit(grad(valley)), iprint=0),
        "fmin_tnc": lambda: optimize.fmin_tnc(jit(valley), start, jit(grad(valley)), disp=0)[0],
        "fmin_ncg": lambda: optimize.fmin_ncg(
            jit(valley), start, jit(grad(valley)), fhess=jit(hessian(valley)), disp=False
        ),
        "leastsq": lambda: optimize.leastsq(jit(residuals), start[:2], Dfun=jit(jacfwd(residuals)))[0],
        "basinhopping": lambda: (
            optimize.basinhopping(jit(bowl), start, niter=3, minimizer_kwargs={"jac": jit(grad(bowl))}, rng=0).x
        ),
        "dual_annealing": lambda: optimize.dual_annealing(jit(bowl), [(0.0, 3.0)] * 2, maxiter=20, rng=0).x,
        "differential_evolution": lambda: optimize.differential_evolution(jit(bowl), [(0.0, 3.0)] * 2, rng=0).x,
    }
    for name, call in calls.items():
        found = call()
        np.testing.assert_allclose(found, 1.0, atol=2e-3, err_msg=name)
        record(LIBRARY, name, "eager", kind_of(found))
    found = optimize.fsolve(jit(crossing), start[:2], fprime=jit(jacfwd(crossing)))
    np.testing.assert_allclose(found, [0.8411639, 0.1588361], atol=1e-6)
    record(LIBRARY, "fsolve", "eager", kind_of(found))
    error = optimize.check_grad(jit(valley), jit(grad(valley)), start)
    assert error < 1e-5
    record(LIBRARY, "check_grad", "eager", kind_of(error))


def oscillator(t: Any, y: Any) -> Any:
    return tnp.stack([y[1], 10.0 * (1.0 - y[0] ** 2) * y[1] - y[0]])


@start_as
@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"])
def test_initial_value_problems(method: str, start: Any) -> None:
    implicit = method in ("Radau", "BDF", "LSODA")
    options = {"jac": jit(jacfwd(oscillator, argnums=1))} if implicit else {}
    found = integrate.solve_ivp(
        jit(oscillator), (0.0, 5.0), start([2.0, 0.0]), method=method, rtol=1e-6, atol=1e-8, **options
    )
    assert found.success
    np.testing.assert_allclose(found.y[:, -1], [1.602210, -0.101330], atol=1e-4)
    record(LIBRARY, f"solve_ivp {method}", "eager", kind_of(found.y))


def test_events_of_initial_value_problems() -> None:
    falling = jit(lambda t, y: tnp.stack([y[1], -9.81 + 0.0 * t]))
    ground = jit(lambda t, y: y[0])
    found = integrate.solve_ivp(falling, (0.0, 5.0), tnp.asarray([10.0, 0.0]), events=ground, dense_output=True)
    assert found.t_events[0][0] == pytest.approx(np.sqrt(2 * 10 / 9.81), rel=1e-6)


def test_boundary_value_problems() -> None:
    def bending(x: Any, y: Any) -> Any:
        return tnp.stack([y[1], -tnp.exp(y[0])])

    def ends(a: Any, b: Any) -> Any:
        return tnp.stack([a[0], b[0]])

    found = integrate.solve_bvp(jit(bending), jit(ends), np.linspace(0, 1, 5), np.zeros((2, 5)))
    assert found.success
    assert float(found.sol(0.5)[0]) == pytest.approx(0.140539, abs=1e-4)
    record(LIBRARY, "solve_bvp", "eager", kind_of(found.y))


def test_integrals() -> None:
    f = jit(lambda x: tnp.exp(-(x**2)))
    expected = 0.7468241328124271
    calls: dict[str, Any] = {
        "quad": lambda: integrate.quad(f, 0.0, 1.0)[0],
        "quad_vec": lambda: integrate.quad_vec(f, 0.0, 1.0)[0],
        "fixed_quad": lambda: integrate.fixed_quad(f, 0.0, 1.0, n=9)[0],
        "dblquad": lambda: integrate.dblquad(jit(lambda y, x: tnp.exp(-(x**2)) * 2 * y), 0.0, 1.0, 0.0, 1.0)[0],
    }
    for name, call in calls.items():
        found = call()
        assert float(found) == pytest.approx(expected, rel=1e-7), name
        record(LIBRARY, name, "eager", kind_of(found))
    found = integrate.odeint(jit(lambda y, t: -y), tnp.asarray([1.0]), [0.0, 1.0], Dfun=jit(lambda y, t: -tnp.eye(1)))
    assert float(found[-1, 0]) == pytest.approx(np.exp(-1.0), rel=1e-6)
    record(LIBRARY, "odeint", "eager", kind_of(found))
