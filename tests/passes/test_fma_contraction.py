from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracer
import tracer.numpy as tnp
from tests.passes.programs import apply, array, f64, traced
from tests.passes.structures import repeat
from tests.passes.test_dce import only
from tracer.codegen.llvm.toolchain.target import fuses_products
from tracer.ir import dtypes
from tracer.passes.fma_contraction import contract
from tracer.passes.pipeline import optimize, stages
from tracer.primitives.base.reference import run_reference
from tracer.primitives.elementwise.arithmetic import add, mul, neg, sub
from tracer.primitives.elementwise.comparison import lt
from tracer.runtime.compile.compile import compile_program

needs_fma = pytest.mark.skipif(not fuses_products(), reason="the machine has no such instruction")


def names(program: Any) -> list[str]:
    return [e.primitive.name for e in program.equations]


def contracted(function: Any, *types: Any) -> list[str]:
    return names(apply(contract, traced(function, *types)))


def test_a_product_goes_into_the_sum_on_either_side() -> None:
    assert contracted(lambda x, y, z: add(mul(x, y), z), f64(3), f64(3), f64(3)) == ["fma"]
    assert contracted(lambda x, y, z: add(z, mul(x, y)), f64(3), f64(3), f64(3)) == ["fma"]
    assert contracted(lambda x, y: add(mul(x, x), mul(y, y)), f64(3), f64(3)) == ["mul", "fma"]


def test_differences_negate_what_is_cheap() -> None:
    assert contracted(lambda x, y, z: sub(mul(x, y), z), f64(3), f64(3), f64(3)) == ["neg", "fma"]
    assert contracted(lambda x, y, z: sub(z, mul(x, y)), f64(3), f64(3), f64(3)) == ["neg", "fma"]
    assert contracted(lambda x, y: sub(mul(x, y), 2.0), f64(3), f64(3)) == ["fma"]
    assert contracted(lambda x, z: sub(z, mul(x, 2.0)), f64(3), f64(3)) == ["fma"]


@given(st.lists(st.floats(-1e150, 1e150), min_size=3, max_size=3))
def test_values_are_rounded_once(numbers: list[float]) -> None:
    x, y, z = numbers
    for function, expected in (
        (lambda x, y, z: add(mul(x, y), z), lambda x, y, z: x * y + z),
        (lambda x, y, z: sub(mul(x, y), z), lambda x, y, z: x * y - z),
        (lambda x, y, z: sub(z, mul(x, y)), lambda x, y, z: z - x * y),
        (lambda x, y, z: sub(z, mul(x, 0.1)), lambda x, y, z: z - x * Fraction(0.1)),
        (lambda x, y, z: sub(z, mul(0.1, x)), lambda x, y, z: z - Fraction(0.1) * x),
    ):
        program = contract(traced(function, f64(), f64(), f64()))
        assert "fma" in names(program)
        for run in (run_reference, lambda program, values: compile_program(program).run(values)):
            (found,) = run(program, [np.array(x), np.array(y), np.array(z)])
            assert found == float(expected(*map(Fraction, numbers)))


def test_what_else_is_read_stays_a_product() -> None:
    shared = traced(lambda x, y: (lambda p: (add(p, y), p))(mul(x, y)), f64(3), f64(3))
    assert contract(shared) is shared
    doubled = traced(lambda x, y: (lambda p: add(p, p))(mul(x, y)), f64(3), f64(3))
    assert contract(doubled) is doubled


@pytest.mark.parametrize("dtype", [dtypes.F16, dtypes.BF16, dtypes.C128, dtypes.I32], ids=str)
def test_other_dtypes_stay(dtype: Any) -> None:
    program = traced(lambda x, y: add(mul(x, y), y), array(dtype, 3), array(dtype, 3))
    assert contract(program) is program


def test_bodies_of_loops_are_contracted() -> None:
    def f(x: Any, y: Any) -> Any:
        return repeat(lambda y, x: lt(x, 4.0), lambda y, x: (add(mul(x, y), neg(y)),), [x], [y])

    after = contract(traced(f, f64(), f64()))  # with most numbers it would never end
    assert names(only(after, "while_loop").params["body"]) == ["neg", "fma"]


def test_the_pass_is_the_last_and_asked_for() -> None:
    program = traced(lambda x, y: add(mul(x, y), y), f64(3), f64(3))
    assert [p.name for p, _ in stages(program, contracts=True)] == ["contract"]
    assert not list(stages(program))
    assert names(optimize(program, contracts=True, verify=True)) == ["fma"]
    assert names(optimize(program)) == ["mul", "add"]


X = np.array([1 + 2.0**-30])
LOST = 2.0**-60  # of X * X when it is rounded


@needs_fma
def test_jit_contracts_where_the_setting_says_so() -> None:
    f = tracer.jit(lambda x, y: x * x - y)
    squared = X * X
    assert f(X, squared)[0] == 0
    with tracer.config.using(fp_contract=True):
        assert f(X, squared)[0] == LOST
        assert "fma" in str(f.lower(X, squared).optimized())
        assert f(tnp.asarray(X), squared)[0] == LOST
        assert (tnp.asarray(X) * X - squared)[0] == 0  # outside jit every operation rounds
    assert f(X, squared)[0] == 0


@needs_fma
def test_a_change_of_the_setting_is_heeded_and_explained() -> None:
    f = tracer.jit(lambda x, y: x * x - y)
    try:
        assert f(X, X * X)[0] == 0
        tracer.config.fp_contract = True
        assert f(X, X * X)[0] == LOST
        assert "fp_contract" in f.explain()
    finally:
        tracer.config.fp_contract = False
    assert f(X, X * X)[0] == 0


@needs_fma
def test_derivatives_and_batches_are_contracted() -> None:
    with tracer.config.using(fp_contract=True):
        f = tracer.jit(tracer.vmap(tracer.grad(lambda x, y: x * x * x / 3 - y * x)))
        assert f(X, X * X)[0] == pytest.approx(LOST, rel=1.0)
        assert "fma" in str(f.lower(X, X * X).optimized())


def test_a_number_times_its_conjugate_is_real() -> None:
    z = np.array([0.1 + 0.7j, 1e8 + 3.3j])
    with tracer.config.using(fp_contract=True):
        np.testing.assert_array_equal(tracer.jit(lambda z: z * z.conj())(z).imag, 0)
