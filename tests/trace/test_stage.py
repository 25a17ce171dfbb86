"""Staging: which operations become equations, what is lifted from outside, and when a trace is dead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import errors
from tracer.ir import dtypes
from tracer.ir.check import check_program
from tracer.ir.types import array_type
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.exponential import exp
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage

F64 = array_type(dtypes.F64, (3,))
X = as_array(np.asarray([1.0, 2.0, 3.0]))


def names(program: Any) -> list[str]:
    return [e.primitive.name for e in check_program(program).equations]


def test_operations_on_constants_are_staged_too() -> None:
    staged = stage(lambda xs: [add(xs[0], exp(X))], [F64])
    assert names(staged.program) == ["exp", "add"]
    assert staged.constants == [X]


def test_an_array_from_outside_is_lifted_once() -> None:
    staged = stage(lambda xs: [mul(add(xs[0], X), X)], [F64])
    assert len(staged.constants) == 1
    assert staged.constants[0] is X
    assert len(staged.program.inputs) == 2


def test_an_inner_trace_lifts_from_the_outer_one() -> None:
    inner: list[Any] = []

    def outer(xs: list[Array]) -> list[Any]:
        inner.append(stage(lambda ys: [mul(ys[0], xs[0])], [F64]))
        return [add(xs[0], 1.0)]

    staged = stage(outer, [F64])
    assert names(staged.program) == ["add"]
    assert names(inner[0].program) == ["mul"]
    assert not staged.constants
    assert [a._trace is not None for a in inner[0].constants] == [True]


def test_an_operation_belongs_to_the_deepest_trace_of_its_operands() -> None:
    programs: list[Any] = []

    def outer(xs: list[Array]) -> list[Any]:
        def inner(ys: list[Array]) -> list[Any]:
            return [add(mul(xs[0], xs[0]), ys[0])]

        programs.append(stage(inner, [F64]).program)
        return [xs[0]]

    stage(outer, [F64])
    assert names(programs[0]) == ["mul", "add"]


def test_an_array_of_a_closed_trace_is_refused() -> None:
    leaked: list[Array] = []

    def keep(xs: list[Array]) -> list[Any]:
        leaked.append(exp(xs[0]))
        return [leaked[0]]

    stage(keep, [F64], name="keep")
    with pytest.raises(errors.LeakedTracerError, match="while `keep` was traced, outlived its trace"):
        add(leaked[0], 1.0)


def test_a_failure_closes_the_trace() -> None:
    def fail(xs: list[Array]) -> list[Any]:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        stage(fail, [F64])
    assert np.array_equal(tnp.exp(X), exp(X))
    assert exp(X)._trace is None


def test_a_program_is_evaluated_where_its_operands_belong() -> None:
    program = stage(lambda xs: [exp(xs[0]), add(xs[0], 1.0)], [F64]).program
    eager = evaluate(program, [X])
    assert all(isinstance(y, Array) and y._trace is None for y in eager)
    again = stage(lambda xs: evaluate(program, xs), [F64]).program
    assert again == program


def test_every_equation_knows_the_users_line() -> None:
    def f(xs: list[Array]) -> list[Any]:
        y = exp(xs[0])  # exp
        return [add(y, 1.0)]  # add

    first = f.__code__.co_firstlineno
    equations = stage(f, [F64]).program.equations
    assert [e.source.line for e in equations if e.source] == [first + 1, first + 2]
    assert {e.source.function for e in equations if e.source} == {"f"}
