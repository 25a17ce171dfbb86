"""Sums, products and extrema over segments: over the slices with equal segment ids."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of
from tracer.numpy.reduce.reductions import extreme_value
from tracer.numpy.shapes.index_parts import CHECKED
from tracer.numpy.shapes.updates import ADD, MAX, MIN, MULTIPLY, Update, updated
from tracer.primitives.base.broadcasting import full
from tracer.trace.array import Array, concrete_value
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries


def _segments(
    name: str,
    data: Any,
    segment_ids: Any,
    sizes: tuple[int | None, int | None],
    how: Update,
    start: Any,
    unique: bool,
    mode: Any,
) -> Array:
    (num_segments, bucket_size), x, ids = sizes, array_of(name, data), array_of(name, segment_ids)
    if bucket_size is not None:
        integer(name, "bucket_size", bucket_size)
    if num_segments is None:
        known = concrete_value(ids)
        if known is None:
            raise ArgumentError(
                message(f"{name}{here()}: the number of segments depends on traced values", help="give num_segments")
            )
        num_segments = int(np.max(known, initial=-1)) + 1
    empty = full((integer(name, "num_segments", num_segments), *x.shape[1:]), x.dtype.type(start(x.dtype)))
    given = mode or "drop"
    if given in ("raise", CHECKED):
        raise ArgumentError(
            message(
                f"{name}{here()}: ids out of range are dropped, clipped or wrapped",
                f"got mode={mode!r}",
                help="ids.min() and ids.max() tell before; leave mode out to drop them",
            )
        )
    return updated(empty, ids, x, how._replace(name=name), mode=given, unique_indices=unique, wrap=False)


def segment_sum(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None,
) -> Array:  # fmt: skip
    """Sum the slices of axis 0 of each segment; 0 for an empty segment. Ids out of range or negative are dropped.

    data: [n, ...]; segment_ids: integers [n]; num_segments: by default 1 + the largest id, which must be concrete.
    Returns [num_segments, ...], of data's dtype. mode: treatment of ids out of range: "drop", the default, "clip",
    "wrap" or "promise_in_bounds". unique_indices: a promise that ids are unique; indices_are_sorted, bucket_size: no
    effect. Raises ArgumentError for another mode.

    >>> tracer.ops.segment_sum(tnp.asarray([1.0, 2.0, 3.0]), tnp.asarray([0, 1, 0]))
    Array([4., 2.], f64)
    """
    del indices_are_sorted
    return _segments(
        "segment_sum", data, segment_ids, (num_segments, bucket_size), ADD, lambda _: 0, unique_indices, mode
    )


def segment_prod(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None,
) -> Array:  # fmt: skip
    """Multiply the slices of axis 0 of each segment; 1 for an empty segment.

    data: [n, ...]; segment_ids: integers [n]; num_segments, mode, unique_indices, indices_are_sorted, bucket_size: as
    of `segment_sum`. Returns [num_segments, ...], of data's dtype.

    >>> tracer.ops.segment_prod(tnp.asarray([2.0, 5.0, 3.0]), tnp.asarray([0, 1, 0]))
    Array([6., 5.], f64)
    """
    del indices_are_sorted
    return _segments(
        "segment_prod", data, segment_ids, (num_segments, bucket_size), MULTIPLY, lambda _: 1, unique_indices, mode
    )


def segment_max(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None,
) -> Array:  # fmt: skip
    """Return the maximum of the slices of axis 0 of each segment; the smallest value for an empty segment.

    data: [n, ...]; segment_ids: integers [n]; num_segments, mode, unique_indices, indices_are_sorted, bucket_size: as
    of `segment_sum`. Returns [num_segments, ...], of data's dtype.

    >>> tracer.ops.segment_max(tnp.asarray([1.0, 2.0, 3.0]), tnp.asarray([0, 1, 0]))
    Array([3., 2.], f64)
    """
    del indices_are_sorted
    sizes = num_segments, bucket_size
    return _segments("segment_max", data, segment_ids, sizes, MAX, _lowest, unique_indices, mode)


def segment_min(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None,
) -> Array:  # fmt: skip
    """Return the minimum of the slices of axis 0 of each segment; the largest value for an empty segment.

    data: [n, ...]; segment_ids: integers [n]; num_segments, mode, unique_indices, indices_are_sorted, bucket_size: as
    of `segment_sum`. Returns [num_segments, ...], of data's dtype.

    >>> tracer.ops.segment_min(tnp.asarray([1.0, 2.0, 3.0]), tnp.asarray([0, 1, 0]), num_segments=3)
    Array([ 1.,  2., inf], f64)
    """
    del indices_are_sorted
    sizes = num_segments, bucket_size
    return _segments("segment_min", data, segment_ids, sizes, MIN, _highest, unique_indices, mode)


def _lowest(dtype: dtypes.DType) -> Any:
    return extreme_value(dtype, lowest=True)


def _highest(dtype: dtypes.DType) -> Any:
    return extreme_value(dtype, lowest=False)


set_boundaries(globals())
