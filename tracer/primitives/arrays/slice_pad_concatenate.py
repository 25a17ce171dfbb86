"""Slice and pad, concatenate and split. The transpose of each is written with the other operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import shape
from tracer.ir.primitive import Composite, IndexMap, Join, Onto, Primitive, Zero
from tracer.ir.types import ArrayType, Type, same_up_to_weakness, strong, with_shape
from tracer.primitives.base.broadcasting import axis_of, broadcast_in_dim, full, full_like, reduce_sum
from tracer.primitives.base.rules import Value, is_linear, linear_jvp, operand_of
from tracer.primitives.base.shapes import Batched, align
from tracer.primitives.elementwise.comparison import select
from tracer.trace.array import Array
from tracer.trace.integers import integer, integers
from tracer.trace.source import here
from tracer.trace.trace import as_literal, bind, bind_all

PaddingConfig = tuple[tuple[int, int, int], ...]

_FEW = 32  # a slice of 1/32 of the elements or less is added in place, not padded with zeros

# slice


def _slice_infer(
    x: Type, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...]
) -> Type:
    rank = len(x.shape)
    if not len(start_indices) == len(limit_indices) == len(strides) == rank:
        raise ShapeError(
            message(
                f"slice{here()}: expected one start, limit and stride for every axis",
                f"got {len(start_indices)}, {len(limit_indices)} and {len(strides)} for {x}",
                help="slice_in_dim slices one axis",
            )
        )
    within = all(
        0 <= start <= limit <= n for start, limit, n in zip(start_indices, limit_indices, x.shape, strict=True)
    )
    if not within or any(step < 1 for step in strides):
        raise ShapeError(
            message(
                f"slice{here()}: expected 0 <= start <= limit <= size and stride >= 1 along every axis",
                f"got {x}, start_indices={start_indices}, limit_indices={limit_indices}, strides={strides}",
                help="x[a:b] clips as NumPy does; rev gives negative strides",
            )
        )
    return with_shape(x, tuple(map(shape.slice_size, start_indices, limit_indices, strides)))


def _slice_reference(
    x: Any, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...]
) -> Any:
    places = zip(start_indices, limit_indices, strides, strict=True)
    return x[tuple(np.s_[start:limit:step] for start, limit, step in places)].copy()


def _slice_transpose(
    ctx: Any, cts: Any, xs: Any, *, start_indices: tuple[int, ...], strides: tuple[int, ...], **params: Any
) -> list[Any]:
    (ct,), sizes = cts, xs[0].type.shape
    config = []
    for start, step, taken, n in zip(start_indices, strides, ct.shape, sizes, strict=True):
        last = start + (taken - 1) * step + 1 if taken else start
        config.append((start, n - last, step - 1 if taken else 0))
    if any(step != 1 for step in strides):
        return [pad(ct, 0, config)]
    few = 0 < _FEW * shape.size(ct.shape) <= shape.size(sizes)

    def alone() -> Any:
        return pad(ct, 0, config)

    def add_to(total: Any) -> Any:
        return ctx.add_slice(total, ct, start_indices) if few else ctx.add(total, alone())

    return [Onto(xs[0].type, add_to, alone, start_indices, ct)]


def _slice_batch(ctx: Any, xs: Any, axes: Any, **params: tuple[int, ...]) -> Batched:
    (x,), (axis,) = xs, axes
    inserted = {"start_indices": 0, "limit_indices": ctx.size, "strides": 1}
    return [slice(x, **{name: (*params[name][:axis], n, *params[name][axis:]) for name, n in inserted.items()})], [axis]


slice_p = Primitive(
    name="slice", infer=_slice_infer, reference=_slice_reference,
    jvp=linear_jvp, transpose=_slice_transpose, batch=_slice_batch, lower=IndexMap("slice"),
)  # fmt: skip


def slice(
    operand: Value, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Any:
    """Copy the elements from start to limit (excluded) by stride, along every axis.

    operand: an array [*s]; start_indices, limit_indices, strides: an integer per axis, 0 <= start <= limit <= size,
    stride > 0. Returns the same dtype, [ceil((limit - start) / stride), ...]. Raises ShapeError if a bound does not
    fit.

    >>> slice(tnp.asarray([0, 1, 2, 3, 4]), (1,), (5,), (2,))
    Array([1, 3], i64)
    """
    x = operand_of("slice", operand)
    starts = integers("slice", "start_indices", start_indices)
    limits = integers("slice", "limit_indices", limit_indices)
    steps = (1,) * len(starts) if strides is None else integers("slice", "strides", strides)
    return bind(slice_p, x, start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(
    operand: Value, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Any:
    """Slice one axis from start to limit (excluded) by stride. Negative indices count from the end.

    operand: an array [*s]; start_index, limit_index: None for the ends; stride: by default 1; axis: by default the
    first. Returns the same dtype and rank. Raises ShapeError if the bounds do not fit, AxisError if the axis is out of
    range.

    >>> slice_in_dim(tnp.asarray([0, 1, 2, 3]), 1, -1)
    Array([1, 2], i64)
    """
    x = operand_of("slice_in_dim", operand)
    sizes = x.type.shape
    along = axis_of("slice_in_dim", axis, len(sizes))
    n = sizes[along]
    start, limit = (
        default if index is None else _from_front(integer("slice_in_dim", parameter, index), n)
        for parameter, index, default in (("start_index", start_index, 0), ("limit_index", limit_index, n))
    )
    if (start, limit, stride) == (0, n, 1):
        return x
    starts, limits, strides = [0] * len(sizes), list(sizes), [1] * len(sizes)
    starts[along], limits[along], strides[along] = start, limit, stride
    return slice(x, starts, limits, strides)


def _from_front(index: int, size: int) -> int:
    return index + size if index < 0 else index


# pad


def _pad_infer(x: Type, value: Type, *, padding_config: PaddingConfig) -> Type:
    if value.shape != () or not same_up_to_weakness(with_shape(x, ()), value):
        raise DTypeError(
            message(
                f"pad{here()}: the padding value must be a scalar of the operand's dtype",
                f"got {x} and {value}",
                help="cast the padding value with .astype(...)",
            )
        )
    if len(padding_config) != len(x.shape) or any(inner < 0 for _, _, inner in padding_config):
        raise ShapeError(
            message(
                f"pad{here()}: expected one (low, high, interior >= 0) for every axis",
                f"got padding_config={padding_config} for {x}",
                help="low and high may be negative, interior may not",
            )
        )
    sizes = padded_shape(x.shape, padding_config)
    if any(n < 0 for n in sizes):
        raise ShapeError(
            message(
                f"pad{here()}: negative padding removes more elements than there are",
                f"got {x}, padding_config={padding_config}",
                help="low + high + size + (size - 1) * interior must not be negative",
            )
        )
    result = with_shape(x, sizes)
    weak = isinstance(value, ArrayType) and value.weak
    return result if weak else strong(result)


def padded_shape(sizes: Sequence[int], padding_config: PaddingConfig) -> tuple[int, ...]:
    """Return the shape of a padded operand.

    >>> padded_shape((3,), ((1, -1, 2),))
    (7,)
    """
    return tuple(
        low + high + n + max(n - 1, 0) * inner for n, (low, high, inner) in zip(sizes, padding_config, strict=True)
    )


def _pad_reference(x: Any, value: Any, *, padding_config: PaddingConfig) -> Any:
    rank = len(padding_config)
    grown = tuple((max(low, 0), max(high, 0), inner) for low, high, inner in padding_config)
    wide = np.empty((*padded_shape(x.shape[:rank], grown), *x.shape[rank:]), x.dtype)
    wide[...] = value
    places = [np.s_[low : wide.shape[axis] - high : inner + 1] for axis, (low, high, inner) in enumerate(grown)]
    if x.size:
        wide[tuple(places)] = x
    lost = [(max(-low, 0), max(-high, 0)) for low, high, _ in padding_config]
    kept = [np.s_[low : wide.shape[axis] - high] for axis, (low, high) in enumerate(lost)]
    return np.asarray(wide[tuple(kept)], order="C")


def _pad_jvp(ctx: Any, xs: Any, dxs: Any, *, padding_config: PaddingConfig) -> list[Any]:
    dx, dvalue = dxs
    if isinstance(dvalue, Zero):
        dvalue = _zero_scalar(dvalue.type)
    return [bind(pad_p, ctx.instantiate(dx), dvalue, padding_config=padding_config)]


def _zero_scalar(type: Type) -> Any:
    assert isinstance(type, ArrayType)
    return as_literal(type.dtype.type(0), type.dtype)


def _pad_transpose(ctx: Any, cts: Any, xs: Any, *, padding_config: PaddingConfig) -> list[Any]:
    (ct,), (x, value) = cts, xs
    dx = dvalue = None
    if is_linear(x):
        shrunk = tuple((-low, -high, 0) for low, high, _ in padding_config)
        inside = pad(ct, 0, shrunk)
        steps = [inner + 1 for _, _, inner in padding_config]
        dx = slice(inside, (0,) * len(steps), inside.shape, steps)
    if is_linear(value):
        is_padding = pad(full(x.type.shape, False), True, padding_config)
        dvalue = reduce_sum(select(is_padding, ct, full_like(ct, 0)), range(ct.ndim))
    return [dx, dvalue]


def _pad_batch(ctx: Any, xs: Any, axes: Any, *, padding_config: PaddingConfig) -> Batched:
    (x, value), (axis, value_axis) = xs, axes
    if value_axis is None:
        config = list(padding_config)
        config.insert(axis, (0, 0, 0))
        return [pad(x, value, config)], [axis]
    x = ctx.to_front(x, axis)
    config = [(0, 0, 0), *padding_config]
    is_padding = pad(full(x.shape, False), True, config)
    padded = pad(x, _zero_scalar(x.type), config)
    return [select(is_padding, broadcast_in_dim(value, padded.shape, (0,)), padded)], [0]


pad_p = Primitive(
    name="pad", infer=_pad_infer, reference=_pad_reference,
    jvp=_pad_jvp, transpose=_pad_transpose, batch=_pad_batch, lower=Join("pad"),
)  # fmt: skip


def pad(operand: Value, padding_value: Value, padding_config: Sequence[Sequence[int]]) -> Any:
    """Pad the operand: for every axis (low, high, interior), the last between neighbours. Negative low and high crop.

    operand: an array [*s]; padding_value: a scalar or an array [] of its dtype; padding_config: three integers per
    axis. Returns [low + n + (n - 1) interior + high, ...]. Raises ShapeError if a size gets negative, DTypeError if the
    dtypes differ.

    >>> pad(tnp.asarray([1, 2]), 0, [(1, 0, 2)])
    Array([0, 1, 0, 0, 2], i64)
    """
    x = operand_of("pad", operand)
    value = operand_of("pad", padding_value, x.type.dtype if isinstance(x.type, ArrayType) else None)
    config = tuple(_triple(integers("pad", "padding_config", given)) for given in padding_config)
    return bind(pad_p, x, value, padding_config=config)


def _triple(given: tuple[int, ...]) -> tuple[int, int, int]:
    low, high, inner = given
    return low, high, inner


# concatenate


def _concatenate_infer(*xs: Type, dimension: int) -> Type:
    first = xs[0]
    rest = shape.drop(first.shape, (dimension,))
    if any(shape.drop(x.shape, (dimension,)) != rest or len(x.shape) != len(first.shape) for x in xs):
        raise ShapeError(
            message(
                f"concatenate{here()}: shapes must agree except along axis {dimension}",
                f"got {', '.join(map(str, xs))}",
                help="reshape, pad or slice the operands",
            )
        )
    scalars = [with_shape(x, ()) for x in xs]
    if not all(same_up_to_weakness(scalars[0], s) for s in scalars):
        raise DTypeError(
            message(
                f"concatenate{here()}: operands must have equal dtypes",
                f"got {', '.join(map(str, xs))}",
                help="tracer.numpy.concatenate promotes; here, cast with .astype(...)",
            )
        )
    total = sum(x.shape[dimension] for x in xs)
    result = with_shape(first, (*first.shape[:dimension], total, *first.shape[dimension + 1 :]))
    return result if all(isinstance(x, ArrayType) and x.weak for x in xs) else strong(result)


def _concatenate_transpose(ctx: Any, cts: Any, xs: Any, *, dimension: int) -> list[Any]:
    (ct,), start, results = cts, 0, []
    for x in xs:
        limit = start + x.type.shape[dimension]
        results.append(slice_in_dim(ct, start, limit, axis=dimension) if is_linear(x) else None)
        start = limit
    return results


def _concatenate_batch(ctx: Any, xs: Any, axes: Any, *, dimension: int) -> Batched:
    aligned, axis = align(ctx, xs, axes)
    return [concatenate(aligned, dimension + (dimension >= axis))], [axis]


concatenate_p = Primitive(
    name="concatenate", infer=_concatenate_infer,
    reference=lambda *xs, dimension: np.concatenate(xs, dimension),
    jvp=linear_jvp, transpose=_concatenate_transpose, batch=_concatenate_batch, lower=Join("concatenate"),
)  # fmt: skip


def concatenate(operands: Sequence[Value], dimension: int) -> Any:
    """Join arrays of one dtype along an axis.

    operands: arrays of equal sizes except along the axis `dimension`, whose sizes add up. Returns their dtype, [..., n1
    + n2, ...]. Raises ShapeError or DTypeError if they differ, ArgumentError for none or for scalars.

    >>> concatenate([tnp.asarray([1, 2]), tnp.asarray([3])], 0)
    Array([1, 2, 3], i64)
    """
    xs = [operand_of("concatenate", x) for x in operands]
    if not xs or not all(isinstance(x, Array) and x.ndim for x in xs):
        raise ArgumentError(
            message(
                f"concatenate{here()}: expected one array or more, each with an axis",
                f"got {', '.join(str(x.type) for x in xs) or 'none'}",
                help="reshape scalars to shape (1,)",
            )
        )
    axis = axis_of("concatenate", dimension, len(xs[0].type.shape))
    return xs[0] if len(xs) == 1 else bind(concatenate_p, *xs, dimension=axis)


# split


def _split_infer(x: Type, *, sizes: tuple[int, ...], axis: int) -> tuple[Type, ...]:
    if sum(sizes) != x.shape[axis] or any(n < 0 for n in sizes):
        raise ShapeError(
            message(
                f"split{here()}: the sizes must add up to the size of the axis",
                f"got sizes={sizes} for axis {axis} of {x}",
                help="tracer.numpy.array_split takes any number of parts",
            )
        )
    return tuple(with_shape(x, (*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes)


def _split_expand(x: Any, *, sizes: tuple[int, ...], axis: int) -> list[Any]:
    limits = np.cumsum(sizes).tolist()
    return [slice_in_dim(x, limit - n, limit, axis=axis) for n, limit in zip(sizes, limits, strict=True)]


def _split_reference(x: Any, *, sizes: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    parts = np.split(x, np.cumsum(sizes)[:-1], axis) if sizes else []
    return tuple(part.copy() for part in parts)


def _split_transpose(ctx: Any, cts: Any, xs: Any, *, sizes: tuple[int, ...], axis: int) -> list[Any]:
    return [concatenate([ctx.instantiate(ct) for ct in cts], axis)]


def _split_batch(ctx: Any, xs: Any, axes: Any, *, sizes: tuple[int, ...], axis: int) -> Batched:
    return split(xs[0], sizes, axis + (axis >= axes[0])), [axes[0]] * len(sizes)


split_p = Primitive(
    name="split", infer=_split_infer, reference=_split_reference,
    jvp=linear_jvp, transpose=_split_transpose, batch=_split_batch, lower=Composite(_split_expand), multiple=True,
)  # fmt: skip


def split(operand: Value, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Cut an axis into parts of the given sizes.

    operand: an array [*s]; sizes: add up to the size of the axis; axis: by default the first. Returns a list of arrays
    [..., size, ...]. Raises ShapeError if the sizes do not add up, AxisError if the axis is out of range.

    >>> split(tnp.asarray([1, 2, 3]), (1, 2))
    [Array([1], i64), Array([2, 3], i64)]
    """
    x = operand_of("split", operand)
    dimension = axis_of("split", axis, len(x.type.shape))
    return bind_all(split_p, [x], {"sizes": integers("split", "sizes", sizes), "axis": dimension})


JOINING: tuple[Primitive, ...] = (slice_p, pad_p, concatenate_p, split_p)
