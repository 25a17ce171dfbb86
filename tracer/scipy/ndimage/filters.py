"""Filters of images: weights, extremes and medians of windows around each element.

The window of size n around index i begins at i - n // 2 - origin. Beyond the ends, "reflect" is about the edges of the
outermost elements, "mirror" about their middles. Windows are slices of the extended array.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.shape import axis_index
from tracer.numpy import asarray, flip, maximum, minimum, pad, stack, trunc
from tracer.numpy.core.conversion import array_of
from tracer.trace.array import Array
from tracer.trace.docstrings import say
from tracer.trace.integers import integer, repetitions
from tracer.trace.source import here

_FEW, _SELECTED = 9, 25  # elements of windows up to which medians are selected by comparisons of pairs, not sorted
_MANY = 2**15  # elements of images, beyond which comparisons of larger windows are worth the time to compile them
_MODES = {"reflect": "symmetric", "constant": "constant", "nearest": "edge", "mirror": "reflect", "wrap": "wrap"}


def correlate(input: Any, weights: Any, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0) -> Array:
    """Add the elements around each one, with weights of as many axes.

    >>> tracer.scipy.ndimage.correlate(tnp.asarray([1.0, 2.0, 4.0]), tnp.asarray([1.0, 0.0, 2.0]))
    Array([ 5.,  9., 10.], f64)
    """
    return _weighted("correlate", input, weights, mode, cval, origin)


def convolve(input: Any, weights: Any, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0) -> Array:
    """Add the elements around each one, with weights in reversed order, of as many axes.

    >>> tracer.scipy.ndimage.convolve(tnp.asarray([1.0, 2.0, 4.0]), tnp.asarray([1.0, 0.0, 2.0]))
    Array([4., 6., 8.], f64)
    """
    w = array_of("convolve", weights)
    shifts = [-o - (1 - n % 2) for o, n in zip(_each("convolve", origin, w.ndim), w.shape, strict=True)]
    return _weighted("convolve", input, flip(w), mode, cval, shifts)


def correlate1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Array:  # fmt: skip
    """Add the elements around each one along an axis, with weights [n].

    >>> tracer.scipy.ndimage.correlate1d(tnp.asarray([1.0, 2.0, 4.0]), [1.0, 0.0, 2.0])
    Array([ 5.,  9., 10.], f64)
    """
    x, w = array_of("correlate1d", input), array_of("correlate1d", asarray(weights))
    return _along("correlate1d", x, w, axis, mode, cval, origin)


def convolve1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Array:  # fmt: skip
    """Add the elements around each one along an axis, with weights [n] in reversed order.

    >>> tracer.scipy.ndimage.convolve1d(tnp.asarray([1.0, 2.0, 4.0]), [1.0, 0.0, 2.0])
    Array([4., 6., 8.], f64)
    """
    x, w = array_of("convolve1d", input), array_of("convolve1d", asarray(weights))
    return _along("convolve1d", x, flip(w), axis, mode, cval, -origin - (1 - w.size % 2))


def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, mode: str = "reflect", cval: Any = 0.0, truncate: float = 4.0
) -> Array:  # fmt: skip
    """Smooth by a Gaussian along all axes, or take its derivatives.

    sigma: concrete standard deviations, one or one for each axis; order: of the derivatives, likewise; truncate: the
    radius of the window in standard deviations.

    >>> tracer.scipy.ndimage.gaussian_filter(tnp.asarray([0.0, 0.0, 1.0, 0.0, 0.0]), 1.0).round(2)
    Array([0.06, 0.24, 0.4 , 0.24, 0.06], f64)
    """
    x = array_of("gaussian_filter", input)
    spreads, orders = (_each("gaussian_filter", v, x.ndim) for v in (sigma, order))
    for axis, (spread, nu) in enumerate(zip(spreads, orders, strict=True)):
        if spread > 1e-15:
            radius = int(truncate * float(spread) + 0.5)
            weights = asarray(_gaussian(float(spread), int(nu), radius)[::-1].copy())
            x = _along("gaussian_filter", x, weights, axis, mode, cval, 0)
    return x


def uniform_filter(input: Any, size: Any = 3, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0) -> Array:
    """Return the mean of the window around each element.

    >>> tracer.scipy.ndimage.uniform_filter(tnp.asarray([0.0, 3.0, 6.0]), 3)
    Array([1., 3., 5.], f64)
    """
    x = array_of("uniform_filter", input)
    sizes, shifts = (_each("uniform_filter", v, x.ndim) for v in (size, origin))
    for axis, (n, shift) in enumerate(zip(sizes, shifts, strict=True)):
        x = _along("uniform_filter", x, asarray(np.full(int(n), 1 / n)), axis, mode, cval, shift)
    return x


def prewitt(input: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0) -> Array:
    """Return differences along an axis, added over three elements along each other one.

    >>> tracer.scipy.ndimage.prewitt(tnp.asarray([0.0, 1.0, 3.0]))
    Array([1., 3., 2.], f64)
    """
    return _edges("prewitt", input, axis, mode, cval, [1.0, 1.0, 1.0])


def sobel(input: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0) -> Array:
    """Return differences along an axis, added over three elements along each other one with weights 1, 2, 1.

    >>> tracer.scipy.ndimage.sobel(tnp.asarray([0.0, 1.0, 3.0]))
    Array([1., 3., 2.], f64)
    """
    return _edges("sobel", input, axis, mode, cval, [1.0, 2.0, 1.0])


def laplace(input: Any, mode: str = "reflect", cval: Any = 0.0) -> Array:
    """Return the sum of second differences along all axes.

    >>> tracer.scipy.ndimage.laplace(tnp.asarray([0.0, 1.0, 4.0, 9.0]))
    Array([ 1.,  2.,  2., -5.], f64)
    """
    x = array_of("laplace", input)
    weights = asarray([1.0, -2.0, 1.0])
    return _sum([_along("laplace", x, weights, axis, mode, cval, 0) for axis in range(x.ndim)])


def gaussian_laplace(
    input: Any, sigma: Any, mode: str = "reflect", cval: Any = 0.0, truncate: float = 4.0
) -> Array:  # fmt: skip
    """Return the sum of second derivatives of a Gaussian along all axes.

    sigma, truncate: as of `gaussian_filter`.

    >>> tracer.scipy.ndimage.gaussian_laplace(tnp.asarray([0.0, 0.0, 1.0, 0.0, 0.0]), 1.0).round(4)
    Array([ 0.1974,  0.002 , -0.3989,  0.002 ,  0.1974], f64)
    """
    x = array_of("gaussian_laplace", input)
    orders = 2 * np.eye(x.ndim, dtype=int)
    return _sum([gaussian_filter(x, sigma, row.tolist(), mode, cval, truncate) for row in orders])


def minimum_filter(input: Any, size: Any, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0) -> Array:
    """Return the min of the window around each element.

    >>> tracer.scipy.ndimage.minimum_filter(tnp.asarray([3.0, 1.0, 2.0, 5.0]), 3)
    Array([1., 1., 1., 2.], f64)
    """
    return _extreme("minimum_filter", minimum, input, size, mode, cval, origin)


def maximum_filter(input: Any, size: Any, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0) -> Array:
    """Return the max of the window around each element.

    >>> tracer.scipy.ndimage.maximum_filter(tnp.asarray([3.0, 1.0, 2.0, 5.0]), 3)
    Array([3., 3., 5., 5.], f64)
    """
    return _extreme("maximum_filter", maximum, input, size, mode, cval, origin)


def median_filter(input: Any, size: Any, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0) -> Array:
    """Return the median of the window around each element; of an even number, the upper one.

    >>> tracer.scipy.ndimage.median_filter(tnp.asarray([3.0, 1.0, 2.0, 5.0]), 3)
    Array([3., 2., 2., 5.], f64)
    """
    x = array_of("median_filter", input)
    sizes = [integer("median_filter", "size", n) for n in _each("median_filter", size, x.ndim)]
    windows = _windows("median_filter", x, sizes, mode, cval, _each("median_filter", origin, x.ndim))
    count = math.prod(sizes)
    most = _SELECTED if x.size > _MANY else _FEW
    if count % 2 and count <= most and (dtypes.is_float(x.dtype) or dtypes.is_integer(x.dtype)):
        return _middle(windows)
    return stack(windows).sort(0)[count // 2]


def _middle(parts: list[Array]) -> Array:
    """Return the medians of an odd number of arrays, by comparisons of pairs, with NaN where one of them is.

    Of half the arrays and two more, the minimum and the maximum are no medians. Each time one more array replaces them.
    """
    half = len(parts) // 2
    kept, rest = parts[: half + 2], parts[half + 2 :]
    while len(kept) > 1:
        kept = _sides(kept)[1:-1] + rest[:1]
        rest = rest[1:]
    return kept[0]


def _sides(parts: list[Array]) -> list[Array]:
    """Return the arrays, elements exchanged such that the minima come first, and the maxima last."""
    lower, upper = [], []
    for k in range(0, len(parts) - 1, 2):
        lower.append(minimum(parts[k], parts[k + 1]))
        upper.append(maximum(parts[k], parts[k + 1]))
    if len(parts) % 2:  # one has no partner: it is compared with both winners
        lower.append(minimum(parts[-1], upper[0]))
        upper[0] = maximum(parts[-1], upper[0])
    least, lower = _first(minimum, maximum, lower)
    highest, upper = _first(maximum, minimum, upper)
    return [least, *lower, *upper, highest]


def _first(wins: Callable[[Any, Any], Array], loses: Callable[[Any, Any], Array], parts: list[Array]) -> Any:
    """Return the winner of all, and the losers of its comparisons."""
    winner, losers = parts[0], []
    for part in parts[1:]:
        losers.append(loses(winner, part))
        winner = wins(winner, part)
    return winner, losers


def _each(name: str, given: Any, count: int) -> list[Any]:
    if not isinstance(given, Sequence | np.ndarray):
        return [given] * count
    if len(given) != count:
        raise ShapeError(message(f"{name}{here()}: options are one value, or one for each axis", f"got {given!r}"))
    return list(given)


def _windows(
    name: str, x: Array, sizes: Sequence[int], mode: str, cval: Any, origins: Sequence[int]
) -> list[Array]:  # fmt: skip
    """Return the elements at each place of the windows: prod(sizes) arrays of x's shape."""
    if mode not in _MODES:
        raise ArgumentError(
            message(f"{name}{here()}: no such mode", f"got {mode!r}", help=f"there are {', '.join(_MODES)}")
        )
    starts = [n // 2 + int(o) for n, o in zip(sizes, origins, strict=True)]
    if any(n < 1 or not 0 <= s < n for n, s in zip(sizes, starts, strict=True)):
        got = f"got sizes {list(sizes)}, origins {list(origins)}"
        raise ArgumentError(message(f"{name}{here()}: windows have elements, and origins lie within them", got))
    repetitions(name, "the number of a window's elements", math.prod(sizes))
    if not x.size:
        return [x] * math.prod(sizes)
    options = {"constant_values": cval} if mode == "constant" else {}
    wide = pad(x, [(s, n - 1 - s) for n, s in zip(sizes, starts, strict=True)], _MODES[mode], **options)
    places = itertools.product(*map(range, sizes))
    return [wide[tuple(slice(k, k + n) for k, n in zip(place, x.shape, strict=True))] for place in places]


def _weighted(name: str, input: Any, weights: Any, mode: str, cval: Any, origin: Any) -> Array:
    x, w = array_of(name, input), array_of(name, weights)
    if x.ndim != w.ndim:
        raise ShapeError(message(f"{name}{here()}: weights have as many axes as the input", f"got {x.type}, {w.type}"))
    parts = _windows(name, _wide(x, w), w.shape, mode, cval, _each(name, origin, x.ndim))
    return _narrow(_sum([part * weight for part, weight in zip(parts, w.ravel(), strict=True)]), x)


def _along(name: str, x: Array, weights: Array, axis: int, mode: str, cval: Any, origin: int) -> Array:
    along = axis_index(axis, x.ndim, f"{name}{here()}")
    if weights.ndim != 1 or not weights.size:
        raise ShapeError(message(f"{name}{here()}: weights are a vector of one number at least", f"got {weights.type}"))
    others = [0] * along, [0] * (x.ndim - along - 1)
    shape = [1] * along + [weights.size] + [1] * (x.ndim - along - 1)
    return _weighted(name, x, weights.reshape(shape), mode, cval, [*others[0], origin, *others[1]])


def _wide(x: Array, weights: Array) -> Array:
    """Return the input in the dtype of sums: float64 for integers, as in SciPy."""
    if dtypes.is_complex(weights.dtype) and not dtypes.is_complex(x.dtype):
        return x.astype(weights.dtype)
    return x if dtypes.is_inexact(x.dtype) else x.astype("float64")


def _narrow(found: Array, x: Array) -> Array:
    if dtypes.is_inexact(x.dtype):
        return found if dtypes.is_complex(found.dtype) else found.astype(x.dtype)
    return found if dtypes.is_complex(found.dtype) else trunc(found).astype(x.dtype)


def _sum(parts: list[Array]) -> Array:
    total: Any = 0
    for part in parts:
        total = total + part
    return total


def _gaussian(sigma: float, order: int, radius: int) -> np.ndarray[Any, Any]:
    """Return samples of a Gaussian, of sum 1, times the polynomial of its derivative of an order."""
    x = np.arange(-radius, radius + 1)
    density = np.exp(-0.5 * (x / sigma) ** 2)
    polynomial = np.polynomial.Polynomial([1.0])
    for _ in range(order):
        polynomial = polynomial.deriv() - np.polynomial.Polynomial([0, 1 / sigma**2]) * polynomial
    return polynomial(x) * density / density.sum()


def _edges(name: str, input: Any, axis: int, mode: str, cval: Any, across: list[float]) -> Array:
    x = array_of(name, input)
    along = axis_index(axis, x.ndim, f"{name}{here()}")
    found = _along(name, x, asarray([-1.0, 0.0, 1.0]), along, mode, cval, 0)
    for other in range(x.ndim):
        if other != along:
            found = _along(name, found, asarray(across), other, mode, cval, 0)
    return found


def _extreme(
    name: str, combine: Callable[[Any, Any], Array], input: Any, size: Any, mode: str, cval: Any, origin: Any
) -> Array:  # fmt: skip
    """Return the extreme along one axis after another."""
    x = array_of(name, input)
    pairs = zip(_each(name, size, x.ndim), _each(name, origin, x.ndim), strict=True)
    for axis, (n, shift) in enumerate(pairs):
        sizes, shifts = [1] * x.ndim, [0] * x.ndim
        sizes[axis], shifts[axis] = integer(name, "size", n), shift
        found, *rest = _windows(name, x, sizes, mode, cval, shifts)
        for part in rest:
            found = combine(found, part)
        x = found
    return x


FILTERS = (
    convolve, convolve1d, correlate, correlate1d, gaussian_filter, gaussian_laplace, laplace, maximum_filter,
    median_filter, minimum_filter, prewitt, sobel, uniform_filter,
)  # fmt: skip

say(
    FILTERS,
    {
        "input": "numbers [*s]. Returns its dtype [*s]; results for integers are cut.",
        "weights": "numbers.",
        "size": "concrete integers, one or one for each axis.",
        "axis": "one axis.",
        "mode": 'values beyond the ends: "reflect", "mirror", "nearest", "wrap", or "constant".',
        "cval": "the constant.",
        "origin": "shift of the windows to the left, one integer or one for each axis.",
    },
)
