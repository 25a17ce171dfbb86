"""Convolution in any number of spatial dimensions, in one layout. `convolution_layouts` has all other layouts.

    lhs [N, C, *spatial]   rhs [O, I, *window]   result [N, O, *positions]

    result[n, o, p] = sum over i, w of  lhs'[n, i, p * stride + w * rhs_dilation] * rhs[o, i, w]

lhs' is lhs with lhs_dilation - 1 zeros between its elements, then padded (cropped for negative padding). With feature
groups, C = groups * I, and each group of O / groups outputs sees the inputs of its group alone. With batch groups, N =
groups * N' and the result is [N', O, ...]. Outputs of a group see the batches of that group. Sums are accumulated as in
`dot_general`: in float32 for the short floats, rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.ir import shape as shapes
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Composite, Eager, Primitive
from tracer.ir.types import ArrayType, Shape, Type, array_type
from tracer.primitives.arrays.slice_pad_concatenate import pad_p
from tracer.primitives.arrays.sliding_windows import (
    Padding,
    dilated,
    padded,
    padded_sizes,
    padding_config,
    positions,
    sliding_windows,
)
from tracer.primitives.base.rules import check_kinds, check_same_dtype, is_linear, one_linear, quiet
from tracer.primitives.base.shapes import Batched, moveaxis, reshape, rev, transpose
from tracer.primitives.linalg.convolution_phases import has_phases, in_phases
from tracer.primitives.linalg.convolution_strategy import has_nest
from tracer.primitives.linalg.dot_general import contract, cotangent_operands, dot_general_p, products_jvp
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.trace import Operand, as_literal, bind

_pad: Any = pad_p.reference


def _infer(
    lhs: Type, rhs: Type, *, strides: Shape, padding: Padding, lhs_dilation: Shape, rhs_dilation: Shape,
    feature_groups: int, batch_groups: int, precision: str | None, preferred_element_type: DType,
) -> Type:  # fmt: skip
    check_kinds("conv", (lhs, rhs), "bifc")
    assert isinstance(lhs, ArrayType)
    assert isinstance(rhs, ArrayType)
    check_same_dtype("conv", (lhs, rhs))
    batch, features = lhs.shape[:2]
    out_features, in_features = rhs.shape[:2]
    if features != in_features * feature_groups:
        raise ShapeError(
            message(
                f"conv{here()}: lhs must have feature_group_count times as many features as rhs takes",
                f"got {features} features for {feature_groups} groups of {in_features}, from {lhs} and {rhs} "
                "(as batch, features, spatial and out, in, spatial)",
                help="check dimension_numbers, which say which axis is which",
            )
        )
    for role, size, groups in (
        ("rhs's output features", out_features, feature_groups * batch_groups),
        ("lhs's batch", batch, batch_groups),
    ):
        if groups < 1 or size % groups:
            raise ShapeError(
                message(
                    f"conv{here()}: {role} must divide into the groups",
                    f"got {size} for {groups} groups",
                    help="choose a group count that divides it",
                )
            )
    sizes = padded_sizes(lhs.shape[2:], padding, lhs_dilation)
    spatial = positions(sizes, rhs.shape[2:], strides, rhs_dilation)
    return array_type(preferred_element_type, (batch // batch_groups, out_features, *spatial), lhs.weak and rhs.weak)


# Value: windows of lhs [N, C, *positions, *window], contracted with rhs by dot_general


def _contraction(rank: int, batch_groups: int) -> tuple[Any, Shape]:
    """Return the dimension numbers that contract windows with rhs by groups, and the order of the result's axes.

    The dot gives [groups, N', *positions, O / groups], to be reordered to [N', groups, O / groups, *positions].
    """
    group_axis = 0 if batch_groups > 1 else 1
    contracted = (2, *range(3 + rank, 3 + 2 * rank)), tuple(range(2, 3 + rank))
    return (contracted, ((group_axis,), (0,))), (1, 0, 2 + rank, *range(2, 2 + rank))


def _grouped_shapes(lhs: Shape, rhs: Shape, outs: Shape, feature_groups: int, batch_groups: int) -> tuple[Shape, Shape]:
    """Return the shapes of windows and rhs with the groups split off.

    Windows are [batch groups, N', I, ...] or [N, feature groups, I, ...], rhs is [groups, O / groups, I, ...].
    """
    groups, inner = feature_groups * batch_groups, (rhs[1], *outs, *rhs[2:])
    windows = (groups, lhs[0] // groups, *inner) if batch_groups > 1 else (lhs[0], groups, *inner)
    return windows, (groups, rhs[0] // groups, *rhs[1:])


def _reference(
    lhs: Any, rhs: Any, *, strides: Shape, padding: Padding, lhs_dilation: Shape, rhs_dilation: Shape,
    feature_groups: int, batch_groups: int, precision: str | None, preferred_element_type: DType,
) -> Any:  # fmt: skip
    rank, window = len(strides), rhs.shape[2:]
    config = padding_config(lhs.shape, ((0, 0), (0, 0), *padding), (1, 1, *lhs_dilation))
    cropped = _pad(lhs, np.zeros((), lhs.dtype), padding_config=config)
    outs = positions(cropped.shape[2:], window, strides, rhs_dilation)
    steps = cropped.strides[2:]
    windows = np.lib.stride_tricks.as_strided(
        cropped, (*lhs.shape[:2], *outs, *window),
        (*cropped.strides[:2], *map(int.__mul__, steps, strides), *map(int.__mul__, steps, rhs_dilation)),
        writeable=False,
    )  # fmt: skip
    left, right = _grouped_shapes(lhs.shape, rhs.shape, outs, feature_groups, batch_groups)
    numbers, order = _contraction(rank, batch_groups)
    result: Any = dot_general_p.reference(  # type: ignore[operator]  # a NumPy function, as every reference but NoRule
        windows.reshape(left), rhs.reshape(right), dimension_numbers=numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip
    return result.transpose(order).reshape(lhs.shape[0] // batch_groups, rhs.shape[0], *outs)


def _expand(
    lhs: Any, rhs: Any, *, strides: Shape, padding: Padding, lhs_dilation: Shape, rhs_dilation: Shape,
    feature_groups: int, batch_groups: int, precision: str | None, preferred_element_type: DType,
) -> Any:  # fmt: skip
    """Expand to a product of rhs with the matrix of windows, unless phases or a loop nest do better.

    A dilated lhs is convolved phase by phase, without its zeros, if possible. A padded lhs that has a loop nest of its
    own is left to it.
    """
    rank, groups = len(strides), feature_groups * batch_groups
    spatial, window = tuple(range(2, 2 + rank)), rhs.type.shape[2:]
    given: dict[str, Any] = {
        "rhs_dilation": rhs_dilation, "feature_groups": feature_groups, "batch_groups": batch_groups,
        "precision": precision, "preferred_element_type": preferred_element_type,
    }  # fmt: skip
    sizes = positions(padded_sizes(lhs.type.shape[2:], padding, lhs_dilation), window, strides, rhs_dilation)
    by_phase = batch_groups == 1 and has_phases(lhs_dilation, strides, rhs_dilation)
    if by_phase and 0 not in (*lhs.type.shape, *rhs.type.shape, *sizes):
        rows = zip(window, rhs_dilation, padding, strict=True)
        before = tuple((dilated(w, r) - 1 - low, 0) for w, r, (low, _) in rows)
        exchanged = {**given, "strides": lhs_dilation, "lhs_dilation": strides, "padding": before}
        return in_phases(conv, lhs, sizes, rev(rhs, spatial), exchanged)
    x = padded_operand(lhs, padding, lhs_dilation)
    alone = {**given, "strides": strides, "padding": ((0, 0),) * rank, "lhs_dilation": (1,) * rank}
    if any(d != 1 for d in lhs_dilation) and has_nest(x.type, rhs.type, **alone):
        return conv(x, rhs, **alone)
    windows = sliding_windows(x, spatial, window, strides, rhs_dilation)
    return _contract_windows(windows, rhs, groups, batch_groups, precision, preferred_element_type)


def _contract_windows(
    windows: Any, rhs: Any, groups: int, batch_groups: int, precision: str | None, dtype: DType
) -> Any:
    """Contract windows [N, C, *positions, *window] with rhs, the longer of the two last axes innermost in memory."""
    window = rhs.type.shape[2:]
    rank = len(window)
    batch, features, *outs = windows.shape[: 2 + rank]
    split = (groups, batch // groups, features) if batch_groups > 1 else (batch, groups, features // groups)
    lead = (0, 2, 1) if batch_groups > 1 else (1, 2, 0)  # where groups, features and batch are then
    windows = reshape(windows, (*split, *outs, *window))
    places, within = (lead[2], *range(3, 3 + rank)), (lead[1], *range(3 + rank, 3 + 2 * rank))
    inner, outer = rhs.type.shape[1] * shapes.size(window), rhs.type.shape[0] // groups
    columns = batch // batch_groups * shapes.size(outs)
    weights = reshape(rhs, (groups, outer, inner))
    if not rank or outs[-1] >= window[-1]:
        patches = reshape(transpose(windows, (lead[0], *within, *places)), (groups, inner, columns))
        contracted = ((2,), (1,))
    else:
        patches = reshape(transpose(windows, (lead[0], *places, *within)), (groups, columns, inner))
        contracted = ((2,), (2,))
    result = contract(weights, patches, (contracted, ((0,), (0,))), precision, dtype)
    result = reshape(result, (rhs.type.shape[0], batch // batch_groups, *outs))
    return moveaxis(result, 0, 1)


def padded_operand(lhs: Any, padding: Padding, lhs_dilation: Shape) -> Any:
    """Dilate and pad the first operand for its windows."""
    zero = as_literal(lhs.type.dtype.type(0), lhs.type.dtype)
    return padded(lhs, zero, ((0, 0), (0, 0), *padding), (1, 1, *lhs_dilation))


# Derivatives: both transposes are convolutions


def _lhs_cotangent(ct: Any, lhs: Any, rhs: Any, params: dict[str, Any]) -> Any:
    """Convolve the cotangent with the reversed window, its in and out features exchanged."""
    groups = params["feature_groups"] * params["batch_groups"]
    ct, rhs = cotangent_operands(ct, rhs)
    out_features, in_features, *window = rhs.type.shape
    weights = reshape(rhs, (groups, out_features // groups, in_features, *window))
    weights = reshape(moveaxis(weights, 1, 2), (groups * in_features, out_features // groups, *window))
    by_phase = has_phases(params["strides"], params["lhs_dilation"], params["rhs_dilation"])
    if by_phase and 0 not in (*ct.shape, *lhs.type.shape):
        dtype = lhs.type.dtype
        result = in_phases(conv, ct, lhs.type.shape[2:], weights, {**params, "preferred_element_type": dtype})
    else:
        result = _spread_cotangent(ct, lhs, weights, params)
    if params["batch_groups"] > 1:  # [N', groups * C, ...]: the groups belong to the batch
        split = reshape(result, (result.shape[0], groups, in_features, *result.shape[2:]))
        result = reshape(moveaxis(split, 1, 0), lhs.type.shape)
    return result


def _spread_cotangent(ct: Any, lhs: Any, weights: Any, params: dict[str, Any]) -> Any:
    """Convolve the cotangent, spread by the strides with zeros between."""
    groups, rank = params["feature_groups"] * params["batch_groups"], len(params["strides"])
    window = weights.shape[2:]
    padding = []
    for axis in range(rank):
        extent = dilated(window[axis], params["rhs_dilation"][axis])
        spread = dilated(ct.type.shape[2 + axis], params["strides"][axis])
        before = extent - params["padding"][axis][0] - 1
        whole = dilated(lhs.type.shape[2 + axis], params["lhs_dilation"][axis])
        padding.append((before, whole + extent - 1 - spread - before))
    return conv(
        ct, rev(weights, tuple(range(2, 2 + rank))), strides=params["lhs_dilation"], padding=tuple(padding),
        lhs_dilation=params["strides"], rhs_dilation=params["rhs_dilation"], feature_groups=groups,
        precision=params["precision"], preferred_element_type=lhs.type.dtype,
    )  # fmt: skip


def _rhs_cotangent(ct: Any, lhs: Any, rhs: Any, params: dict[str, Any]) -> Any:
    """Convolve lhs with the cotangent as the window. Batch and features are exchanged on both sides."""
    ct, lhs = cotangent_operands(ct, lhs)
    padding = []
    for axis, (before, _) in enumerate(params["padding"]):
        extent = dilated(rhs.type.shape[2 + axis], params["rhs_dilation"][axis])
        spread = dilated(ct.type.shape[2 + axis], params["strides"][axis])
        whole = dilated(lhs.type.shape[2 + axis], params["lhs_dilation"][axis])
        padding.append((before, spread - whole + extent - 1 - before))
    result = conv(
        moveaxis(lhs, 0, 1), moveaxis(ct, 0, 1), strides=params["rhs_dilation"], padding=tuple(padding),
        lhs_dilation=params["lhs_dilation"], rhs_dilation=params["strides"],
        feature_groups=params["batch_groups"], batch_groups=params["feature_groups"],
        precision=params["precision"], preferred_element_type=rhs.type.dtype,
    )  # fmt: skip
    return moveaxis(result, 0, 1)


def _transpose(ctx: Any, cts: Any, xs: Any, **params: Any) -> list[Any]:
    (ct,), (lhs, rhs) = cts, one_linear("conv", xs)
    if 0 in (*ct.type.shape, *lhs.type.shape, *rhs.type.shape):  # there are no products: windows may be of no elements
        return [ctx.zeros(x.type) if is_linear(x) else None for x in (lhs, rhs)]
    return [
        _lhs_cotangent(ct, lhs, rhs, params) if is_linear(lhs) else None,
        _rhs_cotangent(ct, lhs, rhs, params) if is_linear(rhs) else None,
    ]


# Batching: the batch is folded into lhs's batch, rhs's output features, or more groups


def _fold(x: Any, axis: int, groups: int = 1) -> Any:
    """Merge the leading batch axis into an axis (counted without it), inside its `groups`."""
    size, *sizes = x.type.shape
    split = (*sizes[:axis], groups, sizes[axis] // groups, *sizes[axis + 1 :])
    x = moveaxis(reshape(x, (size, *split)), 0, axis + 1)
    return reshape(x, (*sizes[:axis], size * sizes[axis], *sizes[axis + 1 :]))


def _unfold(x: Any, axis: int, size: int, groups: int = 1) -> Any:
    """Undo `_fold`: the batch axis leads again."""
    sizes = x.type.shape
    inner = sizes[axis] // (size * groups)
    x = moveaxis(reshape(x, (*sizes[:axis], groups, size, inner, *sizes[axis + 1 :])), axis + 1, 0)
    return reshape(x, (size, *sizes[:axis], groups * inner, *sizes[axis + 1 :]))


def _batch(ctx: Any, xs: Sequence[Operand], axes: Sequence[int | None], **params: Any) -> Batched:
    feature_groups, batch_groups = params["feature_groups"], params["batch_groups"]
    lhs, rhs = (x if axis is None else ctx.to_front(x, axis) for x, axis in zip(xs, axes, strict=True))
    if axes[1] is None:
        result = conv(_fold(lhs, 0, batch_groups), rhs, **params)
        return [_unfold(result, 0, ctx.size)], [0]
    if axes[0] is None:
        groups = feature_groups * batch_groups
        result = conv(lhs, _fold(rhs, 0, groups), **params)
        return [_unfold(result, 1, ctx.size, groups)], [0]
    if batch_groups > 1:
        params["batch_groups"] = ctx.size * batch_groups
        result = conv(_fold(lhs, 0), _fold(rhs, 0), **params)
    else:
        params["feature_groups"] = ctx.size * feature_groups
        result = conv(_fold(lhs, 1), _fold(rhs, 0), **params)
    return [_unfold(result, 1, ctx.size)], [0]


def conv(
    lhs: Operand, rhs: Operand, *, strides: Shape, padding: Padding, lhs_dilation: Shape, rhs_dilation: Shape,
    feature_groups: int = 1, batch_groups: int = 1, precision: str | None = None, preferred_element_type: DType,
) -> Array:  # fmt: skip
    """Bind the primitive in its own layout. See the module's docstring."""
    return bind(
        conv_p, lhs, rhs, strides=strides, padding=padding, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
        feature_groups=feature_groups, batch_groups=batch_groups, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


conv_p: Primitive = Primitive(
    name="conv", infer=_infer, reference=quiet(_reference),
    jvp=products_jvp(conv), transpose=_transpose,
    batch=_batch, lower=Composite(_expand, has_nest, "conv", computes=True), eager=Eager.COMPILED,
)  # fmt: skip

CONVOLUTION = (conv_p,)
