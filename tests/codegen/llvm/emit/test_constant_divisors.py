"""Lanes of i64 by divisors that are known: quotients and remainders are Python's, truncated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm import scalar_model
from tests.codegen.llvm.llvm_programs import at, constant, edges, loop, module_of, run, same
from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.toolchain.object_code import assembly
from tracer.ir.dtypes import I64
from tracer.ir.loop import Compute, Load, Module, Register, Statement, Store
from tracer.ir.scalar import ScalarOp

DIVISORS = (3, -3, 7, 10, -1000, 641, 2**31 - 1, 2**32 - 1, 2**32 + 1, 2**62 + 1, 2**63 - 1, 1 - 2**63, 8, -(2**63))


def module_for(divisor: int, count: int, lanes: int) -> Module:
    names = [("a", I64, count, False), ("quotient", I64, count, True), ("rest", I64, count, True)]

    def body(a: Any, *outputs: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            x, q, r = Register(I64), Register(I64), Register(I64)
            by = constant(divisor, I64)
            return [
                Load(x, a, at((i, 1))),
                Compute(q, ScalarOp.IDIV, (x, by)), Compute(r, ScalarOp.IREM, (x, by)),
                Store(outputs[0], at((i, 1)), q), Store(outputs[1], at((i, 1)), r),
            ]  # fmt: skip

        return [loop(count, rounds, lanes=lanes)]

    return module_of(names, body)


def dividends(divisor: int) -> np.ndarray[Any, Any]:
    """The ends, and numbers at and beside multiples of the divisor up to them."""
    rng, size = np.random.default_rng(0), abs(divisor)
    most = (2**63 - 1) // size
    factors = [0, 1, 2, most // 2, most - 1, most, *rng.integers(0, most, 40, endpoint=True).tolist()]
    near = [f * size + d for f in factors for d in (-1, 0, 1)]
    values = [v for n in near for v in (n, -n) if -(2**63) <= v < 2**63]
    return np.concatenate([edges(I64), np.array(values, np.int64), rng.integers(-(2**63), 2**63 - 1, 101)])


@pytest.mark.parametrize("divisor", DIVISORS)
@pytest.mark.parametrize(("lanes", "bits"), [(0, 512), (2, 128), (8, 256), (8, 512), (16, 512)])
def test_quotients_and_remainders_are_exact(divisor: int, lanes: int, bits: int) -> None:
    a = dividends(divisor)
    quotient, rest = np.zeros_like(a), np.zeros_like(a)
    run(module_for(divisor, a.size, lanes), [a, quotient, rest], vector_bits=bits)
    by = np.full_like(a, divisor)
    assert same(quotient, scalar_model.evaluate(ScalarOp.IDIV, a, by))
    assert same(rest, scalar_model.evaluate(ScalarOp.IREM, a, by))


def test_lanes_are_not_taken_apart_for_their_products() -> None:
    text = assembly(emit_module(module_for(7, 64, 8)))
    assert "imulq" not in text
