"""Constants that are looked up: the same ones in any number of lanes, on any machine and in every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import at, loop, module_of, run, same
from tests.grids import covering
from tests.runtime.cuda.simulator.running import outputs_of
from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.toolchain.target import splits_floats
from tracer.codegen.reference.scalar_ops import scalar_function
from tracer.errors import InternalError
from tracer.ir.dtypes import F32, F64, I32, I64, DType, short_name
from tracer.ir.loop import (
    Buffer,
    Compute,
    Constant,
    Function,
    Load,
    LoopKind,
    Module,
    Register,
    Space,
    Statement,
    Store,
)
from tracer.ir.loop.build import Builder
from tracer.ir.loop.check import check_module
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.mapping import map_to_gpu

FLOATS = pytest.mark.parametrize("dtype", [F32, F64], ids=short_name)


def table(dtype: DType) -> Any:
    values = np.random.default_rng(0).normal(size=16).astype(dtype)
    values[3], values[7], values[11] = -0.0, np.inf, np.finfo(dtype).smallest_subnormal
    return values


def indices(dtype: DType, count: int = 64) -> Any:
    """Every entry, beside bits that do not count."""
    rng = np.random.default_rng(1)
    high = rng.integers(-(1 << 20), 1 << 20, count) << 4
    return (high + rng.permutation(np.arange(count) % 16)).astype(I32 if dtype == F32 else I64)


def operands(index: Register, dtype: DType) -> tuple[Any, ...]:
    return (index, *[Constant(value, dtype) for value in table(dtype)])


def module_for(dtype: DType, count: int, lanes: int) -> Module:
    def body(x: Any, y: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            index, result = Register(x.dtype), Register(dtype)
            lookup = Compute(result, ScalarOp.LOOKUP, operands(index, dtype))
            return [Load(index, x, at((i, 1))), lookup, Store(y, at((i, 1)), result)]

        return [loop(count, rounds, lanes=lanes)]

    return module_of([("x", I32 if dtype == F32 else I64, count, False), ("y", dtype, count, True)], body)


@pytest.mark.parametrize(
    ("dtype", "lanes", "bits"), covering([F32, F64], [0, 1, 2, 4, 8, 16, 32, 64], [128, 256, 512], least=24), ids=str
)
def test_entries_are_counted_by_four_bits(dtype: DType, bits: int, lanes: int) -> None:
    x = indices(dtype)
    result = np.zeros(x.size, dtype)
    run(module_for(dtype, x.size, lanes), [x, result], vector_bits=bits)
    assert same(result, table(dtype)[x & 15])


@FLOATS
def test_the_reference_looks_up_the_same(dtype: DType) -> None:
    x = indices(dtype)
    function = scalar_function(ScalarOp.LOOKUP, dtype, dtype)
    assert same(function(x, *table(dtype)), table(dtype)[x & 15])
    alone = function(x[0], *table(dtype))
    assert not isinstance(alone, np.ndarray)
    assert alone == table(dtype)[x[0] & 15]


@FLOATS
def test_kernels_of_cuda_look_up_the_same(dtype: DType) -> None:
    x = indices(dtype)
    given = Buffer("x", x.dtype, x.size, Space.ARGUMENT)
    result = Buffer("y", dtype, x.size, Space.ARGUMENT, written=True)
    b = Builder()
    with b.for_("i", 0, x.size, kind=LoopKind.PARALLEL) as each:
        b.store(result, each.index, b.apply(ScalarOp.LOOKUP, *operands(b.load(given, each.index), dtype)))
    nest = Function("nest", (given, result), b.finish())
    outer = Buffer("x", x.dtype, x.size, Space.INPUT), Buffer("y", dtype, x.size, Space.OUTPUT, written=True)
    b = Builder()
    b.invoke("nest", *outer)
    module = map_to_gpu(Module((nest, Function("main", outer, b.finish())), "main")).module
    check_module(module)
    assert same(outputs_of(module, [x])[0], table(dtype)[x & 15])


@pytest.mark.skipif(not splits_floats(), reason="a machine without AVX-512")
def test_tables_are_permuted_where_the_machine_can() -> None:
    text = emit_module(module_for(F64, 64, 8))
    assert "vpermi2var.pd.512" in text
    assert "@table." not in text
    assert "@table." in emit_module(module_for(F64, 64, 8), vector_bits=256)
    assert "avx2.permps" in emit_module(module_for(F32, 64, 16), vector_bits=256)


def test_tables_are_of_constants() -> None:
    module = module_for(F64, 16, 0)
    check_module(module)
    nest = module.functions[0]
    statements = nest.body.statements[0].body.statements  # type: ignore[union-attr]
    lookup = statements[1]
    assert isinstance(lookup, Compute)
    index, *values = lookup.operands
    for wrong, why in (
        ((values[0], *values), "the index of lookup"),
        ((index, *values[:-1], index), "values that are not constant"),
    ):
        object.__setattr__(lookup, "operands", wrong)
        with pytest.raises(InternalError, match=why):
            check_module(module)
