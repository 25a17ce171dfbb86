"""Reductions of sliding windows (pooling): the sum, the greatest or the least of every place of a window.

    operand, base_dilation - 1 neutral elements between its elements, padded with neutral elements; then the windows
    of `sliding`, reduced

The tangent of an extreme is that of the first element that attains it, so that its transpose sends every cotangent
to one element, which XLA calls select and scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Composite, NoRule, Primitive, Rule
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, Shape, Type, with_shape
from tracer.primitives.arithmetic import add, max, min
from tracer.primitives.broadcasting import broadcast_in_dim, full_like
from tracer.primitives.comparison import eq, select
from tracer.primitives.conversion import convert_element_type
from tracer.primitives.joining import pad, pad_p, slice_in_dim
from tracer.primitives.ordering import exact_extreme
from tracer.primitives.reductions import argmax, argmin, reduce_max, reduce_min, reduce_sum
from tracer.primitives.rules import check_kinds, linear_jvp, operand_of
from tracer.primitives.shapes import Batched, broadcasted_iota, reshape
from tracer.primitives.sliding import dilated, positions, sliding_windows, sliding_windows_p
from tracer.trace.source import here
from tracer.trace.trace import as_literal, bind

Padding = tuple[tuple[int, int], ...]
_pad, _windows = cast(Any, pad_p.reference), cast(Any, sliding_windows_p.reference)
_WRITTEN_OUT = 12  # longer windows are loops


def _infer(name: str, kinds: str) -> Rule:
    def infer(
        x: Type, *, window: Shape, strides: Shape, padding: Padding, base_dilation: Shape, window_dilation: Shape
    ) -> Type:
        check_kinds(name, (x,), kinds)
        rank = len(x.shape)
        given = (window, strides, padding, base_dilation, window_dilation)
        if any(len(values) != rank for values in given) or any(
            n < 1 for values in (window, strides, base_dilation, window_dilation) for n in values
        ):
            raise ArgumentError(
                message(
                    f"{name}{here()}: one positive window size, stride and dilation, and one padding, for every axis",
                    f"got window={window}, strides={strides}, padding={padding}, base_dilation={base_dilation}, "
                    f"window_dilation={window_dilation} for {x}",
                    help="axes that are not reduced have a window of 1",
                )
            )
        sizes = _padded_sizes(x.shape, padding, base_dilation)
        return with_shape(x, positions(sizes, window, strides, window_dilation))

    return infer


def _padded_sizes(sizes: Shape, padding: Padding, base_dilation: Shape) -> Shape:
    rows = zip(sizes, padding, base_dilation, strict=True)
    return tuple(int(np.maximum(0, dilated(n, d) + low + high)) for n, (low, high), d in rows)


def _padding_config(sizes: Shape, padding: Padding, base_dilation: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    """As `pad` takes it; where more is cropped than there is, nothing is left."""
    config = []
    for n, (low, high), d in zip(sizes, padding, base_dilation, strict=True):
        emptied = dilated(n, d) + low + high < 0
        config.append((-dilated(n, d), 0, d - 1) if emptied else (low, high, d - 1))
    return tuple(config)


def padded(x: Any, value: Any, padding: Padding, base_dilation: Sequence[int]) -> Any:
    """An operand as its windows see it."""
    config = _padding_config(x.type.shape, padding, base_dilation)
    return pad(x, value, config) if any(map(any, config)) else x


def neutral(op: ScalarOp, dtype: DType) -> Any:
    """What changes no sum, maximum or minimum; complex numbers are ordered by real, then by imaginary part."""
    if op is ScalarOp.ADD:
        return dtype.type(0)
    if dtypes.is_complex(dtype):
        return dtype.type(complex(-np.inf, -np.inf) if op is ScalarOp.MAX else complex(np.inf, np.inf))
    return identity(op, dtype)


def _reference(op: ScalarOp, function: Callable[..., Any]) -> Rule:
    def reference(
        x: Any, *, window: Shape, strides: Shape, padding: Padding, base_dilation: Shape, window_dilation: Shape
    ) -> Any:
        config = _padding_config(x.shape, padding, base_dilation)
        grown = _pad(x, np.asarray(neutral(op, x.dtype)), padding_config=config)
        rank = x.ndim
        windows = _windows(grown, axes=tuple(range(rank)), window=window, strides=strides, dilations=window_dilation)
        with np.errstate(all="ignore"):
            return function(windows, axis=tuple(range(rank, 2 * rank))).astype(x.dtype)

    return reference


def _sum(windows: Any, *, axis: tuple[int, ...]) -> Any:
    return np.sum(windows, axis=axis, dtype=dtypes.accumulator_dtype(windows.dtype))


def _expand(op: ScalarOp, combine: Callable[..., Any], reduce: Callable[..., Any]) -> Rule:
    """Axis by axis: short windows as sums of strided slices, long ones as reductions of the windows."""

    def expand(
        x: Any, *, window: Shape, strides: Shape, padding: Padding, base_dilation: Shape, window_dilation: Shape
    ) -> Any:
        dtype = x.type.dtype
        x = padded(x, as_literal(neutral(op, dtype), dtype), padding, base_dilation)
        if op is ScalarOp.ADD:
            x = convert_element_type(x, dtypes.accumulator_dtype(dtype))
        for axis, (size, step, dilation) in enumerate(zip(window, strides, window_dilation, strict=True)):
            (places,) = positions((x.shape[axis],), (size,), (step,), (dilation,))
            if places and size <= _WRITTEN_OUT:
                starts = [w * dilation for w in range(size)]
                parts = [slice_in_dim(x, at, at + dilated(places, step), step, axis) for at in starts]
                x = parts[0]
                for part in parts[1:]:
                    x = combine(x, part)
            else:
                x = reduce(sliding_windows(x, (axis,), (size,), (step,), (dilation,)), (x.ndim,))
        return convert_element_type(x, dtype)

    return expand


def _batch(ctx: Any, xs: Any, axes: Any, **params: Any) -> Batched:
    inserted = {"window": 1, "strides": 1, "padding": (0, 0), "base_dilation": 1, "window_dilation": 1}
    axis = axes[0]
    params = {name: (*params[name][:axis], value, *params[name][axis:]) for name, value in inserted.items()}
    return ctx.bind_all(ctx.primitive, xs, params), [axis]


def _sum_transpose(
    ctx: Any, cts: Any, xs: Any, *, window: Shape, strides: Shape, padding: Padding, base_dilation: Shape,
    window_dilation: Shape,
) -> list[Any]:  # fmt: skip
    """Sums of the cotangent, spread by the strides."""
    (ct,), sizes = cts, xs[0].type.shape
    pads = []
    for axis, (low, _) in enumerate(padding):
        extent = dilated(window[axis], window_dilation[axis])
        spread, whole = dilated(ct.shape[axis], strides[axis]), dilated(sizes[axis], base_dilation[axis])
        before = extent - 1 - low
        pads.append((before, whole + extent - 1 - spread - before))
    return [
        bind(
            reduce_window_sum_p, ct, window=window, strides=base_dilation, padding=tuple(pads), base_dilation=strides,
            window_dilation=window_dilation,
        )
    ]  # fmt: skip


reduce_window_sum_p: Primitive = Primitive(
    name="reduce_window_sum", infer=_infer("reduce_window_sum", "ifc"), reference=_reference(ScalarOp.ADD, _sum),
    jvp=linear_jvp, transpose=_sum_transpose, batch=_batch,
    lower=Composite(_expand(ScalarOp.ADD, add, reduce_sum), computes=True),
)  # fmt: skip


def _extreme_jvp(op: ScalarOp, locate: Callable[..., Any]) -> Rule:
    def jvp(
        ctx: Any, xs: Any, dxs: Any, *, window: Shape, strides: Shape, padding: Padding, base_dilation: Shape,
        window_dilation: Shape,
    ) -> list[Any]:  # fmt: skip
        (x,), (dx,) = xs, dxs
        dtype, rank, count = x.type.dtype, x.ndim, shapes.size(window)
        if not shapes.size(ctx.outputs[0].type.shape):
            return [full_like(ctx.outputs[0], 0)]

        def windows(values: Any, outside: Any) -> Any:
            values = padded(values, as_literal(outside, dtype), padding, base_dilation)
            found = sliding_windows(values, tuple(range(rank)), window, strides, window_dilation)
            return reshape(found, (*found.shape[:rank], count))

        first = locate(windows(x, neutral(op, dtype)), rank, dtypes.I32)
        tangents = windows(dx, dtype.type(0))
        chosen = eq(
            broadcast_in_dim(first, tangents.shape, tuple(range(rank))),
            broadcasted_iota(dtypes.I32, tangents.shape, rank),
        )
        return [reduce_sum(select(chosen, tangents, full_like(tangents, 0)), (rank,))]

    return jvp


reduce_window_max_p, reduce_window_min_p = (
    Primitive(
        name=name, infer=_infer(name, "bifc"), reference=_reference(op, exact_extreme(function, greatest=greatest)),
        jvp=_extreme_jvp(op, locate), transpose=NoRule(f"{name} is not linear"), batch=_batch,
        lower=Composite(_expand(op, combine, reduce), computes=True),
    )
    for name, op, function, greatest, locate, combine, reduce in (
        ("reduce_window_max", ScalarOp.MAX, np.max, True, argmax, max, reduce_max),
        ("reduce_window_min", ScalarOp.MIN, np.min, False, argmin, min, reduce_min),
    )
)  # fmt: skip


def window_reduction(
    primitive: Primitive, operand: Any, window: Sequence[int], strides: Sequence[int], padding: Padding,
    base_dilation: Sequence[int], window_dilation: Sequence[int],
) -> Any:  # fmt: skip
    """Bind one of the primitives of this family, its settings given for every axis."""
    x = operand_of(primitive.name, operand)
    assert isinstance(x.type, ArrayType)
    return bind(
        primitive, x, window=tuple(window), strides=tuple(strides), padding=padding,
        base_dilation=tuple(base_dilation), window_dilation=tuple(window_dilation),
    )  # fmt: skip


WINDOW_REDUCTIONS: tuple[Primitive, ...] = (reduce_window_sum_p, reduce_window_max_p, reduce_window_min_p)
