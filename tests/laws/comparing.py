"""Assertions that say which case, operands and results disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.laws.accepted import accepted
from tests.laws.cases import Case
from tests.laws.tolerances import COMPOSED, Tolerance, close, same_bits, tolerance_of
from tests.laws.values import Array
from tracer.ir import dtypes
from tracer.ir.types import ArrayType
from tracer.primitives.base.reference import run_reference


def check_case(case: Case, values: Sequence[Array], got: Sequence[Array], expected: Sequence[Array]) -> None:
    """The results of one case agree, as far as its primitive's tolerance says."""
    for position, (a, b) in enumerate(zip(got, expected, strict=True)):
        tolerance = case_tolerance(case, b)
        if case.body is None and not case.literals:
            b = accepted(case.primitive.name, values, a, b)
        scale = None if tolerance is None or not tolerance.of_terms else magnitudes(case, values)[position]
        check_close(a, b, tolerance, f"{case}, output {position}", values, scale)


def case_tolerance(case: Case, result: Array) -> Tolerance | None:
    """How far a result of the case may be from another way to compute it; None: not at all."""
    if case.body is not None:
        return COMPOSED if dtypes.is_inexact(result.dtype) else None
    is_complex = any(isinstance(t, ArrayType) and dtypes.is_complex(t.dtype) for t in case.types)
    return tolerance_of(case.primitive.name, result.dtype, is_complex=is_complex)


def check_close(
    got: Array, expected: Array, tolerance: Tolerance | None, what: str, values: Sequence[Array] = (),
    scale: Array | None = None,
) -> None:  # fmt: skip
    """Equal bits, or close. The message shows the first element that is not, and the operands there."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), f"{what}: {got.dtype}{got.shape}"
    good = same_bits(got, expected) if tolerance is None else close(got, expected, tolerance, scale)
    if np.all(good):
        return
    wrong = np.argwhere(~np.asarray(good))
    place = tuple(wrong[0])[: expected.ndim]
    got, expected = np.asarray(got), np.asarray(expected)
    there = [np.asarray(x)[place] if np.shape(x) == np.shape(good) else x for x in values]
    raise AssertionError(
        f"{what}\n  {len(wrong)} of {expected.size} elements differ, first at {list(map(int, place))}\n"
        f"  got      {got[place]!r}\n  expected {expected[place]!r}\n  operands {_shown(there)}"
    )


def magnitudes(case: Case, values: Sequence[Array]) -> list[Array]:
    """The results on the operands' magnitudes, which bound every partial sum; parts that are not finite count as 0."""
    return [np.asarray(y) for y in run_reference(case.program, [size_of(x) for x in values])]


def size_of(x: Array) -> Array:
    """The magnitude of floats and complex numbers, in their dtype, of the parts that are finite; others as they are."""
    if dtypes.is_complex(x.dtype):
        real, imag = (np.where(np.isfinite(part), part, 0) for part in (x.real, x.imag))
        return np.hypot(real, imag).astype(x.dtype)
    return np.where(np.isfinite(x), np.abs(x), 0).astype(x.dtype) if dtypes.is_float(x.dtype) else x


def _shown(values: Sequence[Any]) -> str:
    return "; ".join(np.array2string(np.asarray(v), threshold=40, max_line_width=110) for v in values)
