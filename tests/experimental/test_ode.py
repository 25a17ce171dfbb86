"""`odeint` against closed forms and SciPy, and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import tracer
import tracer.numpy as tnp
from tracer.errors import DTypeError, ShapeError
from tracer.experimental.ode import odeint

T = np.linspace(0.0, 2.0, 5)


def pendulum(y: Any, t: Any, damping: Any, g: Any) -> Any:
    angle, speed = y
    return speed, -damping * speed - g * tnp.sin(angle)


def test_a_tree_of_states_agrees_with_scipy() -> None:
    angle, speed = odeint(pendulum, (1.0, 0.0), T, 0.1, 9.8)
    expected = solve_ivp(
        lambda t, y: [y[1], -0.1 * y[1] - 9.8 * np.sin(y[0])], (0, 2), [1.0, 0.0], t_eval=T, rtol=1e-11, atol=1e-11
    )
    np.testing.assert_allclose(np.stack([angle, speed]), expected.y, atol=2e-7)


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit])
def test_derivatives_of_every_mode_and_order(way: Any) -> None:
    def end(k: Any) -> Any:
        return odeint(lambda y, t: -k * y, 1.0, tnp.asarray(T))[-1]

    for derivative, expected in (
        (tracer.grad(end), -2 * np.exp(-2.0)),
        (tracer.jacfwd(end), -2 * np.exp(-2.0)),
        (tracer.grad(tracer.grad(end)), 4 * np.exp(-2.0)),
    ):
        assert float(way(derivative)(1.0)) == pytest.approx(expected, rel=1e-6)


def test_derivatives_by_times_starts_and_arguments() -> None:
    def end(y: Any, t: Any, args: Any) -> Any:
        return odeint(lambda y, t, a: -a["k"] * t * y, y, t, args)[-1]

    dy, dt, da = tracer.grad(end, (0, 1, 2))(1.0, tnp.asarray([1.0, 1.5, 2.0]), {"k": 1.0})
    final = np.exp(-1.5)
    np.testing.assert_allclose([dy, da["k"]], [final, -1.5 * final], rtol=1e-6)
    np.testing.assert_allclose(dt, [final, 0.0, -2 * final], atol=1e-6)


def test_batches_complex_numbers_dtypes_and_long_steps() -> None:
    batched = tracer.vmap(lambda y: odeint(lambda y, t: -y, y, T)[-1])(tnp.arange(3.0))
    np.testing.assert_allclose(batched, np.exp(-2.0) * np.arange(3.0), rtol=1e-7)
    turned = odeint(lambda y, t: 1j * y, 1.0 + 0j, T)
    np.testing.assert_allclose(turned, np.exp(1j * T), atol=1e-7)
    short = odeint(lambda y, t: -y, tnp.ones(2, "float32"), T.astype("float32"), rtol=1e-5, atol=1e-5)
    assert short.dtype == np.float32
    np.testing.assert_allclose(short[:, 0], np.exp(-T), rtol=1e-4)
    # a pulse that steps without a limit pass by
    pulse = odeint(lambda y, t: tnp.exp(-((t - 50.0) ** 2) / 0.02), 0.0, np.array([0.0, 100.0]), hmax=0.05)
    assert float(pulse[-1]) == pytest.approx(np.sqrt(0.02 * np.pi), rel=1e-5)
    assert np.isnan(odeint(lambda y, t: -y, 1.0, T, mxstep=1)[-1])
    assert np.isnan(odeint(lambda y, t: y / 0.0, 1.0, T)[-1])


def test_wrong_times_are_refused() -> None:
    with pytest.raises(DTypeError, match=r"odeint at .*: the times are floats\n  got i64\[2\]"):
        odeint(lambda y, t: y, 1.0, np.arange(2))
    with pytest.raises(ShapeError, match=r"odeint at .*: the times are one axis of at least one\n  got f64\*\[\]"):
        odeint(lambda y, t: y, 1.0, 2.0)
