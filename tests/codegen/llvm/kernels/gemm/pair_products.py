"""What tests of products of bf16 share: operands, calls of a kernel, and how near the results must be."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from tests.laws.tolerances import TOLERANCES, close
from tracer.codegen.llvm.kernels.transpose import SYMBOL, transpose_text
from tracer.codegen.llvm.toolchain.object_code import LoadedModule, compile_object, load_object

Array = np.ndarray[Any, Any]
Sizes = tuple[int, int, int]
NAME = "tracer_product_bf16"


@cache
def turns() -> LoadedModule:
    """What transposes pairs."""
    return load_object(compile_object(transpose_text(4)), {}, export=f"{SYMBOL}4")


def both_ways(shapes: list[Sizes]) -> list[tuple[Sizes, bool]]:
    """Pairs of a transposed operand lie next to each other where k is even."""
    return [
        (sizes, transposed) for sizes in shapes for transposed in (False, True) if not (transposed and sizes[2] % 2)
    ]


def operands(m: int, n: int, k: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(m + n + k)
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    return a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)


def apart(x: Array, margin: int) -> Array:
    """The matrix, with so many NaN behind each row in memory."""
    wide = np.full((x.shape[0], x.shape[1] + margin), np.nan, x.dtype)
    wide[:, : x.shape[1]] = x
    return wide[:, : x.shape[1]]


def product(function: Any, a: Array, b: Array, *, transposed: bool = False, margin: int = 0) -> Array:
    """a @ b by a kernel; an even number `margin` of elements follows each row, in memory, of all three matrices."""
    (m, k), n = a.shape, b.shape[1]
    given = apart(np.ascontiguousarray(b.T if transposed else b), margin)
    left = apart(a, margin)
    out = np.full((m, n + margin), np.nan, "f4")
    steps = (1, k + margin) if transposed else (n + margin, 1)
    turn = turns().address(f"{SYMBOL}4")
    function(left.ctypes.data, given.ctypes.data, out.ctypes.data, m, n, k, k + margin, 1, *steps, n + margin, turn)
    assert np.isnan(out[:, n:]).all()
    return out[:, :n]


def assert_near(got: Array, a: Array, b: Array) -> None:
    exact, scale = a.astype("f8") @ b.astype("f8"), np.abs(a).astype("f8") @ np.abs(b).astype("f8")
    assert close(got, exact, TOLERANCES["dot_general"], scale).all()
