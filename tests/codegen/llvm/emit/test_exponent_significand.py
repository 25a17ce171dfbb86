"""Exponents, significands and products with powers of two: the model's bits in any number of lanes, on any machine."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm import scalar_model
from tests.codegen.llvm.llvm_programs import at, loop, module_of, run, same
from tests.grids import THOROUGH, covering
from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.toolchain.target import splits_floats
from tracer.ir.dtypes import F32, F64, DType
from tracer.ir.loop import Compute, Load, Module, Register, Statement, Store
from tracer.ir.scalar import ScalarOp

OPERATIONS = (ScalarOp.EXPONENT, ScalarOp.SIGNIFICAND, ScalarOp.SCALE)


def module_for(dtype: DType, count: int, lanes: int) -> Module:
    """The exponent and the significand of x, and y * 2^n."""
    names = [(name, dtype, count, False) for name in "xyn"]
    names += [(op.label, dtype, count, True) for op in OPERATIONS]

    def body(x: Any, y: Any, n: Any, *outputs: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            given = [Register(dtype) for _ in range(3)]
            statements: list[Statement] = [Load(r, b, at((i, 1))) for r, b in zip(given, (x, y, n), strict=True)]
            for op, output in zip(OPERATIONS, outputs, strict=True):
                result = Register(dtype)
                operands = tuple(given[1:]) if op is ScalarOp.SCALE else (given[0],)
                statements += [Compute(result, op, operands), Store(output, at((i, 1)), result)]
            return statements

        return [loop(count, rounds, lanes=lanes)]

    return module_of(names, body)


def arguments(dtype: DType) -> list[np.ndarray[Any, Any]]:
    """Any encodings; numbers about 1, and powers by which they scale: all where results change their kind."""
    rng, limits = np.random.default_rng(0), np.finfo(dtype)
    least, most = int(np.log2(limits.smallest_subnormal)), int(limits.maxexp)
    n = np.arange(least, most + 1)
    near = (n < least + 120) | (n > most - 60) | (abs(n) < 60) | (n % 7 == 0)
    n = n[near | THOROUGH].astype(dtype)
    word = np.dtype(f"u{dtype.itemsize}")
    x = rng.integers(0, 1 << (8 * word.itemsize), n.size, dtype=word).view(dtype)
    x[::3] = np.abs(x[::3])
    x[:8] = [
        limits.smallest_subnormal,
        limits.tiny,
        limits.max,
        0.75,
        np.nextafter(dtype.type(1.5), 0),
        1.5,
        -0.0,
        np.inf,
    ]
    x[8:40] = limits.smallest_subnormal * rng.integers(1, 1 << 20, 32).astype(dtype)
    y = (2.0 ** rng.uniform(-8, 8, n.size) * rng.choice([-1, 1], n.size)).astype(dtype)
    return [x, y, n]


@lru_cache
def expected(dtype: DType) -> list[np.ndarray[Any, Any]]:
    """The model's results of `arguments`, which take the model seconds."""
    x, y, n = arguments(dtype)
    given = [(y, n) if op is ScalarOp.SCALE else (x,) for op in OPERATIONS]
    assert all(scalar_model.is_defined(op, *xs).all() for op, xs in zip(OPERATIONS, given, strict=True))
    return [scalar_model.evaluate(op, *xs) for op, xs in zip(OPERATIONS, given, strict=True)]


@pytest.mark.parametrize(
    ("lanes", "bits", "dtype"), covering([0, 1, 2, 4, 8, 16, 32, 64], [128, 256, 512], [F32, F64], least=24), ids=str
)
def test_parts_of_floats_are_the_models(dtype: DType, bits: int, lanes: int) -> None:
    x, y, n = arguments(dtype)
    results = [np.zeros_like(x) for _ in OPERATIONS]
    run(module_for(dtype, x.size, lanes), [x, y, n, *results], vector_bits=bits)
    for op, result, model in zip(OPERATIONS, results, expected(dtype), strict=True):
        assert same(result, model), op


def test_nan_times_no_power_of_two_is_a_number() -> None:
    y = np.full(16, np.nan)
    n = np.array([0, np.nan, 5, -300] * 4)
    for lanes, bits in [(0, 512), (8, 256), (8, 512)]:
        results = [np.zeros(16) for _ in OPERATIONS]
        run(module_for(F64, 16, lanes), [y, y, n, *results], vector_bits=bits)
        assert np.isnan(results).all()


@pytest.mark.skipif(not splits_floats(), reason="a machine without AVX-512")
def test_where_the_machine_has_instructions_encodings_are_not_taken_apart() -> None:
    text = emit_module(module_for(F64, 64, 8))
    assert "mask.getexp.pd.512" in text
    assert "ashr" not in text
    assert "ashr" in emit_module(module_for(F64, 64, 8), vector_bits=256)
