"""Result dtypes against JAX's with 64 bits on, from a stored table; the dtype functions; default_float."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tests.numpy.dtype_cases import DTYPES, cases, described
from tracer.errors import DTypeError, TracerError

TABLE: dict[str, str] = json.loads((Path(__file__).parent / "dtypes.json").read_text(encoding="utf-8"))

# Where we differ from JAX, and why.
DIFFERENT = {
    "round": "JAX refuses bool, which is round",
    "kron": "JAX refuses bool",
    "arctan2": "NumPy refuses complex numbers",
    "hypot": "JAX forgets that u64 with a signed integer is weak",
    "polydiv": "JAX forgets that u64 with a signed integer is weak",
    "median": "JAX refuses complex numbers, which NumPy sorts",
}


def test_result_dtypes_are_jaxs() -> None:
    found = {name: described(call, (TracerError,)) for name, call in cases(tnp).items()}
    assert found.keys() == TABLE.keys()
    wrong = {name: (found[name], dtype) for name, dtype in TABLE.items() if found[name] != dtype}
    assert {name: pair for name, pair in wrong.items() if name.split()[0] not in DIFFERENT} == {}
    assert {name.split()[0] for name in wrong} == set(DIFFERENT), "an exception is no longer needed"


@each(
    ("make", "dtype", "weak"),
    [
        (lambda: tnp.asarray(1.0), "float64", True), (lambda: tnp.asarray([1.0]), "float64", False),
        (lambda: tnp.asarray(2), "int64", True), (lambda: tnp.asarray(True), "bool", False),
        (lambda: tnp.asarray([1, 2.5]), "float64", False), (lambda: tnp.asarray(1j), "complex128", True),
        (lambda: tnp.asarray([tnp.float32(1), 2.0]), "float32", False), (lambda: tnp.asarray([]), "float64", False),
        (lambda: tnp.zeros(2), "float64", False), (lambda: tnp.arange(3), "int64", False),
        (lambda: tnp.arange(3.0), "float64", False), (lambda: tnp.linspace(0, 1, 3), "float64", False),
        (lambda: tnp.full(2, 1), "int64", True), (lambda: tnp.sum(2.0), "float64", False),
        (lambda: tnp.where(True, 1, 2.0), "float64", True), (lambda: tnp.eye(2), "float64", False),
        (lambda: tnp.clip(tnp.arange(3), 0, 1.5), "float64", True), (lambda: tnp.sin(2), "float64", True),
        (lambda: tnp.full_like(tnp.ones(2, "int32"), 2.5), "int32", False),
        (lambda: tnp.asarray(np.float32(1)), "float32", False), (lambda: tnp.float32(2), "float32", False),
    ],
)  # fmt: skip
def test_creation_gives_jaxs_dtypes(make: Any, dtype: str, weak: bool) -> None:
    x = make()
    assert (x.dtype, x.weak_type) == (np.dtype(dtype), weak)


def test_default_float_changes_what_has_no_dtype_of_its_own() -> None:
    with tracer.config.using(default_float="float32"):
        made = [
            tnp.zeros(2),
            tnp.asarray(1.0),
            tnp.asarray([1.0]),
            tnp.linspace(0, 1, 3),
            tnp.arange(2) / 2,
            tnp.eye(2),
        ]
        assert {x.dtype for x in made} == {np.dtype("float32")}
        assert tnp.asarray(1j).dtype == np.complex64
        kept = [tnp.asarray(np.arange(2.0)), tnp.zeros(2, "float64"), tnp.asarray([np.float64(1)])]
        assert {x.dtype for x in kept} == {np.dtype("float64")}
    assert tnp.zeros(2).dtype == np.float64


def test_integers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DTypeError, match="the integer 300 does not fit in u8"):
        tnp.ones(2, "uint8") + 300
    with pytest.raises(DTypeError, match="9223372036854775808 does not fit in i64\n  help: write it as a float"):
        tnp.asarray([1]) + 2**63
    assert (tnp.asarray([1], "uint64") + 2**63).tolist() == [2**63 + 1]
    assert (tnp.asarray([1.5]) + 2**63).tolist() == [2.0**63]
    with pytest.raises(DTypeError, match="the integer -1 does not fit in u8"):
        tnp.asarray(-1, "uint8")


def test_integers_that_do_not_fit_are_told_of_a_dtype_that_has_them() -> None:
    words, bytes = tnp.ones(2, "uint64"), tnp.ones(2, "uint8")
    signed = "-1 does not fit in u64\n  help: u64 has 0 to 18446744073709551615: cast the array to a signed dtype first"
    with pytest.raises(DTypeError, match=signed):
        words[0] = -1
    with pytest.raises(DTypeError, match=signed):
        words + -1
    with pytest.raises(DTypeError, match="-1 does not fit in u8\n  help: u8 has 0 to 255: cast the array to a signed"):
        bytes.at[0].set(-1)
    with pytest.raises(DTypeError, match="-1 does not fit in u8\n  help: u8 has 0 to 255: cast the array to a signed"):
        tnp.stack([bytes[0], -1])
    with pytest.raises(DTypeError, match="nan does not fit in u8\n  help: cast the array to a float dtype first"):
        tnp.max(bytes, initial=math.nan)
    assert np.dtype(tnp.float32) == np.float32
    assert tnp.zeros(2, tnp.int8).dtype == tnp.int8
    assert tnp.float32 == np.float32
    assert tnp.float32 != tnp.float64
    assert tnp.float64 != None  # noqa: E711  # which NumPy takes for the default dtype elsewhere
    assert tnp.bfloat16(1.5).dtype == tnp.bfloat16
    assert isinstance(np.float32(1), tnp.float32)


@pytest.mark.parametrize("x", [1j, np.asarray([1j]), [1j]])
def test_dtypes_make_no_real_numbers_of_complex_ones(x: Any) -> None:
    with pytest.raises(DTypeError, match=r"^float32 at .*: complex numbers do not become real ones"):
        tnp.float32(x)
    assert tnp.bool_(x).all()


def test_bools_have_no_common_type_as_in_numpy() -> None:
    with pytest.raises(DTypeError, match=r"^common_type at .*: bools are not numbers\n  help: cast them to int first"):
        tnp.common_type(tnp.ones(2), tnp.ones(2, bool))
    with pytest.raises(TypeError):
        np.common_type(np.ones(2), np.ones(2, bool))


@each("dtype", DTYPES)
def test_kinds_are_told_apart(dtype: str) -> None:
    x = tnp.ones((), dtype)
    kinds = {
        "bool": (), "int": (tnp.integer, tnp.signedinteger, tnp.number),
        "uint": (tnp.integer, tnp.unsignedinteger, tnp.number),
        "float": (tnp.floating, tnp.inexact, tnp.number), "bfloat": (tnp.floating, tnp.inexact, tnp.number),
        "complex": (tnp.complexfloating, tnp.inexact, tnp.number),
    }[dtype.rstrip("0123456789")]  # fmt: skip
    for kind in (
        tnp.integer,
        tnp.signedinteger,
        tnp.unsignedinteger,
        tnp.floating,
        tnp.complexfloating,
        tnp.inexact,
        tnp.number,
    ):
        assert tnp.issubdtype(x.dtype, kind) == (kind in kinds)


def test_limits_and_promotion_functions() -> None:
    assert tnp.finfo("bfloat16").bits == 16
    assert tnp.iinfo(tnp.int8).min == -128
    assert tnp.result_type(tnp.float32, 2.0) == np.float32
    assert tnp.result_type(tnp.asarray(1), np.float32(1)) == np.float32
    assert tnp.promote_types("uint64", "int64") == np.float64
    assert tnp.can_cast("int32", "float64")
    assert tnp.isdtype(tnp.int8, ("integral", "bool"))
    assert tnp.issubdtype(tracer.random.key(0).dtype, tracer.dtypes.prng_key)
    assert not tnp.issubdtype(np.float32, tracer.dtypes.prng_key)
    with pytest.raises(DTypeError, match="not a float dtype"):
        tnp.finfo(int)


def test_complex_numbers_do_not_become_real_silently() -> None:
    with pytest.raises(DTypeError, match=r"take x\.real, x\.imag or abs\(x\) first"):
        tnp.asarray([1j]).astype(float)
    with pytest.raises(DTypeError, match="complex values do not fit into a real array"):
        tnp.zeros(2).at[0].set(1j)


@pytest.mark.parametrize("dtype", [tnp.float8_e4m3fn, tnp.float8_e5m2, tnp.float8_e4m3fnuz, tnp.float4_e2m1fn])
def test_extremes_of_some_elements_of_short_floats(dtype: Any) -> None:
    x = tnp.asarray([1.0, -2.0, 3.0]).astype(dtype)
    assert float(tnp.max(x, where=x < 2, initial=-4)) == 1
    assert float(tnp.min(x, where=x > 0, initial=4)) == 1
    assert float(tnp.max(x, where=x > 5, initial=0)) == 0
