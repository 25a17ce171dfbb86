"""Our kernels for matrix products: all shapes of edges, both transposes, every width of vectors."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracer
from tests.grids import covering, examples
from tests.laws.tolerances import TOLERANCES, close
from tracer.codegen.llvm.kernels.gemm.microkernel import products_text
from tracer.codegen.llvm.kernels.gemm.panel import LINE
from tracer.codegen.llvm.kernels.transpose import SYMBOL, transpose_text
from tracer.codegen.llvm.toolchain.object_code import LoadedModule, compile_object, load_object
from tracer.codegen.llvm.toolchain.target import features, preferred_bits

Array = np.ndarray[Any, Any]
DTYPES = {"f32": np.dtype("f4"), "f64": np.dtype("f8")}
WIDTHS = tuple(bits for bits in (128, 256, 512) if bits <= preferred_bits())
_FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 8, ctypes.c_void_p)


@cache
def loaded(kind: str, bits: int) -> LoadedModule:
    code = compile_object(products_text(kind, bits), vector_bits=bits)
    return load_object(code, {}, export=f"tracer_product_{kind}")


@cache
def turns(size: int) -> LoadedModule:
    return load_object(compile_object(transpose_text(size)), {}, export=f"{SYMBOL}{size}")


def turn(size: int) -> int:
    return turns(size).address(f"{SYMBOL}{size}")


def product(kind: str, bits: int, a: Array, b: Array, *, margin: int = 0) -> Array:
    """a @ b by the kernel; a and b may be transposed views. `margin` elements follow each row of the result."""
    (m, k), n = a.shape, b.shape[1]
    out = np.full((m, n + margin), np.nan, DTYPES[kind])
    steps = [x // out.itemsize for array in (a, b) for x in array.strides]
    call = _FUNCTION(loaded(kind, bits).address(f"tracer_product_{kind}"))
    call(a.ctypes.data, b.ctypes.data, out.ctypes.data, m, n, k, *steps, n + margin, turn(out.itemsize))
    assert np.isnan(out[:, n:]).all()
    return out[:, :n]


def operands(kind: str, m: int, n: int, k: int, transpose_a: bool, transpose_b: bool) -> tuple[Array, Array]:
    rng = np.random.default_rng(m + n + k)
    a = rng.standard_normal((k, m) if transpose_a else (m, k)).astype(DTYPES[kind])
    b = rng.standard_normal((n, k) if transpose_b else (k, n)).astype(DTYPES[kind])
    return a.T if transpose_a else a, b.T if transpose_b else b


SHAPES = [
    (1, 1, 2), (3, 5, 7), (8, 48, 256), (9, 49, 257), (100, 17, 300), (7, 100, 513), (33, 200, 40), (13, 97, 1),
    (300, 64, 520), (140, 250, 30), (150, 270, 601), (21, 620, 33), (20, 250, 450),
]  # fmt: skip


TRANSPOSES = [(False, False), (True, False), (False, True), (True, True)]
LENGTHS = st.integers(1, 60) | st.integers(1, 600)


@examples(covering(DTYPES, WIDTHS, TRANSPOSES, SHAPES))
@given(
    st.sampled_from(list(DTYPES)), st.sampled_from(WIDTHS), st.sampled_from(TRANSPOSES),
    st.tuples(LENGTHS, LENGTHS, LENGTHS),
)  # fmt: skip
def test_products_are_sums_of_products(
    kind: str, bits: int, transposes: tuple[bool, bool], sizes: tuple[int, int, int]
) -> None:
    a, b = operands(kind, *sizes, *transposes)
    exact = a.astype("f8") @ b.astype("f8")
    scale = np.abs(a).astype("f8") @ np.abs(b).astype("f8")
    got = product(kind, bits, a, b, margin=3)
    assert close(got, exact, TOLERANCES["dot_general"], scale).all()


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("n", [40, 300])
def test_elements_of_a_may_lie_apart_in_both_directions(n: int, kind: str, bits: int) -> None:
    a, b = operands(kind, 70, n, 90, False, False)
    wide = np.full((140, 270), np.nan, DTYPES[kind])
    wide[::2, ::3] = a
    assert product(kind, bits, wide[::2, ::3], b).tobytes() == product(kind, bits, a, b).tobytes()


@pytest.mark.parametrize("kind", DTYPES)
def test_every_width_of_vectors_gives_the_same_bits(kind: str) -> None:
    fused = [bits for bits in WIDTHS if dict(features(bits)).get("fma", True)]
    a, b = operands(kind, 50, 75, 700, False, True)
    results = [product(kind, bits, a, b).tobytes() for bits in fused]
    assert len(set(results)) == 1


@pytest.mark.parametrize("kind", DTYPES)
def test_elements_do_not_depend_on_their_neighbours(kind: str) -> None:
    a, b = operands(kind, 40, 330, 600, False, False)
    whole = product(kind, WIDTHS[-1], a, b)
    part = product(kind, WIDTHS[-1], a[5:25], b[:, 48:96])
    assert part.tobytes() == np.ascontiguousarray(whole[5:25, 48:96]).tobytes()


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("sizes", [(300, 600, 700), (1000, 100, 333), (256, 256, 256)], ids=str)
def test_bits_do_not_depend_on_how_many_threads_multiply(kind: str, sizes: tuple[int, int, int]) -> None:
    a, b = operands(kind, *sizes, False, False)
    multiply = tracer.jit(lambda a, b: a @ b)
    results = set()
    for threads in (1, 2, 3, 7):
        with tracer.config.using(threads=threads):
            results.add(np.asarray(multiply(a, b)).tobytes())
    assert results == {product(kind, WIDTHS[-1], a, b).tobytes()}


_RECORD = """
@fetched = global [2097152 x i64] zeroinitializer
@fetched.count = global i64 0
define internal void @record(ptr %place) {
  %line = ptrtoint ptr %place to i64
  %n = load i64, ptr @fetched.count
  %at = getelementptr i64, ptr @fetched, i64 %n
  store i64 %line, ptr %at
  %n.next = add i64 %n, 1
  store i64 %n.next, ptr @fetched.count
  ret void
}
"""


def fetched(bits: int, a: Array, b: Array) -> set[int]:
    """The lines that a product of f32 fetches into the second cache, by their numbers."""
    fetch = re.compile(r"@llvm\.prefetch\.p0\((ptr %[a-z0-9.]+), i32 0, i32 2, i32 1\)")
    text = fetch.sub(r"@record(\1)", products_text("f32", bits)) + _RECORD
    module = load_object(compile_object(text, vector_bits=bits), {}, export="tracer_product_f32")
    out = np.zeros((a.shape[0], b.shape[1]), "f4")
    steps = [x // 4 for array in (a, b, out) for x in array.strides[: 1 if array is out else 2]]
    call = _FUNCTION(module.address("tracer_product_f32"))
    call(a.ctypes.data, b.ctypes.data, out.ctypes.data, len(a), b.shape[1], len(b), *steps, turn(4))
    count = ctypes.c_int64.from_address(module.address("fetched.count")).value
    places = (ctypes.c_int64 * count).from_address(module.address("fetched"))
    return set((np.asarray(places) // LINE).tolist())


def lines_of(part: Array) -> set[int]:
    places = np.indices(part.shape).T.reshape(-1, 2) @ part.strides + part.ctypes.data
    return set((places // LINE).tolist())


@pytest.mark.parametrize(
    ("bits", "transposes", "n"), covering(WIDTHS, [(False, False), (True, True)], [96, 270], least=6)
)
def test_what_is_read_next_is_fetched_while_a_panel_is_multiplied(
    n: int, bits: int, transposes: tuple[bool, bool]
) -> None:
    a, b = operands("f32", 400, n, 1100, *transposes)
    lines = fetched(bits, a, b)
    assert lines_of(a[256:384, :512]) <= lines  # of rows before, while columns are copied, half
    assert lines_of(b[:512, 48 : n - 30]) <= lines
    beyond = 512 * 4 // LINE  # of a run at the end of an operand
    known = [range(min(x), max(x) + beyond + 1) for x in (lines_of(a), lines_of(b))]
    assert all(any(line in x for x in known) for line in lines)


@pytest.mark.parametrize("special", [np.nan, np.inf, 1e-310])
def test_special_values_stay_in_their_rows_and_columns(special: float) -> None:
    a, b = operands("f64", 20, 30, 40, False, True)
    a[3, 5] = special
    with np.errstate(invalid="ignore"):
        expected = a @ b
    np.testing.assert_allclose(product("f64", WIDTHS[-1], a, b), expected, rtol=1e-12, atol=1e-12)
