"""The two ways into compiled code, which must agree in everything but speed, and replays that come soon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tracer.runtime import families, transformed
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


@pytest.fixture
def replayed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is made at the second call of the third function, and compiled at the third after it."""
    monkeypatch.setattr(families.often, "made", 1)
    monkeypatch.setattr(families.often, "calls", 2)
    monkeypatch.setattr(transformed.often, "calls", 2)
    monkeypatch.setattr(transformed.often, "replays", 2)
    families._families.clear()
    families._made.clear()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked for and found."""
    found: list[Any] = []
    leaves = families.Family.leaves

    def spied(self: Any, *args: Any) -> Any:
        result = leaves(self, *args)
        if result is not None:
            found.append(result)
        return result

    monkeypatch.setattr(families.Family, "leaves", spied)
    return found
