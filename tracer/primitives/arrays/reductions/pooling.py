"""Reductions of sliding windows (pooling): sum, max or min at every position of a window.

The operand gets base_dilation - 1 neutral elements between its elements, and is padded with neutral elements. Then the
windows of `sliding_windows` are reduced.

The tangent of an extreme is the tangent of the first element that attains it. So the transpose sends every cotangent to
one element, as XLA's select-and-scatter does: see `pooling_argmax`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, cast

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Composite, Joint, Linearized, NoRule, Primitive, Rule, Zero
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, Shape, Type, tangent_type, with_shape
from tracer.primitives.arrays.reductions.pooling_argmax import Lattice
from tracer.primitives.arrays.reductions.reductions import reduce_max, reduce_min, reduce_sum
from tracer.primitives.arrays.slice_pad_concatenate import pad_p, slice_in_dim
from tracer.primitives.arrays.sliding_windows import (
    Padding,
    dilated,
    padded,
    padded_sizes,
    padding_config,
    positions,
    sliding_windows,
    sliding_windows_p,
)  # fmt: skip
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.rules import check_kinds, linear_jvp, operand_of
from tracer.primitives.base.shapes import Batched
from tracer.primitives.elementwise.arithmetic import add, max, min
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.float_order import exact_extreme
from tracer.trace.source import here
from tracer.trace.trace import as_literal, bind

_MAX_UNROLLED: Final = 12  # longer windows are loops
_pad, _windows = cast(Any, pad_p.reference), cast(Any, sliding_windows_p.reference)


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
                    f"{name}{here()}: expected window sizes, strides and dilations >= 1, and paddings, per axis",
                    f"got window={window}, strides={strides}, padding={padding}, base_dilation={base_dilation}, "
                    f"window_dilation={window_dilation} for {x}",
                    help="axes that are not reduced have a window of 1",
                )
            )
        sizes = padded_sizes(x.shape, padding, base_dilation)
        return with_shape(x, positions(sizes, window, strides, window_dilation))

    return infer


def _positions(
    sizes: Shape, *, window: Shape, strides: Shape, padding: Padding, base_dilation: Shape, window_dilation: Shape
) -> Shape:
    return positions(padded_sizes(sizes, padding, base_dilation), window, strides, window_dilation)


def neutral(op: ScalarOp, dtype: DType) -> Any:
    """Return the identity of a sum, maximum or minimum. Complex numbers are ordered by real, then by imaginary part."""
    if op is ScalarOp.ADD:
        return dtype.type(0)
    if dtypes.is_complex(dtype):
        return dtype.type(complex(-np.inf, -np.inf) if op is ScalarOp.MAX else complex(np.inf, np.inf))
    return identity(op, dtype)


def _reference(op: ScalarOp, function: Callable[..., Any]) -> Rule:
    def reference(
        x: Any, *, window: Shape, strides: Shape, padding: Padding, base_dilation: Shape, window_dilation: Shape
    ) -> Any:
        config = padding_config(x.shape, padding, base_dilation)
        grown = _pad(x, np.asarray(neutral(op, x.dtype)), padding_config=config)
        rank = x.ndim
        windows = _windows(grown, axes=tuple(range(rank)), window=window, strides=strides, dilations=window_dilation)
        with np.errstate(all="ignore"):
            return function(windows, axis=tuple(range(rank, 2 * rank))).astype(x.dtype)

    return reference


def _sum(windows: Any, *, axis: tuple[int, ...]) -> Any:
    return np.sum(windows, axis=axis, dtype=dtypes.accumulator_dtype(windows.dtype))


def _expand(op: ScalarOp, combine: Callable[..., Any], reduce: Callable[..., Any]) -> Rule:
    """Make the expansion of a window reduction, axis by axis.

    A single window along an axis is a reduction. Short windows combine strided slices. Long windows reduce
    `sliding_windows`.
    """

    def expand(
        x: Any, *, window: Shape, strides: Shape, padding: Padding, base_dilation: Shape, window_dilation: Shape
    ) -> Any:
        dtype = x.type.dtype
        x = padded(x, as_literal(neutral(op, dtype), dtype), padding, base_dilation)
        if op is ScalarOp.ADD:
            x = convert_element_type(x, dtypes.accumulator_dtype(dtype))
        counts = positions(x.shape, window, strides, window_dilation)
        alone = tuple(a for a, (n, w) in enumerate(zip(counts, window, strict=True)) if n == 1 < w and 0 not in counts)
        for axis in alone:
            x = slice_in_dim(x, 0, dilated(window[axis], window_dilation[axis]), window_dilation[axis], axis)
        if alone:
            kept = tuple(axis for axis in range(x.ndim) if axis not in alone)
            shape = tuple(1 if axis in alone else n for axis, n in enumerate(x.shape))
            x = broadcast_in_dim(reduce(x, alone), shape, kept)
        for axis, (n, size, step, dilation) in enumerate(zip(counts, window, strides, window_dilation, strict=True)):
            if axis in alone:
                continue
            if n and size <= _MAX_UNROLLED:
                starts = [w * dilation for w in range(size)]
                parts = [slice_in_dim(x, at, at + dilated(n, step), step, axis) for at in starts]
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
    """Sum the cotangent, spread by the strides, or place it directly if no two windows overlap."""
    (ct,), sizes = cts, xs[0].type.shape
    if shapes.size(ct.shape):
        lattice = Lattice.of(sizes, window, strides, padding, base_dilation, window_dilation)
        if lattice.apart is not None:
            return [lattice.from_windows(ct)]
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


def _located(primitive: Primitive, x: Any, params: Any) -> tuple[Any, Any, Lattice]:
    """Return the extremes, their lattice indices, and the lattice."""
    op = ScalarOp.MAX if primitive is reduce_window_max_p else ScalarOp.MIN
    lattice = Lattice.of(x.type.shape, **params)
    plain = {**params, "padding": ((0, 0),) * x.ndim, "base_dilation": (1,) * x.ndim}
    reduce = partial(bind, primitive, **plain)
    return *lattice.extremes(lattice.padded(x, neutral(op, x.type.dtype)), op, reduce), lattice


def _extreme_jvp(ctx: Any, xs: Any, dxs: Any, **params: Any) -> tuple[list[Any], list[Any]]:
    (x,), (dx,) = xs, dxs
    if isinstance(dx, Zero) or 0 in _positions(x.type.shape, **params):
        y = bind(ctx.primitive, x, **params)
        return [y], [Zero(tangent_type(y.type))]
    y, numbers, lattice = _located(ctx.primitive, x, params)
    return [y], [lattice.at_places(lattice.padded(dx, 0), numbers)]


def _extreme_linearize(ctx: Any, xs: Any, active: Sequence[bool], **params: Any) -> Linearized:
    (x,) = xs
    if 0 in _positions(x.type.shape, **params):
        y = bind(ctx.primitive, x, **params)
        return Linearized([y], (), lambda residuals, dxs: [Zero(tangent_type(y.type))])
    y, numbers, lattice = _located(ctx.primitive, x, params)
    return Linearized([y], [numbers], lambda found, dxs: [lattice.at_places(lattice.padded(dxs[0], 0), found[0])])


reduce_window_max_p, reduce_window_min_p = (
    Primitive(
        name=name, infer=_infer(name, "bifc"), reference=_reference(op, exact_extreme(function, is_max=is_max)),
        jvp=Joint(_extreme_jvp), linearize=_extreme_linearize, transpose=NoRule(f"{name} is not linear"), batch=_batch,
        lower=Composite(_expand(op, combine, reduce), computes=True),
    )
    for name, op, function, is_max, combine, reduce in (
        ("reduce_window_max", ScalarOp.MAX, np.max, True, max, reduce_max),
        ("reduce_window_min", ScalarOp.MIN, np.min, False, min, reduce_min),
    )
)  # fmt: skip


def window_reduction(
    primitive: Primitive, operand: Any, window: Sequence[int], strides: Sequence[int], padding: Padding,
    base_dilation: Sequence[int], window_dilation: Sequence[int],
) -> Any:  # fmt: skip
    """Bind a window reduction, with its settings given for every axis."""
    x = operand_of(primitive.name, operand)
    assert isinstance(x.type, ArrayType)
    return bind(
        primitive, x, window=tuple(window), strides=tuple(strides), padding=padding,
        base_dilation=tuple(base_dilation), window_dilation=tuple(window_dilation),
    )  # fmt: skip


WINDOW_REDUCTIONS: tuple[Primitive, ...] = (reduce_window_sum_p, reduce_window_max_p, reduce_window_min_p)
