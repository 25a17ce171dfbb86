"""The interpreter's table of scalar operations against a model in Python integers and fractions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import edges, pairs, same
from tests.codegen.llvm.scalar_model import convert, evaluate, is_defined
from tests.grids import each
from tracer.codegen.reference.math_functions import MATH
from tracer.codegen.reference.scalar_ops import scalar_function
from tracer.ir.dtypes import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    INTEGERS,
    NARROW_FLOATS,
    NARROW_INTEGERS,
    DType,
    is_float,
    short_name,
)
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp

DTYPES = (BOOL, *INTEGERS, F16, BF16, F32, F64)
NARROW = (*NARROW_FLOATS, *NARROW_INTEGERS)
FLOATS = (F16, BF16, F32, F64)
OTHERS = (ScalarOp.CONVERT, ScalarOp.BITCAST, ScalarOp.LOOKUP, *MATH_FUNCTIONS)


def kind(dtype: DType) -> str:
    return "b" if dtype == BOOL else "f" if is_float(dtype) else "i"


@pytest.mark.parametrize("dtype", DTYPES, ids=short_name)
def test_each_operation_is_exact_on_lanes_and_on_scalars(dtype: DType) -> None:
    columns = pairs(dtype)
    for op in ScalarOp:
        if op in OTHERS or kind(dtype) not in op.signature.kinds:
            continue
        operands = columns[: op.signature.arity]
        if op is ScalarOp.SELECT:
            operands = [np.arange(len(columns[0])) % 3 == 0, *columns[:2]]
        expected = evaluate(op, *operands)
        function = scalar_function(op, dtype, expected.dtype)
        with np.errstate(all="ignore"):
            lanes = function(*operands)
            scalars = [function(*[x[i] for x in operands]) for i in range(0, len(columns[0]), 5)]
        said = is_defined(op, *operands)
        assert same(lanes[said], expected[said]), op
        assert not any(isinstance(x, np.ndarray) for x in scalars), op
        assert same(np.array(scalars, expected.dtype)[said[::5]], expected[::5][said[::5]]), op


@each("source", [*DTYPES, *NARROW], ids=short_name)
def test_each_conversion_is_exact(source: DType) -> None:
    for target in (*DTYPES, *NARROW):
        values = edges(source)
        with np.errstate(all="ignore"):
            found = scalar_function(ScalarOp.CONVERT, source, target)(values)
        assert same(found, convert(values, target)), short_name(target)


def test_f64_rounds_to_a_short_float_once() -> None:
    just_above_half = np.float64(1 + 2.0**-8 + 2.0**-40)  # f32 would drop the last bit, and then round to even
    assert scalar_function(ScalarOp.CONVERT, F64, BF16)(just_above_half) == BF16.type(1 + 2.0**-7)


def test_a_bitcast_keeps_the_bits() -> None:
    assert scalar_function(ScalarOp.BITCAST, F32, np.dtype("uint32"))(np.float32(1.0)) == 0x3F800000
    assert scalar_function(ScalarOp.BITCAST, np.dtype("int16"), BF16)(np.int16(0x3F80)) == BF16.type(1.0)


def test_denormals_are_kept() -> None:
    tiny = np.float32(1e-45)
    assert scalar_function(ScalarOp.ADD, F32, F32)(tiny, tiny) == np.float32(3e-45)


def test_fma_rounds_once() -> None:
    x = np.float32(1 + 2.0**-12)
    assert scalar_function(ScalarOp.FMA, F32, F32)(x, x, np.float32(-1 - 2.0**-11)) == np.float32(2.0**-24)
    y = np.float64(1 + 2.0**-30)
    assert scalar_function(ScalarOp.FMA, F64, F64)(y, y, np.float64(-1 - 2.0**-29)) == np.float64(2.0**-60)


@pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
def test_every_math_function_has_a_reference_of_the_same_dtype(dtype: DType) -> None:
    assert set(MATH) == set(MATH_FUNCTIONS)
    for op in MATH_FUNCTIONS:
        operands = [np.array([0.25, 0.5]).astype(dtype)] * op.signature.arity
        with np.errstate(all="ignore"):
            assert scalar_function(op, dtype, dtype)(*operands).dtype == dtype, op
