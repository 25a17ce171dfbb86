"""Eager execution: the reference at once, or a compiled program that is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.programs import arange, count_to, double
from tracer.errors import OutOfBoundsError, ShapeError
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers
from tracer.primitives.arrays.indexing.gather import gather
from tracer.primitives.control.calls import call
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.runtime.eager import execute
from tracer.runtime.jit.trace_call import make_program
from tracer.trace.array import concrete
from tracer.trace.convert import as_array
from tracer.transforms.gradients import grad


def test_a_primitive_runs_by_its_reference() -> None:
    y = double(arange(3))
    np.testing.assert_array_equal(y, [0.0, 2.0, 4.0])
    assert y._value.base is None
    assert not y.weak_type


def test_weak_operands_give_weak_results() -> None:
    assert double(as_array(1.0)).weak_type
    assert not mul(concrete(np.array(1.0)), as_array(2.0)).weak_type


def test_calls_are_prepared_by_type_and_parameters() -> None:
    execute.clear_caches()
    for _ in range(2):
        double(arange(3))
    known = len(execute._prepared)
    double(arange(3, "float32"))
    double(arange(4))
    assert len(execute._prepared) == known + 2


def test_a_type_error_is_not_kept() -> None:
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"add at test_execute.py:\d+: operands must have equal shapes"):
            add(arange(3), arange(4))


def test_a_loop_is_compiled_once(way: str) -> None:
    for start in range(3):
        assert float(count_to(10.0)(concrete(np.array(float(start))))) == 10.0
    assert len(execute._compiled) == 1
    assert float(count_to(11.0)(concrete(np.array(0.0)))) == 11.0
    assert len(execute._compiled) == 2


def element(x: Any, i: Any) -> Any:
    return gather(x, i, GatherDimensionNumbers((), (0,), (0,)), (1,))


def same_element(x: Any, i: Any) -> Any:
    return gather(x, i, GatherDimensionNumbers((), (0,), (0,)), (1,))


def test_a_compiled_program_names_the_line_that_is_its_own(way: str) -> None:
    operands = [arange(3), as_array(np.array([4]))]
    first, second = make_program(element)(*operands), make_program(same_element)(*operands)
    assert first == second
    for program in (first, second):
        source = program.equations[0].source
        with pytest.raises(OutOfBoundsError, match=f"^index 4 is out of bounds for axis 0 with size 3, at {source}\n"):
            call(program, *operands)


def test_grad_of_an_eager_call(way: str) -> None:
    program = make_program(lambda x: mul(x, x))(np.float64(1))
    assert float(grad(lambda x: call(program, x)[0])(np.float64(3))) == 6.0
