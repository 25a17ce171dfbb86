"""Products of few rows or columns, and of transposed operands: read in order, whatever lies how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.grids import covering
from tests.schedule.running import Array, agree, staged
from tracer.codegen.llvm.kernels.routines import library_names
from tracer.ir.loop import Module, Transpose
from tracer.ir.loop.walk import statements_of
from tracer.passes.pipeline import optimize
from tracer.primitives.base.shapes import transpose
from tracer.primitives.linalg.dot_general import dot_general
from tracer.schedule.pipeline import schedule

RNG = np.random.default_rng(11)
FORMS = ("nn", "tn", "nt", "tt")


def drawn(dtype: str, *shape: int) -> Array:
    return RNG.integers(-8, 9, shape).astype(dtype)


def operands(form: str, m: int, n: int, k: int, dtype: str = "float32", stack: tuple[int, ...] = ()) -> list[Array]:
    """The matrices as they lie: `t` for transposed ones."""
    left, right = (k, m) if form[0] == "t" else (m, k), (n, k) if form[1] == "t" else (k, n)
    return [drawn(dtype, *stack, *left), drawn(dtype, *stack, *right)]


def by_axes(form: str, stack: int = 0) -> Callable[..., Any]:
    """The product with the axes of what lies transposed."""
    axes = (stack if form[0] == "t" else stack + 1,), (stack + 1 if form[1] == "t" else stack,)
    batch = tuple(range(stack))
    return lambda a, b: dot_general(a, b, (axes, (batch, batch)))


def by_transposes(form: str, stack: int = 0) -> Callable[..., Any]:
    """The product of transposed operands."""
    order = (*range(stack), stack + 1, stack)
    plain = by_axes("nn", stack)
    return lambda a, b: plain(*(transpose(x, order) if t == "t" else x for x, t in zip((a, b), form, strict=True)))


def module_of(function: Callable[..., Any], arrays: list[Array]) -> Module:
    return schedule(optimize(staged(function, arrays))).module


def transposes(module: Module) -> int:
    return sum(isinstance(s, Transpose) for f in module.functions for s in statements_of(f.body))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stack", [(), (3,)])
def test_a_transposed_operand_is_read_where_it_lies(form: str, stack: tuple[int, ...]) -> None:
    arrays = operands(form, 60, 70, 80, stack=stack)
    for function in (by_axes(form, len(stack)), by_transposes(form, len(stack))):
        module = module_of(function, arrays)
        assert library_names(module) == ["gemm_f32"]
        assert not transposes(module)
        agree(function, *arrays)


def test_axes_of_one_element_lie_anywhere() -> None:
    arrays = drawn("float32", 1, 60, 80), drawn("float32", 80, 1, 70)
    function = lambda x, y: dot_general(x, y, (((2,), (0,)), ((), ())))  # noqa: E731
    assert not transposes(module_of(function, list(arrays)))
    agree(function, *arrays)
    stacks = drawn("float32", 1, 60, 80), drawn("float32", 1, 80, 70)
    between = lambda x, y: dot_general(transpose(x, (1, 0, 2)), y, (((2,), (1,)), ((), ())))  # noqa: E731
    assert not transposes(module_of(between, list(stacks)))
    agree(between, *stacks)


def test_a_transpose_of_other_axes_stays() -> None:
    a, b = drawn("float32", 4, 30, 20), drawn("float32", 4, 20, 50)
    function = lambda x, y: dot_general(transpose(x, (2, 1, 0)), y, (((0,), (1,)), ((2,), (0,))))  # noqa: E731
    agree(function, a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(2, 300, 200), (3, 70, 65), (300, 2, 200), (200, 5, 90), (8, 120, 90), (120, 8, 90), (900, 3, 3), (4, 900, 4),
     (3, 3, 900), (7, 7, 300), (40, 4, 17), (4, 40, 17)],
)  # fmt: skip
def test_skinny_products(m: int, n: int, k: int, form: str, dtype: str) -> None:
    agree(by_transposes(form), *operands(form, m, n, k, dtype))


@pytest.mark.parametrize(
    ("few", "form", "dtype", "many"),
    covering(range(2, 8), FORMS, ["float32", "float64"], [(1003, 259), (70, 1100), (5001, 50)], least=24),
)
def test_large_matrices_beside_few_rows_or_columns(few: int, form: str, dtype: str, many: tuple[int, int]) -> None:
    rows, k = many
    agree(by_axes(form), *operands(form, rows, few, k, dtype))
    agree(by_axes(form), *operands(form, few, rows, k, dtype))


def test_large_matrices_beside_few_columns_of_another_dtype() -> None:
    a, b = drawn("float16", 300, 400), drawn("float16", 400, 3)
    agree(by_axes("nn"), a, b)
    whole = RNG.integers(-8, 9, (300, 400)), RNG.integers(-8, 9, (400, 3))
    agree(by_axes("nn"), *whole)


@pytest.mark.parametrize("form", FORMS)
def test_skinny_products_of_stacks(form: str) -> None:
    for m, n, k in ((3, 60, 50), (60, 3, 50), (6, 100, 40), (300, 3, 250), (5, 300, 250)):
        agree(by_axes(form, 1), *operands(form, m, n, k, stack=(5,)))


@pytest.mark.parametrize(
    ("form", "m", "n", "k", "routines"),
    [
        ("nn", 3, 200, 200, []),
        ("nt", 3, 200, 200, []),
        ("tt", 3, 200, 200, ["gemm_f32"]),
        ("nt", 200, 5, 200, []),
        ("tn", 9000, 3, 3, []),
        ("nn", 200, 5, 200, ["gemm_f32"]),
        ("tn", 200, 2, 200, []),
        ("nn", 1, 500, 500, []),
        ("nn", 500, 1, 500, []),
        ("nn", 3, 500, 500, ["gemm_f32"]),
        ("nt", 3, 500, 500, ["gemm_f32"]),
        ("nt", 500, 5, 500, ["gemm_f32"]),
        ("nn", 500, 5, 500, ["gemm_f32"]),
        ("tn", 500, 2, 500, ["gemm_f32"]),
        ("nn", 30, 5, 9000, ["gemm_f32"]),
        ("nt", 3, 9000, 30, []),
    ],
)
def test_which_of_them_are_loops(form: str, m: int, n: int, k: int, routines: list[str]) -> None:
    module = module_of(by_axes(form), operands(form, m, n, k))
    assert library_names(module) == routines
    assert transposes(module) <= 1  # of a result that has few rows or columns


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stack", [(), (7,)])
def test_small_products_are_loops_in_any_form(form: str, stack: tuple[int, ...]) -> None:
    arrays = operands(form, 16, 20, 18, stack=stack)
    assert not library_names(module_of(by_axes(form, len(stack)), arrays))
    agree(by_axes(form, len(stack)), *arrays)
