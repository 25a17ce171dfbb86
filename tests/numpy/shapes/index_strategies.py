"""Hypothesis strategies for indexing: shapes, arrays, and indices that NumPy takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple)


def counted(shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """1, 2, 3, ... in a shape."""
    return (np.arange(int(np.prod(shape))) + 1).astype(dtype).reshape(shape)


def slices(size: int) -> st.SearchStrategy[slice]:
    bound = st.none() | st.integers(-size - 2, size + 2)
    return st.builds(slice, bound, bound, st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3]))


@st.composite
def basic(draw: Any, shape: tuple[int, ...]) -> Any:
    """Integers, slices, new axes and an ellipsis."""
    items: list[Any] = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        integer = n > 0 and draw(st.booleans())
        items.append(draw(st.integers(-n, n - 1)) if integer else draw(slices(n)))
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    if draw(st.booleans()):
        items.append(Ellipsis)
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


@st.composite
def advanced(draw: Any, shape: tuple[int, ...]) -> Any:
    """Any mixture of index arrays that broadcast together, masks, integers, slices, new axes and an ellipsis."""
    batch = draw(st.lists(st.integers(1, 3), min_size=0, max_size=2).map(tuple))
    items: list[Any] = []
    axis, count = 0, draw(st.integers(0, len(shape)))
    while axis < count:
        n = shape[axis]
        kind = draw(st.sampled_from(["array", "array", "integer", "slice", "mask"]))
        if kind == "array" and n:
            inner = tuple(draw(st.sampled_from([1, m])) for m in batch[draw(st.integers(0, len(batch))) :])
            flat = draw(st.lists(st.integers(-n, n - 1), min_size=int(np.prod(inner)), max_size=int(np.prod(inner))))
            array = np.asarray(flat, draw(st.sampled_from([np.int64, np.int32]))).reshape(inner)
            items.append(array)
        elif kind == "integer" and n:
            items.append(draw(st.integers(-n, n - 1)))
        elif kind == "mask" and not any(isinstance(i, np.ndarray) for i in items) and not batch:
            bits = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            items.append(np.asarray(bits, bool))
        else:
            items.append(draw(slices(n)))
        axis += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if draw(st.booleans()):
        items.append(Ellipsis)
    return tuple(items)


def on_tracer(index: Any, convert: Any) -> Any:
    """The index with its NumPy arrays converted."""
    if isinstance(index, tuple):
        return tuple(on_tracer(item, convert) for item in index)
    return convert(index) if isinstance(index, np.ndarray) else index
