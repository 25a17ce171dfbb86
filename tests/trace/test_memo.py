"""Transforms of programs are remembered by the program and the lines that its equations name."""

from __future__ import annotations

from typing import Any

from tracer.ir import dtypes
from tracer.ir.program import Program
from tracer.ir.types import array_type
from tracer.primitives.elementwise.exponential import exp
from tracer.trace.memo import remembered
from tracer.trace.stage import stage

F64 = array_type(dtypes.F64, (3,))


def one() -> Program:
    return stage(lambda xs: [exp(xs[0])], [F64], name="f").program


def other() -> Program:
    return stage(lambda xs: [exp(xs[0])], [F64], name="f").program


def counting() -> tuple[Any, list[Any]]:
    calls: list[Any] = []

    @remembered
    def transform(program: Program, flag: bool, *, limit: int = 0) -> int:
        calls.append((program, flag, limit))
        return len(calls)

    return transform, calls


def test_an_equal_program_of_the_same_lines_is_transformed_once() -> None:
    transform, calls = counting()
    assert transform(one(), True) == transform(one(), True) == 1
    assert len(calls) == 1


def test_other_lines_and_other_arguments_are_other_results() -> None:
    transform, calls = counting()
    assert one() == other()
    assert one().lines != other().lines
    assert [transform(one(), True), transform(other(), True), transform(one(), False)] == [1, 2, 3]
    assert transform(one(), True, limit=1) == 4
    assert len(calls) == 4
