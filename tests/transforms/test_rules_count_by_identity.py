"""Two custom rules of one name are two rules, to every cache that goes by digests."""

from __future__ import annotations

import tracer
import tracer.numpy as tnp


def doubled(factor: float) -> object:
    @tracer.custom_jvp
    def f(x: tracer.Array) -> tracer.Array:
        return tnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(primals[0]), factor * tangents[0]))
    return f


def test_compiled_functions_tell_custom_rules_of_one_name_apart() -> None:
    first, second = tracer.jit(doubled(2.0)), tracer.jit(doubled(3.0))
    assert float(tracer.jit(tracer.grad(first))(0.5)) == 2.0
    assert float(tracer.jit(tracer.grad(second))(0.5)) == 3.0
    assert tracer.make_program(first)(0.5).digest != tracer.make_program(second)(0.5).digest
