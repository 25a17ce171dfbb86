"""Promotion is JAX's with x64 on; the table comes from tools/promotion_table.py."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tracer.ir import dtypes
from tracer.ir.dtypes import BF16, BOOL, C64, C128, F16, F32, F64, I32, I64, U8, promote, short_name

FILE = Path(__file__).parent / "promotion_table.json"
TABLE: dict[str, dict[str, str | None]] = json.loads(FILE.read_text())


def operand(name: str) -> tuple[dtypes.DType, bool]:
    return dtypes.BY_SHORT_NAME[name.rstrip("*")], name.endswith("*")


def shown(result: tuple[dtypes.DType, bool] | None) -> str | None:
    return None if result is None else short_name(result[0]) + "*" * result[1]


def test_the_table_covers_every_dtype_strong_and_weak() -> None:
    assert {name.rstrip("*") for name in TABLE} == set(dtypes.BY_SHORT_NAME)
    assert {f"{name}*" for name in dtypes.BY_SHORT_NAME if name != "bool"} < set(TABLE)


def differences(names: list[str]) -> list[str]:
    pairs = [(a, b, shown(promote(operand(a), operand(b))), TABLE[a][b]) for a in names for b in names]
    return [f"{a} with {b}: got {got}, want {want}" for a, b, got, want in pairs if got != want]


@pytest.mark.parametrize("stars", ["", "*"])
def test_operands_of_equal_weakness_promote_as_in_jax(stars: str) -> None:
    assert not differences([name for name in TABLE if name.endswith("*") == bool(stars)])


def test_any_two_operands_promote_as_in_jax() -> None:
    assert not differences(list(TABLE))


def test_promotion_does_not_depend_on_the_order_of_its_operands() -> None:
    for a in TABLE:
        for b in TABLE:
            assert promote(operand(a), operand(b)) == promote(operand(b), operand(a))


def test_an_operand_alone_keeps_its_dtype_and_weakness() -> None:
    for name in TABLE:
        assert promote(operand(name)) == operand(name)


def test_python_bools_are_not_weak() -> None:
    assert promote((BOOL, True), (BOOL, True)) == (BOOL, False)
    assert promote((BOOL, True)) == (BOOL, False)


def test_default_float_is_what_integers_become_next_to_python_floats() -> None:
    assert promote((I32, False), (F32, True), default_float=F32) == (F32, True)
    assert promote((I64, False), (C64, True), default_float=F32) == (C64, True)
    assert promote((F64, False), (F32, True), default_float=F32) == (F64, False)


def test_three_operands_promote_as_their_join() -> None:
    assert promote((BF16, False), (F16, False), (I64, False)) == (F32, False)
    assert promote((U8, False), (F64, True), (F16, False)) == (F16, False)


def test_float8_formats_have_no_common_dtype() -> None:
    assert promote((dtypes.F8E4M3FN, False), (dtypes.F8E5M2, False)) is None


def test_short_names_lead_to_numpy_dtypes_and_back() -> None:
    assert len(dtypes.BY_SHORT_NAME) == len(dtypes.SHORT_NAMES) == len(dtypes.ALL)
    for name, dtype in dtypes.BY_SHORT_NAME.items():
        assert isinstance(dtype, np.dtype)
        assert short_name(dtype) == name
    assert np.dtype(ml_dtypes.bfloat16) == BF16


def test_every_dtype_is_of_exactly_one_kind() -> None:
    tests = (dtypes.is_bool, dtypes.is_signed, dtypes.is_unsigned, dtypes.is_float, dtypes.is_complex)
    for dtype in dtypes.ALL:
        assert sum(test(dtype) for test in tests) == 1
        assert dtypes.is_integer(dtype) == (dtypes.is_signed(dtype) or dtypes.is_unsigned(dtype))
        assert dtypes.is_inexact(dtype) == (dtypes.is_float(dtype) or dtypes.is_complex(dtype))


def test_complex_numbers_have_real_parts_of_half_their_width() -> None:
    assert [dtypes.real_dtype(d) for d in (C64, C128, F16, I32)] == [F32, F64, F16, I32]
    assert [dtypes.complex_dtype(d) for d in (F16, F32, F64, I32, C64)] == [C64, C64, C128, C128, C64]


def test_short_floats_accumulate_in_float32() -> None:
    short = [d for d in dtypes.FLOATS if d.itemsize < 4]
    assert {dtypes.accumulator_dtype(d) for d in short} == {F32}
    assert [dtypes.accumulator_dtype(d) for d in (F32, F64, I32, C64)] == [F32, F64, I32, C64]
