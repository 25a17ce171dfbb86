"""Special functions for `tracer.lax`: operands are floats of one dtype and one shape, as of its other functions."""

from __future__ import annotations

from typing import Any

from tracer.lax.incomplete_gamma import in_double
from tracer.numpy.chapters.bessel import bessel_i
from tracer.scipy.distribution_functions import betainc as _betainc
from tracer.scipy.zetas import zeta as _zeta
from tracer.trace.array import Array
from tracer.trace.tracebacks import set_boundaries


def bessel_i0e(x: Any) -> Array:
    """Return the modified Bessel function of the first kind and order 0, times e^-|x|.

    x: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> tracer.lax.bessel_i0e(tnp.asarray([0.0, 1000.0]))
    Array([1.        , 0.01261724], f64)
    """
    return in_double("bessel_i0e", lambda value: bessel_i("bessel_i0e", 0, value, scaled=True), x)


def bessel_i1e(x: Any) -> Array:
    """Return the modified Bessel function of the first kind and order 1, times e^-|x|.

    x: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> tracer.lax.bessel_i1e(tnp.asarray([0.0, 1000.0]))
    Array([0.        , 0.01261093], f64)
    """
    return in_double("bessel_i1e", lambda value: bessel_i("bessel_i1e", 1, value, scaled=True), x)


def betainc(a: Any, b: Any, x: Any) -> Array:
    """Return the regularised incomplete beta function I(a, b, x), as `tracer.scipy.special.betainc` does.

    a, b, x: floats [*s] of one dtype. Returns that dtype, [*s]. Raises DTypeError for other dtypes, ShapeError for
    unequal shapes.

    >>> tracer.lax.betainc(2.0, 3.0, tnp.asarray([0.25, 0.5]))
    Array([0.26171875, 0.6875    ], f64)
    """
    return in_double("betainc", _betainc, a, b, x)


def zeta(x: Any, q: Any) -> Array:
    """Return Hurwitz's zeta function, the sum of (q + k)^-x over k = 0, 1, 2, ...

    x, q: floats [*s] of one dtype. Returns that dtype, [*s]. Raises DTypeError for other dtypes, ShapeError for unequal
    shapes.

    >>> tracer.lax.zeta(tnp.asarray([2.0, 4.0]), tnp.asarray([1.0, 1.0]))
    Array([1.64493407, 1.08232323], f64)
    """
    return in_double("zeta", _zeta, x, q)


set_boundaries(globals(), ["bessel_i0e", "bessel_i1e", "betainc", "zeta"])
