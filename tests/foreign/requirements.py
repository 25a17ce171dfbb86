"""What a test of foreign libraries needs: the extra, and SciPy imported with SCIPY_ARRAY_API=1."""

from __future__ import annotations

import importlib.util
import os

import pytest

DISPATCHES = os.environ.get("SCIPY_ARRAY_API") == "1"

NOT_DISPATCHING = "SciPy dispatches only under SCIPY_ARRAY_API=1: test_dispatching.py runs this in another process"
dispatching = pytest.mark.skipif(not DISPATCHES, reason=NOT_DISPATCHING)


def how_to_get(package: str) -> str:
    return f"{package} is not installed: scripts/foreign installs it, by the extras foreign and foreign-torch"


def installed(*packages: str) -> pytest.MarkDecorator:
    """Skip where a package is not installed, and say how to get it."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=how_to_get(", ".join(missing)))
