"""Estimates of `where_to_run`, with the figures of a machine and of a card that never change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
from tracer import ShapeDtypeStruct, config, lax
from tracer.errors import TracerBoolError
from tracer.runtime.profile import roofline
from tracer.runtime.profile.placement import Card

CARD = Card(name="a card", measured=True)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(roofline, "machine", lambda: roofline.Machine(bandwidth=10e9, peak=50e9))
    with config.using(threads=2):
        yield


def array(*shape: int) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, "float32")


def plus_one(x: Any) -> Any:
    return x + 1.0


def test_small_work_is_the_cpus_and_large_work_a_gpus() -> None:
    assert tracer.where_to_run(plus_one, array(1000)).device == "cpu"
    large = tracer.where_to_run(plus_one, array(10**7))
    assert large.gpu < large.cpu < large.gpu + large.copies  # one pass over data is not worth the bus
    assert large.device == "cpu"
    assert tracer.where_to_run(lambda a: a @ a, array(4096, 4096)).device == "cuda"


def test_the_estimate_is_the_sum_of_its_parts() -> None:
    n = 10**7
    found = tracer.where_to_run(plus_one, array(n), card=CARD)
    assert found.gpu == pytest.approx(CARD.call + 8 * n / CARD.bandwidth)
    assert found.copies == pytest.approx(2 * CARD.copy + 8 * n / 10e9)
    assert found.cpu == pytest.approx(2e-6 + (8 * n - (1 << 24)) / 10e9)
    assert found.launches == 1


def test_a_slow_bus_keeps_work_here_unless_the_data_is_there() -> None:
    slow, product = Card(bus=1e6), (lambda a: a @ a, array(1024, 1024))
    assert tracer.where_to_run(*product).device == "cuda"
    assert tracer.where_to_run(*product, card=slow).device == "cpu"
    there = tracer.device_put(np.ones(10**6, "float32"), "cuda-sim")
    here = tracer.where_to_run(plus_one, np.ones(10**6, "float32"))
    assert tracer.where_to_run(plus_one, there).copies == pytest.approx(here.copies / 2)


def test_a_small_loop_is_one_kernel_and_a_large_one_many_launches() -> None:
    def steps(x: Any) -> Any:
        return lax.scan(lambda c, _: (c / c.sum(), None), x, None, length=100)[0]

    small, large = (tracer.where_to_run(steps, array(n), card=CARD) for n in (10, 10**6))
    assert small.launches < 10
    assert small.device == "cpu"
    assert large.launches >= 100
    assert large.gpu >= 100 * CARD.launch


def test_the_text_says_what_was_not_measured() -> None:
    def grow(x: Any) -> Any:
        return lax.while_loop(lambda c: c.sum() < 10.0, lambda c: c @ c, x)

    lines = str(tracer.where_to_run(grow, array(50, 50))).splitlines()
    assert lines[0] == "grow: cpu"
    assert lines[1].startswith("  on the CPU ")
    assert lines[-3:] == [
        "  GPU: H100, data sheet; not measured, no program has run on a card",
        "  a while_loop is counted as one iteration",
        "  not on a card yet: gemm_f32",
    ]
    text = tracer.where_to_run(plus_one, array(3), card=CARD)
    assert "not measured" not in str(text)
    assert "on the CPU" in text._repr_html_()


def test_a_function_that_does_not_trace_raises_its_own_error() -> None:
    with pytest.raises(TracerBoolError):
        tracer.where_to_run(lambda x: x if x > 0 else -x, 1.0)
