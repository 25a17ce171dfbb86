"""NumPy's own functions on our arrays: every one that hands itself to its arguments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.foreign.numpy_calls import CASES, NOT_CALLED
from tests.foreign.numpy_parts import POLYNOMIALS, TESTING
from tests.foreign.outcomes import MODES, NUMPY, OURS, REFUSED, Case, check


def has(name: str) -> bool:
    found = tnp
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None


def as_it_is(case: Case) -> Case:
    """What tracer.numpy lacks is NumPy's on known values, and refused on traced ones."""
    if case.eager == OURS and case.function.isidentifier() and not has(case.function):
        return replace(case, eager=NUMPY, jit=REFUSED)
    return case


RUNS = [(as_it_is(case), mode) for case in CASES for mode in MODES if case.expected(mode) is not None]


@pytest.mark.parametrize(("case", "mode"), RUNS, ids=[f"{case.function} {mode}" for case, mode in RUNS])
def test_numpys_functions(case: Case, mode: str) -> None:
    check("NumPy", case, mode)


PARTS = [(case, mode) for case in (*POLYNOMIALS, *TESTING) for mode in MODES if case.expected(mode) is not None]


@pytest.mark.parametrize(("case", "mode"), PARTS, ids=[f"{case.function} {mode}" for case, mode in PARTS])
def test_polynomials_and_checks(case: Case, mode: str) -> None:
    check("NumPy", case, mode)


def dispatching_functions() -> set[str]:
    found = set()
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name in dir(module):
            value = getattr(module, name)
            if not name.startswith("_") and (isinstance(value, np.ufunc) or hasattr(value, "_implementation")):
                found.add(prefix + name)
    return found


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="the table is of NumPy 2.4")
def test_no_function_is_forgotten() -> None:
    called = {case.function for case in CASES}
    assert dispatching_functions() - called - set(NOT_CALLED) == set()
