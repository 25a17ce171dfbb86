"""What the examples in docstrings may use without importing it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer


@pytest.fixture(scope="session")
def doctest_namespace() -> dict[str, Any]:
    """Names of examples, in the place of pytest's own fixture: one that runs for every test takes a tenth of a ms."""
    return {"np": np, "nn": tracer.nn, "tnp": tracer.numpy, "tracer": tracer}
