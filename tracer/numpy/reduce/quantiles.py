"""Quantiles over axes by NumPy's methods, including or ignoring NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, message
from tracer.ir import dtypes, shape
from tracer.numpy.core.conversion import array_of, cast, no_out
from tracer.numpy.core.promotion import promoted_inexact
from tracer.numpy.elementwise.logic import isnan
from tracer.numpy.elementwise.rounding import floor
from tracer.numpy.reduce.cumulative import cumsum
from tracer.numpy.reduce.reductions import Axis, axes_argument, sum
from tracer.numpy.reduce.sorting import argsort, sort
from tracer.numpy.reduce.statistics import spread_weights
from tracer.numpy.shapes.creation import full
from tracer.numpy.shapes.manipulation import expand_dims, moveaxis
from tracer.numpy.shapes.take import take_along_axis
from tracer.numpy.shapes.where import where
from tracer.primitives.base.shapes import reshape
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here

# The index of a quantile is n q + alpha + q (1 - alpha - beta) - 1: Hyndman & Fan 1996, Am. Statistician 50(4).
_CONTINUOUS = {
    "linear": (1.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0), "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8), "interpolated_inverted_cdf": (0.0, 1.0),
}  # fmt: skip


def _even(low: Array) -> Array:
    return low % 2 == 0


# The index of a quantile, and the weight of its upper neighbour from the fractional part and the lower index.
_DISCRETE: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "lower": (lambda n, q: (n - 1) * q, lambda share, low: where(share < 2, 0.0, share)),
    "higher": (lambda n, q: (n - 1) * q, lambda share, low: where(share > 0, 1.0, 0.0)),
    "midpoint": (lambda n, q: (n - 1) * q, lambda share, low: where(share > 0, 0.5, 0.0)),
    "nearest": (
        lambda n, q: (n - 1) * q,
        lambda share, low: where((share > 0.5) | ((share == 0.5) & ~_even(low)), 1.0, 0.0),
    ),
    "inverted_cdf": (lambda n, q: n * q - 1, lambda share, low: where(share > 0, 1.0, 0.0)),
    "averaged_inverted_cdf": (lambda n, q: n * q - 1, lambda share, low: where(share > 0, 1.0, 0.5)),
    "closest_observation": (
        lambda n, q: n * q - 1.5, lambda share, low: where((share == 0) & ~_even(low), 0.0, 1.0),
    ),
}  # fmt: skip


def quantile(
    a: Any, q: Any, axis: Axis = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None, interpolation: str | None = None,
) -> Array:  # fmt: skip
    """Return the q-th quantiles, 0 <= q <= 1, over axes: [*shape of q, *s minus axes]. NaN if an element is NaN.

    a: real [*s]; q: numbers in [0, 1], any shape; axis: one or several, by default all. Returns floats of a's
    precision; integers give float32 up to 32 bits, else the default float. method: between two elements: "linear",
    "lower", "higher", "midpoint", "nearest"; or by an estimate of the distribution: "inverted_cdf",
    "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
    "normal_unbiased" (Hyndman & Fan 1996, Am. Stat. 50(4)). weights: [*s], or the sizes of the axes, for "inverted_cdf"
    only. Raises DTypeError for complex numbers, ArgumentError for an unknown method and q out of range.

    >>> tnp.quantile([1.0, 2.0, 3.0, 4.0], [0.25, 0.5])
    Array([1.75, 2.5 ], f64)
    """
    del overwrite_input
    return _quantile("quantile", a, q, axis, out, interpolation or method, keepdims, weights, skip=False)


def percentile(
    a: Any, q: Any, axis: Axis = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None, interpolation: str | None = None,
) -> Array:  # fmt: skip
    """Return `quantile` of q / 100.

    a: real [*s]; q: percent in [0, 100], any shape; axis: one or several, by default all; method, keepdims, weights: as
    in `quantile`. Returns floats [*shape of q, *s minus axes]. Raises DTypeError for complex numbers.

    >>> tnp.percentile([1.0, 2.0, 3.0, 4.0], 50)
    Array(2.5, f64)
    """
    del overwrite_input
    part = array_of("percentile", q) / 100
    return _quantile("percentile", a, part, axis, out, interpolation or method, keepdims, weights, skip=False)


def nanquantile(
    a: Any, q: Any, axis: Axis = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None, interpolation: str | None = None,
) -> Array:  # fmt: skip
    """Return `quantile` of the elements that are not NaN; NaN if there are none.

    a, q, axis, method, keepdims, weights: as in `quantile`. Returns floats [*shape of q, *s minus axes].

    >>> tnp.nanquantile([1.0, tnp.nan, 3.0], 0.5)
    Array(2., f64)
    """
    del overwrite_input
    return _quantile("nanquantile", a, q, axis, out, interpolation or method, keepdims, weights, skip=True)


def nanpercentile(
    a: Any, q: Any, axis: Axis = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None, interpolation: str | None = None,
) -> Array:  # fmt: skip
    """Return `percentile` of the elements that are not NaN; NaN if there are none.

    a, q, axis, method, keepdims, weights: as in `percentile`. Returns floats [*shape of q, *s minus axes].

    >>> tnp.nanpercentile([1.0, tnp.nan, 3.0], 50)
    Array(2., f64)
    """
    del overwrite_input
    part = array_of("nanpercentile", q) / 100
    return _quantile("nanpercentile", a, part, axis, out, interpolation or method, keepdims, weights, skip=True)


def nanmedian(
    a: Any, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Return the median of the elements that are not NaN; NaN if there are none.

    a: [*s]; axis: one or several, by default all. Returns [*s minus axes], in the dtype of `median`. Complex numbers
    are sorted by real, then by imaginary part.

    >>> tnp.nanmedian([1.0, tnp.nan, 3.0])
    Array(2., f64)
    """
    del overwrite_input
    return _quantile("nanmedian", a, 0.5, axis, out, "midpoint", keepdims, None, skip=True)


def _quantile(
    name: str, a: Any, q: Any, axis: Axis, out: object, method: str, keepdims: bool, weights: Any, *, skip: bool
) -> Array:
    no_out(name, out)
    (x,) = promoted_inexact(name, a)
    (parts,) = promoted_inexact(name, array_of(name, q))
    if dtypes.is_complex(x.dtype) and name != "nanmedian":
        raise DTypeError(message(f"{name}{here()}: complex numbers have no order", f"got {x.type}"))
    axes = axes_argument(name, x, axis)
    if not shape.size([x.shape[d] for d in axes]) and not skip and parts.size:
        raise ArgumentError(message(f"{name}{here()}: an empty array has no quantiles", f"got {x.type}"))
    known = concrete_value(parts)
    if known is not None and not ((known >= 0) & (known <= 1)).all():
        outside = known[~((known >= 0) & (known <= 1))][0] * (100 if name.endswith("percentile") else 1)
        raise ArgumentError(
            message(f"{name}{here()}: a quantile lies between 0 and 1, a percentile up to 100", f"got {outside:g}")
        )
    shares = None
    if weights is not None:
        if method != "inverted_cdf":
            raise ArgumentError(message(f'{name}{here()} takes weights with method="inverted_cdf"', f"got {method!r}"))
        shares = spread_weights(name, x, weights, axis)
    return _found(name, x, parts, axes, method, keepdims, skip, shares)


@cached
def _found(
    name: str, x: Array, parts: Array, axes: tuple[int, ...], method: str, keepdims: bool, skip: bool,
    weights: Array | None,
) -> Array:  # fmt: skip
    """Return the quantiles, after all checks of values."""
    lead, rows = shape.drop(x.shape, axes), _rows(x, axes)
    ordered = sort(rows, axis=-1)
    if not ordered.shape[-1]:
        ordered, weights = full((*lead, 1), np.nan, x.dtype), None
    count = sum(~isnan(ordered), -1, keepdims=True).astype(dtypes.F64) if skip else ordered.shape[-1]
    flat = reshape(parts, (parts.size,))
    if weights is None:
        found = _of_sorted(name, ordered, count, flat, method)
    else:
        found = _weighted(ordered, take_along_axis(_rows(weights, axes), argsort(rows, axis=-1), -1), flat)
    last = ordered[..., -1:] if not skip else ordered[..., :1]
    found = where(isnan(last), np.nan, found)
    result = cast(reshape(moveaxis(found, -1, 0), (*parts.shape, *lead)), x.dtype)
    return expand_dims(result, tuple(parts.ndim + d for d in axes)) if keepdims and axes else result


def _rows(x: Array, axes: tuple[int, ...]) -> Array:
    """Move some axes to one last axis."""
    moved = moveaxis(x, axes, tuple(range(-len(axes), 0))) if axes else expand_dims(x, -1)
    return reshape(moved, (*shape.drop(x.shape, axes), shape.size([x.shape[d] for d in axes])))


def _weighted(ordered: Array, weights: Array, parts: Array) -> Array:
    """Return the first elements of sorted rows [..., n] whose cumulative weight reaches a share: [..., parts]."""
    sums = cumsum(where(isnan(ordered), 0, weights.astype(dtypes.F64)), -1)
    below = (sums == 0)[..., None, :] | ((sums / sums[..., -1:])[..., None, :] < parts[:, None])
    return take_along_axis(ordered, sum(below, -1).clip(0, ordered.shape[-1] - 1), -1)


def _of_sorted(name: str, ordered: Array, count: Any, parts: Array, method: str) -> Array:
    """Return the quantiles of sorted rows [..., n], of which the first `count` are not NaN: [..., parts]."""
    parts = parts.astype(dtypes.F64)
    size = ordered.shape[-1]
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        index = count * parts + (alpha + parts * (1 - alpha - beta)) - 1
    elif method in _DISCRETE:
        index = _DISCRETE[method][0](count, parts)
    else:
        known = ", ".join((*_CONTINUOUS, *_DISCRETE))
        raise ArgumentError(message(f"{name}{here()}: no method {method!r}", help=f"one of {known}"))
    low = floor(index)
    share = index - low
    if method in _DISCRETE:
        share = _DISCRETE[method][1](share, low)
    last = count - 1
    indices = [where(i < 0, 0, where(i > last, last, i)).clip(0, size - 1).astype(dtypes.I64) for i in (low, low + 1)]
    lower, upper = (_taken(ordered, i) for i in indices)
    share = share.astype(dtypes.real_dtype(ordered.dtype))
    between = where(share < 0.5, lower + share * (upper - lower), upper - (1 - share) * (upper - lower))
    if name == "nanmedian":  # the mean of the middle two, infinite if one is
        between = (lower + upper) / 2
    return where((share == 0) | (lower == upper), lower, where(share == 1, upper, between))


def _taken(ordered: Array, index: Array) -> Array:
    if index.ndim == 1:
        return ordered[..., index]
    return take_along_axis(ordered, index, -1)
