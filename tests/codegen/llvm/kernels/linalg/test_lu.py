"""LU by kernels of our own: every shape of edges and width of vectors, which rows are chosen, any number of threads."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import tracer
import tracer.numpy as tnp
from tests.grids import covering, examples
from tracer.codegen.llvm.kernel_modules import shared_symbols
from tracer.codegen.llvm.kernels.linalg import lu_panel
from tracer.codegen.llvm.kernels.linalg.lu import NAME, lu_text
from tracer.codegen.llvm.toolchain.object_code import LoadedModule, compile_object, load_object
from tracer.codegen.llvm.toolchain.target import features, preferred_bits
from tracer.schedule.algorithms import factorizations

Array = np.ndarray[Any, Any]
DTYPES = {"f32": np.dtype("f4"), "f64": np.dtype("f8")}
WIDTHS = tuple(bits for bits in (128, 256, 512) if bits <= preferred_bits())
SHAPES = [
    (1, 1), (1, 9), (9, 1), (8, 8), (17, 23), (23, 17), (64, 64), (64, 65), (65, 64), (65, 129), (130, 131), (100, 300),
    (300, 100), (257, 257),
]  # fmt: skip
_FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2, ctypes.c_void_p)
_STOP = ctypes.c_int32()  # never set


@cache
def loaded(kind: str, bits: int) -> LoadedModule:
    text = lu_text(kind, bits)
    return load_object(compile_object(text, vector_bits=bits), shared_symbols(text), export=f"{NAME}{kind}")


def factored(kind: str, bits: int, x: Array) -> tuple[Array, Array]:
    """The factors, and the rows that were chosen; room that was not written before is NaN."""
    (m, n), k = x.shape, min(x.shape)
    factors, chosen = np.ascontiguousarray(x).copy(), np.full(k, -1, np.int32)
    work = np.full((2 * -(-min(k, 64) // 8) * 8, m + 128), np.nan, x.dtype)
    _FUNCTION(loaded(kind, bits).address(f"{NAME}{kind}"))(
        factors.ctypes.data,
        chosen.ctypes.data,
        work.ctypes.data,
        m,
        n,
        ctypes.addressof(_STOP),
    )
    return factors, chosen - 1


def drawn(m: int, n: int, kind: str) -> Array:
    return np.random.default_rng(m * n).standard_normal((m, n)).astype(DTYPES[kind])


def order_of(chosen: Array, m: int) -> Array:
    rows = np.arange(m)
    for n, place in enumerate(chosen):
        rows[[n, place]] = rows[[place, n]]
    return rows


LENGTHS = st.integers(1, 20) | st.integers(1, 300)


@examples(covering(SHAPES, DTYPES, WIDTHS))
@given(st.tuples(LENGTHS, LENGTHS), st.sampled_from(list(DTYPES)), st.sampled_from(WIDTHS))
def test_factors_give_the_rows_back(shape: tuple[int, int], kind: str, bits: int) -> None:
    x, m, k = drawn(*shape, kind), shape[0], min(shape)
    factors, chosen = factored(kind, bits, x)
    lower = np.tril(factors[:, :k].astype("f8"), -1) + np.eye(m, k)
    upper = np.triu(factors[:k].astype("f8"))
    assert (np.abs(np.tril(factors[:, :k], -1)) <= 1).all()
    error = np.abs(lower @ upper - x[order_of(chosen, m)]) / (np.abs(lower) @ np.abs(upper))
    assert error.max() < 8 * np.finfo(x.dtype).eps


@pytest.mark.parametrize("kind", DTYPES)
def test_every_width_of_vectors_gives_the_same_bits(kind: str) -> None:
    fused = [bits for bits in WIDTHS if dict(features(bits)).get("fma", True)]
    x = drawn(150, 170, kind)
    assert len({tuple(part.tobytes() for part in factored(kind, bits, x)) for bits in fused}) == 1


@pytest.mark.parametrize("bits", WIDTHS)
def test_the_first_of_equal_rows_is_chosen_as_by_lapack(bits: int) -> None:
    x = np.random.default_rng(3).integers(-1, 2, (90, 90)) * 1.0
    x[:, 0] = -1
    _, chosen = factored("f64", bits, x)
    assert chosen[0] == 0
    y = np.eye(90)[:, ::-1] * 2 + np.eye(90)
    np.testing.assert_array_equal(factored("f64", bits, y)[1], scipy.linalg.lu_factor(y)[1])


@examples(covering(DTYPES, WIDTHS, [0, 7, 8, 63, 64, 99]))
@given(st.sampled_from(list(DTYPES)), st.sampled_from(WIDTHS), st.integers(0, 99))
def test_a_column_of_zeros_stays_and_chooses_its_own_row(kind: str, bits: int, column: int) -> None:
    x = np.triu(drawn(100, 100, kind)) + np.eye(100, dtype=DTYPES[kind])
    x[:, column] = 0
    factors, chosen = factored(kind, bits, x)
    np.testing.assert_array_equal(chosen, np.arange(100))
    np.testing.assert_array_equal(factors, x)


@pytest.mark.parametrize(("kind", "bits", "value"), covering(DTYPES, WIDTHS, [np.nan, np.inf, -np.inf], least=6))
def test_what_is_no_number_is_chosen_from_no_row_outside(kind: str, bits: int, value: float) -> None:
    for shape in ((20, 20), (70, 70), (70, 90)):
        for place in ((0, 0), (19, 3), (5, 19), (slice(None), 2), (slice(None), slice(None))):
            x = drawn(*shape, kind)
            x[place] = value
            factors, chosen = factored(kind, bits, x)
            assert ((chosen >= np.arange(len(chosen))) & (chosen < shape[0])).all()
            assert not np.isfinite(factors).all()


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("kind", DTYPES)
def test_pivots_whose_reciprocals_overflow_divide(kind: str, bits: int) -> None:
    tiny = np.finfo(DTYPES[kind]).smallest_subnormal * 8
    x = np.eye(20, dtype=DTYPES[kind])
    x[3:, 3] = tiny / 2
    x[3, 3] = tiny
    factors, chosen = factored(kind, bits, x)
    np.testing.assert_array_equal(chosen[:4], np.arange(4))
    np.testing.assert_array_equal(factors[4:, 3], np.full(16, 0.5))


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("shape", [(700, 700), (100, 600), (600, 100), (3, 40, 40)], ids=str)
def test_the_number_of_threads_does_not_show(kind: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(DTYPES[kind])
    results = set()
    for count in (1, 2, 3, 7):
        with tracer.config.using(threads=count):
            results.add(tuple(np.asarray(part).tobytes() for part in tracer.jit(tracer.lax.linalg.lu)(x)))
    assert len(results) == 1


def test_matrices_of_a_stack_are_factored_as_they_are_alone() -> None:
    x = np.random.default_rng(2).standard_normal((3, 70, 50))
    stacked = tracer.jit(tracer.lax.linalg.lu)(x)
    for n in range(3):
        for part, alone in zip(stacked, tracer.jit(tracer.lax.linalg.lu)(x[n]), strict=True):
            np.testing.assert_array_equal(np.asarray(part)[n], np.asarray(alone))


def test_real_matrices_need_no_library_to_be_factored() -> None:
    text = str(tracer.jit(tracer.lax.linalg.lu).lower(tnp.zeros((40, 40))).llvm())
    assert "tracer_lu_f64" in text
    assert "lapack" not in text


def test_the_schedule_leaves_room_for_two_panels() -> None:
    """The scratch memory is the schedule's, the width of a panel the kernel's."""
    assert factorizations._PANEL >= lu_panel.BLOCK
