"""Images: interpolation of an array between its elements."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy import absolute, clip, floor, pad, where
from tracer.numpy.core.conversion import array_of, floating
from tracer.numpy.core.promotion import require_real
from tracer.primitives.elementwise.rounding import RoundingMethod
from tracer.primitives.elementwise.rounding import round as nearest
from tracer.scipy.ndimage.splines import DEGREES, check_order, coefficients, weights
from tracer.trace.array import Array
from tracer.trace.source import here


def map_coordinates(
    input: Any, coordinates: Sequence[Any], order: int = 3, mode: str = "constant", cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:  # fmt: skip
    """Interpolate an array at real coordinates.

    input: numbers [*s]; coordinates: real numbers [*r] for each of its axes; order: 0 for the nearest (halves
    away from zero), 1 for linear interpolation, or a spline degree of 2 to 5. prefilter: False for an input that
    holds the splines' coefficients, as of `spline_filter`. mode: values beyond the ends: "constant", "nearest", "wrap",
    "mirror" (about the outermost elements) or "reflect" (about their edges); cval: the constant. Interpolation
    continues across the ends: "constant" and "wrap" are SciPy's "grid-constant" and "grid-wrap", which are names for
    them. Returns input's dtype [*r]; integers are rounded. Raises ArgumentError for another order or mode, ShapeError
    for another number of coordinates.

    >>> image = tnp.asarray([[0.0, 1.0], [2.0, 3.0]])
    >>> tracer.scipy.ndimage.map_coordinates(image, [tnp.asarray([0.5, 1.0]), tnp.asarray([0.5, 0.25])], order=1)
    Array([1.5 , 2.25], f64)
    """
    x = array_of(_NAME, input)
    positions = [array_of(_NAME, along) for along in coordinates]
    for along in positions:
        require_real(_NAME, along.dtype, along)
    if len(positions) != x.ndim or not x.ndim:
        text = f"{_NAME}{here()}: the number of coordinates is not that of the axes"
        got = f"got {len(positions)} for {x.type}"
        raise ShapeError(message(text, got, help="give one array of coordinates for each axis"))
    return interpolated(_NAME, x, positions, order, mode, cval, prefilter)


def interpolated(
    name: str, x: Array, positions: list[Array], order: int, mode: str, cval: Any, prefilter: bool
) -> Array:  # fmt: skip
    """Interpolate x [*s] at positions along its first axes, which broadcast together. Returns x's dtype.

    Modes as in `map_coordinates`. Raises ArgumentError for another order or mode.
    """
    mode, dtype = _SAME.get(mode, mode), x.dtype
    check_order(name, order)
    if mode not in _INDICES:
        raise ArgumentError(
            message(f"{name}{here()}: no such mode", f"got {mode!r}", help=f"there are {', '.join(_INDICES)}")
        )
    if order in DEGREES and prefilter:
        x, positions = _filtered(name, x, positions, order, mode, cval)
    parts = [_PARTS[order](along) if order < 2 else weights(floating(along), order) for along in positions]
    outside = array_of(name, cval)
    outside = outside.astype(x.dtype) if dtypes.is_inexact(x.dtype) else outside
    rest = (..., *[None] * (x.ndim - len(parts)))
    result: Any = 0
    for corner in itertools.product(*parts):
        found, share, inside = [], None, None
        for (position, weight), size in zip(corner, x.shape[: len(parts)], strict=True):
            found.append(_INDICES[mode](position, size))
            share = weight if share is None or weight is None else share * weight
            if mode == "constant":
                within = (position >= 0) & (position < size)
                inside = within if inside is None else inside & within
        value = x.at[tuple(found)].get(mode="clip")
        if inside is not None:
            value = where(inside[rest], value, outside)
        result = result + (value if share is None else share[rest] * value)
    return in_dtype(result, dtype)


def _filtered(
    name: str, x: Array, positions: list[Array], order: int, mode: str, cval: Any
) -> tuple[Array, list[Array]]:  # fmt: skip
    """Return the coefficients of splines, and the positions among them.

    An array that goes on by a constant or its outermost elements is wider, for filters have no such boundary.
    """
    if mode in ("constant", "nearest"):
        widths = [(_WIDTH, _WIDTH)] * len(positions) + [(0, 0)] * (x.ndim - len(positions))
        options = {"constant_values": cval} if mode == "constant" else {}
        x = pad(x, widths, "constant" if mode == "constant" else "edge", **options)
        positions = [along + _WIDTH for along in positions]
    boundary = {"constant": "grid-constant", "wrap": "grid-wrap"}.get(mode, mode)
    return coefficients(name, x, order, boundary, len(positions)), positions


_NAME = "map_coordinates"
_WIDTH = 12  # elements by which SciPy widens arrays for splines
_Part = tuple[Array, Any]  # indices of elements, and their weights; None for 1


def _nearest(along: Array) -> list[_Part]:
    rounded = nearest(floating(along), RoundingMethod.AWAY_FROM_ZERO)
    return [(rounded.astype(dtypes.I64), None)]


def _linear(along: Array) -> list[_Part]:
    position = floating(along)
    below = floor(position)
    share = position - below
    index = below.astype(dtypes.I64)
    return [(index, 1 - share), (index + 1, share)]


_PARTS: dict[int, Callable[[Array], list[_Part]]] = {0: _nearest, 1: _linear}


def _mirrored(position: Array, size: int) -> Array:
    """Return indices reflected about the outermost elements."""
    last = size - 1
    return absolute((position + last) % (2 * last) - last) if last else position * 0


_SAME = {"grid-constant": "constant", "grid-wrap": "wrap", "grid-mirror": "reflect"}
_INDICES: dict[str, Callable[[Array, int], Array]] = {
    "constant": lambda position, size: position,
    "nearest": lambda position, size: clip(position, 0, size - 1),
    "wrap": lambda position, size: position % size,
    "mirror": _mirrored,
    "reflect": lambda position, size: _mirrored(2 * position + 1, 2 * size + 1) // 2,
}


def in_dtype(result: Array, dtype: dtypes.DType) -> Array:
    """Cast to an input's dtype; integers are rounded, halves away from zero, and unsigned ones held in their range."""
    if dtypes.is_integer(dtype) and dtypes.is_float(result.dtype):
        result = nearest(result, RoundingMethod.AWAY_FROM_ZERO)
        if dtypes.is_unsigned(dtype):
            result = clip(result, 0, np.iinfo(str(dtype)).max)
    return result.astype(dtype)
