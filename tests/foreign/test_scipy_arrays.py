"""SciPy's functions that ask an array for its namespace: eagerly, and under `jit` and `grad` where SciPy allows."""

from __future__ import annotations

import pytest

from tests.foreign.outcomes import MODES, Case, check
from tests.foreign.requirements import DISPATCHES, dispatching
from tests.foreign.scipy_calls import CASES

RUNS = [(case, mode) for case in CASES for mode in MODES if DISPATCHES and case.expected(mode) is not None]


@dispatching
@pytest.mark.parametrize(("case", "mode"), RUNS, ids=[f"{case.function} {mode}" for case, mode in RUNS])
def test_functions_of_any_namespace(case: Case, mode: str) -> None:
    check("SciPy, array functions", case, mode)
