"""Law: the type that a primitive infers is that of what its reference computes."""

from __future__ import annotations

import numpy as np

from tests.laws.cases import cases_of
from tests.laws.sampling import generator, primitives_with, sampled
from tests.laws.values import is_key
from tracer.ir.primitive import NoRule, Primitive
from tracer.ir.program import Literal
from tracer.ir.types import storage_type
from tracer.primitives.reference import reference_outputs


@primitives_with(lambda p: not isinstance(p.reference, NoRule), "types")
@sampled(2)
def test_a_reference_returns_what_was_inferred(primitive: Primitive, seed: int) -> None:
    for case in cases_of(primitive.name):
        (equation,) = case.program.equations
        given = iter(case.draw(generator(seed, case)))
        operands = [np.asarray(a.value) if isinstance(a, Literal) else next(given) for a in equation.inputs]
        before = [x.copy() for x in operands]
        results = reference_outputs(primitive, operands, case.params)
        assert len(results) == len(equation.outputs), case
        for result, variable in zip(results, equation.outputs, strict=True):
            stored = storage_type(variable.type)
            array = np.asarray(result)
            assert array.dtype == stored.dtype, case
            if case.literals and not array.shape:
                continue  # a splat of literals, which `run_reference` spreads
            if not (is_key(variable.type) and 0 in stored.shape):  # no words to tell the shape by
                assert array.shape == stored.shape, case
        for x, y in zip(operands, before, strict=True):
            assert x.tobytes() == y.tobytes(), f"{case} writes to its operand"
