"""Images: interpolation of an array between its elements."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy import absolute, clip, floor, where
from tracer.numpy.core.conversion import array_of, floating
from tracer.numpy.core.promotion import require_real
from tracer.primitives.elementwise.rounding import RoundingMethod
from tracer.primitives.elementwise.rounding import round as nearest
from tracer.trace.array import Array
from tracer.trace.source import here


def map_coordinates(
    input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: Any = 0.0
) -> Array:
    """Interpolate an array at real coordinates.

    input: numbers [*s]; coordinates: real numbers [*r] for each of its axes; order: 0 for the nearest element, halves
    away from zero, or 1 for linear interpolation. mode: values beyond the ends: "constant", "nearest", "wrap", "mirror"
    (about the outermost elements) or "reflect" (about their edges); cval: the constant. Interpolation continues across
    the ends: "constant" and "wrap" are SciPy's "grid-constant" and "grid-wrap", which are names for them. Returns
    input's dtype [*r]; integers are rounded. Raises ArgumentError for another order or mode, ShapeError for another
    number of coordinates.

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
    return interpolated(_NAME, x, positions, order, mode, cval)


def interpolated(name: str, x: Array, positions: list[Array], order: int, mode: str, cval: Any) -> Array:
    """Interpolate x [*s] at positions along its first axes, which broadcast together. Returns x's dtype.

    Modes as in `map_coordinates`. Raises ArgumentError for another order or mode.
    """
    mode = _SAME.get(mode, mode)
    if order not in _PARTS:
        raise ArgumentError(
            message(f"{name}{here()}: order is 0 or 1", f"got {order!r}", help="splines are not supported yet")
        )
    if mode not in _INDICES:
        raise ArgumentError(
            message(f"{name}{here()}: no such mode", f"got {mode!r}", help=f"there are {', '.join(_INDICES)}")
        )
    parts = [_PARTS[order](along) for along in positions]
    outside = array_of(name, cval).astype(x.dtype)
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
    return in_dtype(result, x.dtype)


_NAME = "map_coordinates"
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
    """Cast to an input's dtype; integers are rounded, halves away from zero."""
    if dtypes.is_integer(dtype) and dtypes.is_float(result.dtype):
        result = nearest(result, RoundingMethod.AWAY_FROM_ZERO)
    return result.astype(dtype)
