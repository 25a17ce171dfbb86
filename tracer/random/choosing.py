"""Random choice of elements: permutation, choice, categorical."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.types import Shape
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers
from tracer.primitives.arrays.indexing.gather import gather
from tracer.primitives.arrays.random import random_bits
from tracer.primitives.arrays.reductions.reductions import argmax
from tracer.primitives.arrays.slice_pad_concatenate import slice
from tracer.primitives.arrays.sorting import sort, top_k
from tracer.primitives.base.broadcasting import axis_of, broadcast_in_dim, expand_dims
from tracer.primitives.base.shapes import iota, moveaxis, reshape, squeeze
from tracer.primitives.control.cumulative import cumsum
from tracer.primitives.elementwise.arithmetic import add, mul, sub
from tracer.primitives.elementwise.bits import and_
from tracer.primitives.elementwise.comparison import lt, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.exponential import log
from tracer.random.arguments import Parameter, broadcasts_to, cast, fitted, inexact, one_key, operand, shape_of
from tracer.random.continuous import gumbel_of
from tracer.random.keys import split_keys
from tracer.random.uniform import randint, uniform_of
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.source import here


def permutation(key: Parameter, x: Parameter, axis: int = 0, independent: bool = False) -> Array:
    """Permute the elements of `x` along an axis, or of range(x) for an integer x.

    x: an integer, or [*s]; axis: the shuffled axis; independent: whether to shuffle every vector along the axis
    separately. Returns [*s], of x's dtype, or `config.default_int` [x].

    >>> tracer.random.permutation(tracer.random.key(0), 5)
    Array([0, 1, 4, 3, 2], i64)
    """
    keys, whole = one_key("permutation", key), operand("permutation", x)
    if not whole.type.shape:
        return _shuffled(keys, iota(config.default_int, _count("permutation", x)), 0)
    assert isinstance(whole, Array)
    along = axis_of("random.permutation", axis, whole.ndim)
    if independent or whole.ndim == 1:
        return _shuffled(keys, whole, along)
    return _taken(whole, _shuffled(keys, iota(dtypes.I64, whole.shape[along]), 0), along)


def _shuffled(key: Array, x: Array, axis: int) -> Array:
    """Sort by random 32-bit words, repeatedly, so that ties in all sorts are unlikely: as many sorts as in JAX."""
    sorts = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(sorts):
        key, subkey = split_keys(key, 2)
        _, x = sort((random_bits(subkey, 32, x.shape), x), dimension=axis)
    return x


def choice(
    key: Parameter, a: Parameter, shape: Any = (), replace: bool = True, p: Parameter | None = None, axis: int = 0,
    mode: str | None = None,
) -> Array:  # fmt: skip
    """Choose elements of `a` along an axis, or of range(a) for an integer, uniformly or by probabilities `p`.

    a: [*s], or an integer; axis: of the elements; replace: whether an element may come twice. p: [n], need not sum to
    1. mode: of `gumbel`, which draws by `p` without replacement. Returns `shape`, () for one draw, in place of the
    axis, in a's dtype, or `config.default_int`. Raises ShapeError for more draws than elements without replacement, and
    for a `p` of another size.

    >>> tracer.random.choice(tracer.random.key(0), 5, (3,), replace=False)
    Array([0, 1, 4], i64)
    """
    keys, whole, sizes = one_key("choice", key), operand("choice", a), shape_of("choice", shape)
    along = axis_of("random.choice", axis, len(whole.type.shape)) if whole.type.shape else 0
    count = whole.type.shape[along] if whole.type.shape else _count("choice", a)
    draws = math.prod(sizes)
    _check_draws(count, draws, replace)
    if p is not None:
        found = _drawn_by(keys, p, count, sizes, replace, mode)
    elif replace:
        found = randint(keys, sizes, 0, count)
    else:
        found = slice(permutation(keys, count), (0,), (draws,))
    if not whole.type.shape:
        return _reshaped(convert_element_type(found, config.default_int), sizes)
    assert isinstance(whole, Array)
    if p is None and not replace:  # JAX shuffles the array itself, which gives other elements than shuffled indices
        shuffled = permutation(keys, whole, along)
        limits = tuple(draws if d == along else n for d, n in enumerate(whole.shape))
        taken = slice(shuffled, (0,) * whole.ndim, limits)
    else:
        taken = _taken(whole, found, along)
    return _reshaped(taken, (*whole.shape[:along], *sizes, *whole.shape[along + 1 :]))


def _check_draws(count: int, draws: int, replace: bool) -> None:
    if draws and (count < 1 or (draws > count and not replace)):
        raise ShapeError(
            message(
                f"random.choice{here()}: more draws than elements",
                f"got {draws} draws of {count} elements{'' if replace else ' without replacement'}",
                help="draw fewer, or with replace=True" if count else "there must be an element to draw",
            )
        )


def _drawn_by(key: Array, p: Parameter, count: int, shape: Shape, replace: bool, mode: str | None) -> Array:
    """Draw indices by probabilities: by inverting the cumulative sum, or as the argmax of log p + gumbel."""
    given = operand("choice", p)
    if given.type.shape != (count,):
        raise ShapeError(
            message(
                f"random.choice{here()}: p has one probability for every element",
                f"got {given.type} for {count} elements",
                help="reshape it to one axis",
            )
        )
    dtype = inexact(given)
    weights = fitted(given, (count,), dtype)
    if replace:
        total = cumsum(weights)
        last = squeeze(slice(total, (count - 1,), (count,)), (0,))
        level = mul(broadcast_in_dim(last, shape, ()), sub(1, uniform_of(key, shape, dtype)))
        return _count_below(total, level)
    scores = add(gumbel_of(key, (count,), dtype, mode), log(weights))
    found: Array = convert_element_type(top_k(scores, math.prod(shape))[1], dtypes.I64)
    return found


def _count_below(ascending: Array, wanted: Array) -> Array:
    """Count the elements of an ascending vector below each wanted value: i64, by binary search."""
    count = ascending.shape[0]
    found = convert_element_type(broadcast_in_dim(operand("choice", 0), wanted.shape, ()), dtypes.I64)
    for bit in reversed(range(count.bit_length())):
        probe = add(found, 2**bit - 1)
        below = and_(lt(probe, count), lt(_taken(ascending, probe, 0), wanted))
        found = select(below, add(probe, 1), found)
    result: Array = found
    return result


def categorical(
    key: Parameter, logits: Parameter, axis: int = -1, shape: Any = None, replace: bool = True, mode: str | None = None
) -> Array:
    """Draw indices along an axis, with probabilities proportional to exp(logits): the argmax of logits + gumbel.

    logits: real [*s]; axis: by default the last; shape: of the result, by default the shape of the logits without the
    axis, with which any other must end. replace: whether, for a longer `shape`, an index may come twice. mode: of
    `gumbel`. Returns i64; as in JAX, i32 without replacement.

    >>> tracer.random.categorical(tracer.random.key(0), [0.0, 1.0, 2.0], shape=(4,))
    Array([2, 2, 2, 1], i64)
    """
    keys, given = one_key("categorical", key), operand("categorical", logits)
    along = axis_of("random.categorical", axis, len(given.type.shape))
    scores = cast(given, inexact(given))
    batch, count = shapes.drop(given.type.shape, (along,)), given.type.shape[along]
    sizes = batch if shape is None else shape_of("categorical", shape)
    prefix = sizes[: len(sizes) - len(batch)]
    if not broadcasts_to(batch, sizes[len(prefix) :]):
        raise ShapeError(
            message(
                f"random.categorical{here()}: the shape must end in the logits' shape without the axis",
                f"got shape {shapes.show(sizes)} for {given.type} and axis {axis}",
                help=f"as in {(*prefix, *batch)}",
            )
        )
    dtype = inexact(given)
    if replace:
        drawn = list(sizes[len(prefix) :])
        drawn.insert(along, count)
        noise = gumbel_of(keys, (*prefix, *drawn), dtype, mode)
        result: Array = argmax(add(noise, fitted(scores, noise.shape, dtype)), len(prefix) + along)
        return result
    _check_draws(count, math.prod(prefix), replace)
    noisy = add(gumbel_of(keys, given.type.shape, dtype, mode), scores)
    found = moveaxis(top_k(moveaxis(noisy, along, len(batch)), math.prod(prefix))[1], len(batch), 0)
    return _reshaped(found, sizes)


def _taken(x: Array, indices: Array, axis: int) -> Array:
    """Return x at indices in range along an axis; the axes of the indices replace that axis."""
    before, rank = tuple(range(axis)), len(indices.shape)
    offsets = (*before, *range(axis + rank, x.ndim - 1 + rank))
    numbers = GatherDimensionNumbers(offsets, (axis,), (axis,))
    sizes = tuple(1 if d == axis else n for d, n in enumerate(x.shape))
    taken: Array = gather(x, expand_dims(indices, (rank,)), numbers, sizes, mode="clip")
    return taken


def _reshaped(x: Any, shape: Shape) -> Array:
    result: Array = reshape(x, shape)
    return result


def _count(name: str, x: Parameter) -> int:
    """Return a concrete number of elements."""
    try:
        return operator.index(x.item() if isinstance(x, np.ndarray) else x)
    except TypeError:
        raise ArgumentError(
            message(
                f"random.{name}{here()} takes an array with axes, or an integer", f"got {x!r}", help="as in range(10)"
            )
        ) from None
