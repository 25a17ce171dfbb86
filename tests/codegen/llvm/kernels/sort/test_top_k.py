"""The routine for the few greatest of each row: every dtype, every width of vectors, rows of any order."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import pytest

from tracer.codegen.llvm.kernels.sort.numpy_sort import KINDS, item_size
from tracer.codegen.llvm.kernels.sort.top_k import top_k_definition
from tracer.codegen.llvm.toolchain.object_code import LoadedModule, compile_object, load_object
from tracer.codegen.llvm.toolchain.target import preferred_bits

Array = np.ndarray[Any, Any]
WIDTHS = tuple(bits for bits in (128, 256, 512) if bits <= preferred_bits())
_FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)


@cache
def loaded(kind: str, bits: int) -> LoadedModule:
    text = top_k_definition(kind).replace("internal void @library.topk", "void @library.topk")
    code = compile_object(f"{text}\nattributes #2 = {{ nounwind }}\n", vector_bits=bits)
    return load_object(code, {}, export=f"library.topk_{kind}")


def rows(kind: str, n: int) -> Array:
    """Rows of few distinct numbers, of many, rising and falling ones; of floats one with NaN and both zeros, too."""
    rng, dtype = np.random.default_rng(n), np.dtype(f"{kind[0]}{item_size(kind)}")
    found = [rng.integers(0, 3, n), rng.integers(0, 100, n), np.arange(n) % 120, np.arange(n)[::-1] % 120]
    if kind.startswith("f"):
        found.append(rng.choice([0.0, -0.0, np.nan, 1.0, -np.inf, np.inf], n))
    return np.array(found).astype(dtype)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_greatest_of_rows_and_their_places(kind: str, bits: int) -> None:
    for n, k in ((1, 1), (9, 9), (64, 3), (200, 16), (333, 1), (333, 7)):
        x = rows(kind, n)
        values, places = np.zeros((len(x), k), x.dtype), np.zeros((len(x), k), np.int32)
        call = _FUNCTION(loaded(kind, bits).address(f"library.topk_{kind}"))
        call(x.ctypes.data, values.ctypes.data, places.ctypes.data, len(x), n, k)
        order = n - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1][:, :k]
        np.testing.assert_array_equal(places, order)
        assert values.tobytes() == np.take_along_axis(x, order, axis=1).tobytes()
