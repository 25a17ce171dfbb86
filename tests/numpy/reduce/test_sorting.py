"""Sorting of no elements and of one, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import grad, jit


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 2), (2, 0), (1, 3)])
@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("function", [tnp.sort, tnp.argsort])
def test_a_descending_sort_takes_thin_shapes(function: Any, axis: int | None, shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)

    def descending(x: Any) -> Any:
        return function(x, axis=axis, descending=True)

    expected = getattr(np, function.__name__)(-x, axis=axis)
    expected = -expected if function is tnp.sort else expected
    for way in (descending, jit(descending)):
        np.testing.assert_array_equal(way(x), expected)
    if function is tnp.sort:
        for gradient in (grad(lambda x: descending(x).sum()), jit(grad(lambda x: descending(x).sum()))):
            np.testing.assert_array_equal(gradient(x), np.ones(shape))
