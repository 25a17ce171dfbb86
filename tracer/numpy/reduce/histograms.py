"""Histograms: bin edges, counts in one or more dimensions, and `digitize`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, TracerArrayError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.promotion import inexact_beside, promoted_inexact, require_real
from tracer.numpy.reduce.cumulative import diff
from tracer.numpy.reduce.reductions import max, min, sum
from tracer.numpy.reduce.sorting import searchsorted
from tracer.numpy.shapes.creation import asarray, zeros
from tracer.numpy.shapes.joining import stack
from tracer.numpy.shapes.manipulation import ravel, reshape
from tracer.numpy.shapes.ranges import linspace
from tracer.numpy.shapes.where import where
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array, concrete_value
from tracer.trace.integers import integer
from tracer.trace.source import here

Bounds = Sequence[Any] | Array | None
_searched = cached(searchsorted, named=False)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Bounds = None, weights: Any = None) -> Array:
    """Return the edges of `bins` bins of equal width over `range`, by default from the minimum to the maximum.

    a: any shape, flattened; bins: the number n of bins, the edges [n + 1] themselves, or the name of a rule, as NumPy's
    "auto", which needs concrete values; range: two numbers, which may be traced; weights: as in `histogram`. Returns
    [n + 1], floats unless `bins` has another dtype. Raises ArgumentError for descending edges and fewer than one bin.

    >>> tnp.histogram_bin_edges([0.0, 1.0, 4.0], 4)
    Array([0., 1., 2., 3., 4.], f64)
    """
    x = _flat(a)
    if isinstance(bins, str):
        return _edges_by_rule(x, bins, range, weights)
    edges = array_of("histogram", bins)
    if edges.ndim == 1:
        known = concrete_value(edges)
        if known is not None and (known[1:] < known[:-1]).any():
            raise ArgumentError(message(f"histogram{here()}: the edges of bins must not descend", f"got {edges}"))
        return edges
    _check_range(range)
    count = integer("histogram", "bins", bins)
    if count < 1:
        raise ArgumentError(message(f"histogram{here()} needs at least one bin", f"got bins={bins}"))
    low, high = _bounds(x, range)
    known = [concrete_value(low), concrete_value(high)]
    if any(bound is not None and not np.isfinite(bound) for bound in known):
        raise ArgumentError(
            message(f"histogram{here()}: the bins have no finite range", f"got [{known[0]}, {known[1]}]", help="range=")
        )
    return _spaced(low, high, count)


def _edges_by_rule(x: Array, rule: str, range: Bounds, weights: Any) -> Array:
    """Return the edges of bins whose number follows from concrete values by one of NumPy's rules."""
    known, remedy = concrete_value(x), "give the number of bins"
    if known is None:
        raise TracerArrayError(
            message(f"histogram{here()}: {rule!r} needs concrete values", f"got {x.type}", help=remedy)
        )
    if weights is not None:
        raise ArgumentError(message(f"histogram{here()}: {rule!r} takes no weights", "got weights", help=remedy))
    _check_range(range)
    bounds: Any = None if range is None else (range[0], range[1])
    try:
        return asarray(np.histogram_bin_edges(known, rule, bounds))
    except ValueError as error:  # no finite range, or an unknown rule
        raise ArgumentError(message(f"histogram{here()}: {error}", f"got bins={rule!r} for {x.type}")) from None


def _bounds(x: Array, range: Bounds) -> tuple[Array, Array]:
    """Return the first and the last edge as floats: `range`, or the minimum and maximum, or 0 and 1."""
    if range is not None:
        low, high = asarray(range[0]), asarray(range[1])
    elif x.shape[0]:
        low, high = _ends(x)
    else:
        low, high = asarray(0.0), asarray(1.0)
    low, high = promoted_inexact("histogram", low, high)
    if range is not None and dtypes.is_float(x.dtype):  # Python scalars take the width of x
        low, high = (inexact_beside("histogram", end, x) for end in (low, high))
    return low, high


@partial(cached, named=False)
def _spaced(low: Array, high: Array, count: int) -> Array:
    """Return the edges of `count` bins of equal width; if low == high, the range is widened to 1 around it."""
    flat = low == high
    return linspace(where(flat, low - 0.5, low), where(flat, high + 0.5, high), count + 1)


@partial(cached, named=False)
def _ends(x: Array) -> tuple[Array, Array]:
    return min(x), max(x)


def _flat(a: Any) -> Array:
    x = array_of("histogram", a)
    return x if x.ndim == 1 else ravel(x)


def _check_range(range: Bounds) -> None:
    """Raise ArgumentError if concrete bounds descend or are not finite."""
    if range is None:
        return
    ends = [concrete_value(asarray(end)) for end in range]
    if not any(end is None for end in ends) and not (np.isfinite(ends).all() and ends[0] <= ends[1]):
        raise ArgumentError(message(f"histogram{here()}: a range must be finite and ascend", f"got {range}"))


def histogram(
    a: Any, bins: Any = 10, range: Bounds = None, weights: Any = None, density: bool | None = None
) -> tuple[Array, Array]:
    """Return the number of elements in each bin, and the edges. The last bin includes its upper edge.

    a: any shape, flattened; bins, range: as in `histogram_bin_edges`; weights: of a's shape, the weight of each
    element; density: normalise so that the integral is 1. Returns counts [n], int64 or in the weights' dtype, and edges
    [n + 1]. Elements outside the edges are not counted.

    >>> tnp.histogram([1.0, 2.0, 1.0], bins=[0.0, 1.0, 2.0, 3.0])
    (Array([0, 2, 1], i64), Array([0., 1., 2., 3.], f64))
    """
    x = _flat(a)
    edges = histogram_bin_edges(x, bins, range, weights)
    place, inside = _bin("histogram", x, edges)
    counts = _counted(place, inside, edges.shape[0] - 1, weights)
    if density:
        return counts / diff(edges) / sum(counts), edges
    return counts, edges


@cached
def _bin(name: str, x: Array, edges: Array) -> tuple[Array, Array]:
    """Return the bin of each value, and whether the value lies in a bin."""
    if edges.ndim != 1 or edges.shape[0] < 2:
        raise ShapeError(message(f"{name}{here()}: edges are a vector of at least two", f"got {edges.type}"))
    last = edges.shape[0] - 2
    place = _searched(edges, x, side="right") - 1
    place = where(x == edges[-1], last, place)
    inside = (place >= 0) & (place <= last)
    return where(inside, place, 0), inside


@cached
def _counted(place: Array, inside: Array, size: int, weights: Any) -> Array:
    if weights is None:
        return zeros(size, dtypes.I64).at[place].add(inside.astype(dtypes.I64))
    given = ravel(array_of("histogram", weights))
    if given.shape != place.shape:
        raise ShapeError(message(f"histogram{here()}: expected one weight for each value", f"got {given.type}"))
    return zeros(size, given.dtype).at[place].add(where(inside, given, 0).astype(given.dtype))


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Array, list[Array]]:
    """Return the histogram of points in several dimensions, rows of an [n, d] array or d vectors, and the edges.

    sample: [n, d], or d vectors [n]; bins, range: as in `histogram_bin_edges`, one for each dimension or for all;
    weights: [n]; density: as in `histogram`. Returns float64 counts [m1, ..., md] and d vectors of edges [m1 + 1], ...

    >>> counts, edges = tnp.histogramdd(tnp.asarray([[0.0, 0.0], [1.0, 1.0], [1.0, 0.9]]), bins=2)
    >>> counts
    Array([[1., 0.],
           [0., 2.]], f64)
    """
    points = asarray(sample) if not isinstance(sample, list | tuple) else stack([asarray(s) for s in sample], 1)
    if points.ndim > 2:
        raise ShapeError(message(f"histogramdd{here()} takes points as rows of a matrix", f"got {points.type}"))
    if points.ndim < 2:
        points = reshape(points, (points.size, 1))
    dimensions = points.shape[1]
    each = bins if isinstance(bins, list | tuple) else [bins] * dimensions
    bounds = range if range is not None else [None] * dimensions
    for name, given in (("bins", each), ("range", bounds)):
        if len(given) != dimensions:
            raise ShapeError(
                message(
                    f"histogramdd{here()}: {name} must have an entry for each of the {dimensions} dimensions",
                    f"got {given}",
                )
            )
    columns = [points[:, d] for d in np.arange(dimensions)]
    edges = [histogram_bin_edges(x, b, r) for x, b, r in zip(columns, each, bounds, strict=True)]
    found = [_bin("histogramdd", x, e) for x, e in zip(columns, edges, strict=True)]
    sizes = tuple(e.shape[0] - 1 for e in edges)
    flat, inside = found[0]
    for (place, within), size in zip(found[1:], sizes[1:], strict=True):
        flat, inside = flat * size + place, inside & within
    heavy = asarray(weights, float) if weights is not None else None
    counts = reshape(_counted(where(inside, flat, 0), inside, int(np.prod(sizes)), heavy), sizes).astype(float)
    if density:
        counts = counts / sum(counts)
        for d, e in enumerate(edges):
            counts = counts / reshape(diff(e), [-1 if d == k else 1 for k in np.arange(dimensions)])
    return counts, edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Array, Array, Array]:
    """Return the histogram of points in the plane, and the edges along both axes.

    x, y: vectors [n]; bins, range, weights, density: as in `histogramdd`; one vector of edges may serve both. Returns
    float64 counts [r, c] and edges [r + 1], [c + 1].

    >>> tnp.histogram2d([0.0, 1.0], [0.0, 1.0], bins=2)[0]
    Array([[1., 0.],
           [0., 1.]], f64)
    """
    if isinstance(bins, list | tuple) and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, (first, second) = histogramdd([x, y], bins, range, weights, density)
    return counts, first, second


def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    """Return the index of the bin of each value: bins[i - 1] <= x < bins[i], for bins that ascend or descend.

    x: real [*s]; bins: real [n]; right: bins include their right edges, not their left ones. Returns int64 [*s], 0
    before and n after all bins. Raises DTypeError for complex numbers, ArgumentError for unordered bins.

    >>> tnp.digitize([0.5, 2.5], [0.0, 1.0, 2.0])
    Array([1, 3], i64)
    """
    values, edges = array_of("digitize", x), array_of("digitize", bins)
    for x in (values, edges):
        require_real("digitize", x.dtype, x)
    if edges.ndim != 1:
        raise ShapeError(message(f"digitize{here()}: bins must be a vector", f"got {edges.type}"))
    if not edges.shape[0]:
        return zeros(values.shape, dtypes.I64)
    known = concrete_value(edges)
    if known is not None and not (_ascends(known) or _ascends(known[::-1])):
        raise ArgumentError(message(f"digitize{here()}: the bins neither ascend nor descend"))
    return _digitized(values, edges, "left" if right else "right")


@partial(cached, named=False)
def _digitized(values: Array, edges: Array, side: str) -> Array:
    ascending = _searched(edges, values, side=side)
    descending = edges.shape[0] - _searched(edges[::-1], values, side=side)
    return where((edges[-1] >= edges[0]) | (edges[-1] != edges[-1]), ascending, descending)


def _ascends(values: Any) -> bool:
    """Return whether values ascend, with NaN as the maximum."""
    later, earlier = values[1:], values[:-1]
    if np.count_nonzero(later >= earlier) == later.size:
        return True
    return bool(((later >= earlier) | (later != later)).all())
