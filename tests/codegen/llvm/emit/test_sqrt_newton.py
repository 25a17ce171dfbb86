"""Square roots by products: the divider's bits, where roots are close to the middle of two numbers above all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import at, loop, module_of, run, same
from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.toolchain.target import splits_floats
from tracer.ir.dtypes import F64
from tracer.ir.loop import Compute, Load, Module, Register, Statement, Store
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import cpu
from tracer.schedule.cpu.root_products import multiply_roots

pytestmark = pytest.mark.skipif(not splits_floats(), reason="a machine without AVX-512")
BY_PRODUCTS = "rsqrt14"


def module_for(count: int, lanes: int, *, more: int = 0, estimates: bool = True) -> Module:
    """The roots, and so many products beside them."""

    def body(x: Any, y: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            given, value = Register(F64), Register(F64)
            statements: list[Statement] = [Load(given, x, at((i, 1))), Compute(value, ScalarOp.SQRT, (given,))]
            for _ in range(more):
                following = Register(F64)
                statements.append(Compute(following, ScalarOp.MUL, (value, given)))
                value = following
            return [*statements, Store(y, at((i, 1)), value)]

        return [loop(count, rounds, lanes=lanes)]

    module = module_of([("x", F64, count, False), ("y", F64, count, True)], body)
    return multiply_roots(module, cpu(bf16=False, root_estimates=estimates))


def roots(x: Any, lanes: int = 8) -> Any:
    module, result = module_for(x.size, lanes), np.zeros_like(x)
    assert BY_PRODUCTS in emit_module(module)
    run(module, [x, result])
    return result


def square_roots(j: int, bits: int) -> list[int]:
    """The odd y below 2^bits with y^2 = j modulo 2^bits, for j = 1 modulo 8."""
    y = 1
    for n in range(3, bits):
        if (y * y - j) % (1 << n + 1):
            y += 1 << n - 1
    top, half = 1 << bits, 1 << bits - 1
    return sorted({y % top, -y % top, (y + half) % top, (half - y) % top})


def close_to_the_middle() -> Iterator[float]:
    """Every x from 1 to 4 whose root is within 2^-47 of its last place of the middle of two numbers.

    In units of that place the middle is y / 2, y odd, and 4 x = y^2 - j; x is a multiple of 2^52 or 2^53.
    """
    for j in range(-511, 513, 8):
        for zeros in (52, 53):
            for y in square_roots(j, zeros + 2):
                x, rest = divmod(y * y - j, 1 << zeros + 2)
                assert rest == 0
                if 1 << 52 <= x < 1 << 53 and 1 << 53 < y < 1 << 54:
                    yield float(x) * 2.0 ** (zeros - 104)


def test_roots_close_to_the_middle_of_two_numbers_are_rounded_rightly() -> None:
    x = np.array(list(close_to_the_middle()))
    assert x.size > 100
    assert ((x >= 1) & (x < 4)).all()
    x = np.concatenate([np.ldexp(x, 2 * n) for n in (-479, -100, 0, 3, 510)])
    x = x[: x.size & -8]
    assert same(roots(x), np.sqrt(x))


def test_any_number_has_the_root_that_the_divider_gives() -> None:
    rng = np.random.default_rng(0)
    x = np.ldexp(rng.uniform(1, 4, 1 << 18), rng.integers(-480, 510, 1 << 18) * 2)
    near = np.array([1.0, 4.0, 2.0**-960, np.finfo(F64).max])
    x[:11] = np.concatenate([near, np.nextafter(near, 0), np.nextafter(near[:3], np.inf)])
    squares = rng.integers(1 << 25, 1 << 26, 1 << 10).astype(F64) ** 2
    x[12 : 12 + squares.size] = squares
    assert same(roots(x, 32), np.sqrt(x))


@pytest.mark.parametrize("lanes", [8, 16, 32, 64])
@pytest.mark.parametrize("count", [64, 5, 77])
def test_zeros_infinities_negative_and_tiny_numbers_have_their_roots(lanes: int, count: int) -> None:
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -2.0, 5e-324, 2.0**-1022, 2.0**-961])
    x = np.linspace(0.5, 9, count)
    for at_ in range(count):
        x[at_] = odd[at_ % odd.size] if at_ % 3 == 0 else x[at_]
    with np.errstate(invalid="ignore"):
        assert same(roots(x, lanes), np.sqrt(x))


def test_the_divider_has_roots_that_other_work_hides() -> None:
    assert BY_PRODUCTS in emit_module(module_for(64, 8, more=4))
    assert BY_PRODUCTS not in emit_module(module_for(64, 8, more=20))
    assert BY_PRODUCTS not in emit_module(module_for(64, 8, estimates=False))
    assert BY_PRODUCTS not in emit_module(module_for(64, 0))
