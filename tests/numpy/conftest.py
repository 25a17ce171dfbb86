"""Both ways in which elements are read and written, which must agree in everything but speed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tracer.runtime.element_slots import slots


@pytest.fixture(params=["compiled", "python"])
def way_of_indexing(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test with compiled code in the slots of Array for its items, and once more with Python's functions."""
    before = slots.get is not None
    if request.param == "python":
        slots.empty()
    elif not slots.fill():
        pytest.skip("compiled entries do not run here")
    yield request.param
    if before:
        slots.fill()
    else:
        slots.empty()


@pytest.fixture
def slots_by_python() -> Iterator[None]:
    """Python's functions are in the slots of Array for its items, whatever ran before."""
    before = slots.get is not None
    slots.empty()
    yield
    if before:
        slots.fill()
