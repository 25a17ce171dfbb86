"""Law: the type that a primitive infers is that of what its reference computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.laws.cases import Case, cases_of
from tests.laws.sampling import generator, primitives_with, sampled
from tests.laws.values import Array
from tracer.ir.primitive import NoRule, Primitive
from tracer.ir.program import Literal, Var
from tracer.ir.types import KeyType, StackType, Type, storage_type
from tracer.primitives.base.reference import reference_outputs


@primitives_with(lambda p: not isinstance(p.reference, NoRule), "types")
@sampled(1)
def test_a_reference_returns_what_was_inferred(primitive: Primitive, seed: int) -> None:
    for case in cases_of(primitive.name):
        values: dict[Var, Any] = dict(zip(case.program.inputs, case.draw(generator(seed, case)), strict=True))
        for equation in case.program.equations:
            operands = [np.asarray(a.value) if isinstance(a, Literal) else values[a] for a in equation.inputs]
            before = [x.copy() for x in operands]
            results = reference_outputs(equation.primitive, operands, equation.params)
            assert len(results) == len(equation.outputs), case
            for result, variable in zip(results, equation.outputs, strict=True):
                check_type(np.asarray(result), variable.type, case)
                values[variable] = result
            for x, y in zip(operands, before, strict=True):
                assert x.tobytes() == y.tobytes(), f"{case} writes to its operand"


def check_type(array: Array, type: Type, case: Case) -> None:
    if isinstance(type, StackType):
        array, type = array.sum(0, dtype=array.dtype), type.item
    stored = storage_type(type)
    assert array.dtype == stored.dtype, case
    if case.literals and not array.shape:
        return  # a splat of literals, which `run_reference` spreads
    if not (isinstance(type, KeyType) and 0 in stored.shape):  # no words to tell the shape by
        assert array.shape == stored.shape, case
