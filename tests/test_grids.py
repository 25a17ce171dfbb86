"""Samples of grids have every value of every axis."""

from __future__ import annotations

from itertools import product

import pytest

from tests import grids
from tests.grids import covering

AXES = ["ab", range(5), (None, 0.5, "c")]


def test_every_value_of_every_axis_occurs_and_every_process_has_the_same_rows() -> None:
    rows = covering(*AXES)
    assert set(rows) <= set(product(*AXES))
    assert [set(column) for column in zip(*rows, strict=True)] == [set(axis) for axis in AXES]
    assert rows == covering(*AXES)
    assert grids.THOROUGH or len(rows) == 5
    assert len(covering(*AXES, least=20)) > 10


def test_the_thorough_profile_has_the_whole_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "THOROUGH", True)
    assert covering(*AXES) == list(product(*AXES))
