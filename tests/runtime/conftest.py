"""The two ways into compiled code, which must agree in everything but speed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tracer.runtime.eager import execute
from tracer.runtime.jit import entry
from tracer.trace.trace import eager as slot


@pytest.fixture(autouse=True)
def _eager_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot, "execute", execute.execute)


@pytest.fixture(params=["entry", "ctypes"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run a test through the compiled entry, and once more through ctypes."""
    execute.clear_caches()
    monkeypatch.setattr(entry.switch, "ctypes_only", request.param == "ctypes")
    yield request.param
    execute.clear_caches()
