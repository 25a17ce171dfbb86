"""Every scalar operation on every dtype that it takes: alone, in lanes, and the same bits at each vector width."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm import scalar_model
from tests.codegen.llvm.llvm_programs import WIDTHS, at, edges, loop, module_of, pairs, run, same
from tests.grids import THOROUGH, covering
from tracer.ir.dtypes import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    INTEGERS,
    NARROW_FLOATS,
    NARROW_INTEGERS,
    U8,
    U16,
    U32,
    U64,
    DType,
    bits,
    is_float,
    short_name,
)  # fmt: skip
from tracer.ir.loop import Compute, Load, Module, Register, Statement, Store
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp

DTYPES = (BOOL, *INTEGERS, F16, BF16, F32, F64)
SPECIAL = (ScalarOp.CONVERT, ScalarOp.BITCAST, ScalarOp.LOOKUP)


def operations(dtype: DType) -> list[ScalarOp]:
    kind = "b" if dtype == BOOL else "f" if is_float(dtype) else "i"
    plain = [op for op in ScalarOp if op not in MATH_FUNCTIONS and op not in SPECIAL]
    return [op for op in plain if kind in op.signature.kinds]


def all_operations(dtype: DType, count: int, lanes: int) -> Module:
    """Each operation on the same three operands into an output of its own."""
    ops = operations(dtype)
    names = [(f"in{i}", dtype, count, False) for i in range(3)]
    names += [(op.label, BOOL if op.signature.result == "bool" else dtype, count, True) for op in ops]

    def body(a: Any, b: Any, c: Any, *outputs: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            x, y, z, less = Register(dtype), Register(dtype), Register(dtype), Register(BOOL)
            statements: list[Statement] = [Load(r, m, at((i, 1))) for r, m in ((x, a), (y, b), (z, c))]
            statements.append(Compute(less, ScalarOp.LT, (x, y)))
            for op, output in zip(ops, outputs, strict=True):
                result = Register(output.dtype)
                operands = (less, y, z) if op is ScalarOp.SELECT else (x, y, z)[: op.signature.arity]
                statements += [Compute(result, op, operands), Store(output, at((i, 1)), result)]
            return statements

        return [loop(count, rounds, lanes=lanes)]

    return module_of(names, body)


def outputs_of(module: Module, inputs: list[np.ndarray[Any, Any]], vector_bits: int | None) -> list[Any]:
    buffers = module.functions[0].parameters[len(inputs) :]
    outputs = [np.zeros(buffer.size, buffer.dtype) for buffer in buffers]  # type: ignore[union-attr]
    run(module, [*inputs, *outputs], vector_bits=vector_bits)
    return outputs


@pytest.mark.parametrize(("dtype", "width"), covering(DTYPES, [None, 128, 256, 512], least=20), ids=str)
def test_operations_mean_what_the_model_says(dtype: DType, width: int | None) -> None:
    """width: of vectors, None for an operation at a time."""
    inputs = pairs(dtype)
    results = outputs_of(all_operations(dtype, len(inputs[0]), 16 if width else 0), inputs, width)
    for (op, operands, expected), result in zip(expectations(dtype), results, strict=True):
        said = scalar_model.is_defined(op, *operands)
        assert same(result[said], expected[said]), (op.label, *difference(result, expected, operands))


@cache
def expectations(dtype: DType) -> list[tuple[ScalarOp, list[Any], Any]]:
    inputs, rows = pairs(dtype), []
    for op in operations(dtype):
        operands = inputs[: op.signature.arity]
        if op is ScalarOp.SELECT:
            operands = [scalar_model.evaluate(ScalarOp.LT, *inputs[:2]), *inputs[1:]]
        rows.append((op, operands, scalar_model.evaluate(op, *operands)))
    return rows


def difference(result: Any, expected: Any, operands: list[Any]) -> list[Any]:
    """Some of the operands for which the results differ, and those results."""
    where = [i for i in range(len(result)) if not same(result[i : i + 1], expected[i : i + 1])][:4]
    return [x[where] for x in (*operands, result, expected)]


SHORT = (F16, BF16, *NARROW_FLOATS)


targets = (BOOL, *INTEGERS, *NARROW_INTEGERS, *SHORT, F32, F64)


@pytest.mark.parametrize(("source", "width"), covering(targets, [None, *WIDTHS], least=24), ids=str)
def test_convert_reaches_every_dtype(source: DType, width: int | None) -> None:
    values = samples(source)
    names = [("in", source, len(values), False), *((f"to{i}", t, len(values), True) for i, t in enumerate(targets))]

    def body(a: Any, *outputs: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            x = Register(source)
            statements: list[Statement] = [Load(x, a, at((i, 1)))]
            for output in outputs:
                result = Register(output.dtype)
                statements += [Compute(result, ScalarOp.CONVERT, (x,)), Store(output, at((i, 1)), result)]
            return statements

        return [loop(len(values), rounds, lanes=16 if width else 0)]

    results = outputs_of(module_of(names, body), [values], width)
    for target, result in zip(targets, results, strict=True):
        expected = converted(source, target)
        assert same(result, expected), (short_name(target), *difference(result, expected, [values]))


@cache
def converted(source: DType, target: DType) -> Any:
    return scalar_model.convert(samples(source), target)


def samples(source: DType) -> np.ndarray[Any, Any]:
    """Edges; every value of a short float, of two bytes every seventh, thoroughly all; for longer floats values at and
    beside the ties of shorter formats."""
    if not is_float(source):
        return edges(source)
    if source.itemsize <= 2:
        word = np.dtype(f"u{source.itemsize}")
        step = 7 if source.itemsize == 2 and not THOROUGH else 1
        every = np.arange(0, 1 << bits(source), step, dtype=np.uint32).astype(word).view(source)
        return np.concatenate([edges(source), every]) if step > 1 else every
    ties = np.arange(0, 1 << 31, 0x64000, dtype=np.int64).astype(np.int32).view(np.float32)
    with np.errstate(all="ignore"):
        near = ties.astype(np.float64) * (1 + 1e-9)
        return np.concatenate([edges(source), ties.astype(source), near.astype(source)])


@pytest.mark.parametrize(
    ("source", "target"), [(F32, I32), (U32, F32), (F64, U64), (I64, F64), (F16, I16), (U16, BF16), (I8, U8)]
)
def test_bitcast_keeps_the_bits(source: DType, target: DType) -> None:
    values = np.arange(0, 65536, 7, dtype=f"u{source.itemsize}" if source.itemsize > 1 else "u2")
    values = (values * (1 if source.itemsize < 4 else 70001)).astype(f"u{source.itemsize}").view(source)

    def body(a: Any, b: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            x, y = Register(source), Register(target)
            return [Load(x, a, at((i, 1))), Compute(y, ScalarOp.BITCAST, (x,)), Store(b, at((i, 1)), y)]

        return [loop(len(values), rounds, lanes=8)]

    module = module_of([("a", source, len(values), False), ("b", target, len(values), True)], body)
    (result,) = outputs_of(module, [values], None)
    assert (result.view(np.uint8) == values.view(np.uint8)).all()
