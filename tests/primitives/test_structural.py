"""Shape, slicing, reduction, scan and sorting primitives: JAX's values and gradients, and the laws of the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.grids import each
from tests.primitives.structural import (
    check_batch,
    check_composites,
    check_jvp,
    check_transpose,
    derivative,
    direction,
    gradients,
    has_tangent,
    program_of,
    values_of,
)
from tests.primitives.structural_cases import CASES, OURS, Case, weights
from tracer.ir.primitive import NoRule

BOTH = [*CASES, *OURS]
SMOOTH = [case for case in BOTH if case.smooth and any(case.active)]


def _ids(cases: list[Case]) -> list[str]:
    return [case.label for case in cases]


@pytest.fixture(scope="module")
def table() -> Any:
    with np.load(Path(__file__).parent / "structural.npz") as stored:
        return dict(stored)


@each("case", CASES, ids=_ids(CASES))
def test_values_are_those_of_jax(case: Case, table: Any) -> None:
    values = values_of(case)
    assert f"{case.label}.out{len(values)}" not in table
    for i, value in enumerate(values):
        expected = table[f"{case.label}.out{i}"]
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-13)


@each("case", CASES, ids=_ids(CASES))
def test_gradients_are_those_of_jax(case: Case, table: Any) -> None:
    if f"{case.label}.grad0" in table:
        cotangents = [weights(value) for value in values_of(case) if value.dtype.kind == "f"]
        for i, gradient in enumerate(gradients(case, cotangents)):
            np.testing.assert_allclose(gradient, table[f"{case.label}.grad{i}"], rtol=1e-12, atol=1e-12)


@each("case", SMOOTH, ids=_ids(SMOOTH))
def test_tangents_are_central_differences_to_second_order(case: Case) -> None:
    program = program_of(case)
    if has_tangent(program):
        check_jvp(program, case.operands, case.active)
        once = derivative(program, case.active)
        moving = [x for x, on in zip(case.operands, case.active, strict=True) if on]
        xs = [*case.operands, *(direction(x, i) for i, x in enumerate(moving))]
        check_jvp(once, xs, (*case.active, *[True] * len(moving)), 2e-5)


@each("case", SMOOTH, ids=_ids(SMOOTH))
def test_transposes_are_adjoint(case: Case) -> None:
    if has_tangent(program_of(case)):
        check_transpose(case)


@each("case", BOTH, ids=_ids(BOTH))
def test_batches_are_stacks_of_calls(case: Case) -> None:
    check_batch(case)


@each("case", BOTH, ids=_ids(BOTH))
def test_composite_lowerings_compute_the_reference(case: Case) -> None:
    check_composites(case)


def test_every_primitive_of_these_families_has_a_case() -> None:
    from tracer.primitives.arrays.dynamic_slice import SLICING
    from tracer.primitives.arrays.reductions.reductions import REDUCTIONS
    from tracer.primitives.arrays.slice_pad_concatenate import JOINING
    from tracer.primitives.arrays.sorting import SORTING
    from tracer.primitives.base.shapes import SHAPES
    from tracer.primitives.control.cumulative import SCANS
    from tracer.primitives.control.scatter_mul import SCATTER_MUL

    used = {equation.primitive for case in BOTH for equation in program_of(case).equations}
    families = (*SHAPES, *JOINING, *SLICING, *SCATTER_MUL, *REDUCTIONS, *SCANS, *SORTING)
    assert [p.name for p in families if p not in used] == ["copy", "checked_indices"]  # the laws have theirs
    assert not any(isinstance(p.lower, NoRule) for p in families)
