"""`x.at[i]` and `x[i] = v`: copies of an array with elements written, added to, multiplied, ...

Slices known while tracing are updated in place of a slice; everything else is a scatter.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracer.errors import DTypeError, ShapeError, message
from tracer.ir import dtypes, shape
from tracer.lazy import LazyModule
from tracer.numpy import arithmetic
from tracer.numpy.conversion import array_of, broadcast, cast
from tracer.numpy.elements import written
from tracer.numpy.indexing import CHECKED, Index, Taken, get, index_vectors, resolve, resolve_mode, take_slices
from tracer.numpy.powers import power
from tracer.numpy.promotion import literal
from tracer.primitives import comparison
from tracer.primitives import slicing as primitives
from tracer.primitives.broadcasting import full_like
from tracer.primitives.shapes import reshape, rev, transpose
from tracer.primitives.windows import GatherScatterMode, ScatterDimensionNumbers
from tracer.runtime.replay import replayed, static
from tracer.trace.array import KEY_DTYPE, Array, concrete_value
from tracer.trace.source import here

if TYPE_CHECKING:
    from tracer.numpy import applying
else:
    applying = LazyModule("tracer.numpy.applying")


@static
class Update(NamedTuple):
    """How old and new values make one: at separate places, and where several meet. numpys: NumPy's, to the bit."""

    combine: Callable[[Array, Array], Array]
    scatter: Callable[..., Any]
    numpys: np.ufunc | None = None


SET = Update(lambda old, new: new, primitives.scatter)
ADD = Update(arithmetic.add, primitives.scatter_add, np.add)
MULTIPLY = Update(arithmetic.multiply, primitives.scatter_mul, np.multiply)
MIN = Update(arithmetic.minimum, primitives.scatter_min)
MAX = Update(arithmetic.maximum, primitives.scatter_max)


@partial(replayed, named=False)
def updated(x: Array, index: Any, value: Any, how: Update, *, mode: Any = None, unique_indices: bool = False) -> Array:
    """A copy of the array with the elements at an index updated."""
    v = _value(x, value)
    mask = _mask(index)
    if mask is not None and mask.shape == x.shape[: mask.ndim] and _fills(v, x, mask):
        return _masked(x, mask, v, how)
    given, chosen = resolve_mode(mode)
    resolved = resolve(x.shape, index, chosen)
    v = _fitted(v, resolved)
    if not v.size:
        return x
    if resolved.shape != x.shape:
        wide = _scattered(reshape(x, resolved.shape), resolved, v, how, chosen, unique_indices, modulo=given == "wrap")
        return reshape(wide, x.shape)
    if not resolved.arrays and all(abs(t.step) == 1 or t.size == 1 for t in resolved.taken):
        return _in_slices(x, resolved, v, how)
    return _scattered(x, resolved, v, how, chosen, unique_indices, modulo=given == "wrap")


def _value(x: Array, value: Any) -> Array:
    if type(value) is int and dtypes.is_integer(x.dtype):
        literal("x.at[i]", value, x.dtype)  # raises where it does not fit
    v = array_of("x.at[i]", value)
    if x.dtype is KEY_DTYPE or v.dtype is KEY_DTYPE:
        return v
    if dtypes.is_complex(v.dtype) and not dtypes.is_complex(x.dtype):
        raise DTypeError(
            message(
                f"x.at[i]{here()}: complex values do not fit into a real array",
                f"got {v.type} for {x.type}",
                help="take their real part, or start from a complex array",
            )
        )
    return cast(v, x.dtype)


def _fitted(v: Array, index: Index) -> Array:
    """The value broadcast to what the index takes; leading axes of size 1 may be too many, as in NumPy."""
    sizes = index.result
    extra = v.ndim - len(sizes)
    if extra > 0 and all(n == 1 for n in v.shape[:extra]):
        v = reshape(v, v.shape[extra:])
    pairs = zip(reversed(v.shape), reversed(sizes), strict=False)
    if v.ndim > len(sizes) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(
            message(
                f"x.at[i]{here()}: the values must broadcast to what the index takes",
                f"got {v.type} for {shape.show(sizes)}",
                help="slice or reshape the values, or take other places",
            )
        )
    return broadcast(v, sizes)


# Masks


def _mask(index: Any) -> Array | None:
    """A mask that is the whole index."""
    if isinstance(index, tuple) and len(index) == 1:
        index = index[0]
    if isinstance(index, Array | np.ndarray) and index.dtype == dtypes.BOOL:
        return array_of("indexing", index)
    return None


def _fills(v: Array, x: Array, mask: Array) -> bool:
    """Whether the same values go to every true place."""
    trailing = x.ndim - mask.ndim
    return v.ndim <= trailing or (v.ndim == trailing + 1 and v.shape[0] == 1 and concrete_value(mask) is None)


def _masked(x: Array, mask: Array, v: Array, how: Update) -> Array:
    sizes = x.shape[mask.ndim :]
    if v.ndim > len(sizes):
        v = reshape(v, v.shape[1:])
    if shape.broadcast(v.shape, sizes, operation=f"x.at[mask]{here()}") != sizes:
        raise ShapeError(
            message(f"x.at[mask]{here()}: the values do not broadcast", f"got {v.type} for {shape.show(sizes)}")
        )
    wide = broadcast(reshape(mask, (*mask.shape, *[1] * len(sizes))), x.shape)
    return comparison.select(wide, how.combine(x, broadcast(v, x.shape)), x)


# Slices


def _in_slices(x: Array, index: Index, v: Array, how: Update) -> Array:
    """Axes in the order of x, and ascending; then one update of a slice."""
    v = reshape(v, tuple(t.size for t in index.taken))
    v = rev(v, [axis for axis, t in enumerate(index.taken) if t.step < 0 and t.size > 1])
    ascending = Index(
        x.shape, tuple(Taken(t.bounds[0], t.size, 1) for t in index.taken), (), (), (), (), 0
    )  # fmt: skip
    if how is not SET:
        v = cast(how.combine(take_slices(x, ascending), v), x.dtype)
    if v.shape == x.shape:
        return v
    return primitives.dynamic_update_slice(x, v, [t.start for t in ascending.taken])


# Scatters


def _scattered(
    x: Array, index: Index, v: Array, how: Update, mode: GatherScatterMode, unique: bool, *, modulo: bool
) -> Array:
    """Axes are windows where a slice takes neighbours; all others are components of the index vectors."""
    by_axis = {axis: places for axis, _, places in index.arrays}
    strided = [a for a, t in enumerate(index.taken) if abs(t.step) != 1 and t.size != 1]
    windows = [a for a in range(x.ndim) if a not in by_axis and a not in strided and a not in index.dropped]
    _check_not_empty(x, index, by_axis)
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
    if mode is CHECKED and known:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    vectors = index_vectors([components[a] for a in mapped], [x.shape[a] for a in mapped], batch, True, modulo)
    numbers = ScatterDimensionNumbers(
        tuple(range(len(batch), v.ndim)), tuple(a for a in mapped if a not in windows), tuple(mapped),
        reported_axes=tuple(mapped),
    )  # fmt: skip
    return how.scatter(x, vectors, v, numbers, mode=mode, unique_indices=unique or not by_axis)


def _check_not_empty(x: Array, index: Index, by_axis: dict[int, Any]) -> None:
    if any(x.shape[axis] == 0 for axis in by_axis):
        get(x, np.zeros(1, np.int64))  # raises


def _followed(places: Any, count: int) -> Any:
    """Index arrays with axes of size 1 behind, for the strided slices."""
    sizes = (*places.shape, *[1] * count)
    return places.reshape(sizes) if isinstance(places, np.ndarray) else reshape(places, sizes)


def _arranged(v: Array, index: Index, strided: list[int], windows: list[int]) -> Array:
    """The values with the axes (batch, strided slices, windows), the windows in the order of x, all ascending."""
    gathered = {place for _, place, _ in index.arrays}
    where: dict[int, int] = {}  # the place in v of every axis of x that is left
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


# x.at


_taken = replayed(get, named=False)


class At:
    """`x.at`: index it, then say what to do there. The array itself stays as it is.

    >>> tnp.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], f64)
    """

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> AtIndex:
        return AtIndex(self._array, index)

    def __repr__(self) -> str:
        return f"At({self._array!r})"


class AtIndex:
    """`x.at[i]`: the methods return a copy of x with the elements at i changed; `get` takes them.

    mode: what happens to indices out of bounds: an error (None), "clip", "wrap", "fill" or "drop" (writes nothing),
    "promise_in_bounds". unique_indices: a promise that no place is named twice. Sortedness is a hint without effect.
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Array, index: Any) -> None:
        self._array, self._index = array, index

    def __repr__(self) -> str:
        return f"AtIndex({self._array!r}, {self._index!r})"

    def _updated(self, values: Any, how: Update, mode: Any, unique_indices: bool) -> Array:
        if mode is None and not unique_indices:
            known = written(self._array, self._index, values, how.numpys) if how.numpys or how is SET else None
            return updated(self._array, self._index, values, how) if known is None else known
        return updated(self._array, self._index, values, how, mode=mode, unique_indices=unique_indices)

    def get(
        self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        fill_value: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """x[i], with `mode`; `fill_value` stands for what is out of bounds in mode "fill", NaN by default.

        >>> tnp.arange(3).at[5].get(mode="fill", fill_value=-1)
        Array(-1, i64)
        """
        del indices_are_sorted
        return _taken(
            self._array, self._index, mode=mode, fill_value=fill_value, unique_indices=unique_indices,
            wrap=wrap_negative_indices,
        )  # fmt: skip

    def set(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with values written at i; of places named twice, the last one stays.

        >>> tnp.zeros(3).at[1].set(7.0)
        Array([0., 7., 0.], f64)
        """
        del indices_are_sorted
        return self._updated(values, SET, mode, unique_indices)

    def add(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with values added at i, all of them at places named more than once.

        >>> tnp.zeros(3).at[tnp.asarray([1, 1])].add(1.0)
        Array([0., 2., 0.], f64)
        """
        del indices_are_sorted
        return self._updated(values, ADD, mode, unique_indices)

    def subtract(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with values subtracted at i.

        >>> tnp.ones(3).at[1:].subtract(1.0)
        Array([1., 0., 0.], f64)
        """
        del indices_are_sorted
        negated = arithmetic.negative(_value(self._array, values))
        return updated(self._array, self._index, negated, ADD, mode=mode, unique_indices=unique_indices)

    def multiply(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with the elements at i multiplied by values.

        >>> tnp.ones(3).at[:2].multiply(4.0)
        Array([4., 4., 1.], f64)
        """
        del indices_are_sorted
        return self._updated(values, MULTIPLY, mode, unique_indices)

    mul = multiply

    def divide(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with the elements at i divided by values; a float array, as of any division.

        >>> tnp.ones(3).at[0].divide(4.0)
        Array([0.25, 1.  , 1.  ], f64)
        """
        del indices_are_sorted
        return arithmetic.divide(self._array, self._factors(values, mode, unique_indices))

    def power(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with the elements at i raised to powers.

        >>> tnp.arange(3).at[1:].power(2)
        Array([0, 1, 4], i64)
        """
        del indices_are_sorted
        return power(self._array, self._factors(values, mode, unique_indices))

    def _factors(self, values: Any, mode: Any, unique_indices: bool) -> Array:
        """Ones, multiplied by the values at i."""
        ones = full_like(self._array, 1)
        return updated(ones, self._index, values, MULTIPLY, mode=mode, unique_indices=unique_indices)

    def min(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with the lesser of elements and values at i.

        >>> tnp.arange(3).at[:].min(1)
        Array([0, 1, 1], i64)
        """
        del indices_are_sorted
        return self._updated(values, MIN, mode, unique_indices)

    def max(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with the greater of elements and values at i.

        >>> tnp.arange(3).at[:].max(1)
        Array([1, 1, 2], i64)
        """
        del indices_are_sorted
        return self._updated(values, MAX, mode, unique_indices)

    def apply(
        self, func: Callable[[Array], Any], *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None,
    ) -> Array:  # fmt: skip
        """A copy with a function of elements applied to those at i, as often as i names them.

        func: of an array, element by element; what it returns is cast to the array's dtype.

        >>> tnp.arange(3).at[1:].apply(lambda v: 10 * v)
        Array([ 0, 10, 20], i64)
        >>> tnp.arange(3).at[tnp.asarray([1, 1])].apply(lambda v: 10 * v)
        Array([  0, 100,   2], i64)
        """
        del indices_are_sorted
        return applying.applied(self._array, self._index, func, mode, unique_indices)
