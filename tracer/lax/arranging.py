"""Shapes and indices by JAX's names: collapse, tile, stack, unstack, index_take and related functions."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import shape as shapes
from tracer.ir.dtypes import DType
from tracer.ir.program import Literal
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from tracer.primitives.arrays.indexing.gather import gather, scatter_add
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.arrays.sliding_windows import dilated, positions, sliding_windows
from tracer.primitives.arrays.sorting import top_k
from tracer.primitives.base.broadcasting import axis_of, broadcast_in_dim, full
from tracer.primitives.base.shapes import expand_dims, moveaxis, reshape, squeeze, transpose
from tracer.primitives.base.shapes import optimization_barrier as primitive_barrier
from tracer.primitives.elementwise.arithmetic import neg
from tracer.primitives.elementwise.conversion import convert_element_type, dtype_named
from tracer.primitives.linalg.convolution import padded_operand
from tracer.primitives.linalg.convolution_layouts import conv_dimension_numbers, padtype_to_pads
from tracer.primitives.linalg.dot_general import dot_general
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.integers import integer, integers, pairs
from tracer.trace.source import here

_MAX_AXES = 64  # as NumPy


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge the axes from `start_dimension` to `stop_dimension` (excluded; None: to the end) into one.

    operand: an array [*s]. Returns its dtype and elements. Raises ShapeError if the range of axes is empty.

    >>> tracer.lax.collapse(tnp.zeros((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    x = as_array(operand, "collapse")
    first = integer("collapse", "start_dimension", start_dimension)
    last = None if stop_dimension is None else integer("collapse", "stop_dimension", stop_dimension)
    start, stop, _ = slice(first, last).indices(x.ndim)
    if stop <= start:
        raise ShapeError(
            message(
                f"collapse{here()}: at least one axis",
                f"got axes {start} to {stop} of {x.type}",
                help="expand_dims inserts an axis",
            )
        )
    return reshape(x, (*x.shape[:start], shapes.size(x.shape[start:stop]), *x.shape[stop:]))


def tile(operand: Any, reps: Sequence[int]) -> Array:
    """Repeat the operand along every axis.

    operand: an array [*s]; reps: integers >= 0, one an axis. Returns its dtype, [s1 reps1, ...]. Raises ShapeError for
    another count of reps.

    >>> tracer.lax.tile(tnp.asarray([[1, 2]]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], i64)
    """
    x, counts = as_array(operand, "tile"), integers("tile", "reps", reps)
    if len(counts) != x.ndim or min(counts, default=0) < 0:
        raise ShapeError(
            message(f"tile{here()}: one count of 0 or more an axis", f"got reps={counts} for {x.type}",
                    help="tracer.numpy.tile adds axes")
        )  # fmt: skip
    wide = tuple(n for pair in zip(counts, x.shape, strict=True) for n in pair)
    spread = broadcast_in_dim(x, wide, range(1, 2 * x.ndim, 2))
    return reshape(spread, tuple(c * n for c, n in zip(counts, x.shape, strict=True)))


def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Stack arrays of one shape and dtype along a new axis.

    operands: arrays [*s]; axis: position of the new axis in the result. Returns their dtype, [..., n, ...]. Raises
    ShapeError or DTypeError where they differ.

    >>> tracer.lax.stack([tnp.asarray([1, 2]), tnp.asarray([3, 4])], 1)
    Array([[1, 3],
           [2, 4]], i64)
    """
    xs = [as_array(x, "stack") for x in operands]
    if not xs:
        raise ArgumentError(message(f"stack{here()} takes one array or more", "got none", help="zeros makes an array"))
    along = axis_of("stack", axis, xs[0].ndim + 1)
    return concatenate([expand_dims(x, (along,)) for x in xs], along)


def unstack(x: Any, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices of an axis, without that axis.

    x: an array [..., n, ...]; axis: by default the first. Returns n arrays of its dtype. Raises AxisError if there is
    no such axis.

    >>> tracer.lax.unstack(tnp.asarray([[1, 2], [3, 4]]), 1)
    (Array([1, 3], i64), Array([2, 4], i64))
    """
    given = as_array(x, "unstack")
    along = axis_of("unstack", axis, given.ndim)
    return tuple(squeeze(slice_in_dim(given, i, i + 1, axis=along), (along,)) for i in range(given.shape[along]))


def broadcast_to_rank(x: Any, rank: int) -> Array:
    """Insert axes of size 1 in front, until there are `rank` axes.

    x: an array [*s]. Returns its dtype, [1, ..., *s]. Raises ShapeError for a smaller rank, or one above 64.

    >>> tracer.lax.broadcast_to_rank(tnp.zeros(3), 3).shape
    (1, 1, 3)
    """
    given = as_array(x, "broadcast_to_rank")
    rank = integer("broadcast_to_rank", "rank", rank)
    if rank < given.ndim:
        raise ShapeError(
            message(f"broadcast_to_rank{here()}: the rank must not fall", f"got rank {rank} for {given.type}",
                    help="squeeze drops axes")
        )  # fmt: skip
    if rank > _MAX_AXES:
        raise ShapeError(
            message(f"broadcast_to_rank{here()}: arrays have at most {_MAX_AXES} axes", f"got rank {rank}")
        )
    return expand_dims(given, range(rank - given.ndim))


def broadcast_like(arr: Any, like_arr: Any) -> Array:
    """Broadcast `arr` to the shape of `like_arr`, aligned at the last axes.

    arr, like_arr: arrays [*s] and [*t]. Returns arr's dtype, [*t]. Raises ShapeError where a size is neither 1 nor the
    size of `like_arr`.

    >>> tracer.lax.broadcast_like(tnp.asarray([1, 2]), tnp.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]], i64)
    """
    x, like = as_array(arr, "broadcast_like"), as_array(like_arr, "broadcast_like")
    return broadcast_in_dim(x, like.shape, range(like.ndim - x.ndim, like.ndim))


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: None = None) -> Array:
    """Return an array of a shape and dtype with unspecified elements (currently 0).

    shape: sizes >= 0; dtype: a dtype or its name; out_sharding: accepted for JAX, ignored. Returns [*shape]. Raises
    ShapeError for a negative size.

    >>> tracer.lax.empty((2, 3), "float32").shape
    (2, 3)
    """
    chosen = dtype_named("empty", dtype)
    result = full(integers("empty", "shape", shape), chosen.type(0), chosen)
    return broadcast_in_dim(result, (), ()) if isinstance(result, Literal) else result


def dtype(x: Any) -> DType:
    """Return the dtype of an array or scalar.

    x: an array of any shape, a number, or a dtype. Raises ArgumentError for anything else.

    >>> tracer.lax.dtype(tnp.zeros(2, "int8"))
    dtype('int8')
    """
    return as_array(x, "dtype", copy=False).dtype


def shape_as_value(shape: Sequence[int]) -> Array:
    """Return a shape as an array of int64.

    shape: integers. Returns int64 [n].

    >>> tracer.lax.shape_as_value((2, 3))
    Array([2, 3], i64)
    """
    return as_array(np.asarray(integers("shape_as_value", "shape", shape), np.int64).reshape(-1))


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """Gather slices of `src` at indices along `axes`, stacked along axis 0.

    src: [*s]; idxs: integer arrays [n], one for each of `axes`. Returns src's dtype, [n, *s minus axes].

    >>> tracer.lax.index_take(tnp.asarray([[1, 2], [3, 4]]), [tnp.asarray([0, 1]), tnp.asarray([1, 0])], (0, 1))
    Array([2, 3], i64)
    """
    x, indices = as_array(src, "index_take"), [as_array(i, "index_take") for i in idxs]
    along = tuple(axis_of("index_take", axis, x.ndim) for axis in axes)
    sizes = tuple(1 if axis in along else n for axis, n in enumerate(x.shape))
    rest = tuple(range(1, x.ndim - len(along) + 1))
    numbers = GatherDimensionNumbers(rest, tuple(sorted(along)), along)
    return gather(x, stack(indices, 1), numbers, sizes)


def optimization_barrier(operand: Any, /) -> Any:
    """Return a tree of arrays, none of which is available before all are computed. No pass moves work across.

    operand: a tree of arrays of any shapes. Returns its tree, shapes and dtypes. Raises ArgumentError for leaves that
    are not arrays.

    >>> tracer.lax.optimization_barrier({"a": tnp.asarray([1.0]), "b": tnp.asarray([2])})
    {'a': Array([1.], f64), 'b': Array([2], i64)}
    """
    leaves, structure = trees.flatten(operand)
    return trees.unflatten(structure, primitive_barrier([as_array(x, "optimization_barrier") for x in leaves]))


def scatter_sub(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
) -> Array:  # fmt: skip
    """Subtract windows of `updates` at computed indices; repeated indices subtract repeatedly.

    operand: an array [*s]; scatter_indices: integers [*batch, k], the last axis an index vector; updates: [*batch and
    window axes] of the operand's dtype, as `dimension_numbers` assign them. mode: treatment of indices out of bounds,
    by default OutOfBoundsError. unique_indices: no two windows overlap; the other options are hints. Returns the
    operand's type, [*s]. Raises ShapeError or DTypeError where the updates do not fit.

    >>> numbers = tracer.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> tracer.lax.scatter_sub(tnp.asarray([5, 5]), tnp.asarray([[1], [1]]), tnp.asarray([1, 2]), numbers)
    Array([5, 2], i64)
    """
    x, indices, values = (as_array(a, "scatter_sub") for a in (operand, scatter_indices, updates))
    return scatter_add(
        x, indices, neg(values), dimension_numbers, indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices, mode=mode,
    )  # fmt: skip


def approx_max_k(
    operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the k largest elements along an axis and their indices, exactly as JAX does on a CPU, with recall 1.

    operand: real numbers or bool [*s, n], k <= n; reduction_dimension: the axis. Returns [*s, k] of its dtype and of
    i32. Raises ShapeError for a larger k. recall_target, reduction_input_size_override, aggregate_to_topk: accepted for
    JAX, ignored.

    >>> tracer.lax.approx_max_k(tnp.asarray([1.0, 3.0, 2.0]), 2)
    (Array([3., 2.], f64), Array([1, 2], i32))
    """
    values, indices = top_k(as_array(operand, "approx_max_k"), k, axis=reduction_dimension)
    return values, indices


def approx_min_k(
    operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the k smallest floats along an axis and their indices, exactly as JAX does on a CPU, with recall 1.

    operand: floats [*s, n], k <= n; reduction_dimension: the axis. Returns [*s, k] of its dtype and of i32. Raises
    ShapeError for a larger k. recall_target, reduction_input_size_override, aggregate_to_topk: accepted for JAX,
    ignored.

    >>> tracer.lax.approx_min_k(tnp.asarray([1.0, 3.0, 2.0]), 2)
    (Array([1., 2.], f64), Array([0, 2], i32))
    """
    values, indices = top_k(neg(as_array(operand, "approx_min_k")), k, axis=reduction_dimension)
    return neg(values), indices


def conv_general_dilated_patches(
    lhs: Any, filter_shape: Sequence[int], window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None, precision: object = None, preferred_element_type: Any = None,
) -> Array:  # fmt: skip
    """Extract the patches under a convolution's window, along the feature axis: features by window, features first.

    lhs: [batch, features, *spatial] in the order of `dimension_numbers`; returns [batch, features * window size, *out
    spatial] in the order of the result. lhs_dilation, rhs_dilation: as of `conv_general_dilated`.

    padding, filter_shape, window_strides: one entry a spatial axis. Raises ShapeError for another count.

    >>> tracer.lax.conv_general_dilated_patches(tnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.], [1., 2., 3.]]], f64)
    """
    x = as_array(lhs, "conv_general_dilated_patches")
    name = "conv_general_dilated_patches"
    rank, window = x.ndim - 2, integers(name, "filter_shape", filter_shape)
    strides = integers(name, "window_strides", window_strides)
    numbers = conv_dimension_numbers(x.shape, (1,) * x.ndim, dimension_numbers)
    x = transpose(x, numbers.lhs_spec)
    base, spread = (
        (1,) * rank if d is None else integers(name, parameter, d)
        for parameter, d in (("lhs_dilation", lhs_dilation), ("rhs_dilation", rhs_dilation))
    )
    wide = tuple(map(dilated, window, spread))
    pads = (
        padtype_to_pads(x.shape[2:], wide, strides, padding)
        if isinstance(padding, str)
        else pairs(name, "padding", padding)
    )
    windows = sliding_windows(padded_operand(x, pads, base), range(2, 2 + rank), window, strides, spread)
    order = (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
    spatial = windows.shape[2 : 2 + rank]
    flat = reshape(transpose(windows, order), (x.shape[0], x.shape[1] * shapes.size(window), *spatial))
    found = transpose(flat, shapes.inverse(numbers.out_spec))
    return found if preferred_element_type is None else convert_element_type(found, preferred_element_type)


def conv_general_dilated_local(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int], lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None, precision: object = None,
) -> Array:  # fmt: skip
    """Convolve with separate weights at every output index (a locally connected layer).

    lhs: [batch, features, *spatial], rhs: [out features, features * window size, *out spatial], in the order of
    `dimension_numbers`; lhs_dilation, rhs_dilation: as of `conv_general_dilated`.

    padding, filter_shape, window_strides: one entry a spatial axis. Returns [batch, out features, *out spatial], of the
    operands' dtype. Raises ShapeError where the weights do not fit.

    >>> weights = tnp.asarray([[[1.0, 0.0, 2.0], [1.0, 1.0, 0.0]]])
    >>> x = tnp.arange(4.0).reshape(1, 1, 4)
    >>> tracer.lax.conv_general_dilated_local(x, weights, (1,), "VALID", (2,))
    Array([[[1., 2., 4.]]], f64)
    """
    x, weights = as_array(lhs, "conv_general_dilated_local"), as_array(rhs, "conv_general_dilated_local")
    numbers = conv_dimension_numbers(x.shape, weights.shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        transpose(x, numbers.lhs_spec), filter_shape, window_strides, padding, lhs_dilation, rhs_dilation
    )
    weights, spatial = transpose(weights, numbers.rhs_spec), tuple(range(2, x.ndim))
    result = dot_general(weights, patches, (((1,), (1,)), (spatial, spatial)), precision)  # [*out spatial, out, batch]
    last = result.ndim - 1
    return transpose(moveaxis(moveaxis(result, last, 0), last, 1), shapes.inverse(numbers.out_spec))


def conv_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: Any, batch_group_count: int = 1
) -> tuple[int, ...]:
    """Return the shape of a convolution of [batch, features, *spatial] and [out, in, *window].

    lhs_shape, rhs_shape: shapes; strides: an integer a spatial axis; pads: a pair for each; batch_group_count: as of
    `conv_general_dilated`. Returns a tuple, [batch, out, *out spatial].

    >>> tracer.lax.conv_shape_tuple((1, 3, 8), (4, 3, 3), (2,), ((0, 0),))
    (1, 4, 3)
    """
    name = "conv_shape_tuple"
    steps = integers(name, "strides", strides)
    (batch, _, *spatial), (features, _, *window) = (
        integers(name, parameter, given) for parameter, given in (("lhs_shape", lhs_shape), ("rhs_shape", rhs_shape))
    )
    padding = padtype_to_pads(spatial, window, steps, pads) if isinstance(pads, str) else pairs(name, "pads", pads)
    sizes = [n + low + high for n, (low, high) in zip(spatial, padding, strict=True)]
    found = positions(sizes, window, steps, (1,) * len(sizes))
    return (batch // integer(name, "batch_group_count", batch_group_count), features, *found)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:  # fmt: skip
    """Return the shape of a convolution, its axes in the order of `dimension_numbers`.

    lhs_shape, rhs_shape, window_strides, padding: as of `conv_general_dilated`, with shapes for arrays. Returns a tuple
    such as [batch, out, *out spatial].

    >>> tracer.lax.conv_general_shape_tuple((1, 8, 3), (3, 3, 4), (2,), "VALID", ("NHC", "HIO", "NHC"))
    (1, 3, 4)
    """
    lhs, rhs, out = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    found = conv_shape_tuple([lhs_shape[a] for a in lhs], [rhs_shape[a] for a in rhs], window_strides, padding)
    return tuple(found[axis] for axis in shapes.inverse(out))


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Call the function for the current platform, "cpu", with the arguments; else `default`.

    args: trees of arrays of any shapes, passed to the function. per_platform: functions by platform name. Raises
    ArgumentError if there is none for the platform.

    >>> tracer.lax.platform_dependent(tnp.asarray([2.0]), cpu=lambda x: x + 1, default=lambda x: x)
    Array([3.], f64)
    """
    chosen = per_platform.get("cpu", default)
    if chosen is None:
        raise ArgumentError(
            message(
                f"platform_dependent{here()}: no function for this platform, 'cpu'",
                f"got functions for {', '.join(sorted(per_platform)) or 'none'}",
                help="give one as cpu= or default=",
            )
        )
    return chosen(*args)
