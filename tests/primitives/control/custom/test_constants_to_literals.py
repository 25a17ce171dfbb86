"""Programs of custom rules with their constants as literals: bit for bit, of every dtype, and bounded in size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import each
from tests.passes.programs import array, f64, same_bits
from tracer.errors import ArgumentError
from tracer.ir import dtypes
from tracer.ir.check import check_program
from tracer.primitives.base.reference import run_reference
from tracer.primitives.control.custom.constants_to_literals import closed
from tracer.primitives.elementwise.arithmetic import add
from tracer.trace.array import concrete
from tracer.trace.stage import stage

VALUES = [
    np.asarray([[0.0, -0.0, np.nan], [np.inf, 1e-320, 2.5]]), np.asarray(1.5, np.float32), np.full((2, 2), -0.0),
    np.zeros((0, 3)), np.asarray([True, False]), np.asarray([2**63, 1], np.uint64), np.asarray([1 + 2j, -0.0]),
    np.asarray([0.5, 3.0], dtypes.BF16),
]  # fmt: skip


@each("value", VALUES, ids=lambda v: f"{v.dtype}{list(v.shape)}")
def test_constants_are_written_to_the_bit(value: Any) -> None:
    constant = concrete(value)
    staged = stage(lambda xs: [constant, xs[0]], [f64()], name="rule")
    assert len(staged.constants) == 1
    program = check_program(closed(staged))
    assert tuple(program.input_types) == (f64(),)
    found, x = run_reference(program, [np.asarray(3.0)])
    assert same_bits(found, value)
    assert x == 3.0


def test_a_constant_of_one_value_is_one_literal() -> None:
    constant = concrete(np.full(1024, 2.5))
    program = closed(stage(lambda xs: [add(xs[0], constant)], [f64(1024)]))
    assert [e.primitive.name for e in program.equations] == ["broadcast_in_dim", "add"]


def test_a_program_without_constants_stays() -> None:
    staged = stage(lambda xs: [add(xs[0], 1.0)], [array(dtypes.F32, 2)])
    assert closed(staged) is staged.program


def test_large_constants_are_refused_with_a_remedy() -> None:
    constant = tnp.arange(1025.0)
    with pytest.raises(ArgumentError) as told:
        closed(stage(lambda xs: [add(xs[0], constant)], [f64(1025)]))
    assert str(told.value).endswith(
        " makes an array that the program of a loop, a branch or a call cannot hold\n  got f64[1025]\n"
        "  help: make it outside the rule, which may close over it, or pass it as an argument"
    )
