"""The examples do what they say: the demo learns real digits, the heat equation ends where theory says."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import tracer
import tracer.__main__ as command
import tracer.numpy as tnp
from tracer.commands import gpu
from tracer.examples import digits, digits_demo, heat


def test_the_digits_are_the_1797_of_the_source() -> None:
    data = digits.load()
    assert data.images.shape == (1797, 64)
    assert data.images.dtype == np.float32
    assert data.labels.dtype == np.int64
    assert (data.images.min(), data.images.max()) == (0.0, 1.0)
    assert np.bincount(data.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    pixels = (data.images * 16).astype(np.uint8)
    assert hashlib.sha256(pixels.tobytes() + data.labels.tobytes()).hexdigest() == (
        "65e5b4619795efb40c1082f4c350c049e4ad552200d369b6ae99e21eef5e72c5"
    )


def test_split_holds_out_the_same_digits_every_time_and_loses_none() -> None:
    first, second = digits.split(), digits.split()
    assert len(first.held_out.labels) == 360
    assert np.array_equal(first.held_out.images, second.held_out.images)
    everything = np.concatenate([first.train.images, first.held_out.images])
    assert np.array_equal(np.sort(everything.sum(axis=1)), np.sort(digits.load().images.sum(axis=1)))
    assert not np.array_equal(first.held_out.labels, digits.split(seed=1).held_out.labels)


@pytest.mark.parametrize("held_out", [0, 1797, -1])
def test_split_refuses_an_empty_side(held_out: int) -> None:
    with pytest.raises(ValueError, match=f"held_out must be between 1 and 1796, got {held_out}"):
        digits.split(held_out)


def test_shifted_moves_about_half_of_the_images_and_by_one_pixel_at_most(rng: np.random.Generator) -> None:
    images = np.zeros((400, 8, 8), np.float32)
    images[:, 3, 4] = 1.0
    moved = digits_demo.shifted(images.reshape(400, 64), rng).reshape(400, 8, 8)
    count, rows, columns = np.nonzero(moved)
    assert np.array_equal(count, np.arange(400))
    assert max(np.abs(rows - 3).max(), np.abs(columns - 4).max()) == 1
    assert 0.4 < np.mean((rows == 3) & (columns == 4)) < 0.7  # half stay, and a ninth of the others


def test_the_step_in_numpy_is_the_step_in_tracer(rng: np.random.Generator) -> None:
    parameters = digits_demo.initial_parameters(tracer.random.key(0))
    velocity = {name: 0.01 * tnp.ones_like(value) for name, value in parameters.items()}
    batch = next(digits_demo.batches(digits.split().train, rng))
    ours = digits_demo.train_step(parameters, velocity, 0.2, *batch)
    by_hand = digits_demo.numpy_train_step(
        {name: np.asarray(value) for name, value in parameters.items()},
        {name: np.asarray(value) for name, value in velocity.items()},
        0.2,
        *batch,
    )
    for ours_tree, by_hand_tree in zip(ours[:2], by_hand[:2], strict=True):
        for name, expected in by_hand_tree.items():
            assert ours_tree[name].dtype == np.float32
            np.testing.assert_allclose(np.asarray(ours_tree[name]), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(float(ours[2]), float(by_hand[2]), rtol=1e-5)


def test_demo_reaches_97_percent_and_prints_what_it_promises() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "tracer", "demo"], capture_output=True, text=True, check=True, timeout=300
    )
    lines = finished.stdout.splitlines()
    starts = {line.partition(":")[0]: line for line in lines}
    words = starts["held-out accuracy"].split()
    assert words[-1] == "%"
    assert float(words[-2]) >= 97.0
    assert "ms" in starts["compile"]
    for line in (starts["step"], starts["step in plain NumPy"]):
        assert "µs" in line
        assert "on one thread" in line
    assert any(line.startswith("epoch 100 of 100 ") for line in lines)
    program = finished.stdout.partition("The loss, as traced:\n")[2]
    assert "f32[64, 10]" in program or "f32[64,10]" in program
    assert "dot_general" in program


def test_demo_times_steps_in_a_process_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []

    def run(command: list[str], *, env: dict[str, str], **_: object) -> SimpleNamespace:
        seen.append(env)
        return SimpleNamespace(stdout="1e-05 0.0001\n")

    monkeypatch.setattr(digits_demo.subprocess, "run", run)
    report = digits_demo.run(epochs=1)
    assert (report.step, report.numpy_step) == (1e-05, 1e-04)
    assert {seen[0][name] for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "TRACER_THREADS")} == {"1"}


def test_demo_refuses_a_number_of_epochs_below_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["demo", "--epochs", "0"])
    assert "--epochs: must be at least 1, got 0" in capsys.readouterr().err


def test_demo_takes_the_same_steps_on_the_simulated_device() -> None:
    there, here = (digits_demo.few_steps(device, count=2) for device in ("cuda-sim", "cpu"))
    np.testing.assert_allclose(there, here, rtol=1e-5)


def test_demo_on_cuda_without_cupy_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu.importlib.util, "find_spec", lambda name: None)
    assert command.main(["demo", "--device", "cuda"]) == 2
    assert capsys.readouterr().err == (
        "tracer demo: cannot run on CUDA\n"
        "  CuPy is not installed\n"
        '  help: pip install -e ".[cuda]" (CUDA 13), or ".[cuda12]", in the checkout\n'
    )


def test_heat_ends_in_a_straight_line_between_the_held_ends() -> None:
    steady = heat.steady_state(heat.hot_middle(17))
    assert steady.temperature.dtype == np.float64
    np.testing.assert_allclose(np.asarray(steady.temperature), np.linspace(1.0, 0.0, 17), rtol=0, atol=1e-9)
    assert int(steady.steps) > 1000


def test_heat_takes_no_more_steps_than_one_when_it_starts_at_its_end() -> None:
    assert int(heat.steady_state(tnp.linspace(1.0, 0.0, 9)).steps) == 1


def test_heat_sensitivity_is_that_of_the_held_ends_alone() -> None:
    jacobian = np.asarray(heat.sensitivity(heat.hot_middle(17)))
    line = np.linspace(1.0, 0.0, 17)
    np.testing.assert_allclose(jacobian[:, 0], line, rtol=0, atol=1e-9)
    np.testing.assert_allclose(jacobian[:, -1], line[::-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(jacobian[:, 1:-1], 0.0, rtol=0, atol=1e-9)


def test_heat_jvp_is_the_jacobian_times_the_direction(rng: np.random.Generator) -> None:
    start, direction = heat.hot_middle(9), rng.normal(size=9)
    _, tangent = tracer.jvp(lambda u: heat.steady_state(u).temperature, (start,), (tnp.asarray(direction),))
    expected = np.asarray(heat.sensitivity(start)) @ direction
    np.testing.assert_allclose(np.asarray(tangent), expected, rtol=0, atol=1e-12)
