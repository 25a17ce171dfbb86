"""Sliding windows beside NumPy's: over one axis and several, traced and differentiated, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.errors import ArgumentError, ShapeError

V = np.asarray([3.0, 1.0, 2.0, 2.0, -1.0])
B = np.arange(24).reshape(2, 3, 4) % 7


@pytest.mark.parametrize(
    ("x", "shape", "axis"),
    [(V, 2, None), (V, 5, None), (V, 0, None), (B, (2, 3), (0, -1)), (B, (1, 2, 4), None), (B, (2, 2), (1, 1))],
    ids=str,
)
def test_windows_are_numpys(x: Any, shape: Any, axis: Any) -> None:
    expected = np.lib.stride_tricks.sliding_window_view(x, shape, axis)
    windows = lambda x: tnp.lib.stride_tricks.sliding_window_view(x, shape, axis)  # noqa: E731
    for found in (windows(tnp.asarray(x)), tracer.jit(windows)(x)):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, strict=True)


def test_windows_are_traced_and_differentiated() -> None:
    def total(x: Any) -> Any:
        return (np.lib.stride_tricks.sliding_window_view(x, 3).max(-1) * np.arange(3.0)).sum()

    assert tracer.jit(tracer.grad(total))(V).tolist() == [0.0, 0.0, 1.5, 1.5, 0.0]
    with pytest.raises(AttributeError, match="arrays have no strides"):
        _ = tnp.lib.stride_tricks.as_strided


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"window_shape": 6}, ShapeError, "a window of 6 does not fit an axis of 5"),
        ({"window_shape": (1, 2)}, ShapeError, "one size for each axis"),
        ({"window_shape": 2, "writeable": True}, ArgumentError, "windows are copies"),
    ],
    ids=["too long", "too many", "writeable"],
)
def test_what_numpy_refuses_is_refused(arguments: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=f"^sliding_window_view at .*: {text}"):
        tnp.lib.stride_tricks.sliding_window_view(tnp.asarray(V), **arguments)
