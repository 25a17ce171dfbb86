"""The table of rungs names every feature, and the rungs that this run's tests show."""

from __future__ import annotations

import pytest

from tests.runtime.cuda import rungs
from tests.runtime.cuda.simulator.roof import FORWARD, GRADIENTS
from tests.runtime.cuda.test_devices import PROGRAMS as WHOLE
from tests.schedule.gpu.gpu_programs import PROGRAMS

TABLE = rungs.written(rungs.PAGE.read_text(encoding="utf-8"))


def test_the_table_names_every_feature_and_rung() -> None:
    plain = rungs.lines_of(())
    assert [row.split(" | ")[0] for row in TABLE] == [row.split(" | ")[0] for row in plain]
    assert TABLE[:2] == plain[:2]


def test_every_program_shows_a_feature() -> None:
    assert {*PROGRAMS, *WHOLE, *FORWARD, *GRADIENTS} <= set(rungs.OF_PROGRAM)


def test_the_table_has_what_the_tests_show(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    shown = {pair for item in items for pair in rungs.pairs_of(item) if pair[1] != "card"}
    ticks = {
        (key, rung)
        for key, row in zip(rungs.FEATURES, TABLE[2:], strict=True)
        for rung, tick in zip(rungs.RUNGS, row.strip("| ").split(" | ")[1:], strict=True)
        if tick == "✓"
    }
    assert shown <= ticks, "run python -m tests.runtime.cuda.rungs"
    files = {item.nodeid.partition("::")[0] for item in items if item.get_closest_marker("rung")}
    if len(files) == 18:  # all that have the marker
        assert ticks == shown, "run python -m tests.runtime.cuda.rungs"
