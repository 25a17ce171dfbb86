"""Rewrites of equations that only move elements: shapes, orders, slices and concatenations. All hold bit for bit.

The resulting forms tell axes apart, since index arithmetic by axes needs no division. Inserting axes of size 1 is a
broadcast, dropping them a squeeze. A reshape is any other change of shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tracer.ir import shape as shapes
from tracer.ir.primitive import Alias
from tracer.ir.program import Atom, Equation, Literal
from tracer.ir.types import ArrayType, size
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.base.rules import Rules
from tracer.primitives.arrays.dynamic_slice import dynamic_slice_p
from tracer.primitives.arrays.random import random_unwrap_p, random_wrap_p
from tracer.primitives.arrays.slice_pad_concatenate import concatenate_p, pad_p, slice_p
from tracer.primitives.arrays.sliding_windows import positions, sliding_windows_p
from tracer.primitives.base.broadcasting import broadcast_in_dim_p
from tracer.primitives.base.shapes import copy_p, reshape_p, rev_p, squeeze_p, transpose_p

_MOVERS = (reshape_p, transpose_p, rev_p, squeeze_p, slice_p, broadcast_in_dim_p, dynamic_slice_p)


def _scalar_of(atom: Atom, at: Rewriter) -> Atom | None:
    """Return the scalar that an array was broadcast from, if it was."""
    broadcast = at.definition(atom, broadcast_in_dim_p)
    return broadcast.inputs[0] if broadcast is not None and not broadcast.inputs[0].type.shape else None


def move_one_value(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite a move of an array of one value to an array of that value."""
    value = _scalar_of(equation.inputs[0], at)
    return None if value is None else at.spread(value, equation.outputs[0].type.shape, ())


def move_nothing(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite an array without elements to zeros, which need no operand."""
    type = equation.outputs[0].type
    if size(type) or not isinstance(type, ArrayType) or isinstance(equation.inputs[0], Literal):
        return None
    return at.zeros(type)


def alias(equation: Equation, at: Rewriter) -> Atom | None:
    """Replace a copy by its operand."""
    return equation.inputs[0] if isinstance(equation.primitive.lower, Alias) else None


def unwrap(equation: Equation, at: Rewriter) -> Atom | None:
    """Cancel wrapping and unwrapping a key's words, in either order."""
    inner = at.definition(equation.inputs[0], random_wrap_p, random_unwrap_p)
    return inner.inputs[0] if inner is not None and inner.primitive is not equation.primitive else None


# Shapes


def _is_expansion(equation: Equation) -> bool:
    """Whether a broadcast only inserts axes of size 1."""
    return size(equation.inputs[0].type) == size(equation.outputs[0].type) and size(equation.outputs[0].type) > 0


def reshape_again(equation: Equation, at: Rewriter) -> Atom | None:
    """Merge a reshape of a reshape, squeeze or expansion into one reshape, or none."""
    x, new = equation.inputs[0], equation.params["new_sizes"]
    if x.type.shape == new:
        return x
    inner = at.definition(x, reshape_p, squeeze_p, broadcast_in_dim_p)
    if inner is None or (inner.primitive is broadcast_in_dim_p and not _is_expansion(inner)):
        return None
    source = inner.inputs[0]
    return source if source.type.shape == new else at.emit(reshape_p, source, new_sizes=new)


def reshape_by_ones(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite a reshape that inserts axes of size 1 to a broadcast, one that drops them to a squeeze."""
    x, new = equation.inputs[0], equation.params["new_sizes"]
    old = x.type.shape
    if len(new) > len(old):
        dims = _matched_axes(old, new)
        return None if dims is None else at.emit(broadcast_in_dim_p, x, shape=new, broadcast_dimensions=dims)
    kept = _matched_axes(new, old)
    if kept is None or len(new) == len(old):
        return None
    return at.emit(squeeze_p, x, dimensions=tuple(axis for axis in range(len(old)) if axis not in kept))


def _matched_axes(short: Sequence[int], long: Sequence[int]) -> tuple[int, ...] | None:
    """Return the axes of the longer shape that hold the shorter one, if every other axis has size 1."""
    axes: list[int] = []
    for axis, n in enumerate(long):
        if len(axes) < len(short) and short[len(axes)] == n:
            axes.append(axis)
        elif n != 1:
            return None
    return tuple(axes) if len(axes) == len(short) else None


def broadcast_again(equation: Equation, at: Rewriter) -> Atom | None:
    """Merge a broadcast of a broadcast into one broadcast."""
    x, params = equation.inputs[0], equation.params
    if x.type.shape == params["shape"]:
        return x
    inner = at.definition(x, broadcast_in_dim_p)
    if inner is None:
        return None
    dims = tuple(params["broadcast_dimensions"][axis] for axis in inner.params["broadcast_dimensions"])
    return at.emit(broadcast_in_dim_p, inner.inputs[0], shape=params["shape"], broadcast_dimensions=dims)


def squeeze_again(equation: Equation, at: Rewriter) -> Atom | None:
    """Merge a squeeze of a squeeze into one squeeze, of a reshape into one reshape."""
    x, dims = equation.inputs[0], equation.params["dimensions"]
    if not dims:
        return x
    inner = at.definition(x, squeeze_p, reshape_p)
    if inner is None:
        return None
    if inner.primitive is reshape_p:
        return at.emit(reshape_p, inner.inputs[0], new_sizes=equation.outputs[0].type.shape)
    kept = [axis for axis in range(len(inner.inputs[0].type.shape)) if axis not in inner.params["dimensions"]]
    dropped = (*inner.params["dimensions"], *(kept[axis] for axis in dims))
    return at.emit(squeeze_p, inner.inputs[0], dimensions=tuple(sorted(dropped)))


def squeeze_inserted(equation: Equation, at: Rewriter) -> Atom | None:
    """Merge a squeeze of a broadcast into a broadcast without the squeezed axes."""
    inner = at.definition(equation.inputs[0], broadcast_in_dim_p)
    if inner is None:
        return None
    source, dropped = inner.inputs[0], equation.params["dimensions"]
    dims = inner.params["broadcast_dimensions"]
    own = tuple(position for position, axis in enumerate(dims) if axis in dropped)
    if own:
        source = at.emit(squeeze_p, source, dimensions=own)
    moved = tuple(axis - sum(d < axis for d in dropped) for axis in dims if axis not in dropped)
    return at.spread(source, equation.outputs[0].type.shape, moved)


def transpose_again(equation: Equation, at: Rewriter) -> Atom | None:
    """Merge a transpose of a transpose into one transpose, or none."""
    x, order = equation.inputs[0], equation.params["permutation"]
    if order == tuple(range(len(order))):
        return x
    inner = at.definition(x, transpose_p)
    if inner is None:
        return None
    return at.emit(transpose_p, inner.inputs[0], permutation=tuple(inner.params["permutation"][axis] for axis in order))


def transpose_broadcast(equation: Equation, at: Rewriter) -> Atom | None:
    """Merge a transpose of a broadcast into another broadcast, if the operand's axes keep their order."""
    inner = at.definition(equation.inputs[0], broadcast_in_dim_p)
    if inner is None:
        return None
    back = shapes.inverse(equation.params["permutation"])
    dims = tuple(back[axis] for axis in inner.params["broadcast_dimensions"])
    if list(dims) != sorted(dims):
        return None
    return at.spread(inner.inputs[0], equation.outputs[0].type.shape, dims)


def transpose_expansion(equation: Equation, at: Rewriter) -> Atom | None:
    """Swap a transpose and the insertion of axes of size 1 before it."""
    inner = at.definition(equation.inputs[0], broadcast_in_dim_p)
    if inner is None or not _is_expansion(inner):
        return None
    back = shapes.inverse(equation.params["permutation"])
    dims = [back[axis] for axis in inner.params["broadcast_dimensions"]]
    order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
    moved = at.emit(transpose_p, inner.inputs[0], permutation=order)
    return at.spread(moved, equation.outputs[0].type.shape, tuple(sorted(dims)))


def windows_of_transpose(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite windows of a transpose to a transpose of windows."""
    inner = at.definition(equation.inputs[0], transpose_p)
    if inner is None:
        return None
    order, params = inner.params["permutation"], equation.params
    source = inner.inputs[0]
    windows = at.emit(sliding_windows_p, source, **{**params, "axes": tuple(order[axis] for axis in params["axes"])})
    within = range(len(order), len(order) + len(params["axes"]))
    return at.emit(transpose_p, windows, permutation=(*order, *within))


def windows_longer_than_outputs(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite long windows at few positions to short windows at many, transposed: i s + w d is symmetric.

    A convolution and its gradient by the window then read equal windows.
    """
    x, params = equation.inputs[0], equation.params
    axes, window = params["axes"], params["window"]
    shape = equation.outputs[0].type.shape
    outs = tuple(shape[axis] for axis in axes)
    turned = {"axes": axes, "window": outs, "strides": params["dilations"], "dilations": params["strides"]}
    fits = positions([x.type.shape[axis] for axis in axes], outs, params["dilations"], params["strides"]) == window
    if (
        not fits
        or not axes
        or size(equation.outputs[0].type) == 0
        or any(p >= w for p, w in zip(outs, window, strict=True))
    ):
        return None
    order = list(range(len(shape)))
    for within, axis in enumerate(axes, len(shape) - len(axes)):
        order[axis], order[within] = within, axis
    return at.emit(transpose_p, at.emit(sliding_windows_p, x, **turned), permutation=tuple(order))


def transpose_ones(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite a transpose that only moves axes of size 1 to a reshape."""
    order, sizes = equation.params["permutation"], equation.inputs[0].type.shape
    kept = [axis for axis in order if sizes[axis] != 1]
    if kept != sorted(kept):
        return None
    return at.emit(reshape_p, equation.inputs[0], new_sizes=equation.outputs[0].type.shape)


def rev_again(equation: Equation, at: Rewriter) -> Atom | None:
    """Merge a rev of a rev into one along the axes that just one of them reverses; axes of size 1 need no reversal."""
    x = equation.inputs[0]
    sizes, dims = x.type.shape, set(equation.params["dimensions"])
    source, inner = x, at.definition(x, rev_p)
    if inner is not None:
        source, dims = inner.inputs[0], dims ^ set(inner.params["dimensions"])
    dims = {axis for axis in dims if sizes[axis] != 1}
    if not dims:
        return source
    if source is x and len(dims) == len(equation.params["dimensions"]):
        return None
    return at.emit(rev_p, source, dimensions=tuple(sorted(dims)))


# Parts and wholes


def slice_again(equation: Equation, at: Rewriter) -> Atom | None:
    """Drop a slice of everything; merge a slice of a slice into one slice."""
    x, params = equation.inputs[0], equation.params
    if x.type.shape == equation.outputs[0].type.shape:
        return x
    inner = at.definition(x, slice_p)
    if inner is None:
        return None
    axes = zip(
        inner.params["start_indices"], inner.params["strides"], params["start_indices"], params["strides"],
        equation.outputs[0].type.shape, strict=True,
    )  # fmt: skip
    starts, limits, strides = [], [], []
    for first, step, start, stride, taken in axes:
        starts.append(first + start * step)
        strides.append(step * stride)
        limits.append(starts[-1] + (taken - 1) * strides[-1] + 1 if taken else starts[-1])
    return slice_of(inner.inputs[0], starts, limits, strides, at)


def slice_of(x: Atom, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int], at: Rewriter) -> Atom:
    """Emit a slice."""
    params = {"start_indices": tuple(starts), "limit_indices": tuple(limits), "strides": tuple(strides)}
    return at.emit(slice_p, x, **params)


def slice_of_parts(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite a slice that lies within one part of a concatenation to a slice of that part."""
    inner = at.definition(equation.inputs[0], concatenate_p)
    if inner is None:
        return None
    axis, params = inner.params["dimension"], equation.params
    start, limit = params["start_indices"][axis], params["limit_indices"][axis]
    begin = 0
    for part in inner.inputs:
        end = begin + part.type.shape[axis]
        if begin <= start and limit <= end and start < limit:
            starts, limits = list(params["start_indices"]), list(params["limit_indices"])
            starts[axis], limits[axis] = start - begin, limit - begin
            return slice_of(part, starts, limits, params["strides"], at)
        begin = end
    return None


def concatenate_one(equation: Equation, at: Rewriter) -> Atom | None:
    """Drop parts without elements; return a single part as it is."""
    axis = equation.params["dimension"]
    parts = [x for x in equation.inputs if x.type.shape[axis]] or list(equation.inputs[:1])
    if len(parts) == len(equation.inputs):
        return parts[0] if len(parts) == 1 else None
    return at.emit(concatenate_p, *parts, dimension=axis)


def concatenate_one_value(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite a concatenation of arrays of one equal value to an array of that value."""
    values = [_scalar_of(x, at) for x in equation.inputs]
    first = values[0]
    if not isinstance(first, Literal) or any(not isinstance(v, Literal) or v != first for v in values):
        return None
    return at.spread(first, equation.outputs[0].type.shape, ())


def concatenate_slices(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite consecutive slices of one array to one slice of it, or the array."""
    axis, slices = equation.params["dimension"], [at.definition(x, slice_p) for x in equation.inputs]
    first = slices[0]
    if first is None or len(slices) == 1:
        return None
    end = first.params["start_indices"][axis]
    for part in slices:
        if part is None or part.inputs[0] is not first.inputs[0] or _across(part, axis) != _across(first, axis):
            return None
        if part.params["start_indices"][axis] != end or part.params["strides"][axis] != 1:
            return None
        end = part.params["limit_indices"][axis]
    limits = list(first.params["limit_indices"])
    limits[axis] = end
    return slice_of(first.inputs[0], first.params["start_indices"], limits, first.params["strides"], at)


def _across(part: Equation, axis: int) -> list[Any]:
    """Return a slice's parameters along every axis but one."""
    rows = zip(*(part.params[name] for name in ("start_indices", "limit_indices", "strides")), strict=True)
    return [row for number, row in enumerate(rows) if number != axis]


def pad_with_nothing(equation: Equation, at: Rewriter) -> Atom | None:
    """Drop padding by nothing; rewrite negative padding to a slice; merge padding of one value with that value."""
    x, value = equation.inputs
    config = equation.params["padding_config"]
    if all(low <= 0 and high <= 0 and inner == 0 for low, high, inner in config):
        if not any(low or high for low, high, _ in config):
            return x
        sizes = x.type.shape
        limits = [n + high for n, (_, high, _) in zip(sizes, config, strict=True)]
        return slice_of(x, [-low for low, _, _ in config], limits, [1] * len(config), at)
    inside = _scalar_of(x, at)
    if isinstance(value, Literal) and isinstance(inside, Literal) and inside.bits == value.bits:
        return at.fit(value, equation.outputs[0].type)
    return None


LAYOUTS: Final[Rules] = (
    (_MOVERS, (move_one_value, move_nothing)),
    ((copy_p,), (alias,)),
    ((random_wrap_p, random_unwrap_p), (unwrap,)),
    ((reshape_p,), (reshape_again, reshape_by_ones)),
    ((broadcast_in_dim_p,), (broadcast_again,)),
    ((squeeze_p,), (squeeze_again, squeeze_inserted)),
    ((transpose_p,), (transpose_again, transpose_broadcast, transpose_expansion, transpose_ones)),
    ((sliding_windows_p,), (windows_of_transpose, windows_longer_than_outputs)),
    ((rev_p,), (rev_again,)),
    ((slice_p,), (slice_again, slice_of_parts)),
    ((concatenate_p,), (concatenate_one, concatenate_one_value, concatenate_slices)),
    ((pad_p,), (pad_with_nothing,)),
)
