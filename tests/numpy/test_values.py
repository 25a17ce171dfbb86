"""tracer.numpy's functions against NumPy's: values and shapes, eagerly, compiled and batched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.numpy.breadth_cases import BREADTH
from tests.numpy.value_cases import CASES as EARLIER
from tests.numpy.value_cases import Case

CASES = [*EARLIER, *BREADTH]
TOGETHER = 12  # cases in a test: their functions are compiled as one


def close(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            close(a, b)
        return
    assert isinstance(ours, tracer.Array)
    got, expected = np.asarray(ours), np.asarray(theirs)
    assert got.shape == expected.shape
    assert (got.dtype.kind in "iu") == (expected.dtype.kind in "iu")
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(got, expected, rtol=3e-14, atol=1e-14)
    else:
        np.testing.assert_array_equal(got, expected)


def expected_of(case: Case) -> Any:
    with np.errstate(all="ignore"):
        return case.call(np, *case.operands)


def groups(cases: list[Case]) -> Any:
    """Parametrize a test over the cases, some at once; neighbours, which are alike, stand apart."""
    count = -(-len(cases) // TOGETHER)
    return pytest.mark.parametrize("cases", [cases[n::count] for n in range(count)], ids=range(count))


@contextmanager
def named(case: Case) -> Iterator[None]:
    """Say of which case an error is."""
    try:
        yield
    except Exception as error:
        error.add_note(f"of the case {case.label}")
        raise


@groups(CASES)
def test_eager_functions_are_numpys(cases: list[Case]) -> None:
    for case in cases:
        with named(case):
            close(case.call(tnp, *map(tnp.asarray, case.operands)), expected_of(case))


TRACED = [case for case in CASES if case.operands]


def as_function(case: Case) -> Any:
    """The call returning a tuple in place of a list: the same tree on both sides."""

    def function(*xs: Any) -> Any:
        result = case.call(tnp, *xs)
        return tuple(result) if isinstance(result, list) else result

    return function


@groups(TRACED)
def test_compiled_functions_compute_the_same(cases: list[Case]) -> None:
    def together(operands: Any) -> Any:
        results = []
        for case, given in zip(cases, operands, strict=True):
            with named(case):
                results.append(as_function(case)(*given))
        return results

    for case, result in zip(cases, tracer.jit(together)([case.operands for case in cases]), strict=True):
        with named(case):
            close(result, expected_of(case))


@groups(TRACED)
def test_batched_functions_compute_the_same_for_every_lane(cases: list[Case]) -> None:
    for case in cases:
        with named(case):
            both = [np.stack([np.asarray(x), np.asarray(x)]) for x in case.operands]
            batched = tracer.vmap(as_function(case))(*both)
            close(tracer.tree.map(lambda y: y[1], batched), expected_of(case))
