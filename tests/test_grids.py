"""Samples of grids have every value of every axis."""

from __future__ import annotations

import inspect
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests import grids
from tests.grids import covering, each

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


def test_each_case_is_tried_and_those_that_fail_are_named(tmp_path: Path) -> None:
    seen = []

    @each(("n", "name"), [(0, "zero"), (1, "one"), (2, "two")], ids=str)
    def try_one(n: int, name: str, tmp_path: Path, rng: np.random.Generator) -> None:
        seen.append((n, name, rng.random()))
        assert tmp_path.exists()
        assert n == 0, "above zero"

    assert list(inspect.signature(try_one).parameters) == ["tmp_path"]
    with pytest.raises(AssertionError, match=r"(?s)above zero.*2 of 3 cases fail, and this is the first: 1-one, 2-two"):
        try_one(tmp_path=tmp_path)
    assert [n for n, _, _ in seen] == [0, 1, 2]
    assert len({drawn for _, _, drawn in seen}) == 1


def test_no_cases_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        each("n", [])(lambda n: None)
