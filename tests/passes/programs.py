"""Programs for the tests of passes: traced functions, operands full of special values, and what all passes promise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.check import check_program
from tracer.ir.program import Program
from tracer.ir.text import program_text
from tracer.ir.types import ArrayType, KeyType, Type, array_type, storage_type
from tracer.primitives.base.reference import run_reference
from tracer.trace.stage import stage

Rewrite = Callable[[Program], Program]


def f64(*shape: int) -> ArrayType:
    return array_type(dtypes.F64, shape)


def f32(*shape: int) -> ArrayType:
    return array_type(dtypes.F32, shape)


def i64(*shape: int) -> ArrayType:
    return array_type(dtypes.I64, shape)


def i32(*shape: int) -> ArrayType:
    return array_type(dtypes.I32, shape)


def flag(*shape: int) -> ArrayType:
    return array_type(dtypes.BOOL, shape)


def c128(*shape: int) -> ArrayType:
    return array_type(dtypes.C128, shape)


def array(dtype: Any, *shape: int) -> ArrayType:
    return array_type(dtype, shape)


def traced(function: Callable[..., Any], *types: Type, name: str = "f") -> Program:
    """The function as a program; a single result or a sequence of them."""

    def run(inputs: list[Any]) -> Sequence[Any]:
        result = function(*inputs)
        return result if isinstance(result, list | tuple) else [result]

    return check_program(stage(run, types, name=name).program)


def body(program: Program) -> str:
    return program_text(program, sources=False)


_FLOATS = (0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.5, 3e-320, 1.7e308, 2.5, -0.5, 1e-3, 7.0)


def specials(type: Type, turn: int = 0) -> Any:
    """An array of the type with every special value in it, beginning elsewhere at every turn."""
    stored = storage_type(type)
    dtype, count = stored.dtype, int(np.prod(stored.shape, dtype=int))
    if isinstance(type, KeyType):
        return np.arange(count, dtype=np.uint32).reshape(stored.shape)
    with np.errstate(all="ignore"):
        if dtypes.is_bool(dtype):
            values: Any = np.asarray([True, False, False, True, True])
        elif dtypes.is_integer(dtype) and not stored.shape:
            values = np.asarray([0, 1, 2, 3], dtype)  # loops count with these
        elif dtypes.is_integer(dtype):
            limits = np.iinfo(dtype)
            values = np.asarray([0, 1, limits.max, limits.min, 2, 3, limits.max - 1, 5], dtype)
        elif dtypes.is_complex(dtype):
            values = np.asarray([complex(a, b) for a in _FLOATS[:7] for b in _FLOATS[:7]], dtype)
        else:
            values = np.asarray(_FLOATS).astype(dtype)
    return np.resize(np.roll(values, -3 * turn), count).reshape(stored.shape).astype(dtype)


def same_bits(x: Any, y: Any) -> bool:
    """Whether two arrays are equal bit for bit, but for the payloads of NaNs."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind == "c":
        return same_bits(x.real, y.real) and same_bits(x.imag, y.imag)
    with np.errstate(all="ignore"):
        nan = (x != x) & (y != y)
    return bool(np.all(nan | (_bits(x) == _bits(y))))


def _bits(x: Any) -> Any:
    return np.ascontiguousarray(x).reshape(x.shape).view(f"u{x.dtype.itemsize}")


def assert_computes_the_same(before: Program, after: Program, turns: int = 3) -> None:
    assert before.input_types == after.input_types
    assert before.output_types == after.output_types
    for turn in range(turns):
        operands = [specials(type, turn + 2 * n) for n, type in enumerate(before.input_types)]
        for x, y in zip(run_reference(before, operands), run_reference(after, operands), strict=True):
            assert same_bits(x, y), f"{x}\nis not\n{y}\n{before}\n{after}"


def apply(rewrite: Rewrite, before: Program, *, exact: bool = True) -> Program:
    """The program after a pass, checked: well formed, bit-equal in value, and left alone by the pass from then on."""
    text = str(before)
    after = check_program(rewrite(before))
    assert rewrite(after) is after, f"not idempotent:\n{before}\n{after}\n{rewrite(after)}"
    assert str(before) == text, "a pass changed its operand"
    if exact:
        assert_computes_the_same(before, after)
    return after
