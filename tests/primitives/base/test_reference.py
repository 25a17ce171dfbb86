"""The reference interpreter of programs: splats in full, NumPy silent, faults of rules as errors of the compiler."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.passes.programs import f64, traced
from tests.passes.structures import along
from tracer.errors import InternalError
from tracer.ir.program import Program
from tracer.primitives.base.broadcasting import full
from tracer.primitives.base.reference import fitted, interpreted_by, run_reference
from tracer.primitives.elementwise.arithmetic import add, div


def test_values_of_one_number_come_in_the_shape_of_their_type() -> None:
    (ones,) = run_reference(traced(lambda x: full((2, 3), 1.0, f64().dtype), f64()), [np.asarray(0.0)])
    np.testing.assert_array_equal(ones, np.ones((2, 3)), strict=True)


def test_a_rule_of_another_dtype_is_an_error_of_the_compiler() -> None:
    with pytest.raises(InternalError, match=r"^the reference of sin gave float32 where f64\[2\] was inferred\n"):
        fitted(np.zeros(2, np.float32), f64(2), "sin")


def test_faults_of_floats_are_values_without_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (y,) = run_reference(traced(lambda x: div(x, 0.0), f64(3)), [np.asarray([1.0, 0.0, -1.0])])
    np.testing.assert_array_equal(y, [np.inf, np.nan, -np.inf])


def test_nested_programs_run_by_the_interpreter_that_is_set() -> None:
    names = []

    def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
        names.append(program.name)
        return [np.asarray(7.0) for _ in program.outputs]

    program = traced(lambda x, xs: along(lambda c, x: (add(c, x),), [x], [xs], length=2), f64(), f64(2), name="outer")
    with interpreted_by(run):
        assert run_reference(program, [np.asarray(1.0), np.ones(2)]) == [7.0]
    assert names == ["outer"]
    assert run_reference(program, [np.asarray(1.0), np.ones(2)]) == [3.0]
