"""Indices of every integer dtype at the ends of its range, on axes that are longer than narrow dtypes count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import lax
from tracer.errors import OutOfBoundsError

INTEGERS = [np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
SIZES = (5, 128, 300, 40_000)
WAYS: list[Callable[[Any], Any]] = [lambda f: f, tracer.jit]


def clamped(start: int, size: int, window: int) -> int:
    return min(max(start + size if start < 0 else start, 0), size - window)


def starts(dtype: np.dtype[Any], size: int) -> Any:
    limits = np.iinfo(dtype)
    return np.array(sorted({0, 3, limits.min, limits.max, min(limits.max, size - 1), max(limits.min, -size)}), dtype)


@pytest.mark.parametrize(("dtype", "size"), covering(INTEGERS, SIZES, least=12), ids=str)
def test_slices_at_any_start(dtype: np.dtype[Any], size: int) -> None:
    x, given = np.arange(float(size)), starts(dtype, size)
    expected = np.stack([x[clamped(int(s), size, 2) :][:2] for s in given])
    take = lambda s: lax.dynamic_slice(x, (s,), (2,))  # noqa: E731
    put = lambda s: lax.dynamic_update_slice(tnp.zeros(size), tnp.ones(2), (s,)) @ x  # noqa: E731
    for way in WAYS:
        np.testing.assert_array_equal(np.stack(list(map(way(take), given))), expected)
        np.testing.assert_array_equal(way(tracer.vmap(take))(given), expected)
        np.testing.assert_array_equal(way(tracer.vmap(put))(given), expected.sum(1))
    scanned = lax.scan(lambda c, s: (c, take(s)), 0, given)[1]
    np.testing.assert_array_equal(scanned, expected)


HUGE = np.array([2**64 - 1, 1], np.uint64)


@pytest.mark.parametrize("way", [*WAYS, tracer.vmap], ids=["eager", "jit", "vmap"])
@pytest.mark.parametrize("make", [np.asarray, tnp.asarray], ids=["NumPy's", "ours"])
def test_indices_beyond_i64_are_outside(way: Any, make: Any) -> None:
    x = tnp.arange(5.0)
    with pytest.raises(OutOfBoundsError):
        way(lambda i: x[i])(make(HUGE))
    with pytest.raises(OutOfBoundsError):
        way(lambda i: x.at[i].set(9.0))(make(HUGE))
    same = np.testing.assert_array_equal
    same(way(lambda i: x.at[i].get(mode="clip"))(make(HUGE)), [4.0, 1.0])
    same(way(lambda i: x.at[i].get(mode="fill"))(make(HUGE)), [np.nan, 1.0])
    same(way(lambda i: x.at[i].set(9.0, mode="drop").sum())(make(HUGE[:1])), 10.0)


def test_one_index_beyond_i64_is_outside() -> None:
    x = tnp.arange(5.0)
    for index in (HUGE[0], tnp.asarray(HUGE[0]), np.asarray(HUGE[0])):
        with pytest.raises(OutOfBoundsError):
            _ = x[index]
    with pytest.raises(OutOfBoundsError):
        tracer.jit(lambda i: x[i])(HUGE[0])
