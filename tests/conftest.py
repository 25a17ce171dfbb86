"""Fixtures and settings that all tests share: golden files, hypothesis profiles, a seeded generator, the collector,
kernels of a run, Ctrl-C.
"""

from __future__ import annotations

import difflib
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

gc.disable()  # until tests are collected; what is made meanwhile lives on
gc.set_threshold(20_000, 20, 20)  # by Python's own, a twelfth of the time of the laws goes into visits of what lives on

GOLDEN = Path(__file__).parent / "golden"

# One run finds what the next run finds, so that a red test on a branch is the branch's doing; `thorough` explores.
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile(os.environ.get("TRACER_HYPOTHESIS_PROFILE", "ci"))


# Hooks, where fixtures of every test would do: a fixture costs each of 27,000 tests a tenth of a millisecond.


def pytest_sessionstart() -> None:
    """Hear Ctrl-C: shells start jobs in the background with SIGINT ignored, and tests that press it would wait."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden/ anew from what the code prints now"
    )
    parser.addoption("--device", help="make arrays on this device, such as cuda-sim, in all tests but those left")


def pytest_configure(config: pytest.Config) -> None:
    """Keep kernels for this run alone: its workers and the processes that tests start share what they compile."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ["TRACER_KERNEL_DIR"] = tempfile.mkdtemp(prefix="tracer-kernels-")
    if config.getoption("--device") is not None:
        from tests import on_device  # for these runs alone

        on_device.set_up(config.getoption("--device"))


def pytest_unconfigure() -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["TRACER_KERNEL_DIR"], ignore_errors=True)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Freeze what a module leaves, so that no collection visits the millions of objects of all tests before it."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--device") is not None:
        from tests import on_device  # for these runs alone

        on_device.choose(items)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("passes/fold", text)` fails, with a diff, unless tests/golden/passes/fold.txt holds `text`.

    Under `--update-golden` it writes the file instead; read the diff before committing it.
    """
    update = request.config.getoption("--update-golden")

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        got = text.rstrip("\n") + "\n"
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(got, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"no golden file {path}\n  help: pytest --update-golden, then read it", pytrace=False)
        expected = path.read_text(encoding="utf-8")
        if got != expected:
            diff = difflib.unified_diff(
                expected.splitlines(), got.splitlines(), f"golden/{name}.txt", "printed now", lineterm=""
            )
            pytest.fail(
                "\n".join([f"the text differs from golden/{name}.txt (--update-golden accepts it)", *diff]),
                pytrace=False,
            )

    return compare


@pytest.fixture
def rng() -> np.random.Generator:
    """A NumPy generator that starts from the same seed in every test."""
    return np.random.default_rng(2026)
