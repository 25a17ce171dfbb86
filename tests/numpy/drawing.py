"""Hypothesis strategies for NumPy arrays that are awkward on purpose.

Zero-size axes, no axes, NaN, infinities, signed zeros, the extremes of integers; and in memory: reversed, with gaps,
transposed, byte-swapped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

GROUPS = {
    "b": ("bool",), "i": ("int8", "int32", "int64", "uint8", "uint64"), "f": ("float32", "float64"),
    "c": ("complex64", "complex128"),
}  # fmt: skip
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, np.inf, -np.inf, np.nan)
Strategy = st.SearchStrategy[Any]


def dtypes_of(kinds: str) -> tuple[str, ...]:
    return tuple(dtype for kind in kinds for dtype in GROUPS[kind])


def elements(dtype: Any, tame: bool) -> Strategy:
    """Numbers of a dtype; the tame ones are small and finite, so that no order of adding them matters much."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if not tame else (max(-5, np.iinfo(dtype).min), 5)
        return st.integers(int(low), int(high))
    if dtype.kind == "c":
        part = elements("float32" if dtype.itemsize == 8 else "float64", tame)
        return st.builds(complex, part, part)
    width = 8 * dtype.itemsize
    if tame:
        return st.integers(-64, 64).map(lambda i: i / 16)
    return st.sampled_from(SPECIAL) | st.floats(width=width) | st.floats(-8, 8, width=min(width, 32))


def laid_out(x: Any, layout: str) -> Any:
    """The same array otherwise in memory."""
    if layout == "reversed":
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1] if x.ndim else x
    if layout == "gaps":
        wide = np.repeat(x, 2, axis=-1) if x.ndim else x
        return wide[..., ::2] if x.ndim else x
    if layout == "transposed":
        return np.ascontiguousarray(x.T).T
    if layout == "swapped":
        return x.astype(x.dtype.newbyteorder())
    return x


LAYOUTS = ("plain", "reversed", "gaps", "transposed", "swapped")


@st.composite
def arrays(draw: Any, kinds: str = "bifc", shape: Any = SHAPES, *, tame: bool = False, dtype: Any = None) -> Any:
    """An array of a dtype of some kinds: b, i, f, c."""
    chosen = np.dtype(draw(st.sampled_from(dtypes_of(kinds))) if dtype is None else dtype)
    sizes = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    made = draw(hnp.arrays(chosen, sizes, elements=elements(chosen, tame)))
    return laid_out(made, draw(st.sampled_from(LAYOUTS)))


@st.composite
def pairs(draw: Any, kinds: str = "bifc", count: int = 2, *, tame: bool = False) -> Any:
    """Arrays of one dtype whose shapes broadcast together."""
    dtype = draw(st.sampled_from(dtypes_of(kinds)))
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, min_side=0, max_side=3))
    return tuple(draw(arrays(shape=sizes, tame=tame, dtype=dtype)) for sizes in shapes.input_shapes)


def axis_for(x: Any, *, none: bool = True) -> Strategy:
    """An axis of an array, now and then one that it has not."""
    if not x.ndim:  # NumPy lets these have an axis 0 for reductions, the array API does not
        return st.none() if none else st.just(5)
    inside = st.integers(-x.ndim, x.ndim - 1)
    return (st.none() | inside | inside | st.just(5)) if none else (inside | inside | st.just(5))
