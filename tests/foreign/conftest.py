"""The option that writes docs/foreign.md, and what tests of foreign libraries share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.foreign.outcomes import page
from tests.grids import THOROUGH

OPTION = "--write-foreign"
ANY_NAMESPACE = "test_functions_of_any_namespace"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, metavar="FILE", help="write what foreign libraries made of our arrays as a page")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"  # as text: the parents of 33,000 paths take a second
    ours = [item for item in items if str(item.path).startswith(here)]
    for item in ours:
        item.add_marker(pytest.mark.filterwarnings("ignore"))  # theirs about theirs
    if not THOROUGH and config.getoption(OPTION, default=None) is None:
        left = in_other_modes(ours)
        items[:] = [item for item in items if item not in left]


def in_other_modes(items: list[pytest.Item]) -> set[pytest.Item]:
    """All runs of a library's call but one, whose mode goes round; the page and the thorough profile have all.

    Of SciPy's functions of any namespace, which take a process of their own, every second has none.
    """
    runs: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if {"case", "mode"} <= given.keys():
            runs.setdefault((item.nodeid.partition("[")[0], id(given["case"])), []).append(item)
    taken = enumerate(runs.items())
    chosen = {
        modes[number % len(modes)]
        for number, ((test, _), modes) in taken
        if number % 2 == 0 or ANY_NAMESPACE not in test
    }
    return {item for modes in runs.values() for item in modes} - chosen


def pytest_sessionfinish(session: pytest.Session) -> None:
    file = session.config.getoption(OPTION, default=None)
    if file is not None and session.testsfailed == 0 and session.testscollected:
        Path(file).write_text(page(), encoding="utf-8")
