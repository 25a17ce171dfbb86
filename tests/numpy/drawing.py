"""Hypothesis strategies for NumPy arrays that are awkward on purpose.

Zero-size axes, no axes, NaN, infinities, signed zeros, the extremes of integers; and in memory: reversed, with gaps,
transposed, byte-swapped. Within `all_drawn_as` every array that can be is of one such manner.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


MANNERS = ("any", "nan", "infinite", "zeros", "extreme", "empty", "0-d", "reversed", "gaps", "swapped")


class _Manner:
    now = "any"


_manner = _Manner()


@contextmanager
def all_drawn_as(manner: str) -> Iterator[None]:
    """What is drawn within has special elements, another shape or another layout, where that can be."""
    _manner.now = manner
    try:
        yield
    finally:
        _manner.now = "any"


def _of_manner(kinds: str) -> str:
    """Those of some kinds of dtypes that can have the elements of the manner in which all is drawn."""
    wanted = {"nan": "f", "infinite": "f", "zeros": "f", "extreme": "if"}.get(_manner.now, kinds)
    return "".join(kind for kind in kinds if kind in wanted) or kinds


def _special(dtype: Any, tame: bool) -> tuple[Any, ...]:
    """The elements of the manner in which all is drawn. The tame are those whose sums have no order to depend on."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return (limits.max, limits.min) if _manner.now == "extreme" and not tame else ()
    if dtype.kind == "b" or (dtype.kind == "c" and tame):
        return ()
    floats = np.finfo(dtype)
    found: dict[str, tuple[Any, ...]] = {
        "nan": (np.nan,), "infinite": (np.inf, -np.inf), "zeros": (-0.0, floats.smallest_subnormal, 0.0),
        "extreme": () if tame else (floats.max, floats.min, floats.tiny),
    }  # fmt: skip
    return found.get(_manner.now, ())


def _with_elements(draw: Any, x: Any, tame: bool) -> Any:
    """The array with some elements of the manner in which all is drawn."""
    values = _special(x.dtype, tame)
    if values and x.size:
        number = min(len(values), x.size)
        places = draw(st.lists(st.integers(0, x.size - 1), min_size=number, max_size=number, unique=True))
        x.reshape(-1)[places] = values[:number]
    return x


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


_PAIRED = {
    "empty": [((0,), (1,), ()), ((2, 0), (0,), (2, 1)), ((1, 0), (3, 1), (1,))],
    "0-d": [((), (), ()), ((), (3,), ()), ((2, 1), (), ())],
}
LAYOUTS = ("plain", "reversed", "gaps", "transposed", "swapped")


@st.composite
def arrays(draw: Any, kinds: str = "bifc", shape: Any = SHAPES, *, tame: bool = False, dtype: Any = None) -> Any:
    """An array of a dtype of some kinds: b, i, f, c."""
    chosen = np.dtype(draw(st.sampled_from(dtypes_of(_of_manner(kinds)))) if dtype is None else dtype)
    if isinstance(shape, st.SearchStrategy):
        if _manner.now == "empty":
            shape = shape.filter(lambda sizes: 0 in sizes)
        elif _manner.now == "0-d" and shape is SHAPES:
            shape = st.just(())
    sizes = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    made = _with_elements(draw, draw(hnp.arrays(chosen, sizes, elements=elements(chosen, tame))), tame)
    return laid_out(made, _manner.now if _manner.now in LAYOUTS else draw(st.sampled_from(LAYOUTS)))


@st.composite
def pairs(draw: Any, kinds: str = "bifc", count: int = 2, *, tame: bool = False) -> Any:
    """Arrays of one dtype whose shapes broadcast together."""
    dtype = draw(st.sampled_from(dtypes_of(_of_manner(kinds))))
    if _manner.now in _PAIRED:
        shapes = draw(st.sampled_from(_PAIRED[_manner.now]))[:count]
    else:
        broadcastable = hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, min_side=0, max_side=3)
        shapes = draw(broadcastable).input_shapes
    return tuple(draw(arrays(shape=sizes, tame=tame, dtype=dtype)) for sizes in shapes)


def axis_for(x: Any, *, none: bool = True) -> Strategy:
    """An axis of an array, now and then one that it has not."""
    if not x.ndim:  # NumPy lets these have an axis 0 for reductions, the array API does not
        return st.none() if none else st.just(5)
    inside = st.integers(-x.ndim, x.ndim - 1)
    return (st.none() | inside | inside | st.just(5)) if none else (inside | inside | st.just(5))
