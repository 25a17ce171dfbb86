"""Interpolation on a grid of any number of dimensions: `RegularGridInterpolator`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tracer.errors import ArgumentError, OutOfBoundsError, ShapeError, message
from tracer.numpy import asarray, broadcast_arrays, clip, nan, searchsorted, where
from tracer.numpy.core.conversion import array_of, floating
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here
from tracer.tree_util import register_pytree_node_class

_NAME = "RegularGridInterpolator"


@register_pytree_node_class
class RegularGridInterpolator:
    """Interpolation of values on a grid, with distances along each axis that may differ. A tree of arrays.

    points: a tuple of d vectors of ascending real numbers, the places along each axis; values: numbers [n1, ..., nd,
    *s]. method: "linear" or "nearest" (the lower one at halves). bounds_error: whether concrete points outside the grid
    raise OutOfBoundsError; traced ones take fill_value. fill_value: the value outside, NaN by default; None continues
    the outermost cells. Raises ShapeError and ArgumentError where these do not fit.

    f(xi, method=None): the values [*r, *s] at points xi [*r, d], or at a tuple of d arrays that broadcast to [*r]. They
    have derivatives by points, values and xi; "nearest" has them by values alone.

    >>> grid = (tnp.asarray([0.0, 1.0, 3.0]), tnp.asarray([0.0, 1.0]))
    >>> f = tracer.scipy.interpolate.RegularGridInterpolator(grid, tnp.asarray([[0.0, 1.0], [2.0, 3.0], [6.0, 7.0]]))
    >>> f(tnp.asarray([[2.0, 0.5], [0.5, 0.0]]))
    Array([4.5, 1. ], f64)
    """

    def __init__(
        self, points: Sequence[Any], values: Any, method: str = "linear", bounds_error: bool = True,
        fill_value: Any = nan,
    ) -> None:  # fmt: skip
        self.grid = tuple(floating(array_of(_NAME, p)) for p in points)
        self.values = floating(array_of(_NAME, values))
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        self._check_method(method)
        sizes = tuple(p.size for p in self.grid)
        if any(p.ndim != 1 for p in self.grid) or self.values.shape[: len(sizes)] != sizes or not all(sizes):
            got = f"got points of shapes {[p.shape for p in self.grid]} for values {self.values.type}"
            raise ShapeError(message(f"{_NAME}{here()}: points are one vector for each axis of values", got))
        for k, places in enumerate(self.grid):
            known = concrete_value(places)
            if known is not None and not (known[1:] > known[:-1]).all():
                raise ArgumentError(
                    message(f"{_NAME}{here()}: points ascend", f"got {places.type} along axis {k} that does not")
                )

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[str, bool, Any]]:
        """Return the arrays, and the options."""
        traced = isinstance(self.fill_value, Array)
        children = (self.grid, self.values, self.fill_value if traced else None)
        return children, (self.method, self.bounds_error, "array" if traced else repr(self.fill_value))

    @classmethod
    def tree_unflatten(cls, options: tuple[str, bool, Any], children: tuple[Any, ...]) -> RegularGridInterpolator:
        """Return the interpolator of these arrays and options."""
        self = object.__new__(cls)
        self.grid, self.values, fill = children
        self.method, self.bounds_error, text = options
        self.fill_value = fill if text == "array" else None if text == "None" else complex(text)
        if isinstance(self.fill_value, complex) and not self.fill_value.imag:
            self.fill_value = self.fill_value.real
        return self

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """Return the values at points."""
        method = self.method if method is None else method
        self._check_method(method)
        along = self._coordinates(xi)
        shape = along[0].shape
        parts, outside = [], None
        for places, x in zip(self.grid, along, strict=True):
            parts.append(_cell(places, x.ravel(), method))
            beyond = (x < places[0]) | (x > places[-1])
            outside = beyond if outside is None else outside | beyond
        result: Any = 0
        wide = (slice(None), *(None,) * (self.values.ndim - len(self.grid)))
        for corner in itertools.product(*parts):
            share: Any = None
            for _, weight in corner:
                share = weight if share is None or weight is None else share * weight
            found = self.values[tuple(index for index, _ in corner)]
            result = result + (found if share is None else share[wide] * found)
        result = result.reshape(*shape, *self.values.shape[len(self.grid) :])
        return self._filled(result, outside, len(shape))

    def _filled(self, result: Array, outside: Any, axes: int) -> Array:
        known = concrete_value(outside) if self.bounds_error else None
        if known is not None and known.any():
            raise OutOfBoundsError(
                message(
                    f"{_NAME}{here()}: points lie within the grid", f"{int(known.sum())} of {known.size} do not",
                    help="bounds_error=False gives fill_value there",
                )
            )  # fmt: skip
        if self.fill_value is None:
            return result
        outside = outside[(..., *(None,) * (result.ndim - axes))]
        return where(outside, asarray(self.fill_value).astype(result.dtype), result)

    def _coordinates(self, xi: Any) -> list[Array]:
        d = len(self.grid)
        if isinstance(xi, tuple):
            along = list(broadcast_arrays(*(floating(array_of(_NAME, x)) for x in xi)))
        else:
            points = floating(array_of(_NAME, asarray(xi)))
            points = points[..., None] if d == 1 and (not points.ndim or points.shape[-1] != 1) else points
            along = [points[..., k] for k in range(points.shape[-1])] if points.ndim else []
        if len(along) != d:
            raise ShapeError(
                message(f"{_NAME}{here()}: a point has {d} coordinates, along the last axis", f"got {len(along)}")
            )
        return along

    @staticmethod
    def _check_method(method: str) -> None:
        if method not in ("linear", "nearest"):
            raise ArgumentError(
                message(
                    f'{_NAME}{here()}: method is "linear" or "nearest"', f"got {method!r}", help="CubicSpline in 1d"
                )
            )


def _cell(places: Array, x: Array, method: str) -> list[tuple[Array, Any]]:
    """Return the indices of the cell's corners along an axis, and their weights; None for 1."""
    last = max(places.size - 2, 0)
    low = clip(searchsorted(places, x) - 1, 0, last)
    high = low + (1 if places.size > 1 else 0)
    size = where(places.size > 1, places[high] - places[low], 1)
    share = (x - places[low]) / size
    if method == "nearest":
        return [(where(share <= 0.5, low, high), None)]
    return [(low, 1 - share), (high, share)]
