"""Statistics of samples: ranks, modes, and the standard error of the mean."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.shape import axis_index
from tracer.lax import cummax, cummin
from tracer.numpy import (
    any,
    arange,
    argmax,
    argsort,
    atleast_1d,
    broadcast_to,
    concatenate,
    cumsum,
    full,
    isnan,
    moveaxis,
    nan,
    nanstd,
    ones,
    ravel,
    sort,
    sqrt,
    std,
    sum,
    take_along_axis,
    where,
    zeros,
)
from tracer.numpy.core.conversion import array_of, floating
from tracer.numpy.core.promotion import promoted_inexact, require_real
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.source import here


class ModeResult(NamedTuple):
    """The result of `mode`."""

    mode: Array
    count: Array  # type: ignore[assignment]  # the name that SciPy and JAX give it


_TIES = ("average", "min", "max", "dense", "ordinal")


def rankdata(a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """Return the ranks of the elements along an axis, from 1 on.

    a: real numbers [*s]; method: the rank of equal elements: the "average", "min" or "max" of their ranks; "dense"
    counts them once, "ordinal" ranks them in their order. axis: one, or None for a as a vector. nan_policy: "propagate"
    alone: if there is NaN, all ranks are NaN. Returns floats, of the default dtype, [*s], or [n] without an axis; their
    derivative is 0. Raises ArgumentError for other methods and policies.

    >>> tracer.scipy.stats.rankdata(tnp.asarray([0.0, 2.0, 3.0, 2.0]))
    Array([1. , 2.5, 4. , 2.5], f64)
    """
    x = array_of("rankdata", a)
    require_real("rankdata", x.dtype, x)
    if method not in _TIES or nan_policy != "propagate":
        raise ArgumentError(
            message(
                f"rankdata{here()}: no such method, or nan_policy",
                f"got method={method!r}, nan_policy={nan_policy!r}",
                help=f'methods are {", ".join(_TIES)}; nan_policy is "propagate"',
            )
        )
    along = -1 if axis is None else axis_index(axis, x.ndim, f"rankdata{here()}")
    values = ravel(x) if axis is None else moveaxis(x, along, -1)
    if not values.shape[-1]:
        return floating(values).astype(config.default_float)
    order = argsort(values, axis=-1)
    ascending = take_along_axis(values, order, -1)
    apart = ascending[..., 1:] != ascending[..., :-1]
    edge = ones((*values.shape[:-1], 1), bool)
    ranks = _ranked(method, concatenate([edge, apart], -1), concatenate([apart, edge], -1))
    found = take_along_axis(ranks.astype(config.default_float), argsort(order, axis=-1), -1)
    missing = any(isnan(floating(values)), -1, keepdims=True)
    return moveaxis(where(missing, np.nan, found), -1, along)


def _ranked(method: str, first: Array, last: Array) -> Array:
    """Return the ranks of ascending elements, given which are the first and the last of equal ones."""
    position = broadcast_to(arange(1, first.shape[-1] + 1), first.shape)
    if method == "ordinal":
        return position
    if method == "dense":
        return cumsum(first, -1, dtype=int)
    low_rank = cummax(where(first, position, 0), first.ndim - 1)
    high_rank = cummin(where(last, position, first.shape[-1]), first.ndim - 1, reverse=True)
    return low_rank if method == "min" else high_rank if method == "max" else (low_rank + high_rank) / 2


def mode(a: Any, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """Return the most common element along an axis, the smallest of equally common ones, and its count.

    a: numbers or bool [*s]; axis: one, or None for all elements; nan_policy: with "propagate", NaN counts as equal to
    itself, and as greater than all numbers; "omit" leaves NaN out. keepdims: keep the axis with size 1. Returns a named
    tuple (mode, count): a's dtype and int64 [*s minus the axis]; NaN and 0 of no elements. The mode has the derivative
    of its element of a. Raises ArgumentError for another nan_policy, AxisError if there is no such axis.

    >>> tracer.scipy.stats.mode(tnp.asarray([2, 4, 1, 1, 3, 4]))
    ModeResult(mode=Array(1, i64), count=Array(2, i64))
    """
    if nan_policy not in ("propagate", "omit"):
        raise ArgumentError(
            message(f"mode{here()}: no such nan_policy", f"got {nan_policy!r}", help='"propagate" or "omit"')
        )
    x = atleast_1d(array_of("mode", a))
    along = -1 if axis is None else axis_index(axis, x.ndim, f"mode{here()}")
    values = ravel(x) if axis is None else moveaxis(x, along, -1)
    kept = (1,) * x.ndim if axis is None else tuple(1 if d == along else n for d, n in enumerate(x.shape))
    shape = kept if keepdims else values.shape[:-1]
    if not values.shape[-1]:
        return ModeResult(full(shape, nan), zeros(shape))
    ascending = sort(values, -1)
    both = isnan(ascending[..., 1:]) & isnan(ascending[..., :-1])
    apart = (ascending[..., 1:] != ascending[..., :-1]) & ~both
    position = broadcast_to(arange(values.shape[-1]), values.shape)
    first = concatenate([ones((*values.shape[:-1], 1), bool), apart], -1)
    counts = position - cummax(where(first, position, 0), position.ndim - 1) + 1
    if nan_policy == "omit":
        counts = where(isnan(ascending), 0, counts)
    last = argmax(counts, -1, keepdims=True)
    found = take_along_axis(ascending, last, -1), take_along_axis(counts, last, -1)
    return ModeResult(*(part.reshape(shape) for part in found))


def sem(a: Any, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Array:
    """Return the standard error of the mean: the standard deviation over the square root of the number of elements.

    a: numbers [*s]; axis: one, or None for all elements; ddof: as of `tracer.numpy.std`; nan_policy: "propagate", or
    "omit" to leave NaN out; keepdims: keep the axis with size 1. Returns floats [*s minus the axis]; integers are cast.
    Raises ArgumentError for another nan_policy.

    >>> tracer.scipy.stats.sem(tnp.asarray([1.0, 2.0, 4.0]))
    Array(0.8819171, f64)
    """
    (x,) = promoted_inexact("sem", a)
    if nan_policy not in ("propagate", "omit"):
        raise ArgumentError(
            message(f"sem{here()}: no such nan_policy", f"got {nan_policy!r}", help='"propagate" or "omit"')
        )
    if nan_policy == "omit":
        count = sum(~isnan(x), axis, keepdims=keepdims)
        return nanstd(x, axis, ddof=ddof, keepdims=keepdims) / sqrt(count)
    count = x.size if axis is None else x.shape[axis_index(axis, x.ndim, f"sem{here()}")]
    return std(x, axis, ddof=ddof, keepdims=keepdims) / count**0.5
