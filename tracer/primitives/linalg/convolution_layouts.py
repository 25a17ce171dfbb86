"""Convolution as lax spells it: any order of axes, padding by name, and shorter functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.dtypes import DType
from tracer.primitives.arrays.sliding_windows import Padding, dilated
from tracer.primitives.base.rules import Value, coerce, kind_of
from tracer.primitives.base.shapes import rev, transpose
from tracer.primitives.elementwise.conversion import dtype_named, dtype_of
from tracer.primitives.linalg.convolution import conv_p
from tracer.primitives.linalg.dot_general import canonical_precision
from tracer.trace.array import Array
from tracer.trace.integers import integer, integers, pairs
from tracer.trace.source import here
from tracer.trace.trace import Operand, bind


class ConvDimensionNumbers(NamedTuple):
    """Roles of the axes of a convolution. Spatial axes are in the order of the window's.

    lhs_spec, out_spec: (batch, features, spatial...). rhs_spec: (out features, in features, window...).

    >>> conv_dimension_numbers((8, 28, 3), (3, 3, 16), ("NHC", "HIO", "NHC"))
    ConvDimensionNumbers(lhs_spec=(0, 2, 1), rhs_spec=(2, 1, 0), out_spec=(0, 2, 1))
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


_EXAMPLE = "as in ('NHWC', 'HWIO', 'NHWC'), or None for ('NCHW', 'OIHW', 'NCHW')"


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Return `dimension_numbers` as axes. It is None, three strings, or a ConvDimensionNumbers.

    lhs_shape, rhs_shape: [batch, features, *spatial] and [out, in, *window] in the order of the strings, such as
    ("NHWC", "HWIO", "NHWC"). Returns the axes of both and of the result. Raises ShapeError if the ranks differ,
    ArgumentError for letters that do not fit.

    >>> conv_dimension_numbers((8, 28, 28, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC")).lhs_spec
    (0, 3, 1, 2)
    """
    rank = len(lhs_shape)
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if len(rhs_shape) != rank or rank < 2:
        raise ShapeError(
            message(
                f"conv{here()}: operands need the same number of axes, at least two",
                f"got {shapes.show(lhs_shape)} and {shapes.show(rhs_shape)}",
                help="one axis for batches, one for features, and the spatial ones; add the missing ones",
            )
        )
    if dimension_numbers is None:
        axes = tuple(range(rank))
        return ConvDimensionNumbers(axes, axes, axes)
    return _numbers_of_strings(dimension_numbers, rank)


def _numbers_of_strings(dimension_numbers: Any, rank: int) -> ConvDimensionNumbers:
    specs = tuple(dimension_numbers) if isinstance(dimension_numbers, tuple | list) else ()
    if len(specs) != 3 or not all(isinstance(spec, str) for spec in specs):
        raise ArgumentError(
            message(
                f"conv{here()}: dimension_numbers must be three strings", f"got {dimension_numbers!r}", help=_EXAMPLE
            )
        )
    window = [c for c in specs[1] if c not in "OI"]
    for spec, letters in zip(specs, ("NC", "OI", "NC"), strict=True):
        if len(spec) != rank or sorted(spec) != sorted([*letters, *window]):
            raise ArgumentError(
                message(
                    f"conv{here()}: dimension_numbers must name every axis once",
                    f"got {spec!r} among {specs} for operands of {rank} axes",
                    help=_EXAMPLE,
                )
            )
    lhs, rhs, out = (
        tuple(spec.index(c) for c in (*letters, *window))
        for spec, letters in zip(specs, ("NC", "OI", "NC"), strict=True)
    )
    return ConvDimensionNumbers(lhs, rhs, out)


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> Padding:
    """Return the padding that a name stands for.

    "VALID" is zero, "SAME" gives ceil(size / stride) positions, "SAME_LOWER" pads more in front. in_shape,
    window_shape, window_strides: an integer per axis; padding: a name, in either case. Returns a pair (before, after)
    per axis. Raises ArgumentError for another name.

    >>> padtype_to_pads((28,), (5,), (2,), "SAME")
    ((1, 2),)
    """
    name = padding.upper()
    if name == "VALID":
        return ((0, 0),) * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise ArgumentError(
            message(
                f"padding{here()}: unknown padding {padding!r}",
                help='"SAME", "SAME_LOWER", "VALID", or a pair (before, after) for every spatial axis',
            )
        )
    pads, given = [], {"in_shape": in_shape, "window_shape": window_shape, "window_strides": window_strides}
    sizes = [integers("padtype_to_pads", parameter, values) for parameter, values in given.items()]
    for size, window, stride in zip(*sizes, strict=True):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        lower, upper = total // 2, total - total // 2
        pads.append((lower, upper) if name == "SAME" else (upper, lower))
    return tuple(pads)


def _per_axis(name: str, values: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Return one positive integer for every spatial axis; ones by default."""
    result = (1,) * rank if values is None else integers("conv", name, values)
    if len(result) != rank or min(result, default=1) < 1:
        raise ArgumentError(
            message(
                f"conv{here()}: {name} has one positive integer for every spatial axis",
                f"got {values} for {rank} spatial axes",
                help=f"as in {(1,) * rank}",
            )
        )
    return result


def _pads(padding: Any, lhs: Sequence[int], window: Sequence[int], strides: Sequence[int]) -> Padding:
    if isinstance(padding, str):
        return padtype_to_pads(lhs, window, strides, padding)
    result = pairs("conv", "padding", padding)
    if len(result) != len(lhs):
        raise ArgumentError(
            message(
                f"conv{here()}: padding has one pair for every spatial axis",
                f"got {padding} for {len(lhs)} spatial axes",
                help='as in ((1, 1), (1, 1)), or "SAME" or "VALID"',
            )
        )
    return result


def conv_general_dilated(
    lhs: Value, rhs: Value, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None, feature_group_count: int = 1, batch_group_count: int = 1,
    precision: object = None, preferred_element_type: Any = None,
) -> Array:  # fmt: skip
    """Convolve with strides, padding, dilation and groups. The window is not reversed.

    lhs: [batch, features, *spatial], rhs: [out features, in features, *window], in the order that `dimension_numbers`
    give; window_strides, lhs_dilation, rhs_dilation: an integer per spatial axis; padding: (before, after) per axis,
    negative to crop, or "SAME", "SAME_LOWER", "VALID"; feature_group_count: number of groups of features, each with its
    own out features; batch_group_count: likewise for the batch. Returns [batch / batch_group_count, out features,
    *positions], of the operands' dtype or the preferred one; bool is `or` of `and`. Raises DTypeError if the dtypes
    differ or the preferred one does not fit. Raises ShapeError if features or groups do not fit, and ArgumentError for
    settings of the wrong length.

    >>> conv_general_dilated(tnp.ones((1, 1, 5)), tnp.ones((1, 1, 3)), (1,), "SAME")
    Array([[[2., 3., 3., 3., 2.]]], f64)
    """
    x, y = coerce("conv", (lhs, rhs))
    numbers = conv_dimension_numbers(x.type.shape, y.type.shape, dimension_numbers)
    x, y = _put(x, numbers.lhs_spec), _put(y, numbers.rhs_spec)
    rank = len(x.type.shape) - 2
    strides, spread, rhs_spread = (
        _per_axis(name, values, rank)
        for name, values in (
            ("window_strides", window_strides), ("lhs_dilation", lhs_dilation), ("rhs_dilation", rhs_dilation)
        )
    )  # fmt: skip
    if isinstance(padding, str) and max(spread, default=1) > 1:
        raise ArgumentError(
            message(
                f"conv{here()}: padding by name does not say where a dilated lhs begins",
                f"got {padding!r} with lhs_dilation={spread}",
                help="give pairs, or use lax.conv_transpose",
            )
        )
    features, batches = _group_counts(feature_group_count, batch_group_count)
    window = tuple(map(dilated, y.type.shape[2:], rhs_spread))
    result = bind(
        conv_p, x, y, strides=strides, padding=_pads(padding, x.type.shape[2:], window, strides),
        lhs_dilation=spread, rhs_dilation=rhs_spread,
        feature_groups=features, batch_groups=batches,
        precision=canonical_precision(precision, "conv"), preferred_element_type=_preferred(x, preferred_element_type),
    )  # fmt: skip
    placed: Array = _put(result, shapes.inverse(numbers.out_spec))
    return placed


def _group_counts(feature_group_count: int, batch_group_count: int) -> tuple[int, int]:
    features = integer("conv", "feature_group_count", feature_group_count)
    batches = integer("conv", "batch_group_count", batch_group_count)
    if features > 1 and batches > 1:
        raise ArgumentError(
            message(
                f"conv{here()}: only one of feature_group_count and batch_group_count may be above 1",
                f"got {features} and {batches}",
                help="vmap over one of the groupings",
            )
        )
    return features, batches


def _preferred(x: Operand, preferred: object) -> DType:
    """Return the result's dtype: of the operands' kind (any for bool, a float too for integers), and no narrower."""
    own = dtype_of(x)
    if preferred is None:
        return own
    dtype, kinds = dtype_named("conv", preferred), {"b": "bifc", "i": "if", "f": "f", "c": "c"}
    unsigned = dtypes.is_unsigned(dtype) and dtypes.is_signed(own)
    narrower = not dtypes.is_bool(own) and dtype.itemsize < own.itemsize
    if kind_of(dtype) not in kinds[kind_of(own)] or unsigned or narrower:
        raise DTypeError(
            message(
                f"conv{here()}: preferred_element_type does not fit the operands",
                f"got {dtypes.short_name(dtype)} for products of {dtypes.short_name(own)}",
                help="integers give integers (signed ones signed) or floats, floats floats, complex numbers complex "
                "numbers, none of them narrower",
            )
        )
    return dtype


def _put(x: Any, axes: Sequence[int]) -> Any:
    """Transpose, or return the operand itself if the axes stay."""
    return x if tuple(axes) == tuple(range(len(axes))) else transpose(x, axes)


def conv(
    lhs: Value, rhs: Value, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]],
    precision: object = None, preferred_element_type: Any = None,
) -> Array:  # fmt: skip
    """Convolve [batch, features, *spatial] with [out, in, *window], without dilation or groups.

    lhs, rhs: numbers of one dtype; window_strides: an integer per spatial axis; padding: as in `conv_general_dilated`.
    Returns [batch, out, *positions]. Raises as `conv_general_dilated`.

    >>> conv(tnp.ones((1, 1, 5)), tnp.ones((1, 1, 3)), (2,), "VALID")
    Array([[[3., 3.]]], f64)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Value, rhs: Value, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None,
    precision: object = None, preferred_element_type: Any = None,
) -> Array:  # fmt: skip
    """Convolve [batch, features, *spatial] with [out, in, *window], with dilation, without groups.

    lhs, rhs: numbers of one dtype; window_strides, lhs_dilation, rhs_dilation: an integer per spatial axis; padding: as
    in `conv_general_dilated`. Returns [batch, out, *positions]. Raises as `conv_general_dilated`.

    >>> conv_with_general_padding(tnp.ones((1, 1, 5)), tnp.ones((1, 1, 3)), (1,), ((0, 0),), None, (2,))
    Array([[[3.]]], f64)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip


_CHANNELS_LAST = {1: ("NHC", "HIO", "NHC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NHWDC", "HWDIO", "NHWDC")}


def conv_transpose(
    lhs: Value, rhs: Value, strides: Sequence[int], padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None, transpose_kernel: bool = False,
    precision: object = None, preferred_element_type: Any = None, use_consistent_padding: bool = False,
) -> Array:  # fmt: skip
    """Convolve with a fractional stride, 1 / strides: the shape of a convolution's gradient.

    dimension_numbers: by default with features last, as ("NHWC", "HWIO", "NHWC"). padding: "SAME" and "VALID" give the
    sizes that a convolution of these strides and padding would start from. Pairs pad the dilated lhs or, with
    `use_consistent_padding`, are the padding of that convolution. transpose_kernel: reverse the window and exchange its
    features, which gives the gradient of that convolution.

    lhs: [batch, *spatial, features], rhs: [*window, in, out] by default; strides, rhs_dilation: an integer per spatial
    axis. Returns [batch, *positions, out]. Raises as `conv_general_dilated`.

    >>> conv_transpose(tnp.ones((1, 4, 1)), tnp.ones((3, 1, 1)), (2,), "SAME").shape
    (1, 8, 1)
    """
    x, y = coerce("conv_transpose", (lhs, rhs))
    rank = len(x.type.shape) - 2
    if dimension_numbers is None and rank in _CHANNELS_LAST:
        dimension_numbers = _CHANNELS_LAST[rank]
    numbers = conv_dimension_numbers(x.type.shape, y.type.shape, dimension_numbers)
    spread = _per_axis("rhs_dilation", rhs_dilation, rank)
    steps = _per_axis("strides", strides, rank)
    if use_consistent_padding or (isinstance(padding, str) and padding in ("SAME", "VALID")):
        window = [dilated(y.type.shape[axis], d) for axis, d in zip(numbers.rhs_spec[2:], spread, strict=True)]
        each = [padding] * rank if isinstance(padding, str) else padding
        padding = [_transposed_pads(*row) for row in zip(window, steps, each, strict=True)]
    if transpose_kernel:
        out, into, *spatial = numbers.rhs_spec
        swapped = list(range(rank + 2))
        swapped[out], swapped[into] = into, out
        y = transpose(rev(y, tuple(spatial)), swapped)
    return conv_general_dilated(
        x, y, (1,) * rank, padding, steps, spread, numbers,
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _transposed_pads(window: int, stride: int, padding: Any) -> tuple[int, int]:
    """Return the padding of a dilated lhs, from the padding of the convolution it transposes."""
    if padding == "SAME":
        total = window + stride - 2
        before = window - 1 if stride > window - 1 else math.ceil(total / 2)
    elif padding == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        before = window - 1
    else:
        low, high = padding
        total, before = 2 * (window - 1) - low - high, window - low - 1
    return before, total - before
