"""Eager execution: the reference at once, or a compiled program that is kept."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.runtime.programs import arange, count_to, double
from tracer import jit
from tracer.errors import OutOfBoundsError, ShapeError
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers
from tracer.primitives.arrays.indexing.gather import gather
from tracer.primitives.control.calls import call
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.trigonometric import sin_p
from tracer.runtime.eager import execute
from tracer.runtime.jit.trace_call import make_program
from tracer.trace.array import concrete
from tracer.trace.convert import as_array
from tracer.trace.trace import as_literal
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


def test_operations_run_within_an_operation() -> None:
    """As from a debugger's prompt, in a finalizer or in a signal handler."""
    x, y = tnp.asarray([5.0, -5.0]), tnp.asarray([2.0, 0.0])
    expected = [np.asarray(z) for z in (x // y, x[::-1] % x, x + y)]
    inner: list[Any] = []

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name in ("extend", "raw", "_rem_reference"):
            sys.setprofile(None)
            try:
                inner.extend(np.asarray(z) for z in (x // y, x[::-1] % x, x + y))
            finally:
                sys.setprofile(watch)

    sys.setprofile(watch)
    try:
        outer = [x // y, x[::-1] % x, x + y]
    finally:
        sys.setprofile(None)
    assert len(inner) >= 6
    for found in (*inner, *outer):
        assert any(np.array_equal(found, each, equal_nan=True) for each in expected)


def test_library_functions_of_many_operations_heed_no_floating_point_settings() -> None:
    x, y = tnp.asarray([1.0, np.inf, 0.0]), tnp.asarray([0.0, 1.0, 0.0])
    quiet = x // y, tnp.mod(x, y)
    with np.errstate(all="raise"):
        for found, expected in zip((x // y, tnp.mod(x, y)), quiet, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_literals_run_by_a_kernel() -> None:
    np.testing.assert_array_equal(execute.execute(sin_p, [as_literal(0.5)], {})[0], jit(tnp.sin)(0.5))


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
