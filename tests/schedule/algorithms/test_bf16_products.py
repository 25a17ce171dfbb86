"""Products of bf16 matrices: as they are where the machine multiplies them, converted elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
from tests.codegen.llvm.llvm_programs import executable
from tests.grids import covering
from tests.schedule.running import Array, call, fresh_outputs, staged
from tracer.codegen.llvm.kernels.gemm.bf16_dot import has_dots
from tracer.codegen.llvm.kernels.routines import library_names
from tracer.codegen.reference.interpreter import Order, interpret
from tracer.ir.dtypes import BF16, F32
from tracer.ir.loop.check import check_module
from tracer.ir.program import Program
from tracer.ir.target import cpu
from tracer.passes.pipeline import optimize
from tracer.primitives.elementwise.conversion import bitcast_convert_type, convert_element_type
from tracer.primitives.linalg.dot_general import dot_general
from tracer.schedule.pipeline import Scheduled, schedule
from tracer.settings import config

RNG = np.random.default_rng(5)
NUMBERS: dict[str, tuple[Any, str, tuple[int, ...], tuple[int, ...]]] = {
    "plain": ((((1,), (0,)), ((), ())), "ik,kj->ij", (40, 50), (50, 33)),
    "odd k": ((((1,), (0,)), ((), ())), "ik,kj->ij", (40, 51), (51, 33)),
    "first transposed": ((((0,), (0,)), ((), ())), "ki,kj->ij", (50, 40), (50, 33)),
    "second transposed": ((((1,), (1,)), ((), ())), "ik,jk->ij", (40, 50), (33, 50)),
    "second transposed, odd k": ((((1,), (1,)), ((), ())), "ik,jk->ij", (40, 51), (33, 51)),
    "batched": ((((2,), (1,)), ((0,), (0,))), "bik,bkj->bij", (3, 40, 26), (3, 26, 33)),
    "batched, odd k": ((((1,), (2,)), ((0,), (0,))), "bki,bjk->bij", (3, 27, 40), (3, 33, 27)),
    "batch behind": ((((0,), (1,)), ((2,), (2,))), "kib,jkb->bij", (26, 40, 3), (33, 26, 3)),
    "two axes": ((((1, 2), (0, 1)), ((), ())), "ikl,klj->ij", (40, 5, 10), (5, 10, 33)),
    "four rows": ((((1,), (0,)), ((), ())), "ik,kj->ij", (4, 120), (120, 90)),
    "several depths": ((((1,), (0,)), ((), ())), "ik,kj->ij", (9, 1101), (1101, 20)),
}


def product(numbers: Any, result: Any = F32, precision: Any = None) -> Callable[..., Any]:
    return lambda a, b: dot_general(a, b, numbers, precision, result)


def drawn(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(BF16)


def scheduled(program: Program) -> Scheduled:
    target = cpu(bf16=True)
    result = schedule(optimize(program, target), target)
    check_module(result.module)
    return result


def runs(program: Program, arrays: list[Array]) -> list[list[Array]]:
    """The results by the interpreter, and by the machine where it multiplies bf16."""
    made = scheduled(program)
    outputs = fresh_outputs(program)
    interpret(made.module, [x.reshape(-1) for x in (*arrays, *outputs)], order=Order.SHUFFLED)
    if not has_dots():
        return [outputs]
    return [outputs, call(made, executable(made.module), program, arrays)]


def near(got: Array, exact: Array, scale: Array) -> None:
    epsilon = 2.0**-8 if got.dtype == BF16 else 8 * 2.0**-23
    assert (np.abs(got.astype("f8") - exact) <= epsilon * scale).all()


@pytest.mark.parametrize(("result", "form"), covering([F32, BF16], NUMBERS, least=11))
def test_every_form_is_multiplied_in_bf16(form: str, result: Any) -> None:
    numbers, spec, *shapes = NUMBERS[form]
    a, b = (drawn(*shape) for shape in shapes)
    program = staged(product(numbers, result), [a, b])
    assert library_names(scheduled(program).module) == ["gemm_bf16"]
    exact, scale = (np.einsum(spec, f(a.astype("f8")), f(b.astype("f8"))) for f in (np.positive, np.abs))
    for (got,) in runs(program, [a, b]):
        assert got.dtype == result
        near(got, exact, scale)


def test_machines_without_such_products_convert() -> None:
    a, b = drawn(40, 50), drawn(50, 33)
    program = staged(product((((1,), (0,)), ((), ()))), [a, b])
    plain = schedule(optimize(program))
    assert library_names(plain.module) == ["gemm_f32"]
    (got,) = call(plain, executable(plain.module), program, [a, b])
    near(got, a.astype("f8") @ b.astype("f8"), np.abs(a).astype("f8") @ np.abs(b).astype("f8"))


@pytest.mark.parametrize("integer", ["i2", "u2"])
def test_integers_that_are_bits_of_bf16_are_multiplied_where_they_lie(integer: str) -> None:
    a, b = drawn(100, 90), drawn(90, 95)
    made = product((((1,), (0,)), ((), ())))
    program = staged(
        lambda x, y: made(bitcast_convert_type(x, BF16), bitcast_convert_type(y, BF16)),
        [a.view(integer), b.view(integer)],
    )
    assert scheduled(program).module.arena == 0
    exact, scale = a.astype("f8") @ b.astype("f8"), np.abs(a).astype("f8") @ np.abs(b).astype("f8")
    for (got,) in runs(program, [a.view(integer), b.view(integer)]):
        near(got, exact, scale)
    plain = schedule(optimize(program))
    assert library_names(plain.module) == ["gemm_f32"]
    (got,) = call(plain, executable(plain.module), program, [a.view(integer), b.view(integer)])
    near(got, exact, scale)


@pytest.mark.parametrize(
    ("m", "n", "k", "precision", "routines"),
    [
        (40, 33, 50, "highest", ["gemm_f32"]),
        (16, 16, 16, None, []),
        (1, 300, 300, None, []),
        (90, 4, 90, None, ["gemm_f32"]),
    ],
)
def test_what_is_asked_to_be_exact_small_or_narrow_is_converted(
    m: int, n: int, k: int, precision: Any, routines: list[str]
) -> None:
    program = staged(product((((1,), (0,)), ((), ())), F32, precision), [drawn(m, k), drawn(k, n)])
    assert library_names(scheduled(program).module) == routines


def test_other_operands_are_not_taken_for_bf16() -> None:
    a, b = drawn(40, 50), drawn(50, 33)
    numbers = (((1,), (0,)), ((), ()))
    program = staged(lambda x, y: dot_general(*(convert_element_type(z, F32) for z in (x, y)), numbers), [a, b])
    assert library_names(scheduled(program).module) == ["gemm_f32"]


def test_cotangents_are_products_of_bf16() -> None:
    a, b = drawn(40, 50), drawn(50, 34)
    ct = drawn(40, 34)

    def cotangents(x: Any, y: Any, z: Any) -> Any:
        _, pullback = tracer.vjp(product((((1,), (0,)), ((), ())), BF16), x, y)
        return pullback(z)

    program = staged(cotangents, [a, b, ct])
    assert library_names(scheduled(program).module) == ["gemm_bf16"]
    wide_a, wide_b, wide = (x.astype("f8") for x in (a, b, ct))
    for of_a, of_b in runs(program, [a, b, ct]):
        near(of_a, wide @ wide_b.T, np.abs(wide) @ np.abs(wide_b.T))
        near(of_b, wide_a.T @ wide, np.abs(wide_a.T) @ np.abs(wide))


@pytest.mark.skipif(not has_dots(), reason="the machine multiplies no bf16")
def test_the_number_of_threads_does_not_show() -> None:
    a, b = drawn(300, 200), drawn(200, 290)
    program = staged(product((((1,), (0,)), ((), ()))), [a, b])
    made = scheduled(program)
    runnable = executable(made.module)
    results = []
    for count in (1, 2, 3):
        with config.using(threads=count):
            results.append(call(made, runnable, program, [a, b])[0].tobytes())
    assert len(set(results)) == 1
