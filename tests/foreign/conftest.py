"""The option that writes docs/foreign.md, and what tests of foreign libraries share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.foreign.outcomes import page

OPTION = "--write-foreign"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, metavar="FILE", help="write what foreign libraries made of our arrays as a page")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"  # as text: the parents of 33,000 paths take a second
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # theirs about theirs


def pytest_sessionfinish(session: pytest.Session) -> None:
    file = session.config.getoption(OPTION, default=None)
    if file is not None and session.testsfailed == 0 and session.testscollected:
        Path(file).write_text(page(), encoding="utf-8")
