"""Mistakes with devices and settings."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tests.mistakes.told import X, fails
from tracer import errors, jit


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is here")
def test_a_gpu_that_is_not_there() -> None:
    fails(
        errors.DeviceError,
        lambda: tracer.device_put(X, "cuda:0"),  # here
        "device_put at @here: no device 'cuda:0'\n  CuPy, which launches kernels, is not installed\n"
        "  help: pip install 'tracer[cuda]'",
    )


def test_cuda_of_an_architecture_that_does_not_exist() -> None:
    fails(
        errors.DeviceError,
        lambda: jit(tnp.sin).lower(X).cuda(arch="ampere"),
        'cuda: no architecture \'ampere\'\n  help: name one such as "sm_80" or "sm_90"',
    )


@pytest.mark.parametrize(
    "change", [lambda: setattr(tracer.config, "x64", True), lambda: tracer.config.update("x64", True)]
)
def test_a_setting_that_does_not_exist(change: Any) -> None:
    fails(
        errors.SettingError,
        change,
        "config has no setting 'x64'\n"
        "  help: there are default_float, default_int, threads, deterministic, default_device, cache_dir, cache_size, "
        "kernel_dir, index_errors, loop_memory, fp_contract, vector_bits, debug_division, debug_nans, debug_infs, "
        "log_compiles, show_progress, disable_jit",
    )


def test_turning_off_64_bits() -> None:
    fails(
        errors.SettingError,
        lambda: tracer.config.update("jax_enable_x64", False),
        "config: jax_enable_x64 is True, not False\n"
        "  float64 and int64 are always there, and nothing is narrowed silently\n"
        '  help: for float32 models, config.default_float = "float32"',
    )
