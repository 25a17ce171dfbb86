"""A sample of the suite on the simulated device, by the option that runs all of it there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SAMPLE = (
    "tests/transforms/test_vmap.py::test_arguments_without_an_axis_stay_as_they_are",
    "tests/transforms/test_jacobians.py::test_jacrev_of_second_derivatives_of_loops_of_unknown_length_is_batched",
    "tests/numpy/elementwise/test_division_by_zero.py::test_python_numbers_are_divisors_too",
    "tests/test_trees.py",
)


def test_a_sample_of_the_suite_passes_on_the_simulated_device() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--device", "cuda-sim", *SAMPLE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    for reason in ("a device's faults are raised where a value is waited for", "is about the host"):
        assert reason in done.stdout
