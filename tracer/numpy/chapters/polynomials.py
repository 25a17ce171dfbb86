"""Polynomials as arrays of coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, TracerArrayError, message
from tracer.ir import dtypes, shape
from tracer.numpy.chapters.signals import convolve
from tracer.numpy.core.conversion import array_of, broadcast, cast, strong, unified
from tracer.numpy.core.promotion import inexact_beside, promoted, promoted_inexact
from tracer.numpy.shapes.creation import full_like, zeros
from tracer.numpy.shapes.joining import append, concatenate, stack
from tracer.numpy.shapes.manipulation import atleast_1d
from tracer.runtime.values.fresh_handles import makes_new
from tracer.trace.array import Array, concrete_value
from tracer.trace.integers import integer, repetitions
from tracer.trace.source import here


def polyval(p: Any, x: Any, *, unroll: int = 16) -> Array:
    """Return the polynomial with coefficients p at every x, by Horner's rule.

    p: [n], the highest power first; x: [*s]; unroll: ignored. Returns [*s], in the promoted dtype.

    >>> tnp.polyval([3, 0, 1], 5)
    Array(76, i64)
    """
    integer("polyval", "unroll", unroll)
    coefficients, points = array_of("polyval", p), array_of("polyval", x)
    if not coefficients.ndim:
        raise ShapeError(message(f"polyval{here()}: the coefficients need an axis", f"got {coefficients.type}"))
    result = full_like(points, 0)
    for i in range(coefficients.shape[0]):
        result = result * points + coefficients[i]
    return result if coefficients.weak_type else strong(result)


@makes_new
def polyadd(a1: Any, a2: Any) -> Array:
    """Return the sum of two polynomials.

    a1, a2: coefficients [m], [n], the highest power first. Returns [max(m, n)], in the promoted dtype.

    >>> tnp.polyadd([1, 2], [9, 5, 4])
    Array([9, 6, 6], i64)
    """
    first, second = _same_length("polyadd", a1, a2)
    return first + second


@makes_new
def polysub(a1: Any, a2: Any) -> Array:
    """Return the difference of two polynomials.

    a1, a2: coefficients [m], [n], the highest power first. Returns [max(m, n)], in the promoted dtype.

    >>> tnp.polysub([2, 10, -2], [3, 10, -4])
    Array([-1,  0,  2], i64)
    """
    first, second = _same_length("polysub", a1, a2)
    return first - second


def _same_length(name: str, a1: Any, a2: Any) -> list[Array]:
    arrays = unified(name, [atleast_1d(array_of(name, a)) for a in (a1, a2)])
    size = max(a.shape[0] for a in arrays)
    return [concatenate([zeros(size - a.shape[0], a.dtype), a]) for a in arrays]


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """Return the product of two polynomials. Leading zeros are kept, because their number depends on values.

    a1, a2: coefficients [m], [n], the highest power first; trim_leading_zeros: trim both factors first, which must be
    concrete. Returns [m + n - 1], in the promoted dtype.

    >>> tnp.polymul([1, 2, 3], [9, 5, 1])
    Array([ 9, 23, 38, 17,  3], i64)
    """
    first, second = (atleast_1d(array_of("polymul", a)) for a in (a1, a2))
    if trim_leading_zeros:
        first, second = (trim_zeros(a, "f") for a in (first, second))
    first, second = (a if a.shape[0] else zeros(1, a.dtype) for a in (first, second))
    return convolve(first, second)


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Return the quotient and the remainder of two polynomials.

    u, v: coefficients [m], [n], the highest power first; trim_leading_zeros: trim the remainder, which must be
    concrete. Returns floats or complex numbers [m - n + 1], at least [1], and [m].

    >>> tnp.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    (Array([1.5 , 1.75], f64), Array([0.  , 0.  , 0.25], f64))
    """
    top, bottom = (atleast_1d(array_of("polydiv", one)) for one in (u, v))
    top, bottom = unified("polydiv", [inexact_beside("polydiv", top, bottom), bottom])
    count = max(top.shape[0] - bottom.shape[0] + 1, 0)
    quotients = []
    for i in range(count):
        factor = top[i] / bottom[0]
        quotients.append(factor)
        top = top.at[i : i + bottom.shape[0]].add(-factor * bottom)
    quotient = stack(quotients) if quotients else zeros(1, top.dtype)
    return quotient, trim_zeros(top, "f") if trim_leading_zeros else top


@makes_new
def polyder(p: Any, m: int = 1) -> Array:
    """Return the m-th derivative of a polynomial.

    p: coefficients [n], the highest power first; m: at least 0. Returns [n - m], at least [0], in p's dtype, integers
    in 64 bits. Raises ArgumentError for a negative m.

    >>> tnp.polyder([1.0, 1.0, 1.0])
    Array([2., 1.], f64)
    """
    coefficients = atleast_1d(array_of("polyder", p))
    for _ in range(_order("polyder", m)):
        size = coefficients.shape[0]
        coefficients = coefficients[: max(size - 1, 0)] * np.arange(size - 1, 0, -1)
    return coefficients


@makes_new
def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """Return the m-th integral of a polynomial, with integration constants k, by default zeros.

    p: coefficients [n], the highest power first; m: at least 0; k: a number, or [m]. Returns floats or complex numbers
    [n + m]. Raises ArgumentError for a negative m, ShapeError for another number of constants.

    >>> tnp.polyint([2.0, 1.0], k=3)
    Array([1., 1., 3.], f64)
    """
    count = _order("polyint", m)
    if not count:
        return atleast_1d(array_of("polyint", p))
    (coefficients,) = promoted_inexact("polyint", atleast_1d(array_of("polyint", p)))
    given = array_of("polyint", 0 if k is None else k).reshape(-1)
    if 1 < given.size < count:
        raise ShapeError(
            message(f"polyint{here()} takes one constant, or one for each integration", f"got {given.type}")
        )
    constants = broadcast(given[:count], (count,))
    for i in range(count):
        powers = np.arange(coefficients.shape[0], 0, -1)
        coefficients = append(coefficients / powers, constants[i])
    return coefficients


def _order(name: str, m: Any) -> int:
    order = integer(name, "m", m)
    if order < 0:
        raise ArgumentError(message(f"{name}{here()}: the order must not be negative", f"got m={m}"))
    return repetitions(name, "m", order)


def poly(seq_of_zeros: Any) -> Array:
    """Return the monic polynomial with the given roots.

    seq_of_zeros: the roots [n]. Returns floats or complex numbers [n + 1]. Raises ShapeError for a matrix.

    >>> tnp.poly([1.0, 2.0])
    Array([ 1., -3.,  2.], f64)
    """
    (roots,) = promoted_inexact("poly", atleast_1d(array_of("poly", seq_of_zeros)))
    if roots.ndim != 1:
        raise ShapeError(
            message(
                f"poly{here()} takes a vector of roots", f"got {roots.type}", help="for a matrix, pass its eigenvalues"
            )
        )
    if not roots.shape[0]:
        return full_like(roots, 1, shape=())
    result = full_like(roots, 1, shape=1)
    for i in range(roots.shape[0]):
        result = concatenate([result[:1], append(result[1:], 0.0) - roots[i] * result])
    return result


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """Return the Vandermonde matrix of a vector, [n, N]: powers fall along a row, or rise if `increasing`.

    x: [n]; N: how many columns, n by default. Returns x's dtype. Raises ShapeError for other shapes.

    >>> tnp.vander([1, 2, 3], 3)
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], i64)
    """
    values = array_of("vander", x)
    values = cast(values, dtypes.I64) if values.dtype == dtypes.BOOL else values
    if values.ndim != 1:
        raise ShapeError(message(f"vander{here()} takes a vector", f"got {values.type}"))
    columns = values.shape[0] if N is None else integer("vander", "N", N)
    if columns < 0:
        raise ShapeError(message(f"vander{here()}: the number of powers must not be negative", f"got N={N}"))
    repetitions("vander", "N", columns)
    powers = [full_like(values, 1)]
    for _ in range(1, columns):
        powers.append(promoted("vander", powers[-1] * values, powers[-1])[0])
    powers = powers[:columns]
    if not powers:
        return zeros((values.shape[0], 0), values.dtype)
    return stack(powers if increasing else powers[::-1], axis=1)


@makes_new
def trim_zeros(filt: Any, trim: Any = "fb", axis: int | tuple[int, ...] | None = None) -> Array:
    """Return an array without the zeros at its front ("f"), its back ("b") or both, along some axes or all.

    filt: [*s]; trim: "f", "b" or "fb"; axis: one or several, by default all. Returns filt's dtype. The values must be
    concrete, because they decide the shape. Raises ArgumentError for another trim.

    >>> tnp.trim_zeros([0, 0, 1, 2, 0])
    Array([1, 2], i64)
    """
    x = array_of("trim_zeros", filt)
    if not isinstance(trim, str) or set(trim.lower()) - set("fb"):
        raise ArgumentError(message(f'trim_zeros{here()}: trim is "f", "b" or "fb"', f"got {trim!r}"))
    axes = shape.axes_tuple(axis, x.ndim, f"trim_zeros{here()}")
    known = concrete_value(x)
    if known is None:
        raise TracerArrayError(
            message(f"trim_zeros{here()}: the size of the result depends on traced values", f"got {x.type}")
        )
    found = np.argwhere(known)
    index = [slice(None)] * x.ndim
    for d in axes:
        if not len(found):
            index[d] = slice(0)
            continue
        start = int(found[:, d].min()) if "f" in trim.lower() else 0
        index[d] = slice(start, int(found[:, d].max()) + 1 if "b" in trim.lower() else None)
    return x[tuple(index)]
