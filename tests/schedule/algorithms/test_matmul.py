"""Matrix products: small ones by loops, large ones by BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import WIDTHS, executable
from tests.schedule.running import agree, call, same, shared, staged
from tracer.codegen.llvm.kernels.routines import library_names
from tracer.passes.pipeline import optimize
from tracer.primitives.linalg.dot_general import dot_general
from tracer.schedule.pipeline import schedule

RNG = np.random.default_rng(2)
SIZES = ((1, 8, 1), (3, 8, 5), (8, 16, 8), (9, 17, 7), (16, 16, 16), (5, 40, 3), (30, 9, 40), (48, 8, 1))


def product(left: int, right: int) -> Any:
    """Matrices contracted over these axes, the first axis being the batch."""
    return lambda a, b: dot_general(a, b, (((left,), (right,)), ((0,), (0,))))


def drawn(dtype: str, *shape: int) -> Any:
    return RNG.integers(-4, 5, shape).astype(dtype)


def calls_blas(function: Any, *arrays: Any) -> bool:
    return bool(library_names(schedule(optimize(staged(function, arrays))).module))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
@pytest.mark.parametrize("batch", [1, 5])
def test_small_products(dtype: str, transposed: bool, m: int, n: int, k: int, batch: int) -> None:
    a = drawn(dtype, batch, k, m) if transposed else drawn(dtype, batch, m, k)
    agree(product(1 if transposed else 2, 1), a, drawn(dtype, batch, k, n))


@pytest.mark.parametrize(("left", "right"), [(2, 1), (1, 1), (2, 2), (1, 2)])
@pytest.mark.parametrize(("m", "n", "k"), [(2, 2, 2), (3, 4, 5), (4, 4, 4), (9, 3, 7), (2, 17, 3), (1, 5, 2)])
def test_tiny_products_call_no_blas_in_any_form(left: int, right: int, m: int, n: int, k: int) -> None:
    a = drawn("float64", 5, *((m, k) if left == 2 else (k, m)))
    b = drawn("float64", 5, *((k, n) if right == 1 else (n, k)))
    assert not calls_blas(product(left, right), a, b)
    agree(product(left, right), a, b)


def test_small_products_and_those_with_vectors_call_no_blas_and_others_do() -> None:
    assert not calls_blas(product(2, 1), drawn("float32", 7, 16, 16), drawn("float32", 7, 16, 16))
    assert calls_blas(product(2, 1), drawn("float32", 7, 64, 64), drawn("float32", 7, 64, 64))
    assert not calls_blas(product(2, 1), drawn("float32", 7, 16, 16), drawn("float32", 7, 16, 1))
    assert calls_blas(product(2, 1), drawn("complex64", 7, 16, 16), drawn("complex64", 7, 16, 1))


def test_small_products_have_the_same_bits_at_every_width_and_may_be_shared() -> None:
    a, b = RNG.standard_normal((6, 11, 13)), RNG.standard_normal((6, 13, 19))
    p = staged(product(2, 1), [a, b])
    scheduled = schedule(optimize(p))
    results = [call(scheduled, executable(scheduled.module, vector_bits=w), p, [a, b])[0] for w in WIDTHS]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].view(np.uint64), other.view(np.uint64))
    same(shared(p, [a, b])[0], results[0])
