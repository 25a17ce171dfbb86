"""Every scalar operation on every dtype as CUDA: NVRTC compiles it, and its text means what the model says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm import scalar_model
from tests.codegen.llvm.llvm_programs import edges, pairs, same
from tests.grids import THOROUGH
from tests.runtime.cuda.simulator.running import outputs_of
from tracer.codegen.cuda import nvrtc
from tracer.codegen.cuda.emit import emit_cuda
from tracer.errors import InternalError
from tracer.ir.dtypes import (
    ALL,
    BOOL,
    F32,
    F64,
    FLOATS,
    DType,
    bits,
    is_complex,
    is_float,
    is_narrow,
    short_name,
    wide_dtype,
)
from tracer.ir.loop import Buffer, Function, LoopKind, Module, Space
from tracer.ir.loop.build import Builder
from tracer.ir.loop.check import check_module
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp
from tracer.schedule.gpu.mapping import map_to_gpu
from tracer.schedule.gpu.narrow_indices import narrow_indices
from tracer.schedule.math.legalise import expand_math

DTYPES = tuple(dtype for dtype in ALL if not is_complex(dtype))
SPECIAL = (ScalarOp.CONVERT, ScalarOp.BITCAST, ScalarOp.LOOKUP)


def operations(dtype: DType) -> list[ScalarOp]:
    if is_narrow(dtype):
        return [ScalarOp.SELECT]
    kind = "b" if dtype == BOOL else "f" if is_float(dtype) else "i"
    plain = [op for op in ScalarOp if op not in MATH_FUNCTIONS and op not in SPECIAL]
    return [op for op in plain if kind in op.signature.kinds]


def casts(dtype: DType) -> list[tuple[ScalarOp, DType]]:
    """To every dtype, and to those of equal width whose bits are numbers."""
    if bits(dtype) < 8:
        return [(ScalarOp.CONVERT, t) for t in DTYPES]
    alike = [t for t in DTYPES if bits(t) == bits(dtype) and BOOL not in (t, dtype)]
    return [(ScalarOp.CONVERT, t) for t in DTYPES] + [(ScalarOp.BITCAST, t) for t in alike]


def constants(dtype: DType) -> list[Any]:
    """Right operands that are spelled in their own way: divisors and shift counts."""
    return [] if dtype == BOOL or is_float(dtype) or is_narrow(dtype) else [1, 3, 7]


def widened(b: Builder, value: Any) -> Any:
    return b.apply(ScalarOp.CONVERT, value, dtype=wide_dtype(value.dtype)) if is_narrow(value.dtype) else value


def nest(dtype: DType, count: int) -> Function:
    """Each operation on the same three operands, into an output of its own; then the conversions of the first."""
    inputs = [Buffer(f"in{i}", dtype, count, Space.ARGUMENT) for i in range(3)]
    outputs: list[Buffer] = []

    def out(result: DType) -> Buffer:
        outputs.append(Buffer(f"out{len(outputs)}", result, count, Space.ARGUMENT, written=True))
        return outputs[-1]

    b = Builder()
    with b.for_("i", 0, count, kind=LoopKind.PARALLEL) as loop:
        x, y, z = (b.load(buffer, loop.index) for buffer in inputs)
        less = b.apply(ScalarOp.LT, *[widened(b, value) for value in (x, y)])
        for op in operations(dtype):
            operands = (less, y, z) if op is ScalarOp.SELECT else (x, y, z)[: op.signature.arity]
            result = b.apply(op, *operands)
            b.store(out(result.dtype), loop.index, result)
        for op, target in casts(dtype):
            b.store(out(target), loop.index, b.apply(op, x, dtype=target))
        for op in _BY_CONSTANT:
            for value in constants(dtype):
                b.store(out(dtype), loop.index, b.compute(op, x, value))
    return Function(f"ops_{short_name(dtype)}", (*inputs, *outputs), b.finish())


_BY_CONSTANT = (
    ScalarOp.IDIV, ScalarOp.IREM, ScalarOp.SHL, ScalarOp.SHR_ARITHMETIC, ScalarOp.SHR_LOGICAL,
)  # fmt: skip


def module_of(*nests: Function) -> Module:
    """A program that calls each nest on buffers of its own."""
    b, parameters = Builder(), []
    for function in nests:
        inner = [p for p in function.parameters if isinstance(p, Buffer)]
        spaces = [Space.OUTPUT if p.written else Space.INPUT for p in inner]
        own = [
            Buffer(f"{function.name}_{p.name}", p.dtype, p.size, space, written=p.written)
            for p, space in zip(inner, spaces, strict=True)
        ]
        b.invoke(function.name, *own)
        parameters += own
    module = Module((*nests, Function("main", tuple(parameters), b.finish())), "main")
    schedule = map_to_gpu(module)
    assert schedule.left == ()
    narrowed = narrow_indices(schedule.module)
    check_module(narrowed)
    return narrowed


def expected(dtype: DType, inputs: list[Any]) -> list[tuple[str, Any, Any]]:
    """What each result is called, what it is, and where that is said."""
    x, y, z = inputs
    results, everywhere = [], np.ones(x.shape, bool)
    with np.errstate(all="ignore"):
        less = x < y
    for op in operations(dtype):
        operands = (less, y, z) if op is ScalarOp.SELECT else (x, y, z)[: op.signature.arity]
        results.append((op.label, scalar_model.evaluate(op, *operands), scalar_model.is_defined(op, *operands)))
    for op, target in casts(dtype):
        value = scalar_model.convert(x, target) if op is ScalarOp.CONVERT else x.view(target)
        results.append((f"{op.label} to {short_name(target)}", value, everywhere))
    for op in _BY_CONSTANT:
        for value in constants(dtype):
            quotient = scalar_model.evaluate(op, x, np.full_like(x, value))
            results.append((f"{op.label} by {value}", quotient, everywhere))
    return results


@pytest.mark.rung("simulator", of="scalar operations")
def test_the_text_of_every_operation_means_what_the_model_says() -> None:
    inputs = {dtype: pairs(dtype) for dtype in DTYPES}
    module = module_of(*[nest(dtype, len(inputs[dtype][0])) for dtype in DTYPES])
    got = iter(outputs_of(module, [array for arrays in inputs.values() for array in arrays]))
    wrong = []
    for dtype in DTYPES:
        for label, wanted, said in expected(dtype, inputs[dtype]):
            result = next(got)
            if not same(result[said], np.asarray(wanted, result.dtype)[said]):
                wrong.append(f"{label} of {short_name(dtype)}")
    assert wrong == []


SHARES = [("sm_80", DTYPES if THOROUGH else DTYPES[::2]), ("sm_90", DTYPES if THOROUGH else DTYPES[1::2])]


@pytest.mark.parametrize(("arch", "dtypes"), SHARES, ids=["sm_80", "sm_90"])
@pytest.mark.rung("NVRTC", of="scalar operations")
def test_nvrtc_compiles_every_operation_on_every_dtype_without_spills(arch: str, dtypes: Sequence[DType]) -> None:
    source = emit_cuda(module_of(*[nest(dtype, 100) for dtype in dtypes]))
    compiled = nvrtc.compile_cuda(source.text, arch)
    assert set(compiled.resources) == {kernel.name for kernel in source.kernels}
    for resources in compiled.resources.values():
        assert (resources.spill_stores, resources.spill_loads) == (0, 0)


def math_nest(op: ScalarOp, dtype: DType) -> Function:
    inputs = [Buffer(f"in{i}", dtype, len(edges(dtype)), Space.ARGUMENT) for i in range(op.signature.arity)]
    out = Buffer("out", dtype, len(edges(dtype)), Space.ARGUMENT, written=True)
    b = Builder()
    with b.for_("i", 0, out.size, kind=LoopKind.PARALLEL) as loop:
        b.store(out, loop.index, b.apply(op, *[b.load(buffer, loop.index) for buffer in inputs]))
    return Function(f"{op.label}_{short_name(dtype)}", (*inputs, out), b.finish())


@pytest.mark.parametrize("dtype", [F32, F64, *(d for d in FLOATS if d.itemsize == 2)], ids=short_name)
@pytest.mark.rung("NVRTC", of="math")
def test_nvrtc_compiles_every_math_function_without_spills(dtype: DType) -> None:
    module = expand_math(module_of(*[math_nest(op, dtype) for op in MATH_FUNCTIONS]))
    compiled = nvrtc.compile_cuda(emit_cuda(module).text, "sm_90")
    assert len(compiled.resources) == len(MATH_FUNCTIONS)
    for resources in compiled.resources.values():
        assert (resources.spill_stores, resources.spill_loads) == (0, 0)
        assert resources.registers <= 255


def test_a_math_function_that_was_not_expanded_is_refused() -> None:
    with pytest.raises(InternalError) as caught:
        emit_cuda(module_of(math_nest(ScalarOp.EXP, F32)))
    assert str(caught.value) == "cuda: exp of f32 should have been expanded before"
