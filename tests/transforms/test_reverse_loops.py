"""Reverse mode through loops whose trip count is known only at run time: by the reference and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.schedule.running import interpreted, program, run, scalar, vector
from tracer.ir.check import check_program
from tracer.ir.dtypes import I64
from tracer.ir.program import Program, literal
from tracer.primitives.arrays.reductions.reductions import reduce_sum
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.primitives.control.for_loop import for_program
from tracer.primitives.control.scan import scan_program
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add, div, mul, sub
from tracer.primitives.elementwise.bits import and_
from tracer.primitives.elementwise.comparison import gt, lt
from tracer.primitives.elementwise.complex import abs as abs_
from tracer.primitives.elementwise.trigonometric import sin
from tracer.transforms.batch import batch_program
from tracer.transforms.gradients import grad

Function = Callable[[Any], Any]


def newton(a: Any) -> Any:
    """The square root, by as many steps as it takes."""
    cond = program(lambda a, s: gt(abs_(sub(mul(s, s), a)), 1e-12), scalar(), scalar())
    body = program(lambda a, s: mul(0.5, add(s, div(a, s))), scalar(), scalar())
    return while_program(cond, body, [a], [a], [a])[0]


def in_scan(a: Any) -> Any:
    body = program(lambda c, x: mul(sin(newton(add(c, 1.0))), x), scalar(), scalar())
    return scan_program(body, [], [a], [broadcast_in_dim(a, (4,), ())], length=4)[0]


def in_while(a: Any) -> Any:
    cond = program(lambda i, s: lt(i, 5), scalar(I64), scalar())
    body = program(lambda i, s: (add(i, 1), newton(add(mul(s, s), 0.5))), scalar(I64), scalar())
    return while_program(cond, body, [], [], [literal(0, I64), a])[1]


def bounded(a: Any) -> Any:
    """Stops by the value and by the count, whichever comes first."""
    cond = program(lambda i, s: and_(lt(i, 7), lt(s, 100.0)), scalar(I64), scalar())
    body = program(lambda i, s: (add(i, 1), add(mul(s, s), sin(s))), scalar(I64), scalar())
    return while_program(cond, body, [], [], [literal(0, I64), a])[1]


def counted(a: Any) -> Any:
    body = program(lambda i, c, s: mul(sin(add(s, c)), c), scalar(I64), scalar(), scalar())
    return for_program(body, [literal(6, I64), a, a], consts=1)[0]


def backwards(a: Any) -> Any:
    body = program(lambda i, s: mul(sin(s), 1.5), scalar(I64), scalar())
    return for_program(body, [literal(6, I64), a], consts=0, reverse=True)[0]


FUNCTIONS = [newton, in_scan, in_while, bounded, counted, backwards]


def derivative(function: Function, order: int) -> Program:
    for _ in range(order):
        function = grad(function)
    return check_program(program(function, scalar()))


def value(p: Program, x: float) -> float:
    return float(run_reference(p, [np.array(x)])[0])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", [1, 2])
def test_the_derivative_of_a_loop_is_its_finite_difference(function: Function, order: int) -> None:
    before, after = derivative(function, order - 1), derivative(function, order)
    h, x = 1e-5, 1.3
    difference = (value(before, x + h) - value(before, x - h)) / (2 * h)
    assert value(after, x) == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_compiled_derivatives_of_loops_agree_with_the_reference(function: Function) -> None:
    for order in (1, 2):
        after = derivative(function, order)
        expected = pytest.approx(value(after, 1.3), rel=1e-12)
        assert run(after, [np.array(1.3)])[0] == expected
        assert interpreted(after, [np.array(1.3)])[0] == expected


def test_third_derivatives_go_through_loops() -> None:
    assert value(derivative(newton, 3), 2.0) == pytest.approx(3 / 8 * 2**-2.5, rel=1e-9)


@pytest.mark.parametrize("function", [newton, in_scan, in_while, bounded], ids=lambda f: f.__name__)
def test_lanes_of_a_batch_stop_on_their_own(function: Function) -> None:
    single = derivative(function, 1)
    lanes = np.array([1.3, 0.4, 2.0, 7.5])
    batched = check_program(batch_program(single, (True,), 4).program)
    expected = [value(single, x) for x in lanes]
    np.testing.assert_allclose(run_reference(batched, [lanes])[0], expected, rtol=1e-12)
    np.testing.assert_allclose(run(batched, [lanes])[0], expected, rtol=1e-12)


def test_a_loop_of_no_trips_passes_its_cotangent_through() -> None:
    assert value(derivative(newton, 1), 1.0) == 1.0


def test_a_long_loop_is_differentiated() -> None:
    def decay(a: Any) -> Any:
        cond = program(lambda i, s: lt(i, 10_000), scalar(I64), scalar())
        body = program(lambda i, s: (add(i, 1), mul(s, 0.9999)), scalar(I64), scalar())
        return while_program(cond, body, [], [], [literal(0, I64), a])[1]

    (found,) = run(derivative(decay, 1), [np.array(2.0)])
    assert found == pytest.approx(0.9999**10_000, rel=1e-9)


def test_derivatives_go_through_loops_over_arrays() -> None:
    def relax(x: Any) -> Any:
        types = (scalar(I64), x.type)
        cond = program(lambda i, s: lt(i, 4), *types)
        body = program(lambda i, s: (add(i, 1), mul(sin(s), s)), *types)
        return while_program(cond, body, [], [], [literal(0, I64), x])[1]

    p = program(grad(lambda x: reduce_sum(relax(x), (0,))), vector(5))
    x = np.linspace(0.5, 2.0, 5)
    reference = run_reference(p, [x])[0]

    def forward(y: Any) -> Any:
        for _ in range(4):
            y = np.sin(y) * y
        return y

    h = 1e-6
    np.testing.assert_allclose(reference, (forward(x + h) - forward(x - h)) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(run(p, [x])[0], reference, rtol=1e-12)
