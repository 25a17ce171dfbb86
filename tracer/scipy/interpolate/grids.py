"""Interpolation on a grid of any number of dimensions: `RegularGridInterpolator`, `interpn`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tracer.errors import ArgumentError, OutOfBoundsError, ShapeError, message
from tracer.numpy import asarray, broadcast_arrays, clip, flip, isnan, nan, searchsorted, where
from tracer.numpy.core.conversion import array_of, floating
from tracer.scipy.interpolate.bsplines import basis, through
from tracer.scipy.interpolate.piecewise import PchipInterpolator, check_real
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here
from tracer.transforms.vectorize import vmap
from tracer.tree_util import register_pytree_node_class

_NAME = "RegularGridInterpolator"
_SPLINES = ("slinear", "cubic", "quintic")
_DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5, "pchip": 3}


@register_pytree_node_class
class RegularGridInterpolator:
    """Interpolation of values on a grid, with distances along each axis that may differ. A tree of arrays.

    points: a tuple of d vectors of ascending or descending real numbers, the places along each axis, ascending if they
    are traced; values: numbers [n1, ..., nd, *s]. method: "linear"; "nearest" (the lower one at halves); "slinear",
    "cubic" or "quintic", splines of degree k = 1, 3 or 5 that need k + 1 places along each axis; "pchip", monotone
    cubics through 4 real values at least. bounds_error: whether concrete points outside the grid raise
    OutOfBoundsError; traced ones take fill_value. fill_value: the value outside, NaN by default; None continues the
    outermost cells. Raises ShapeError and ArgumentError where these do not fit.

    f(xi, method=None, nu=None): the values [*r, *s] at points xi [*r, d], or at a tuple of d arrays that broadcast to
    [*r]; one point [d] gives [1, *s]. nu: orders of the derivative along each axis, for splines. Values have
    derivatives by points, values and xi; "nearest" has them by values alone.

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
        sizes = tuple(p.size for p in self.grid)
        if any(p.ndim != 1 for p in self.grid) or self.values.shape[: len(sizes)] != sizes or not all(sizes):
            got = f"got points of shapes {[p.shape for p in self.grid]} for values {self.values.type}"
            raise ShapeError(message(f"{_NAME}{here()}: points are one vector for each axis of values", got))
        self._ascend()
        self._coefficients = self._fitted(method)

    def _ascend(self) -> None:
        """Turn round the axes whose places descend."""
        grid = list(self.grid)
        for k, places in enumerate(grid):
            known = concrete_value(places)
            if known is None or (known[1:] > known[:-1]).all():
                continue
            if not (known[1:] < known[:-1]).all():
                text = f"{_NAME}{here()}: points ascend or descend"
                raise ArgumentError(message(text, f"got {places.type} along axis {k} that does neither"))
            grid[k], self.values = places[::-1], flip(self.values, k)
        self.grid = tuple(grid)

    def _fitted(self, method: str) -> Any:
        """Return coefficients of the splines of a method, values for the other methods."""
        if method not in _DEGREES and method not in ("linear", "nearest"):
            known = "there are linear, nearest, " + ", ".join(_DEGREES)
            raise ArgumentError(message(f"{_NAME}{here()}: no such method", f"got {method!r}", help=known))
        degree = _DEGREES.get(method, 0)
        if any(places.size <= degree for places in self.grid):
            text = f"{_NAME}{here()}: {method} needs {degree + 1} points along each axis"
            raise ShapeError(message(text, f"got {[p.size for p in self.grid]}"))
        if method == "pchip":
            check_real(f"{_NAME} by pchip", self.values)
        found = self.values
        if method in _SPLINES:
            for axis, places in enumerate(self.grid):
                found = through(places, found, axis, degree)
        return found

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[str, bool, Any]]:
        """Return the arrays, and the options."""
        traced = isinstance(self.fill_value, Array)
        fitted = self._coefficients if self.method in _SPLINES else None
        children = (self.grid, self.values, fitted, self.fill_value if traced else None)
        return children, (self.method, self.bounds_error, "array" if traced else repr(self.fill_value))

    @classmethod
    def tree_unflatten(cls, options: tuple[str, bool, Any], children: tuple[Any, ...]) -> RegularGridInterpolator:
        """Return the interpolator of these arrays and options."""
        self = object.__new__(cls)
        self.grid, self.values, fitted, fill = children
        self.method, self.bounds_error, text = options
        self._coefficients = fitted if self.method in _SPLINES else self.values
        self.fill_value = fill if text == "array" else None if text == "None" else complex(text)
        if isinstance(self.fill_value, complex) and not self.fill_value.imag:
            self.fill_value = self.fill_value.real
        return self

    def __call__(self, xi: Any, method: str | None = None, *, nu: Sequence[int] | None = None) -> Array:
        """Return the values at points."""
        method = self.method if method is None else method
        values = self._coefficients if method == self.method else self._fitted(method)
        orders = self._orders(nu, method)
        along = self._coordinates(xi)
        flat = [x.ravel() for x in along]
        outside: Any = False
        for places, x in zip(self.grid, flat, strict=True):
            outside = outside | (x < places[0]) | (x > places[-1])
        if method == "pchip":
            result = self._monotone(flat)
        else:
            found = zip(self.grid, flat, orders, strict=True)
            result = _weighed(values, [_cell(places, x, method, order) for places, x, order in found])
        if method == "nearest":
            unknown = isnan(sum(flat))
            result = where(unknown[(slice(None), *(None,) * (result.ndim - 1))], nan, result)
        shape = along[0].shape
        result = result.reshape(*shape, *values.shape[len(self.grid) :])
        return self._filled(result, outside.reshape(shape), len(shape))

    def _monotone(self, along: list[Array]) -> Any:
        """Return monotone cubics of monotone cubics, from the last axis to the first, as in SciPy."""

        def at_point(point: list[Array]) -> Array:
            values = self.values
            for k in reversed(range(len(point))):
                values = PchipInterpolator(self.grid[k], values, axis=k)(point[k])
            return values

        return vmap(at_point)(along)

    def _orders(self, nu: Sequence[int] | None, method: str) -> tuple[int, ...]:
        if nu is None:
            return (0,) * len(self.grid)
        if method not in _SPLINES:
            text = f"{_NAME}{here()}: nu is for {', '.join(_SPLINES)}"
            raise ArgumentError(message(text, f"got method {method!r}", help="grad differentiates every method"))
        if len(nu) != len(self.grid) or any(int(order) != order or order < 0 for order in nu):
            text = f"{_NAME}{here()}: nu has an order of 0 or more for each of {len(self.grid)} axes"
            raise ArgumentError(message(text, f"got {nu!r}"))
        return tuple(int(order) for order in nu)

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
            points = points[None] if points.ndim == 1 else points
            along = [points[..., k] for k in range(points.shape[-1])] if points.ndim else []
        if len(along) != d:
            raise ShapeError(
                message(f"{_NAME}{here()}: a point has {d} coordinates, along the last axis", f"got {len(along)}")
            )
        return along


def interpn(
    points: Sequence[Any], values: Any, xi: Any, method: str = "linear", bounds_error: bool = True,
    fill_value: Any = nan,
) -> Array:  # fmt: skip
    """Interpolate values on a grid at points xi: `RegularGridInterpolator`, made and called.

    points, values, method, bounds_error, fill_value: as there; xi: real numbers [*r, d]. Returns [*r, *s].

    >>> tracer.scipy.interpolate.interpn((tnp.arange(3.0),), tnp.asarray([0.0, 1.0, 4.0]), tnp.asarray([[1.5]]))
    Array([2.5], f64)
    """
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


def _weighed(values: Array, parts: list[list[tuple[Array, Any]]]) -> Any:
    """Return sums of values over indices along each of the first axes, by products of weights; None for 1."""
    wide = (slice(None), *(None,) * (values.ndim - len(parts)))
    result: Any = 0
    for corner in itertools.product(*parts):
        share: Any = None
        for _, weight in corner:
            share = weight if share is None or weight is None else share * weight
        found = values[tuple(index for index, _ in corner)]
        result = result + (found if share is None else share[wide] * found)
    return result


def _cell(places: Array, x: Array, method: str, nu: int) -> list[tuple[Array, Any]]:
    """Return the indices of values or coefficients along an axis that make up points, and their weights; None for 1."""
    if method in _SPLINES:
        return list(basis(places, x, _DEGREES[method], nu))
    last = max(places.size - 2, 0)
    low = clip(searchsorted(places, x) - 1, 0, last)
    high = low + (1 if places.size > 1 else 0)
    size = where(places.size > 1, places[high] - places[low], 1)
    share = (x - places[low]) / size
    if method == "nearest":
        return [(where(share <= 0.5, low, high), None)]
    return [(low, 1 - share), (high, share)]
