"""Cases of control flow, custom rules and effects: the equations of small staged programs."""

from __future__ import annotations

from collections.abc import Iterator

from tests.laws.cases import Case


def control_cases() -> Iterator[Case]:
    yield from ()
