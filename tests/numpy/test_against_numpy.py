"""Every function of tracer.numpy beside NumPy's, on drawn arrays: values, shapes, kinds of dtype, what is refused."""

from __future__ import annotations

import copy
import inspect
import warnings
from operator import attrgetter
from random import Random
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH, each
from tests.numpy.comparison_cases import ELSEWHERE, RECORDS, Record
from tests.numpy.drawing import MANNERS, all_drawn_as
from tracer.errors import TracerError

EXAMPLES = 25 if THOROUGH else 2
REFUSED = (ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError, np.exceptions.AxisError)

# Where one refuses and the other answers, and why.
STRICTER: dict[str, str] = {
    "tril": "NumPy makes a matrix of a vector", "triu": "NumPy makes a matrix of a vector",
}  # fmt: skip
FREER: dict[str, str] = {
    "nanargmax": "-1 where all is NaN, as in JAX", "nanargmin": "-1 where all is NaN, as in JAX",
    "histogram": "NumPy asks for bins that floats tell apart",
    "histogram_bin_edges": "NumPy asks for bins that floats tell apart",
}  # fmt: skip

# Where values differ in arrays of a manner, and why.
UNLIKE: dict[tuple[str, str], str] = {
    **{
        (name, "infinite"): "NumPy's are NaN between an infinity and itself"
        for name in ("quantile", "nanquantile", "percentile", "nanpercentile")
    },
    **{
        (name, "infinite"): "infinities meet the zeros beyond the ends" for name in ("convolve", "correlate", "polymul")
    },
    ("polymul", "zeros"): "NumPy cuts leading zeros off",
    ("i0", "infinite"): "NumPy's is NaN at infinity",
}


def outcome(namespace: Any, name: str, call: Any, refused: Any) -> Any:
    """The result and the arguments afterwards, or the error."""
    args, kwargs = copy.deepcopy(call)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return attrgetter(name)(namespace)(*args, **kwargs), args
        except refused as error:
            return error


def compare(ours: Any, theirs: Any, case: Record) -> None:
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            compare(a, b, case)
        return
    if theirs is None or isinstance(theirs, bool | int | np.dtype):
        assert ours == theirs or not isinstance(theirs, np.dtype)
        return
    got, expected = np.asarray(ours), np.asarray(theirs)
    assert got.shape == expected.shape
    assert got.dtype.kind == expected.dtype.kind or {got.dtype.kind, expected.dtype.kind} == {"i", "u"}
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, expected)
        return
    coarse = got.dtype if got.dtype.itemsize <= expected.dtype.itemsize else expected.dtype
    limits = np.finfo(coarse)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            got.astype(coarse), expected.astype(coarse), rtol=case.units * limits.eps,
            atol=max(case.absolute * float(limits.eps), 4 * float(limits.smallest_subnormal)),
        )  # fmt: skip
    if expected.dtype.kind == "f" and not case.absolute:
        zeros = (expected == 0) & (got == 0)
        np.testing.assert_array_equal(np.signbit(got)[zeros], np.signbit(expected)[zeros])


@each("name", sorted(RECORDS))
def test_results_are_numpys(name: str) -> None:
    for manner in MANNERS if THOROUGH else Random(name).sample(MANNERS, len(MANNERS) // 4):
        if (name, manner) not in UNLIKE:
            with all_drawn_as(manner):
                run(name)


def run(name: str) -> None:
    """Compare on a few drawn calls; one that fails is told as it was drawn, which is small."""

    @settings(
        max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None,
        phases=(Phase.generate,),
    )  # fmt: skip
    @given(call=RECORDS[name].draw)
    def on(call: Any) -> None:
        check(name, call)

    on()


def check(name: str, call: Any) -> None:
    theirs = outcome(np, name, call, REFUSED)
    ours = outcome(tnp, name, call, TracerError)
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        if isinstance(theirs, Exception) and not isinstance(ours, Exception):
            assert name in FREER, f"NumPy refuses: {theirs!r}"
        if isinstance(ours, Exception) and not isinstance(theirs, Exception):
            assert name in STRICTER, f"refused here: {ours}"
        return
    compare(ours[0], theirs[0], RECORDS[name])
    for a, b in zip(ours[1], theirs[1], strict=True):
        if isinstance(b, np.ndarray):
            np.testing.assert_array_equal(a, b)


def test_every_function_has_a_record_or_is_tested_elsewhere() -> None:
    functions = {n for n in tnp.__all__ if inspect.isfunction(getattr(tnp, n)) or n == "ufunc"}
    elsewhere = {name for names in ELSEWHERE.values() for name in names}
    assert functions == {name for name in RECORDS if "." not in name} | elsewhere
    assert not elsewhere.intersection(RECORDS)


def test_arrays_of_ours_give_what_arrays_of_numpy_give() -> None:
    x = np.arange(6.0)[::-2]
    for name in ("sin", "sum", "sort", "cumsum"):
        np.testing.assert_array_equal(getattr(tnp, name)(tracer.numpy.asarray(x)), getattr(tnp, name)(x))
