"""tracer.numpy's functions against NumPy's: values and shapes, eagerly, compiled and batched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.numpy.breadth_cases import BREADTH
from tests.numpy.value_cases import CASES as EARLIER
from tests.numpy.value_cases import Case

CASES = [*EARLIER, *BREADTH]
LABELS = [f"{number} {case.label}" for number, case in enumerate(CASES)]


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


@pytest.mark.parametrize("case", CASES, ids=LABELS)
def test_eager_functions_are_numpys(case: Case) -> None:
    close(case.call(tnp, *map(tnp.asarray, case.operands)), expected_of(case))


TRACED = [(label, case) for label, case in zip(LABELS, CASES, strict=True) if case.operands]


def as_function(case: Case) -> Any:
    """The call returning a tuple in place of a list: the same tree on both sides."""

    def function(*xs: Any) -> Any:
        result = case.call(tnp, *xs)
        return tuple(result) if isinstance(result, list) else result

    return function


@pytest.mark.parametrize("case", [case for _, case in TRACED], ids=[label for label, _ in TRACED])
def test_compiled_functions_compute_the_same(case: Case) -> None:
    close(tracer.jit(as_function(case))(*case.operands), expected_of(case))


@pytest.mark.parametrize("case", [case for _, case in TRACED], ids=[label for label, _ in TRACED])
def test_batched_functions_compute_the_same_for_every_lane(case: Case) -> None:
    both = [np.stack([np.asarray(x), np.asarray(x)]) for x in case.operands]
    batched = tracer.vmap(as_function(case))(*both)
    close(tracer.tree.map(lambda y: y[1], batched), expected_of(case))
