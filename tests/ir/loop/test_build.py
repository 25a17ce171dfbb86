"""The builder of loop IR: what folds, what does not, and how blocks close."""

from __future__ import annotations

import pytest

from tests.ir.loop.programs import operand
from tracer.errors import InternalError
from tracer.ir.dtypes import BOOL, F32, F64, I32, I64
from tracer.ir.loop import Address, Compute, If, Load, Register, index_constant
from tracer.ir.loop.build import Builder, address, carry, constant
from tracer.ir.scalar import ScalarOp

ADD, SUB, MUL = ScalarOp.ADD, ScalarOp.SUB, ScalarOp.MUL


def test_index_arithmetic_on_constants_folds() -> None:
    b, i = Builder(), Register(I64, "i")
    assert b.compute(ADD, index_constant(2), 3) == index_constant(5)
    assert b.compute(MUL, i, 1) is i
    assert b.compute(ADD, 0, i) is i
    assert b.compute(SUB, i, 0) is i
    assert b.compute(MUL, i, 0) == index_constant(0)
    assert b.finish().statements == ()


def test_index_arithmetic_that_would_wrap_is_left_to_run_time() -> None:
    b = Builder()
    assert isinstance(b.compute(ADD, index_constant((1 << 63) - 1), 1), Register)


def test_floats_and_other_integers_never_fold() -> None:
    b = Builder()
    assert isinstance(b.compute(ADD, constant(1.0, F32), 0.0), Register)
    assert isinstance(b.compute(MUL, constant(2, I32), 1), Register)
    assert isinstance(b.compute(SUB, 0, Register(I64)), Register)
    assert len(b.finish().statements) == 3


def test_numbers_take_the_dtype_of_the_operands_beside_them() -> None:
    b, x, p = Builder(), Register(F64), Register(BOOL)
    b.compute(ScalarOp.LT, x, 1)
    b.select(p, x, 2)
    less, select = b.finish().statements
    assert isinstance(less, Compute)
    assert (less.result.dtype, less.operands[1]) == (BOOL, constant(1.0, F64))
    assert isinstance(select, Compute)
    assert (select.result.dtype, select.operands[2]) == (F64, constant(2.0, F64))
    with pytest.raises(InternalError, match="loop IR: add of numbers alone has no dtype"):
        b.compute(ADD, 1, 2)


def test_a_change_of_dtype_to_the_same_dtype_is_no_statement() -> None:
    b, x = Builder(), Register(F32)
    assert b.convert(x, F32) is x
    assert b.bitcast(x, F32) is x
    assert b.convert(x, F64).dtype == F64
    with pytest.raises(InternalError, match="loop IR: convert needs the dtype of its result"):
        b.compute(ScalarOp.CONVERT, x)


def test_addresses_gather_their_terms() -> None:
    i, j = Register(I64, "i"), Register(I64, "j")
    inner = address((i, 4), j, 3)
    assert inner == Address(3, ((i, 4), (j, 1)))
    assert address(inner, (i, -4), index_constant(2), (index_constant(5), 2), -1) == Address(14, ((j, 1),))


def test_loads_take_registers_numbers_and_addresses() -> None:
    b, a, i = Builder(), operand("a", 4), Register(I64)
    for at in (i, 2, address(i, 2)):
        b.load(a, at)
    places = [s.address for s in b.finish().statements if isinstance(s, Load)]
    assert places == [Address(0, ((i, 1),)), Address(2), Address(2, ((i, 1),))]


def test_a_branch_may_have_another_arm_or_not() -> None:
    b = Builder()
    with b.if_(constant(True, BOOL)) as branch:
        branch.yields(constant(1.0, F32))
    with branch.otherwise as otherwise:
        otherwise.yields(b.compute(ADD, constant(1.0, F32), 1.0))
    (statement,) = b.finish().statements
    assert isinstance(statement, If)
    assert statement.results == branch.results
    assert [r.dtype for r in branch.results] == [F32]
    assert len(statement.otherwise.statements) == 1


def test_carries_name_the_results_of_their_loop() -> None:
    b = Builder()
    loop = b.while_(carry(constant(1.0, F64), "x"))
    with loop.condition as condition:
        condition.yields(constant(False, BOOL))
    with loop.body as body:
        body.yields(loop.carries[0])
    assert [(r.name, r.dtype) for r in loop.results] == [("x", F64)]
    assert len(b.finish().statements) == 1


def test_a_block_left_open_is_found() -> None:
    b = Builder()
    with (
        pytest.raises(InternalError, match="loop IR: finished with 1 inner blocks still open"),
        b.for_("i", 0, 3),
    ):
        b.finish()
