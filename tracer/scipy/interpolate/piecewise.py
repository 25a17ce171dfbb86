"""Piecewise polynomials on a line: `PPoly`, and the splines that are such.

De Boor 2001, A Practical Guide to Splines, chapter IV; Fritsch & Butland 1984, SIAM J. Sci. Stat. Comput. 5(2), for
`PchipInterpolator`; Akima 1970, J. ACM 17(4).
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any, ClassVar

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.shape import axis_index
from tracer.numpy import (
    absolute,
    asarray,
    broadcast_to,
    clip,
    concatenate,
    cumsum,
    diff,
    max,
    moveaxis,
    nan,
    searchsorted,
    sign,
    stack,
    where,
)
from tracer.numpy.core.conversion import array_of, floating, unified
from tracer.scipy.interpolate.spline_slopes import end_of, periodic_slopes, spline_slopes
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here
from tracer.tree_util import register_pytree_node_class


@register_pytree_node_class
class PPoly:
    """Piecewise polynomial on a line: sum of c[k, i] (t - x[i])^(degree - k) between x[i] and x[i + 1]. A tree.

    c: numbers [degree + 1, m, *s]; x: ascending real numbers [m + 1]; extrapolate: whether the outermost polynomials
    continue (True), NaN follows (False), or the whole repeats ("periodic"); axis: where the axis of points stands in
    results. Raises ShapeError where c and x do not fit.

    f(t, nu=0, extrapolate=None): the derivative of order nu at real numbers t [*r]: [*r, *s].

    >>> f = tracer.scipy.interpolate.PPoly(tnp.asarray([[1.0], [0.0], [2.0]]), tnp.asarray([0.0, 1.0]))
    >>> f(tnp.asarray([0.0, 0.5])), f.integrate(0.0, 1.0)
    (Array([2.  , 2.25], f64), Array(2.33333333, f64))
    """

    _name: ClassVar[str] = "PPoly"

    def __init__(self, c: Any, x: Any, extrapolate: Any = True, axis: int = 0) -> None:
        self.c, self.x = floating(array_of("PPoly", c)), floating(array_of("PPoly", x))
        self.extrapolate, self.axis = extrapolate, axis
        if self.x.ndim != 1 or self.c.ndim < 2 or self.c.shape[1] != self.x.size - 1 or self.x.size < 2:
            text = f"PPoly{here()}: c has a column for each interval of x"
            raise ShapeError(message(text, f"got {self.c.type} for {self.x.type}"))

    def tree_flatten(self) -> tuple[tuple[Array, Array], tuple[Any, int]]:
        """Return the arrays, and the options."""
        return (self.c, self.x), (self.extrapolate, self.axis)

    @classmethod
    def tree_unflatten(cls, options: tuple[Any, int], children: tuple[Array, Array]) -> Any:
        """Return the polynomial of these arrays and options."""
        self = object.__new__(cls)
        self.c, self.x = children
        self.extrapolate, self.axis = options
        return self

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Array:
        """Return derivatives of order nu at x."""
        at = floating(array_of(self._name, x))
        mode = self.extrapolate if extrapolate is None else extrapolate
        points = at.ravel()
        if mode == "periodic":
            points = self.x[0] + (points - self.x[0]) % (self.x[-1] - self.x[0])
        interval = clip(searchsorted(self.x, points, side="right") - 1, 0, self.x.size - 2)
        wide = (slice(None), *(None,) * (self.c.ndim - 2))
        share = (points - self.x[interval])[wide]
        rows = _differentiated(self.c, nu)
        found = broadcast_to(rows[0][interval], (points.size, *self.c.shape[2:]))
        for row in rows[1:]:
            found = found * share + row[interval]
        if mode is False:
            outside = (points < self.x[0]) | (points > self.x[-1])
            found = where(outside[wide], nan, found)
        found = found.reshape(*at.shape, *self.c.shape[2:])
        return found if not self.axis else moveaxis(found, range(at.ndim), range(self.axis, self.axis + at.ndim))

    def derivative(self, nu: int = 1) -> PPoly:
        """Return the derivative of order nu; of a negative order, the antiderivative."""
        return self.antiderivative(-nu) if nu < 0 else _made(_differentiated(self.c, nu), self)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """Return the antiderivative of order nu that is 0 at the first point; of a negative order, the derivative.

        A periodic function has one that is NaN beyond the ends.
        """
        if nu < 0:
            return self.derivative(-nu)
        c, sizes = self.c, diff(self.x)[(slice(None), *(None,) * (self.c.ndim - 2))]
        for _ in range(nu):
            degree = c.shape[0]
            powers = asarray([1 / (degree - k) for k in range(degree)], self.x.dtype)
            c = c * powers[(slice(None), *(None,) * (c.ndim - 1))]
            rises = 0 * c[0]
            for row in c:
                rises = (rises + row) * sizes
            starts = concatenate([0 * rises[:1], cumsum(rises[:-1], 0)])
            c = concatenate([c, starts[None]])
        made = _made(c, self)
        made.extrapolate = False if self.extrapolate == "periodic" and nu else self.extrapolate
        return made

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Array:
        """Return the integral from a to b, real numbers []."""
        mode = self.extrapolate if extrapolate is None else extrapolate
        whole = self.antiderivative()
        if mode != "periodic":
            return whole(b, extrapolate=mode) - whole(a, extrapolate=mode)
        low, high = self.x[0], self.x[-1]
        period, area = high - low, whole(high, extrapolate=True)

        def up_to(t: Any) -> Array:
            turns = (floating(array_of(self._name, t)) - low) // period
            return turns * area + whole(t - turns * period, extrapolate=True)

        return up_to(b) - up_to(a)


def _made(c: Array, like: PPoly) -> PPoly:
    return PPoly.tree_unflatten((like.extrapolate, like.axis), (c, like.x))


def _differentiated(c: Array, nu: int) -> Array:
    degree = c.shape[0] - 1
    if nu > degree:
        return 0 * c[:1]
    factors = asarray([math.perm(degree - k, nu) for k in range(degree + 1 - nu)], c.real.dtype)
    return c[: degree + 1 - nu] * factors[(slice(None), *(None,) * (c.ndim - 1))]


def _samples(name: str, x: Any, y: Any, axis: int, least: int = 2) -> tuple[Array, Array, int]:
    """Return ascending places [n], values with the axis first, and that axis."""
    places, values = unified(name, [floating(array_of(name, v)) for v in (x, y)])
    places = places.real
    along = axis_index(axis, values.ndim, f"{name}{here()}")
    if places.ndim != 1 or values.shape[along] != places.size or places.size < least:
        text = f"{name}{here()}: x is a vector of {least} places at least, one for each value along the axis"
        raise ShapeError(message(text, f"got {places.type} for {values.type}, axis={along}"))
    known = concrete_value(places)
    if known is not None and not (known[1:] > known[:-1]).all():
        raise ArgumentError(message(f"{name}{here()}: x ascends", f"got {places.type} that does not", help="sort it"))
    return places, moveaxis(values, along, 0), along


def check_real(name: str, values: Array) -> None:
    """Raise ArgumentError for complex values of a spline whose slopes compare values."""
    if dtypes.is_complex(values.dtype):
        text = f"{name}{here()}: values are real"
        raise ArgumentError(message(text, f"got {values.type}", help="interpolate its real and imag"))


def _hermite(places: Array, values: Array, slopes: Array) -> Array:
    """Return the coefficients [4, n - 1, *s] of cubics with these values and slopes at the places."""
    sizes = diff(places)[(slice(None), *(None,) * (values.ndim - 1))]
    secants = diff(values, axis=0) / sizes
    bend = (slopes[:-1] + slopes[1:] - 2 * secants) / sizes
    return stack([bend / sizes, (secants - slopes[:-1]) / sizes - bend, slopes[:-1], values[:-1]])


class _Cubic(PPoly):
    """Cubics between points, made of values and slopes there."""

    def _set(self, places: Array, values: Array, slopes: Array, extrapolate: Any, axis: int) -> None:
        self.c, self.x = _hermite(places, values, slopes), places
        self.extrapolate, self.axis = extrapolate, axis


@register_pytree_node_class
class CubicHermiteSpline(_Cubic):
    """Cubics with given values and slopes at points. A tree of arrays, and a `PPoly`.

    x: ascending real numbers [n]; y, dydx: numbers [*s] with n along the axis; axis: one axis; extrapolate: as of
    `PPoly`. Raises ShapeError and ArgumentError where they do not fit.

    >>> f = tracer.scipy.interpolate.CubicHermiteSpline(tnp.asarray([0.0, 1.0]), tnp.asarray([0.0, 1.0]), tnp.zeros(2))
    >>> f(0.5)
    Array(0.5, f64)
    """

    _name = "CubicHermiteSpline"

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = True) -> None:
        places, values, along = _samples(self._name, x, y, axis)
        _, slopes, _ = _samples(self._name, x, dydx, axis)
        self._set(places, values, slopes, extrapolate, along)


@register_pytree_node_class
class PchipInterpolator(_Cubic):
    """Cubics through points that are monotone between them. A tree of arrays, and a `PPoly`.

    x: ascending real numbers [n]; y: real numbers [*s] with n along the axis; axis: one axis; extrapolate: as of
    `PPoly`. Raises ShapeError and ArgumentError where they do not fit.

    >>> f = tracer.scipy.interpolate.PchipInterpolator(tnp.asarray([0.0, 1.0, 2.0]), tnp.asarray([0.0, 1.0, 1.0]))
    >>> f(tnp.asarray([0.5, 1.5]))
    Array([0.6875, 1.    ], f64)
    """

    _name = "PchipInterpolator"

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = True) -> None:
        places, values, along = _samples(self._name, x, y, axis)
        check_real(self._name, values)
        sizes = diff(places)[(slice(None), *(None,) * (values.ndim - 1))]
        secants = diff(values, axis=0) / sizes
        if places.size == 2:
            slopes = concatenate([secants, secants])
        else:
            before, after = 2 * sizes[1:] + sizes[:-1], sizes[1:] + 2 * sizes[:-1]
            flat = (sign(secants[1:]) != sign(secants[:-1])) | (secants[1:] == 0) | (secants[:-1] == 0)
            safe = [where(flat, 1, part) for part in (secants[:-1], secants[1:])]
            harmonic = (before + after) / (before / safe[0] + after / safe[1])
            ends = [_pchip_end(*(part[k] for k in pair), *(secants[k] for k in pair)) for part, pair in (
                (sizes, (0, 1)), (sizes, (-1, -2)))]  # fmt: skip
            slopes = concatenate([ends[0][None], where(flat, 0, harmonic), ends[1][None]])
        self._set(places, values, slopes, extrapolate, along)


def _pchip_end(h0: Array, h1: Array, m0: Array, m1: Array) -> Array:
    """Return the slope at an end by three points, kept monotone: Moler 2004, Numerical Computing with Matlab, 3.6."""
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    steep = (sign(m0) != sign(m1)) & (absolute(slope) > 3 * absolute(m0))
    return where(sign(slope) != sign(m0), 0, where(steep, 3 * m0, slope))


@register_pytree_node_class
class Akima1DInterpolator(_Cubic):
    """Cubics through points, whose slopes are local and resist outliers. A tree of arrays, and a `PPoly`.

    x: ascending real numbers [n]; y: real numbers [*s] with n along the axis; axis: one axis; method: "akima" or
    "makima"; extrapolate: as of `PPoly`, by default False. Raises ShapeError and ArgumentError where they do not fit.

    >>> f = tracer.scipy.interpolate.Akima1DInterpolator(tnp.arange(4.0), tnp.asarray([0.0, 1.0, 0.0, 1.0]))
    >>> f(tnp.asarray([0.5, 1.5]))
    Array([0.75, 0.5 ], f64)
    """

    _name = "Akima1DInterpolator"

    def __init__(self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None) -> None:
        places, values, along = _samples(self._name, x, y, axis)
        check_real(self._name, values)
        if method not in ("akima", "makima"):
            raise ArgumentError(
                message(f'Akima1DInterpolator{here()}: method is "akima" or "makima"', f"got {method!r}")
            )
        m = diff(values, axis=0) / diff(places)[(slice(None), *(None,) * (values.ndim - 1))]
        if places.size == 2:
            slopes = concatenate([m, m])
        else:
            first, last = 2 * m[0] - m[1], 2 * m[-1] - m[-2]
            m = concatenate([(2 * first - m[0])[None], first[None], m, last[None], (2 * last - m[-1])[None]])
            change = absolute(diff(m, axis=0))
            if method == "makima":
                change = change + 0.5 * absolute(m[1:] + m[:-1])
            left, right = change[:-2], change[2:]
            total = left + right
            known = total > 1e-9 * max(total)
            share = where(known, left / where(known, total, 1), 0.5)
            slopes = where(known, m[1:-2] + share * (m[2:-1] - m[1:-2]), 0.5 * (m[3:] + m[:-3]))
        self._set(places, values, slopes, bool(extrapolate) if extrapolate is None else extrapolate, along)


@register_pytree_node_class
class CubicSpline(_Cubic):
    """Cubics through points with continuous second derivatives. A tree of arrays, and a `PPoly`.

    x: ascending real numbers [n]; y: numbers [*s] with n along the axis; axis: one axis. bc_type: the condition at the
    ends: "not-a-knot" (one cubic on the two outermost intervals), "natural" (second derivative 0), "clamped" (slope 0),
    "periodic", or a pair of such, or of (order, value) with the first or second derivative. extrapolate: as of `PPoly`,
    by default "periodic" for that end. Raises ShapeError and ArgumentError where they do not fit.

    >>> f = tracer.scipy.interpolate.CubicSpline(tnp.arange(4.0), tnp.arange(4.0) ** 3)
    >>> f(1.5), f(1.5, 1), f.integrate(0.0, 2.0)
    (Array(3.375, f64), Array(6.75, f64), Array(4., f64))
    """

    _name = "CubicSpline"

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        places, values, along = _samples(self._name, x, y, axis)
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        extrapolate = ("periodic" if periodic else True) if extrapolate is None else extrapolate
        flat = values.reshape(places.size, -1)
        if periodic:
            slopes = periodic_slopes(places, flat)
        else:
            pair = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
            if len(pair) != 2:
                raise ArgumentError(message(f"CubicSpline{here()}: bc_type is one end, or a pair", f"got {bc_type!r}"))
            slopes = spline_slopes(places, flat, [end_of(end, flat) for end in pair])
        self._set(places, values, slopes.reshape(values.shape), extrapolate, along)
