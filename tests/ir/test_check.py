"""The verifier accepts what is well formed and names what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tests.counted_calls import python_calls
from tests.ir import toys
from tests.ir.strategies import programs
from tests.ir.toys import Writer, f32, number
from tracer.errors import InternalError
from tracer.ir.check import check_program
from tracer.ir.dtypes import BOOL, F32, F64
from tracer.ir.program import Equation, Literal, Program, Source, Var, literal
from tracer.ir.types import ArrayType, array_type

LINE = Source("demo.py", 3, "g")
Atoms = tuple[Any, ...]


def add(inputs: Atoms, outputs: Atoms, **params: Any) -> Equation:
    return Equation(toys.add_p, inputs, params, outputs, LINE)


def refusal(program: Program) -> str:
    with pytest.raises(InternalError) as caught:
        check_program(program)
    return str(caught.value)


@pytest.mark.parametrize("write", [toys.looping, toys.branching, toys.sorting, Writer().program])
def test_a_well_formed_program_comes_back_itself(write: Callable[[], Program]) -> None:
    program = write()
    assert check_program(program) is program


@given(programs())
def test_any_program_made_by_inference_is_well_formed(program: Program) -> None:
    check_program(program)


def test_a_variable_used_before_its_definition_is_refused() -> None:
    x, y, z = (Var(f32(3)) for _ in range(3))
    program = Program((x,), (add((x, z), (y,)), add((x, x), (z,))), (y,), "g")
    assert (
        refusal(program)
        == """\
g is not a well-formed program
  %b: f32[3] = add(%a, %?) # demo.py:3
  operand 1, of type f32[3], is used before its definition"""
    )


def test_a_variable_from_elsewhere_is_refused() -> None:
    x, y, stranger = (Var(f32(3)) for _ in range(3))
    program = Program((x,), (add((stranger, x), (y,)),), (y,))
    assert (
        refusal(program)
        == """\
f is not a well-formed program
  %b: f32[3] = add(%?, %a) # demo.py:3
  operand 0, of type f32[3], is not defined in this program"""
    )


def test_an_output_from_elsewhere_is_refused() -> None:
    assert (
        refusal(Program((), (), (number(1.0), Var(f32(3)))))
        == """\
f is not a well-formed program
  output 1, of type f32[3], is not defined in this program"""
    )


def test_a_nested_program_that_reads_an_outer_variable_is_refused() -> None:
    w = Writer(array_type(BOOL, ()), f32(3))
    outer = w.inputs[1]
    y = Var(f32(3))
    open_body = Program((Var(f32(3)),), (add((outer, outer), (y,)),), (y,))
    program = w.program(*w(toys.cond_p, *w.inputs, branches=(toys.doubling(), open_body)), name="g")
    assert (
        refusal(program)
        == """\
branches[1] of cond in g is not a well-formed program
  %b: f32[3] = add(%?, %?) # demo.py:3
  operand 0, of type f32[3], is not defined in this program"""
    )


def test_a_second_definition_is_refused() -> None:
    x, y = Var(f32(3)), Var(f32(3))
    program = Program((x,), (add((x, x), (y,)), add((x, x), (x,))), (y,))
    assert refusal(program).endswith("output 0, of type f32[3], is already defined")
    twice = Program((x,), (Equation(toys.sort_p, (x, x), {}, (y, y)),), ())
    assert refusal(twice).endswith("output 1, of type f32[3], is already defined")


def test_an_input_given_twice_is_refused() -> None:
    x = Var(f32(3))
    assert (
        refusal(Program((x, x), (), ()))
        == """\
f is not a well-formed program
  input 1 is the same variable as an earlier input"""
    )


@pytest.mark.parametrize("type", [f32(2), array_type(F64, (3,)), array_type(F32, (3,), True)], ids=str)
def test_a_type_other_than_the_inferred_one_is_refused(type: ArrayType) -> None:
    x, y = Var(f32(3)), Var(type)
    program = Program((x,), (add((x, number(1.0)), (y,)),), (y,))
    assert (
        refusal(program)
        == f"""\
f is not a well-formed program
  %b: {type} = add(%a, 1.0:f32) # demo.py:3
  output 0 has the type {type}, but f32[3] is inferred"""
    )


def test_a_wrong_number_of_outputs_is_refused() -> None:
    x = Var(f32(3))
    program = Program((x,), (add((x, x), ()),), ())
    assert refusal(program).endswith("it has 0 outputs, but add gives 1")


def test_operands_that_inference_refuses_are_refused_with_its_reason() -> None:
    x, y, z = Var(f32(3)), Var(f32(2)), Var(f32(3))
    program = Program((x, y), (add((x, y), (z,)),), (z,))
    reason = "its types cannot be inferred: ShapeError: add: shapes f32[3], f32[2] differ"
    assert refusal(program).endswith(reason)


LITERALS = [
    (Literal(np.float64(1), array_type(F32, ())), "holds a value of float64, but its type is f32[]"),
    (Literal(1.0, array_type(F64, ())), "holds a float, not a NumPy scalar"),
    (Literal(np.float32(1), f32(3)), "has the type f32[3], but literals are scalars"),
]


@pytest.mark.parametrize(("value", "reason"), LITERALS, ids=[reason for _, reason in LITERALS])
def test_a_literal_that_is_not_of_its_type_is_refused(value: Literal, reason: str) -> None:
    assert refusal(Program((), (), (value,))).endswith(f"output 0, a literal, {reason}")


@pytest.mark.parametrize("param", [np.zeros(3), (1, (np.zeros(3),)), {"a": [np.zeros(3)]}], ids=repr)
def test_a_parameter_that_holds_an_array_is_refused(param: Any) -> None:
    x, y = Var(f32(3)), Var(f32(3))
    program = Program((x,), (Equation(toys.odd_p, (x,), {"table": param}, (y,)),), (y,))
    assert refusal(program).endswith("parameter 'table' holds an array: arrays are operands")


def test_numpy_scalars_are_parameters() -> None:
    w = Writer(f32(3))
    check_program(w.program(w(toys.odd_p, *w.inputs, value=np.float32(1), dtype=F32, kind=np.float64)))


def test_a_faulting_equation_needs_a_boolean_predicate_at_its_guard() -> None:
    x, y = Var(f32(3)), Var(f32(3))
    ok = Equation(toys.take_p, (literal(True, BOOL), x), {}, (y,))
    check_program(Program((x,), (ok,), (y,)))
    wrong = Equation(toys.take_p, (x, x), {}, (y,))
    assert refusal(Program((x,), (wrong,), (y,))).endswith(
        "it may fault, but operand 0, its guard, is f32[3] instead of bool"
    )


def test_a_program_shared_by_many_equations_is_checked_once() -> None:
    body = toys.doubling()
    for _ in range(60):  # 2**60 bodies, each in two places of the next
        w = Writer(f32(3))
        (x,) = w(toys.cond_p, *w.inputs, branches=(body, body))
        body = w.program(x)
    assert check_program(body) is body


def test_checking_takes_linear_time() -> None:
    long, short = toys.chain(10_000), toys.chain(2_500)
    assert 10_000 < python_calls(lambda: check_program(long)) < 4.2 * python_calls(lambda: check_program(short))


def test_the_error_carries_the_program_as_a_note() -> None:
    program = Program((), (), (Var(f32()),))
    with pytest.raises(InternalError) as caught:
        check_program(program)
    assert caught.value.__notes__[1:] == [str(program)]


def test_the_note_of_a_long_program_is_cut() -> None:
    program = toys.chain(1000)
    with pytest.raises(InternalError) as caught:
        check_program(Program(program.inputs, program.equations, (Var(f32()),)))
    assert caught.value.__notes__[1].endswith("... 803 more lines")
