"""Arrays made from NumPy's: large copies lie where results do, at the beginning of pages, and are NumPy's otherwise."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import tracer
import tracer.numpy as tnp
from tracer.runtime.native import capi
from tracer.runtime.native.result_pool import LARGE_BYTES
from tracer.runtime.values.copying import copied

pytestmark = pytest.mark.skipif(capi.why_not() is not None, reason="the ABI of this Python is not known")

LARGE = np.arange(LARGE_BYTES // 8, dtype=np.float64)


def test_large_copies_begin_a_page() -> None:
    for value in (LARGE, LARGE.reshape(2, -1).T, LARGE.astype(">f8")):
        array = tnp.asarray(value, dtype=np.float64)
        held = np.asarray(array)
        assert held.ctypes.data % 4096 == 0
        assert not np.shares_memory(held, value)
        np.testing.assert_array_equal(held, np.asarray(value, np.float64))


def test_only_large_copies_are_in_our_memory() -> None:
    names = [get_handler_name(copied(x, x.dtype)) for x in (LARGE, LARGE[:-1])]
    assert names == ["tracer", "default_allocator"]
    assert get_handler_name(np.zeros(LARGE_BYTES)) == "default_allocator"
    assert copied(LARGE, LARGE.dtype).flags.owndata


def test_a_copy_that_fails_leaves_the_allocator_as_it_was() -> None:
    before = get_handler_name()
    with pytest.raises(ValueError, match="could not convert"):
        copied(np.asarray(["a" * 64] * LARGE_BYTES), np.dtype(np.float64))
    assert get_handler_name() == before


def test_copies_in_threads() -> None:
    found: list[bool] = []

    def run() -> None:
        arrays = [tnp.asarray(LARGE + n) for n in range(20)]
        found.append(all(float(a[1]) == n + 1 for n, a in enumerate(arrays)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_a_copy_that_is_donated_gives_its_memory() -> None:
    x = tnp.asarray(LARGE)
    place = np.asarray(x).ctypes.data
    y = tracer.jit(lambda x: x.at[0].set(7.0), donate_argnums=0)(x)
    assert np.asarray(y).ctypes.data == place
