"""`solve_ivp` beside SciPy: steps, values, events, dense output, under `jit` and `vmap`, and derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import errors
from tracer.scipy.integrate import OdeResult, solve_ivp

EXPLICIT = ("RK23", "RK45", "DOP853")
METHODS = (*EXPLICIT, "Radau")
OPTIONS = ({}, {"t_eval": np.linspace(0, 5, 7)}, {"rtol": 1e-6, "atol": 1e-9}, {"max_step": 0.3}, {"first_step": 0.1})


def driven(t: Any, y: Any) -> Any:
    return [y[1], -y[0] + 0.1 * t]


def falling(t: Any, y: Any) -> Any:
    return [y[1], -9.8]


def hit(t: Any, y: Any) -> Any:
    return y[0]


def apex(t: Any, y: Any) -> Any:
    return y[1]


hit.terminal, hit.direction = True, -1  # type: ignore[attr-defined]


@pytest.mark.parametrize(("method", "options"), covering(EXPLICIT, OPTIONS, least=6))
def test_steps_are_scipy_s(method: str, options: Any) -> None:
    found = solve_ivp(driven, (0, 5.0), [1.0, 0.0], method=method, **options)
    expected = scipy.integrate.solve_ivp(driven, (0, 5.0), [1.0, 0.0], method=method, **options)
    assert found.t.shape == expected.t.shape
    np.testing.assert_allclose(found.t, expected.t, rtol=1e-7)
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-6, atol=1e-9)
    assert (int(found.status), bool(found.success), int(found.num_points)) == (0, True, expected.t.size)
    if method != "DOP853" or "t_eval" not in options:
        assert int(found.nfev) == expected.nfev


@pytest.mark.parametrize("method", METHODS)
def test_backwards_complex_and_single(method: str) -> None:
    found = solve_ivp(driven, (5.0, 0.0), [1.0, 0.0], method=method, rtol=1e-8, atol=1e-10, dense_output=True)
    expected = scipy.integrate.solve_ivp(driven, (5.0, 0.0), [1.0, 0.0], rtol=1e-9, atol=1e-11, dense_output=True)
    at = np.linspace(0, 5, 21)
    np.testing.assert_allclose(found.sol(at), expected.sol(at), atol=1e-5 if method == "RK23" else 1e-6)
    np.testing.assert_allclose(found.sol(2.0), expected.sol(2.0), atol=1e-6)
    short = solve_ivp(lambda t, y: -y, np.array([0, 1], "float32"), np.ones(2, "float32"), method=method, rtol=1e-4)
    assert short.y.dtype == short.t.dtype == np.float32
    np.testing.assert_allclose(short.y[:, -1], np.exp(-1), rtol=1e-3)
    if method != "Radau":
        turned = solve_ivp(lambda t, y: 1j * y, (0, 2.0), np.ones(1) + 0j, method=method, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(turned.y[0, -1], np.exp(2j), atol=1e-5)


def test_a_stiff_oscillator_takes_radau_few_steps() -> None:
    """Van der Pol's, with damping 1000: an explicit method would take millions of steps."""

    def oscillator(t: Any, y: Any) -> Any:
        return [y[1], 1000.0 * (1 - y[0] ** 2) * y[1] - y[0]]

    found = solve_ivp(oscillator, (0, 3000.0), [2.0, 0.0], method="Radau", rtol=1e-5)
    expected = scipy.integrate.solve_ivp(oscillator, (0, 3000.0), [2.0, 0.0], method="Radau", rtol=1e-5)
    assert bool(found.success)
    assert found.t.size <= expected.t.size
    np.testing.assert_allclose(found.y[:, -1], expected.y[:, -1], rtol=1e-2)
    assert int(found.njev) == found.t.size


def test_radau_takes_a_jacobian() -> None:
    matrix = np.array([[-1000.0, 1.0], [0.0, -1.0]])
    for jac in (None, matrix, lambda t, y: matrix):
        found = solve_ivp(lambda t, y: matrix @ y, (0, 1.0), [1.0, 1.0], method="Radau", t_eval=[1.0], jac=jac)
        np.testing.assert_allclose(found.y[:, 0], scipy.linalg.expm(matrix) @ np.ones(2), rtol=1e-3)


def test_events_are_scipy_s() -> None:
    found = solve_ivp(falling, (0, 100.0), [0.0, 10.0], events=[hit, apex], dense_output=True)
    expected = scipy.integrate.solve_ivp(falling, (0, 100.0), [0.0, 10.0], events=[hit, apex], dense_output=True)
    assert (int(found.status), found.message) == (1, "a terminal event occurred")
    np.testing.assert_allclose(found.t, expected.t)
    for mine, theirs in zip((*found.t_events, *found.y_events), (*expected.t_events, *expected.y_events), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)

    def third(t: Any, y: Any) -> Any:
        return y[1]

    third.terminal = 3  # type: ignore[attr-defined]
    options = {"events": third, "t_eval": np.linspace(0, 30, 11)}
    found = solve_ivp(lambda t, y: [y[1], -y[0]], (0, 30.0), [1.0, 0.1], **options)
    expected = scipy.integrate.solve_ivp(lambda t, y: [y[1], -y[0]], (0, 30.0), [1.0, 0.1], **options)
    assert found.t.shape == expected.t.shape
    np.testing.assert_allclose(found.y, expected.y, atol=1e-10)
    np.testing.assert_allclose(found.t_events[0], expected.t_events[0])


def test_compiled_results_are_padded_with_the_last_value_and_counted() -> None:
    def run(y: Any) -> OdeResult:
        return solve_ivp(falling, (0, 100.0), y, events=[hit, apex], max_steps=20)

    found, expected = tracer.jit(run)(tnp.asarray([0.0, 10.0])), run(tnp.asarray([0.0, 10.0]))
    assert found.t.shape == (21,)
    count = int(found.num_points)
    assert count == expected.t.size
    np.testing.assert_allclose(found.t[:count], expected.t)
    np.testing.assert_array_equal(found.t[count:], np.full(21 - count, expected.t[-1]))
    np.testing.assert_allclose(found.y[:, -1], expected.y[:, -1])
    np.testing.assert_allclose(found.t_events[1][:2], [10 / 9.8, np.nan])
    few = tracer.jit(lambda y: solve_ivp(driven, (0, 50.0), y, max_steps=4, t_eval=[0.0, 0.1, 49.0]))([1.0, 0.0])
    assert int(few.status) == -1
    assert np.isnan(few.y[:, 2]).all()
    assert "max_steps" in few.message
    assert solve_ivp(driven, (0, 50.0), [1.0, 0.0], max_steps=4).t.size == 5
    assert solve_ivp(driven, (0, 400.0), [1.0, 0.0], rtol=1e-7).t.size > 300  # more than one chunk


def test_lanes_end_by_themselves() -> None:
    def end(k: Any) -> Any:
        found = solve_ivp(lambda t, y, k: [y[1], -k * y[0]], (0, 5.0), [1.0, 0.0], t_eval=[2.0, 5.0], args=(k,))
        return found.y, found.nfev

    k = tnp.asarray([1.0, 30.0])
    y, evaluations = tracer.jit(tracer.vmap(end))(k)
    each = [end(x) for x in k]
    np.testing.assert_allclose(y, [v for v, _ in each], rtol=1e-10)
    assert evaluations.tolist() == [int(n) for _, n in each]
    assert evaluations[0] < evaluations[1]


@pytest.mark.parametrize(
    ("method", "options"), covering(METHODS, ({"t_eval": [2.0, 5.0]}, {}, {"dense_output": True}), least=4)
)
def test_derivatives_in_both_modes(method: str, options: Any) -> None:
    tight = {"rtol": 1e-5, "atol": 1e-7} if method == "RK23" else {"rtol": 1e-8, "atol": 1e-10}

    def end(k: Any) -> Any:
        found = solve_ivp(lambda t, y: [y[1], -k * y[0]], (0, 5.0), [1.0, 0.0], method=method, **tight, **options)
        return found.sol(5.0)[0] if "dense_output" in options else found.y[0, -1]

    expected = pytest.approx(-5 * np.sin(5 * np.sqrt(2)) / np.sqrt(8), rel=1e-3 if method == "RK23" else 1e-6)
    assert float(tracer.grad(end)(2.0)) == expected
    assert float(tracer.jit(tracer.jacfwd(end))(2.0)) == expected
    if method == "RK45":
        second = -25 * np.cos(5 * np.sqrt(2)) / 8 + 5 * np.sin(5 * np.sqrt(2)) / (4 * np.sqrt(8))
        assert float(tracer.grad(tracer.grad(end))(2.0)) == pytest.approx(second, rel=1e-5)


def test_derivatives_by_start_interval_and_of_events() -> None:
    def landing(v: Any) -> Any:
        return solve_ivp(falling, (0, 100.0), tnp.stack([0.0, v]), events=hit).t_events[0][0]

    assert float(tracer.grad(landing)(10.0)) == pytest.approx(2 / 9.8)
    dy, dt = tracer.grad(lambda y, t: solve_ivp(lambda t, y: -y, (0.0, t), y[None], rtol=1e-9).y[0, -1], (0, 1))(
        1.0, 2.0
    )
    np.testing.assert_allclose([dy, dt], [np.exp(-2), -np.exp(-2)], rtol=1e-4)


def test_an_empty_interval_and_a_step_that_vanishes() -> None:
    still = solve_ivp(driven, (1.0, 1.0), [1.0, 2.0], dense_output=True)
    assert still.y[:, -1].tolist() == [1.0, 2.0]
    assert bool(still.success)
    pole = solve_ivp(lambda t, y: y**2, (0.0, 2.0), [1.0])  # 1 / (1 - t)
    assert int(pole.status) == -1
    assert float(pole.t[-1]) == pytest.approx(1.0, abs=1e-2)


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match=r"^solve_ivp at test_initial_value.py:.*: no such method"):
        solve_ivp(driven, (0, 1.0), [1.0, 0.0], method="LSODA")
    with pytest.raises(errors.ShapeError, match=r"y0 is a vector\n  got f64\*?\[\]"):
        solve_ivp(driven, (0, 1.0), 1.0)
    with pytest.raises(errors.ShapeError, match="one number for each of y"):
        solve_ivp(lambda t, y: [y[0], y[0]], (0, 1.0), [1.0])
    with pytest.raises(errors.ArgumentError, match="t_eval lies within t_span"):
        solve_ivp(driven, (0, 1.0), [1.0, 0.0], t_eval=[0.5, 2.0])
    with pytest.raises(errors.DTypeError, match="Radau takes real values"):
        solve_ivp(driven, (0, 1.0), [1.0 + 0j, 0.0], method="Radau")
    with pytest.raises(errors.DTypeError, match="complex numbers for real ones"):
        solve_ivp(lambda t, y: 1j * y, (0, 1.0), [1.0])
    with pytest.raises(errors.ShapeError, match="t_span is two real numbers"):
        solve_ivp(driven, (0, 1.0, 2.0), [1.0, 0.0])
    for wrong in ({"first_step": -0.1}, {"max_step": 0.0}, {"rtol": -1e-3}):
        with pytest.raises(errors.ArgumentError, match=f"{next(iter(wrong))} is (positive|not negative)"):
            solve_ivp(driven, (0, 1.0), [1.0, 0.0], **wrong)
    with pytest.raises(errors.ShapeError, match="an event returns one real number"):
        solve_ivp(driven, (0, 1.0), [1.0, 0.0], events=lambda t, y: y)
    with pytest.raises(errors.ShapeError, match="Radau takes one value at least"):
        solve_ivp(driven, (0, 1.0), np.zeros(0), method="Radau")
    with pytest.raises(errors.ArgumentError, match=r"y0 is finite\n  got Array\(\[ 1., nan\], f64\*?\)"):
        solve_ivp(driven, (0, 1.0), [1.0, np.nan])
    with pytest.raises(errors.ArgumentError, match="t_span has no NaN"):
        solve_ivp(driven, (0, np.nan), [1.0, 0.0])
    with pytest.raises(errors.ArgumentError, match=r"first_step is at most the length of t_span\n  got 1\.5"):
        solve_ivp(driven, (0, 1.0), [1.0, 0.0], first_step=1.5)


def test_one_value_may_be_a_number() -> None:
    number = solve_ivp(lambda t, y: -y[0], (0, 1.0), [1.0])
    np.testing.assert_array_equal(number.y, solve_ivp(lambda t, y: -y, (0, 1.0), [1.0]).y)


@pytest.mark.parametrize(("method", "slope"), covering(["RK45", "Radau"], [np.inf, np.nan]))
def test_slopes_that_are_not_finite_end_the_solution(method: str, slope: float) -> None:
    found = solve_ivp(lambda t, y: y * slope, (0.0, 3.0), np.array([1.0]), method=method)
    assert (int(found.status), float(found.t[-1])) == (-1, 0.0)
