"""`pad`: additional elements at both ends of every axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, TracerIntegerError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, broadcast, cast
from tracer.numpy.elementwise import rounding
from tracer.numpy.reduce import reductions, statistics
from tracer.numpy.shapes.joining import concatenate
from tracer.numpy.shapes.manipulation import moveaxis
from tracer.numpy.shapes.ranges import linspace
from tracer.numpy.shapes.repeating import take_slices
from tracer.numpy.shapes.where import where
from tracer.primitives.arrays import slice_pad_concatenate
from tracer.primitives.arrays.slice_pad_concatenate import slice_in_dim
from tracer.primitives.base.shapes import rev
from tracer.trace import trees
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here

Widths = list[tuple[int, int]]

_FEW_RUNS = 8


def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Array:
    """Return the array with additional elements at both ends of every axis.

    array: [*s]. Returns it longer along its axes, in its dtype.

    pad_width: the numbers of elements: a number, a pair (before, after), or one pair for each axis.
    mode: "constant" (constant_values=0), "edge" (the outermost repeated), "wrap" (from the other end), "reflect" and
    "symmetric" (mirrored about, or beside, the outermost), "linear_ramp" (end_values=0), "maximum", "minimum",
    "mean", "median" (stat_length: of how many elements), "empty" (zeros), or a function as for `np.pad`. With
    reflect_type="odd" the mirrored elements are subtracted from twice the outermost. Raises ArgumentError for options
    of other modes.

    >>> tnp.pad(tnp.asarray([1, 2]), (1, 2))
    Array([0, 1, 2, 0, 0], i64)
    """
    x = array_of("pad", array)
    widths = _pairs("pad_width", pad_width, x.ndim)
    if any(n < 0 for pair in widths for n in pair):
        raise ShapeError(message(f"pad{here()}: the widths must not be negative", f"got {pad_width}"))
    if callable(mode):
        return _by_function(x, widths, mode, options)
    _check_options(mode, options)
    if mode in ("constant", "empty"):
        value = array_of("pad", options.pop("constant_values", 0))
        if not value.shape:
            return slice_pad_concatenate.pad(x, cast(value, x.dtype), [(before, after, 0) for before, after in widths])
        return _constant(x, widths, _pairs_of_values(value, x.ndim))
    if mode in _SOURCES:
        return _by_sources(x, widths, _SOURCES[mode], odd=options.get("reflect_type", "even") == "odd")
    if mode == "linear_ramp":
        return _by_ends(x, widths, _ramps(_pairs_of_values(options.pop("end_values", 0), x.ndim)))
    lengths = options.pop("stat_length", None)
    lengths = None if lengths is None else _pairs("stat_length", lengths, x.ndim)
    return _by_ends(x, widths, _statistics(_STATISTICS[mode], lengths))


def _check_options(mode: Any, options: dict[str, Any]) -> None:
    if mode not in _OPTIONS:
        raise ArgumentError(message(f"pad{here()}: no mode {mode!r}", help=f"one of {', '.join(_OPTIONS)}"))
    for option in sorted(options.keys() - _OPTIONS[mode]):
        raise ArgumentError(message(f"pad{here()}: mode {mode!r} takes no {option}="))
    kind = options.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise ArgumentError(message(f'pad{here()}: reflect_type is "even" or "odd"', f"got {kind!r}"))


_OPTIONS: dict[str, frozenset[str]] = {
    "constant": frozenset(("constant_values",)), "empty": frozenset(), "edge": frozenset(), "wrap": frozenset(),
    **dict.fromkeys(("reflect", "symmetric"), frozenset(("reflect_type",))), "linear_ramp": frozenset(("end_values",)),
    **dict.fromkeys(("maximum", "minimum", "mean", "median"), frozenset(("stat_length",))),
}  # fmt: skip


def _pairs(name: str, given: Any, rank: int) -> Widths:
    """Return a (before, after) pair of integers for each axis, read as in NumPy."""
    if isinstance(given, dict):
        pairs = [given.get(d, given.get(d - rank, 0)) for d in range(rank)]
        given = [(p, p) if isinstance(p, int) else p for p in pairs]
    if any(isinstance(x, Array) and concrete_value(x) is None for x in trees.flatten(given)[0]):
        raise TracerIntegerError(
            message(
                f"pad{here()}: {name} must be known while tracing",
                f"got {given!r}",
                help="mark the argument static: jit(f, static_argnums=...)",
            )
        )
    try:
        table = np.broadcast_to(np.asarray(given), (rank, 2)).tolist() if rank else []
    except ValueError:
        raise ShapeError(
            message(f"pad{here()}: {name} is a number, a pair, or a pair for each axis", f"got {given} for {rank} axes")
        ) from None
    if any(type(n) is not int for pair in table for n in pair):
        raise ArgumentError(
            message(f"pad{here()}: {name} holds integers", f"got {given}", help="cast integral values with int(...)")
        )
    return [(before, after) for before, after in table]


def _pairs_of_values(given: Any, rank: int) -> list[tuple[Array, Array]]:
    values = broadcast(array_of("pad", given), (rank, 2)) if rank else array_of("pad", 0)
    return [(values[d, 0], values[d, 1]) for d in range(rank)]


def _constant(x: Array, widths: Widths, values: list[tuple[Array, Array]]) -> Array:
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, values, strict=True)):
        for width, value in ((((before, 0, 0)), low), ((0, after, 0), high)):
            if any(width):
                config = [width if d == axis else (0, 0, 0) for d in range(x.ndim)]
                x = slice_pad_concatenate.pad(x, cast(value, x.dtype), config)
    return x


# Elements copied from along the axis


Source = tuple[Any, int]  # the index that an element is copied from, and the period of mirroring


def _edge(index: Any, n: int) -> Source:
    return np.clip(index, 0, n - 1), 0


def _wrapped(index: Any, n: int) -> Source:
    return index % n, 0


def _reflected(index: Any, n: int) -> Source:
    period = max(2 * n - 2, 1)
    around = index % period
    return np.where(around < n, around, 2 * n - 2 - around), period


def _symmetric(index: Any, n: int) -> Source:
    around = index % (2 * n)
    return np.where(around < n, around, 2 * n - 1 - around), 2 * n


_SOURCES: dict[str, Callable[[Any, int], Source]] = {
    "edge": _edge, "wrap": _wrapped, "reflect": _reflected, "symmetric": _symmetric,
}  # fmt: skip


def _by_sources(x: Array, widths: Widths, index: Callable[[Any, int], Source], *, odd: bool) -> Array:
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        if not before and not after:
            continue
        if n == 0:
            raise _nothing_to_pad_with(x)
        at = np.arange(-before, n + after)
        sources, period = index(at, n)
        padded = _taken(x, sources.astype(np.int64), axis)
        x = _mirrored(x, padded, axis, at, period) if odd and n > 1 else padded
    return x


def _mirrored(x: Array, padded: Array, axis: int, at: Any, period: int) -> Array:
    """Return the odd extension, 2 last - x beyond the last element, whose every period adds 2 (last - first)."""
    n, column = x.shape[axis], [1 if d != axis else -1 for d in range(x.ndim)]
    turns, turned = at // period, at % period >= n
    first, last = slice_in_dim(x, 0, 1, axis=axis), slice_in_dim(x, n - 1, n, axis=axis)
    for outermost, times in ((last, 2 * turns + 2 * turned), (first, -2 * turns)):
        factors = array_of("pad", times.astype(x.dtype).reshape(column))
        term = where(times.reshape(column) != 0, outermost, 0) * factors  # avoids 0 times infinity
        padded = where(turned.reshape(column), term - padded, padded + term) if outermost is last else padded + term
    return padded


def _nothing_to_pad_with(x: Array) -> ShapeError:
    return ShapeError(message(f"pad{here()}: an axis without elements has nothing to pad with", f"got {x.type}"))


def _taken(x: Array, sources: np.ndarray[Any, Any], axis: int) -> Array:
    """Return the elements at concrete indices along an axis; few runs of indices are joined from slices."""
    runs = _runs(sources.tolist())
    if len(runs) > _FEW_RUNS:
        return take_slices(x, array_of("pad", sources), axis)
    parts = []
    for start, step, count in runs:
        if step == 0:
            one = slice_in_dim(x, start, start + 1, axis=axis)
            parts.append(broadcast(one, tuple(count if d == axis else n for d, n in enumerate(x.shape))))
        elif step == 1:
            parts.append(slice_in_dim(x, start, start + count, axis=axis))
        else:
            parts.append(rev(slice_in_dim(x, start - count + 1, start + 1, axis=axis), (axis,)))
    return slice_pad_concatenate.concatenate(parts, axis)


def _runs(sources: list[int]) -> list[tuple[int, int, int]]:
    """Return indices as runs (start, step, count) with steps of 1, -1 or 0."""
    runs: list[tuple[int, int, int]] = []
    for index in sources:
        start, step, count = runs[-1] if runs else (index, 2, 0)
        if count == 1 and -1 <= index - start <= 1:
            runs[-1] = (start, index - start, 2)
        elif count > 1 and index == start + step * count:
            runs[-1] = (start, step, count + 1)
        else:
            runs.append((index, 1, 1))
    return runs


# Computed elements


def _by_ends(x: Array, widths: Widths, ends: Callable[[Array, int, int, int], tuple[Array, Array]]) -> Array:
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if not x.shape[axis]:
            raise _nothing_to_pad_with(x)
        low, high = ends(x, axis, before, after)
        x = concatenate([cast(low, x.dtype), x, cast(high, x.dtype)], axis)
    return x


def _ramps(values: list[tuple[Array, Array]]) -> Callable[[Array, int, int, int], tuple[Array, Array]]:
    def ends(x: Array, axis: int, before: int, after: int) -> tuple[Array, Array]:
        n = x.shape[axis]
        first, last = slice_in_dim(x, 0, 1, axis=axis), slice_in_dim(x, n - 1, n, axis=axis)
        edge_first, edge_last = (moveaxis(e, axis, 0)[0] for e in (first, last))
        low = linspace(values[axis][0], edge_first, before, endpoint=False, dtype=x.dtype, axis=axis)
        high = linspace(edge_last, values[axis][1], after + 1, dtype=x.dtype, axis=axis)
        return low, slice_in_dim(high, 1, after + 1, axis=axis)

    return ends


_STATISTICS: dict[str, Callable[..., Array]] = {
    "maximum": reductions.max, "minimum": reductions.min, "mean": statistics.mean, "median": statistics.median,
}  # fmt: skip


def _statistics(
    statistic: Callable[..., Array], lengths: Widths | None
) -> Callable[[Array, int, int, int], tuple[Array, Array]]:
    averages = statistic in (statistics.mean, statistics.median)

    def ends(x: Array, axis: int, before: int, after: int) -> tuple[Array, Array]:
        n = x.shape[axis]
        of = (n, n) if lengths is None else tuple(min(length, n) for length in lengths[axis])
        given = cast(x, dtypes.F64) if averages and dtypes.is_integer(x.dtype) else x  # exact for 32 bits
        low = statistic(slice_in_dim(given, 0, of[0], axis=axis), axis, keepdims=True)
        high = statistic(slice_in_dim(given, n - of[1], n, axis=axis), axis, keepdims=True)
        if dtypes.is_integer(x.dtype):
            low, high = rounding.round(low), rounding.round(high)
        return _widened(low, axis, before), _widened(high, axis, after)

    return ends


def _widened(x: Array, axis: int, size: int) -> Array:
    return broadcast(x, tuple(size if d == axis else n for d, n in enumerate(x.shape)))


def _by_function(x: Array, widths: Widths, function: Callable[..., Any], options: dict[str, Any]) -> Array:
    """Pad by a function of vectors, as in `np.pad`, on concrete values: it writes into its argument."""
    values = np.pad(np.asarray(x), widths, function, **options)
    return array_of("pad", values)
