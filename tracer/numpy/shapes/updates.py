"""Updates, `x.at[i]` and `x[i] = v`: copies of an array with elements written, added to, multiplied, ...

Slices of trace-time constants become a `dynamic_update_slice`, all other indices a scatter.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import DTypeError, ShapeError, TracerArrayError, message
from tracer.ir import dtypes, shape
from tracer.numpy.core.conversion import array_of, broadcast, cast
from tracer.numpy.core.promotion import literal
from tracer.numpy.elementwise import arithmetic
from tracer.numpy.shapes.index_parts import CHECKED, Index, Taken, resolve
from tracer.numpy.shapes.indexing import counted, get, index_vectors, resolve_mode, take_slices
from tracer.primitives.arrays import dynamic_slice as primitives
from tracer.primitives.arrays.indexing.dimension_numbers import GatherScatterMode, ScatterDimensionNumbers
from tracer.primitives.base.shapes import reshape, rev, transpose
from tracer.primitives.control.scatter_mul import scatter_mul
from tracer.primitives.elementwise import comparison
from tracer.runtime.eager.call_cache import cached, static
from tracer.trace.array import KEY_DTYPE, Array, concrete_value
from tracer.trace.source import here


@static
class Update(NamedTuple):
    """Combination of old and new values. combine: at distinct indices. scatter: at indices that may repeat.

    name: of the method, in errors. numpys: NumPy's function with equal bits. overwrites: whether old values are unused.
    """

    name: str
    combine: Callable[[Array, Array], Array]
    scatter: Callable[..., Any]
    numpys: np.ufunc | None = None
    overwrites: bool = False


SET = Update("x.at[i].set", lambda old, new: new, primitives.scatter, overwrites=True)
ADD = Update("x.at[i].add", arithmetic.add, primitives.scatter_add, np.add)
SUBTRACT = ADD._replace(name="x.at[i].subtract")  # takes negated values
MULTIPLY = Update("x.at[i].multiply", arithmetic.multiply, scatter_mul, np.multiply)
MIN = Update("x.at[i].min", arithmetic.minimum, primitives.scatter_min)
MAX = Update("x.at[i].max", arithmetic.maximum, primitives.scatter_max)
ASSIGN = SET._replace(name="x[i] = v")


@partial(cached, named=False)
def updated(
    x: Array, index: Any, value: Any, how: Update, *, mode: Any = None, unique_indices: bool = False, wrap: bool = True
) -> Array:
    """Return a copy of the array with the elements at an index updated. wrap: negative indices count from the end."""
    v = value_for(x, value, how)
    mask = _mask(index)
    if mask is not None and mask.shape == x.shape[: mask.ndim]:
        if _fills(v, x, mask):
            return _masked(x, mask, v, how)
        _require_known(mask, v, how)
    given, chosen = resolve_mode(mode, x.shape, index, GatherScatterMode.FILL_OR_DROP, wrap)
    resolved = resolve(x.shape, index, chosen, wrap)
    v = _fitted(v, resolved, how)
    nowhere = chosen is GatherScatterMode.FILL_OR_DROP and any(
        resolved.shape[axis] == 0 for axis, _, _ in resolved.arrays
    )
    if not v.size or nowhere:
        return x
    if resolved.shape != x.shape:
        opened = reshape(x, resolved.shape)
        wide = _scattered(opened, resolved, v, how, chosen, unique_indices, wrap=wrap, modulo=given == "wrap")
        return reshape(wide, x.shape)
    if not resolved.arrays and all(abs(t.step) == 1 or t.size == 1 for t in resolved.taken):
        return _in_slices(x, resolved, v, how)
    return _scattered(x, resolved, v, how, chosen, unique_indices, wrap=wrap, modulo=given == "wrap")


def value_for(x: Array, value: Any, how: Update) -> Array:
    """Return a value in the array's dtype. Raises DTypeError for complex values of a real array, and overflow."""
    if type(value) is int and dtypes.is_integer(x.dtype):
        literal(how.name, value, x.dtype)  # raises on overflow
    v = array_of(how.name, value)
    if x.dtype is KEY_DTYPE or v.dtype is KEY_DTYPE:
        return v
    if dtypes.is_complex(v.dtype) and not dtypes.is_complex(x.dtype):
        raise DTypeError(
            message(
                f"{how.name}{here()}: complex values do not fit into a real array",
                f"got {v.type} for {x.type}",
                help="take their real part, or start from a complex array",
            )
        )
    return cast(v, x.dtype)


def _fitted(v: Array, index: Index, how: Update) -> Array:
    """Return the value broadcast to the index's result, without extra leading axes of size 1, as in NumPy.

    Raises ShapeError.
    """
    sizes = index.result
    extra = v.ndim - len(sizes)
    if extra > 0 and all(n == 1 for n in v.shape[:extra]):
        v = reshape(v, v.shape[extra:])
    pairs = zip(reversed(v.shape), reversed(sizes), strict=False)
    if v.ndim > len(sizes) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(
            message(
                f"{how.name}{here()}: the values must broadcast to the shape that the index takes",
                f"got {v.type} for {shape.show(sizes)}",
                help="slice or reshape the values, or take other places",
            )
        )
    return broadcast(v, sizes)


# Masks


def _mask(index: Any) -> Array | None:
    """Return the mask if it is the whole index, else None."""
    if isinstance(index, tuple) and len(index) == 1:
        index = index[0]
    if isinstance(index, Array | np.ndarray) and index.dtype == dtypes.BOOL:
        return array_of("indexing", index)
    return None


def _fills(v: Array, x: Array, mask: Array) -> bool:
    """Whether every true element of the mask gets equal values."""
    trailing = x.ndim - mask.ndim
    return v.ndim <= trailing or (v.ndim == trailing + 1 and v.shape[0] == 1 and concrete_value(mask) is None)


def _require_known(mask: Array, v: Array, how: Update) -> None:
    """Raise TracerArrayError for a traced mask, since one value for each true element needs the mask's values."""
    if concrete_value(mask) is None:
        raise TracerArrayError(
            message(
                f"{how.name}{here()}: one value for each true place of a mask needs the mask's values",
                f"got {v.type} for a mask {mask.type}, known only when the compiled program runs",
                help="tnp.where(mask, values, x), with values of x's shape; or write one value to all places",
            )
        )


def _masked(x: Array, mask: Array, v: Array, how: Update) -> Array:
    sizes = x.shape[mask.ndim :]
    if v.ndim > len(sizes):
        v = reshape(v, v.shape[1:])
    if shape.broadcast(v.shape, sizes, operation=f"{how.name}{here()}") != sizes:
        raise ShapeError(
            message(f"{how.name}{here()}: the values do not broadcast", f"got {v.type} for {shape.show(sizes)}")
        )
    wide = broadcast(reshape(mask, (*mask.shape, *[1] * len(sizes))), x.shape)
    return comparison.select(wide, how.combine(x, broadcast(v, x.shape)), x)


# Slices


def _in_slices(x: Array, index: Index, v: Array, how: Update) -> Array:
    """Return x with a slice updated, after the values are in the order of its axes, ascending."""
    v = reshape(v, tuple(t.size for t in index.taken))
    v = rev(v, [axis for axis, t in enumerate(index.taken) if t.step < 0 and t.size > 1])
    ascending = Index(
        x.shape, tuple(Taken(t.bounds[0], t.size, 1) for t in index.taken), (), (), (), (), 0
    )  # fmt: skip
    if not how.overwrites:
        v = cast(how.combine(take_slices(x, ascending), v), x.dtype)
    if v.shape == x.shape:
        return v
    return primitives.dynamic_update_slice(x, v, [t.start for t in ascending.taken])


# Scatters


def _scattered(
    x: Array, index: Index, v: Array, how: Update, mode: GatherScatterMode, unique: bool, *, wrap: bool, modulo: bool
) -> Array:
    """Return x with a scatter.

    Axes with slices of step 1 are windows; all other axes are components of the index vectors.
    """
    by_axis = {axis: places for axis, _, places in index.arrays}
    strided = [a for a, t in enumerate(index.taken) if abs(t.step) != 1 and t.size != 1]
    windows = [a for a in range(x.ndim) if a not in by_axis and a not in strided and a not in index.dropped]
    _check_not_empty(x, by_axis)
    if mode is CHECKED and not wrap:
        by_axis = {axis: places for axis, _, places in counted(index).arrays}
    v = _arranged(v, index, strided, windows)
    lead = len(index.batch)
    batch = (*index.batch, *(index.taken[a].size for a in strided))
    components: dict[int, Any] = {}
    for axis, places in by_axis.items():
        components[axis] = _followed(places, len(strided))
    for place, axis in enumerate(strided):
        start, limit, step = index.taken[axis].bounds
        inner = [1] * len(batch)
        inner[lead + place] = batch[lead + place]
        components[axis] = np.arange(start, limit, step).reshape(inner)
    for axis, taken in enumerate(index.taken):
        if axis in index.dropped or (axis in windows and taken.size != x.shape[axis]):
            components[axis] = np.asarray(taken.bounds[0])
    mapped = sorted(components)
    known = all(isinstance(components[a], np.ndarray) for a in mapped)
    if mode is CHECKED and (known or not wrap):
        mode = GatherScatterMode.PROMISE_IN_BOUNDS if known else GatherScatterMode.CLIP
    vectors = index_vectors([components[a] for a in mapped], [x.shape[a] for a in mapped], batch, wrap, modulo)
    numbers = ScatterDimensionNumbers(
        tuple(range(len(batch), v.ndim)), tuple(a for a in mapped if a not in windows), tuple(mapped),
        reported_axes=tuple(mapped),
    )  # fmt: skip
    return how.scatter(x, vectors, v, numbers, mode=mode, unique_indices=unique or not by_axis)


def _check_not_empty(x: Array, by_axis: dict[int, Any]) -> None:
    if any(x.shape[axis] == 0 for axis in by_axis):
        get(x, np.zeros(1, np.int64))  # raises


def _followed(places: Any, count: int) -> Any:
    """Return an index array with `count` trailing axes of size 1, for the strided slices."""
    sizes = (*places.shape, *[1] * count)
    return places.reshape(sizes) if isinstance(places, np.ndarray) else reshape(places, sizes)


def _arranged(v: Array, index: Index, strided: list[int], windows: list[int]) -> Array:
    """Return the values with axes (batch, strided slices, windows), windows in the order of x, all ascending."""
    gathered = {place for _, place, _ in index.arrays}
    where: dict[int, int] = {}  # from every remaining axis of x to its axis of v
    axis = 0
    remaining = [a for a in range(len(index.taken)) if a not in index.dropped]
    batch = list(range(index.place, index.place + len(index.batch)))
    free = iter(d for d in range(v.ndim) if d not in batch)
    for left in range(len(index.left)):
        if left in gathered:
            axis += 1
        elif left in index.new:
            next(free)
        else:
            where[remaining[axis]] = next(free)
            axis += 1
    order = [*batch, *(where[a] for a in strided), *(where[a] for a in windows)]
    new = [d for d in range(v.ndim) if d not in order]
    v = transpose(v, [*new, *order])
    v = reshape(v, v.shape[len(new) :])
    places = [len(batch) + i for i, a in enumerate([*strided, *windows]) if index.taken[a].step < 0]
    return rev(v, places)
