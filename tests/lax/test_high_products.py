"""The high halves of products are those of Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

import tracer
from tracer import lax
from tracer.errors import DTypeError


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_high_halves_are_those_of_python_s_integers(dtype: str) -> None:
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    drawn = rng.integers(limits.min, limits.max, 40, dtype=dtype, endpoint=True)
    x = np.concatenate([drawn, np.array([limits.min, limits.max, 0, 1, limits.max // 2], dtype)])
    a, b = np.repeat(x, x.size), np.tile(x, x.size)
    wanted = [(int(p) * int(q)) >> limits.bits for p, q in zip(a, b, strict=True)]
    assert np.asarray(lax.mulhi(a, b)).tolist() == wanted
    assert np.asarray(tracer.jit(lax.mulhi)(a, b)).tolist() == wanted


def test_two_dtypes_are_refused() -> None:
    with pytest.raises(DTypeError, match="takes integers of one dtype"):
        lax.mulhi(np.ones(2, "int32"), np.ones(2, "int64"))
