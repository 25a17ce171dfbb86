"""The seeds of short trainings: one in the suite, three in the thorough profile."""

from __future__ import annotations

import os

import pytest

THOROUGH = os.environ.get("TRACER_HYPOTHESIS_PROFILE") == "thorough"


@pytest.fixture(params=[0, 1, 2] if THOROUGH else [0])
def seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of models and data, whose bounds hold for all three."""
    return int(request.param)
