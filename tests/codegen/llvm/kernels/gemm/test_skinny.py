"""Kernels for products of few rows or columns: every count and form, all edges, every width of vectors."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.grids import covering
from tests.laws.tolerances import TOLERANCES, close
from tracer.codegen.llvm.kernels.gemm.skinny import COUNTS, FORMS, skinny_kind, skinny_text
from tracer.codegen.llvm.toolchain.object_code import LoadedModule, compile_object, load_object
from tracer.codegen.llvm.toolchain.target import features, preferred_bits

Array = np.ndarray[Any, Any]
DTYPES = {"f32": np.dtype("f4"), "f64": np.dtype("f8")}
WIDTHS = tuple(bits for bits in (128, 256, 512) if bits <= preferred_bits())
_FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 8, ctypes.c_void_p)


@cache
def loaded(form: str, count: int, kind: str, bits: int) -> LoadedModule:
    code = compile_object(skinny_text(form, count, kind, bits), vector_bits=bits)
    return load_object(code, {}, export=f"tracer_product_{skinny_kind(form, count, kind)}")


def product(form: str, count: int, kind: str, bits: int, a: Array, b: Array, *, margin: int = 0) -> Array:
    """a @ b by the kernel; `margin` elements follow each row of the result."""
    (m, k), n = a.shape, b.shape[1]
    out = np.full((m, n + margin), np.nan, DTYPES[kind])
    steps = [x // out.itemsize for array in (a, b) for x in array.strides]
    name = f"tracer_product_{skinny_kind(form, count, kind)}"
    call = _FUNCTION(loaded(form, count, kind, bits).address(name))
    call(a.ctypes.data, b.ctypes.data, out.ctypes.data, m, n, k, *steps, n + margin, None)
    assert np.isnan(out[:, n:]).all()
    return out[:, :n]


def operands(form: str, count: int, kind: str, many: int, k: int, *, transposed: bool = False) -> tuple[Array, Array]:
    """The large matrix as the form reads it. transposed: whether the other one is."""
    rng = np.random.default_rng(many + k)
    large = rng.standard_normal((k, many) if form == "rows" else (many, k)).astype(DTYPES[kind])
    few = rng.standard_normal((k, count) if transposed == (form != "dots") else (count, k)).astype(DTYPES[kind])
    if form == "dots":
        return large, few.T if few.shape[0] == count else few
    return few.T if few.shape[1] == count else few, large if form == "rows" else large.T


SIZES = [(1, 1), (2, 8), (5, 7), (13, 16), (48, 33), (67, 513), (9, 2049), (3, 4100)]


@pytest.mark.parametrize(("form", "count", "kind", "bits"), covering(FORMS, COUNTS, DTYPES, WIDTHS, least=24))
def test_products_are_sums_of_products(form: str, count: int, kind: str, bits: int) -> None:
    for many, k in SIZES:
        for transposed in (False, True):
            a, b = operands(form, count, kind, many, k, transposed=transposed)
            exact = a.astype("f8") @ b.astype("f8")
            scale = np.abs(a).astype("f8") @ np.abs(b).astype("f8")
            got = product(form, count, kind, bits, a, b, margin=3)
            assert close(got, exact, TOLERANCES["dot_general"], scale).all(), (many, k, transposed)


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_every_width_of_vectors_gives_the_same_bits(form: str, kind: str) -> None:
    fused = [bits for bits in WIDTHS if dict(features(bits)).get("fma", True)]
    a, b = operands(form, 3, kind, 75, 4500)
    assert len({product(form, 3, kind, bits, a, b).tobytes() for bits in fused}) == 1


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_an_infinity_stays_in_its_row_or_column(form: str, kind: str) -> None:
    a, b = operands(form, 2, kind, 21, 37)
    a, b = a.copy() if form != "outs" else a, b if form != "rows" else b.copy()
    a[0, 5] = np.inf
    for bits in WIDTHS:
        got = product(form, 2, kind, bits, a, b)
        assert np.isinf(got[0]).all()
        assert np.isfinite(got[1:]).all()
