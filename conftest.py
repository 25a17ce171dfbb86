"""What the examples in docstrings may use without importing it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer


@pytest.fixture(autouse=True)
def _names_in_examples(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    if not isinstance(request.node, pytest.DoctestItem):
        return
    doctest_namespace |= {"np": np, "nn": tracer.nn, "tnp": tracer.numpy, "tracer": tracer}
