"""Probes: they see each equation's values, with the iterations of the loops around it, and change no result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax
from tracer.primitives.control.effects import HostFunction, callback
from tracer.runtime.compile.compile import compile_program
from tracer.trace.array import Array
from tracer.transforms.probing import Loops, probed


def loops(x: Any) -> Any:
    def inner(c: Any, y: Any) -> Any:
        c = lax.while_loop(lambda t: (t[0] < 2) & (t[1].sum() < 99), lambda t: (t[0] + 1, t[1] * 1.5), (0, c + y))[1]
        return c, tnp.sin(c)

    c, ys = lax.scan(inner, x, tnp.arange(3.0), reverse=True, unroll=2)
    c = lax.cond(c.sum() > 1, lambda c: c / 2, lambda c: -c, c)
    return lax.fori_loop(0, 2, lambda i, c: jit(lambda c: tnp.tanh(c) + i)(c), c).sum() + ys.sum()


def counted(x: Any) -> Any:
    return lax.fori_loop(0, x.astype(int)[0], lambda i, c: tnp.sin(c) * (i + 1.0), x).sum()


def custom(x: Any) -> Any:
    return (
        lax.custom_linear_solve(lambda v: 3.0 * v, x, lambda _, b: b / 3.0, symmetric=True).sum()
        + tracer.nn.relu(x).sum()
    )


def saved(x: Any) -> Any:
    return tracer.checkpoint(lambda x: tnp.exp(tnp.sin(x)) * x)(x).sum()


@pytest.mark.parametrize(
    "derive", [lambda f: f, grad, lambda f: grad(lambda x: grad(f)(x).sum())], ids=["f", "df", "ddf"]
)
@pytest.mark.parametrize("f", [loops, counted, custom, saved], ids=lambda f: f.__name__)
def test_a_probed_program_gives_the_results_of_the_program(f: Any, derive: Any) -> None:
    x = tnp.asarray([2.0, 0.5])
    lowered = jit(derive(f)).lower(x)
    operands = [tnp.asarray(c) for c in lowered._traced.captured] + [x]
    seen = []
    program = probed(lowered.program(), lambda _: lambda equation, *rest: seen.append(equation))
    assert seen
    (expected,) = compile_program(lowered.program()).call(operands)
    (found,) = compile_program(program).call(operands)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_probe_sees_the_iterations_of_nested_loops() -> None:
    seen: list[list[int]] = []

    def note(*values: Any) -> tuple[()]:
        seen.append([int(v) for v in values])
        return ()

    def probe(equation: Any, xs: Any, ys: Any, around: Loops) -> None:
        if equation.primitive.name == "sin":
            assert all(isinstance(y, Array) for y in ys)
            names = [loop.loop.primitive.name for loop in around]
            assert names == ["scan", "while_loop"]
            host = HostFunction(note, "note")
            callback(host, [loop.iteration for loop in around], (), ordered=True, vmap_method="sequential")

    def f(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, tnp.sin(c[1])), (0, c))[1], None

        return lax.scan(body, x, None, length=2, reverse=True)[0]

    lowered = jit(f).lower(1.0)
    operands = [tnp.asarray(c) for c in (*lowered._traced.captured, 1.0)]
    compile_program(probed(lowered.program(), lambda _: probe)).call(operands)
    assert seen == [[1, 0], [1, 1], [0, 0], [0, 1]]


def test_equations_of_derivatives_carry_the_mark_of_the_line() -> None:
    def f(x: Any) -> Any:
        y = tnp.sqrt(x)
        return lax.scan(lambda c, _: (c * y, None), x, None, length=3)[0].sum()

    program = jit(grad(f)).lower(tnp.ones(2)).program()
    marked = {e.source.derivative for e in program.equations if e.source is not None and e.primitive.name == "scan"}
    assert marked == {False, True}
    assert any(e.source is not None and e.source.derivative and e.primitive.name == "div" for e in program.equations)
    plain = jit(f).lower(tnp.ones(2)).program()
    assert not any(e.source is not None and e.source.derivative for e in plain.equations)
