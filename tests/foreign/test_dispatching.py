"""What SciPy decides when it is imported: the tests under SCIPY_ARRAY_API=1, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.foreign.requirements import DISPATCHES

HERE = Path(__file__).parent
FILES = [str(HERE / f"{name}.py") for name in ("test_scipy_arrays", "test_scipy_methods", "test_scikit_learn")]


@pytest.mark.skipif(DISPATCHES, reason="this process dispatches already, and runs them itself")
def test_with_dispatching_on() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *FILES]
    command += ["-k", "not (test_scipy_methods and ndarray)"]  # these compute as without dispatching
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(command, env=environment, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
