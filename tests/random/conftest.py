"""Samplers run eagerly here, by the NumPy references, whatever `tracer` installs."""

from __future__ import annotations

import pytest

from tracer.runtime.eager.execute import execute
from tracer.trace import trace


@pytest.fixture(autouse=True)
def _by_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace.eager, "execute", execute)
