"""Exact messages of failures with a card, which a stand-in for CuPy plays."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.runtime.cuda.stand_in import Card, CudaError, installed
from tracer import grad, jit
from tracer.errors import DeviceError, OutOfBoundsError, OutOfMemoryError, TracerError
from tracer.runtime.cuda.driver import load_cupy

X = np.linspace(0.1, 2.0, 12).reshape(3, 4)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    return installed(monkeypatch)


def said(kind: type[TracerError], call: Any) -> list[str]:
    """Return the lines of the error of a call, from behind its place."""
    with pytest.raises(kind) as caught:
        call()
    first, *rest = str(caught.value).splitlines()
    place, _, first = first.rpartition(".py:") if ".py:" in first else ("", "", first)
    return [first.lstrip("0123456789") if place else first, *(line.strip() for line in rest)]


@pytest.mark.rung("device", of="CuPy")
def test_programs_run_on_the_stand_in(card: Card) -> None:
    x = tracer.device_put(X, "cuda")
    f = jit(lambda x: tnp.sin(x).sum(1))
    assert str(f(x).device) == "cuda:0"
    np.testing.assert_allclose(np.asarray(f(x)), np.sin(X).sum(1))
    np.testing.assert_allclose(np.asarray(grad(lambda x: f(x).sum())(x)), np.cos(X))


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "cupy" else found(name))
    installing = ["CuPy, which launches kernels, is not installed", "help: pip install 'tracer[cuda]'"]
    assert said(DeviceError, load_cupy) == installing
    assert said(DeviceError, lambda: tracer.device_put(X, "cuda")) == [": no device 'cuda'", *installing]


def test_cupy_that_does_not_load(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError("libcudart.so.13: cannot open\nmore")

    monkeypatch.setattr(importlib, "import_module", fail)
    assert said(DeviceError, load_cupy) == [
        "CuPy, which launches kernels, does not load",
        "libcudart.so.13: cannot open",
        "help: pip install 'tracer[cuda]'",
    ]


def test_without_a_driver(card: Card) -> None:
    card.starting = CudaError(35, "cudaErrorInsufficientDriver: CUDA driver version is insufficient")
    assert said(DeviceError, load_cupy) == [
        "there is no NVIDIA driver here, or one too old for CuPy",
        "cudaErrorInsufficientDriver: CUDA driver version is insufficient",
        "help: install NVIDIA's driver; nvidia-smi shows its version",
    ]
    assert [str(device) for device in tracer.devices()] == ["cpu"]


def test_without_a_device(card: Card) -> None:
    card.starting = CudaError(100, "cudaErrorNoDevice: no CUDA-capable device is detected")
    wanted = ["there is no CUDA device here", "help: run on the CPU; CUDA_VISIBLE_DEVICES may hide devices"]
    assert said(DeviceError, load_cupy) == wanted
    card.starting = None
    assert said(DeviceError, lambda: tracer.device_put(X, "cuda:3")) == [
        ": no device 'cuda:3'", "there is no device cuda:3", "there are 1",
    ]  # fmt: skip


def test_without_memory(card: Card) -> None:
    card.free = 20_000
    assert said(OutOfMemoryError, lambda: tracer.device_put(np.ones(4000), "cuda")) == [
        "cuda:0 has no memory for 32,000 bytes more", "20,000 of 1,099,511,627,776 bytes are free",
        "help: drop arrays, donate arguments, or compute in parts",
    ]  # fmt: skip
    x = tracer.device_put(np.ones(1000), "cuda")
    f = jit(lambda x: (tnp.outer(x[:40], x[:40]), x + 1.0, x.sum()))
    assert said(OutOfMemoryError, lambda: f(x)) == [
        ": cuda:0 has no memory for 12,800 bytes more", "12,000 of 1,099,511,627,776 bytes are free",
        "it takes 20,808 bytes for results and 0 for temporaries",
        "largest results: f64[40,40] of 12,800, f64[1000] of 8,000, f64[] of 8",
        "help: drop arrays, donate arguments, or compute in parts",
    ]  # fmt: skip


def test_arrays_on_two_devices(card: Card) -> None:
    x = tracer.device_put(X, "cuda")
    assert said(DeviceError, lambda: x + tracer.device_put(X, "cuda-sim")) == [
        ": operands lie on two devices", "got an array on cuda:0, and f64[3,4] on cuda-sim:0",
        "help: move one of them: tracer.device_put(x, 'cuda:0')",
    ]  # fmt: skip


def test_a_forked_child_is_told_so(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tracer.device_put(X, "cuda")
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a child
    wanted = [
        "cuda:0 was opened before this process was forked, and CUDA does not survive a fork",
        "help: start processes by multiprocessing's 'spawn', or fork before the first use",
    ]
    for call in (lambda: x + 1.0, lambda: np.asarray(x), lambda: tracer.device_put(X, "cuda")):
        assert said(DeviceError, call) == wanted


def test_a_lost_context_is_told_where_a_value_is_waited_for(card: Card) -> None:
    x = tracer.device_put(X, "cuda")
    y = jit(lambda x: x + 1.0)(x)
    card.failing = CudaError(700, "cudaErrorIllegalAddress: an illegal memory access was encountered")
    wanted = [
        "cuda:0 is lost to this process, with all arrays on it: a program that ran there failed",
        "cudaErrorIllegalAddress: an illegal memory access was encountered",
        "help: start a new process; with CUDA_LAUNCH_BLOCKING=1 the error comes from the call that causes it",
    ]
    for call in (lambda: np.asarray(y), lambda: tracer.block_until_ready(y), lambda: x + 2.0):
        assert said(DeviceError, call) == wanted
    card.failing = CudaError(1, "cudaErrorInvalidValue: invalid argument")
    assert said(DeviceError, lambda: np.asarray(y)) == [
        "cuda:0 refused a call",
        "cudaErrorInvalidValue: invalid argument",
    ]


def test_a_fault_of_an_earlier_call_is_raised_at_the_wait(card: Card) -> None:
    x, places = tracer.device_put(np.arange(3.0), "cuda"), tracer.device_put(np.array([0, 7]), "cuda")
    y = jit(lambda x, i: 2.0 * x[i])(x, places)  # returns
    with pytest.raises(OutOfBoundsError, match=r"index out of bounds at test_messages\.py:\d+\n"):
        np.asarray(y)
