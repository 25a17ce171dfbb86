"""Tests on another default device: `pytest --device cuda-sim`, or cuda on a card.

Laws, tests of transforms and of NumPy's functions run, but for those in `LEFT`. While a program runs on the device,
compiling for the CPU and running NumPy's references raise. Arrays of the host on a device raise anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import pytest

import tracer
from tracer.primitives.base import reference
from tracer.runtime.compile import compile as compiling
from tracer.runtime.cuda.devices import CudaDevice

FOLDERS: Final = ("tests/laws/", "tests/transforms/", "tests/numpy/")
_LATER: Final = "a device's faults are raised where a value is waited for"
LEFT: Final = {
    "tests/numpy/elementwise/test_division_by_zero.py": _LATER,
    "tests/transforms/test_checked_accesses.py::test_a_derivative_has_the_fault_of_what_it_differentiates": _LATER,
    "tests/numpy/chapters/test_editing.py::test_traced_places_are_checked_and_differentiated_around": _LATER,
    "tests/numpy/chapters/test_editing.py::test_delete_of_traced_places_says_what_it_needs": _LATER,
    "tests/numpy/test_index_errors.py": "a device's faults are raised where a value is waited for, without the index",
    "tests/transforms/test_effects.py::test_what_fails_raises": _LATER,
    "tests/numpy/core/test_dlpack.py": "is about the memory of the host",
    "tests/numpy/core/test_fast_asarray.py": "is about the memory of the host",
    "tests/laws/test_backends.py": "is about the other backends",
}
"""Tests that do not run on a device, by the beginning of their names, with the reason."""


def set_up(device: str) -> None:
    """Make arrays on a device, and refuse the host's ways of running while a program runs there."""
    tracer.config.default_device = device
    running = threading.local()
    run = CudaDevice.run

    @wraps(run)
    def marked(*args: Any) -> Any:
        running.depth = getattr(running, "depth", 0) + 1
        try:
            return run(*args)
        finally:
            running.depth -= 1

    def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            assert not getattr(running, "depth", 0), f"{function.__name__} while a program runs on {device}"
            return function(*args, **options)

        return call

    CudaDevice.run = marked  # type: ignore[method-assign]
    compiling.compile_program = guarded(compiling.compile_program)
    reference.run_reference = guarded(reference.run_reference)


def choose(items: list[pytest.Item]) -> None:
    """Skip the tests that do not run on a device."""
    for item in items:
        reason = next((why for start, why in LEFT.items() if item.nodeid.startswith(start)), None)
        if reason is None and not item.nodeid.startswith(FOLDERS):
            reason = "is about the host"
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
