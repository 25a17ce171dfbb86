"""Scaled losses: float16 keeps small gradients, steps with infinite ones are left out, the scale follows its rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, jit, lax, nn, optim, random


def test_the_scale_follows_pytorchs_rule() -> None:
    """Against the rule of `GradScaler.update`, written out, in one scan over 200 steps."""
    generator = np.random.default_rng(0)
    finite = generator.random(200) < 0.8
    tx = optim.dynamic_loss_scale(optim.sgd(1.0), init_scale=4.0, growth_interval=3, growth_factor=4.0, min_scale=0.5)

    def step(state: Any, is_finite: Any) -> Any:
        updates, state = tx.update(tnp.where(is_finite, optim.loss_scale(state), tnp.inf)[None], state)
        return state, (updates[0], state.scale, state.total_notfinite)

    start = tx.init(tnp.zeros(1, "float32"))
    _, (updates, scales, skipped) = jit(lambda flags: lax.scan(step, start, flags))(finite)
    scale, tracker, expected = 4.0, 0, []
    for good in finite:
        if good:
            tracker += 1
            if tracker == 3:
                scale, tracker = scale * 4, 0
        else:
            scale, tracker = max(scale * 0.5, 0.5), 0
        expected.append(scale)
    np.testing.assert_array_equal(scales, expected)
    np.testing.assert_array_equal(updates, np.where(finite, -1.0, 0.0))
    np.testing.assert_array_equal(skipped, np.cumsum(~finite))


@pytest.mark.parametrize("master", ["float32", "float16"])
def test_a_model_trains_in_float16(master: str) -> None:
    """Gradients below float16's smallest number train by the scale, and not without it."""
    model = nn.cast(nn.MLP([2, 8, 1], key=random.key(0)), master)
    x = np.random.default_rng(0).standard_normal((64, 2)).astype("float16")
    y = x[:, :1] * x[:, 1:]

    def error(model: Any) -> Any:
        return nn.mse(nn.cast(model, "float16")(x).astype("float32"), y.astype("float32")).mean()

    def trained(tx: Any, scale_of: Any) -> float:
        @jit
        def run(model: Any) -> Any:
            def step(state: Any, _: Any) -> Any:
                model, opt = state
                slopes = tracer.grad(lambda m: error(m) * 2.0**-22 * scale_of(opt))(model)
                updates, opt = tx.update(slopes, opt, model)
                return (optim.apply_updates(model, updates), opt), None

            return lax.scan(step, (model, tx.init(model)), None, 300)[0][0]

        return float(error(run(model)))

    rate = optim.sgd(0.3 * 2.0**22)
    assert trained(optim.dynamic_loss_scale(rate), optim.loss_scale) < 0.3 * float(error(model))
    if master == "float32":  # the rate is no float16
        assert trained(rate, lambda opt: 1.0) > 0.6 * float(error(model))


def test_donated_states_are_updated_in_place() -> None:
    tx = optim.chain(optim.dynamic_loss_scale(optim.adamw(1e-3)))
    params = [tnp.zeros((300, 200), "float32"), tnp.zeros(128, "float32")]

    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = tx.update(grads, state, params)
        return optim.apply_updates(params, updates), state

    memory = jit(step, donate_argnums=(0, 1)).lower(params, tx.init(params), params).memory()
    assert (memory.arena < 256, memory.results <= 64) == (True, True)


def test_what_is_not_a_scale() -> None:
    with pytest.raises(errors.ArgumentError, match=r"dynamic_loss_scale at .*\n  got backoff_factor=2"):
        optim.dynamic_loss_scale(optim.sgd(0.1), backoff_factor=2)
    with pytest.raises(errors.ArgumentError, match=r"loss_scale at .* the state has 0 loss scales"):
        optim.loss_scale(optim.adam(0.1).init(tnp.zeros(1)))


def test_schedules_are_drawn(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    schedule = optim.join_schedules([optim.linear_schedule(0.0, 1.0, 10), optim.constant_schedule(0.5)], [10])
    line = optim.plot(schedule, 20, path=tmp_path / "rate.svg").axes[0].lines[0]
    assert line.get_xdata().tolist() == list(range(21))
    np.testing.assert_allclose(line.get_ydata(), [*np.arange(10) / 10, *[0.5] * 11])
    assert "<svg" in (tmp_path / "rate.svg").read_text()
    assert len(optim.plot(optim.constant_schedule(0.5), 5000).axes[0].lines[0].get_ydata()) == 1000
    with pytest.raises(errors.ArgumentError, match="there must be 1 step or more"):
        optim.plot(schedule, 0)
