"""Comparisons, logical operations, and tests for NaN, infinity, equality and realness."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import aligned, array_of, cast, common_pair
from tracer.numpy.core.promotion import literal, operand, parameter, promoted, promoted_inexact
from tracer.primitives.arrays.reductions.reductions import reduce_and
from tracer.primitives.base.broadcasting import full_like
from tracer.primitives.elementwise import arithmetic, bits, comparison
from tracer.primitives.elementwise import complex as parts
from tracer.runtime.eager.elementwise_dispatch import elementwise
from tracer.trace.array import Array
from tracer.trace.source import here


@elementwise
def equal(x1: Any, x2: Any, /) -> Array:
    """Return x1 == x2 as bool.

    >>> tnp.equal(tnp.asarray([1.0, 2.0]), 2)
    Array([False,  True], bool)
    """
    return comparison.eq(*_comparable("equal", x1, x2))


@elementwise
def not_equal(x1: Any, x2: Any, /) -> Array:
    """Return x1 != x2 as bool; true for NaN.

    >>> tnp.not_equal(tnp.asarray([1.0, 2.0]), 2)
    Array([ True, False], bool)
    """
    return comparison.ne(*_comparable("not_equal", x1, x2))


@elementwise
def less(x1: Any, x2: Any, /) -> Array:
    """Return x1 < x2 as bool; false for NaN. Complex numbers compare by real, then by imaginary part.

    >>> tnp.less(tnp.asarray([1.0, 2.0]), 2)
    Array([ True, False], bool)
    """
    return _ordered("less", comparison.lt, comparison.lt, x1, x2)


@elementwise
def less_equal(x1: Any, x2: Any, /) -> Array:
    """Return x1 <= x2 as bool; false for NaN. Complex numbers compare by real, then by imaginary part.

    >>> tnp.less_equal(tnp.asarray([1.0, 2.0]), 1)
    Array([ True, False], bool)
    """
    return _ordered("less_equal", comparison.le, comparison.lt, x1, x2)


@elementwise
def greater(x1: Any, x2: Any, /) -> Array:
    """Return x1 > x2 as bool; false for NaN. Complex numbers compare by real, then by imaginary part.

    >>> tnp.greater(tnp.asarray([1.0, 2.0]), 1)
    Array([False,  True], bool)
    """
    return _ordered("greater", comparison.gt, comparison.gt, x1, x2)


@elementwise
def greater_equal(x1: Any, x2: Any, /) -> Array:
    """Return x1 >= x2 as bool; false for NaN. Complex numbers compare by real, then by imaginary part.

    >>> tnp.greater_equal(tnp.asarray([1.0, 2.0]), 2)
    Array([False,  True], bool)
    """
    return _ordered("greater_equal", comparison.ge, comparison.gt, x1, x2)


def _comparable(name: str, x1: Any, x2: Any) -> list[Any]:
    """Return the promoted operands. A Python integer beyond the other's dtype compares as above or below all of it."""
    try:
        return promoted(name, x1, x2)
    except DTypeError:
        beyond, x = (x1, x2) if type(x1) is int else (x2, x1)
        other = operand(name, x)
        if type(beyond) is not int or type(x) is int or dtypes.is_inexact(other.dtype):
            raise
        zeros = full_like(cast(other, dtypes.I32), 0)
        sign = literal(name, 1 if beyond > 0 else -1, dtypes.I32)
        return [sign, zeros] if beyond is x1 else [zeros, sign]


def _ordered(name: str, compare: Any, strictly: Any, x1: Any, x2: Any) -> Array:
    x, y = _comparable(name, x1, x2)
    if not dtypes.is_complex((x if isinstance(x, Array) else y).dtype):
        return compare(x, y)
    (a, b), (c, d) = ((parts.real(v), parts.imag(v)) for v in (x, y))
    numbers = bits.and_(comparison.eq(b, b), comparison.eq(d, d))  # false where an imaginary part is NaN
    return bits.or_(bits.and_(strictly(a, c), numbers), bits.and_(comparison.eq(a, c), compare(b, d)))


# Logic


def truth(name: str, x: Any) -> Array:
    """Return an argument as bools: True where it is not 0. Raises DTypeError for random keys."""
    value = operand(name, x)
    if value.dtype == dtypes.BOOL:
        return value
    common_pair(name, [(value.dtype, False)])  # raises for random keys
    return comparison.ne(value, literal(name, 0, value.dtype))


def _truths(name: str, x1: Any, x2: Any) -> list[Any]:
    return promoted(name, truth(name, x1), truth(name, x2))


@elementwise
def logical_and(x1: Any, x2: Any, /) -> Array:
    """Return whether both operands are true, that is, not 0.

    >>> tnp.logical_and(tnp.asarray([True, False]), True)
    Array([ True, False], bool)
    """
    return bits.and_(*_truths("logical_and", x1, x2))


@elementwise
def logical_or(x1: Any, x2: Any, /) -> Array:
    """Return whether either operand is true, that is, not 0.

    >>> tnp.logical_or(tnp.asarray([True, False]), False)
    Array([ True, False], bool)
    """
    return bits.or_(*_truths("logical_or", x1, x2))


@elementwise
def logical_xor(x1: Any, x2: Any, /) -> Array:
    """Return whether exactly one operand is true, that is, not 0.

    >>> tnp.logical_xor(tnp.asarray([True, False]), True)
    Array([False,  True], bool)
    """
    return bits.xor(*_truths("logical_xor", x1, x2))


@elementwise
def logical_not(x: Any, /) -> Array:
    """Return whether x is 0.

    >>> tnp.logical_not(tnp.asarray([2.0, 0.0]))
    Array([False,  True], bool)
    """
    return bits.not_(truth("logical_not", x))


# Tests for NaN, infinity, equality and dtype


@elementwise
def isnan(x: Any, /) -> Array:
    """Return whether x is NaN, in either part if complex.

    >>> tnp.isnan(tnp.asarray([1.0, tnp.nan]))
    Array([False,  True], bool)
    """
    value = operand("isnan", x)
    return comparison.ne(value, value)


@elementwise
def isfinite(x: Any, /) -> Array:
    """Return whether x is neither infinite nor NaN, in both parts if complex.

    >>> tnp.isfinite(tnp.asarray([1.0, tnp.inf, tnp.nan]))
    Array([ True, False, False], bool)
    """
    value = operand("isfinite", x)
    if dtypes.is_complex(value.dtype):
        return bits.and_(comparison.is_finite(parts.real(value)), comparison.is_finite(parts.imag(value)))
    return comparison.is_finite(value) if dtypes.is_float(value.dtype) else _everywhere(value, True)


@elementwise
def isinf(x: Any, /) -> Array:
    """Return whether x is infinite, in either part if complex.

    >>> tnp.isinf(tnp.asarray([1.0, -tnp.inf]))
    Array([False,  True], bool)
    """
    value = operand("isinf", x)
    if dtypes.is_complex(value.dtype):
        return bits.or_(isinf(parts.real(value)), isinf(parts.imag(value)))
    if not dtypes.is_float(value.dtype):
        return _everywhere(value, False)
    return comparison.eq(parts.abs(value), np.inf)


def isposinf(x: Any, /) -> Array:
    """Return whether x is plus infinity.

    x: real [*s]. Returns bool [*s]. Raises DTypeError for complex numbers.

    >>> tnp.isposinf(tnp.asarray([tnp.inf, -tnp.inf]))
    Array([ True, False], bool)
    """
    return _is_infinity("isposinf", x, np.inf)


def isneginf(x: Any, /) -> Array:
    """Return whether x is minus infinity.

    x: real [*s]. Returns bool [*s]. Raises DTypeError for complex numbers.

    >>> tnp.isneginf(tnp.asarray([tnp.inf, -tnp.inf]))
    Array([False,  True], bool)
    """
    return _is_infinity("isneginf", x, -np.inf)


def _is_infinity(name: str, x: Any, infinity: float) -> Array:
    value = operand(name, x)
    if dtypes.is_complex(value.dtype):
        raise DTypeError(message(f"{name}{here()}: complex numbers have no order", f"got {value.type}"))
    return comparison.eq(value, infinity) if dtypes.is_float(value.dtype) else _everywhere(value, False)


def _everywhere(x: Array, value: bool) -> Array:
    return full_like(cast(x, dtypes.BOOL), value)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    """Return whether |a - b| <= atol + rtol |b|, as bool. Equal infinities are close; NaN only if `equal_nan`.

    a, b: numbers whose shapes broadcast to [*s]; rtol, atol: relative and absolute tolerances, numbers or arrays that
    broadcast with a and b and may be traced. Returns [*s].

    >>> tnp.isclose(tnp.asarray([1.0, 2.0]), tnp.asarray([1.0 + 1e-9, 2.1]))
    Array([ True, False], bool)
    """
    x, y = promoted_inexact("isclose", a, b)
    real = dtypes.real_dtype((x if isinstance(x, Array) else y).dtype)
    relative, absolute = (parameter("isclose", tolerance, real) for tolerance in (rtol, atol))
    x, y, relative, absolute = aligned("isclose", x, y, relative, absolute)
    slack = arithmetic.add(arithmetic.mul(parts.abs(y), relative), absolute)
    near = comparison.le(parts.abs(arithmetic.sub(x, y)), slack)
    finite = isfinite(y) if isinstance(y, Array) else bool(np.isfinite(y.value))
    result = bits.or_(bits.and_(near, finite), comparison.eq(x, y))
    if equal_nan:
        result = bits.or_(result, bits.and_(comparison.ne(x, x), comparison.ne(y, y)))
    return result


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    """Return whether `isclose` holds for every element: bool [].

    a, b: [*s] and [*t], which broadcast; rtol, atol, equal_nan: as in `isclose`.

    >>> tnp.allclose(tnp.asarray([1.0, 2.0]), tnp.asarray([1.0, 2.0 + 1e-9]))
    Array(True, bool)
    """
    close = isclose(a, b, rtol, atol, equal_nan)
    return reduce_and(close, range(close.ndim))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Return whether two arrays have equal shapes and elements: bool [].

    a1, a2: any shapes; equal_nan: whether NaN equals NaN. Returns bool [].

    >>> tnp.array_equal(tnp.asarray([1, 2]), [1, 2])
    Array(True, bool)
    """
    x, y = array_of("array_equal", a1), array_of("array_equal", a2)
    if x.shape != y.shape:
        return array_of("array_equal", np.bool_(False))
    same = equal(x, y)
    if equal_nan:
        same = bits.or_(same, bits.and_(isnan(x), isnan(y)))
    return reduce_and(same, range(same.ndim))


def array_equiv(a1: Any, a2: Any) -> Array:
    """Return whether two arrays are equal after broadcasting: bool [].

    a1, a2: any shapes; arrays that do not broadcast are unequal. Returns bool [].

    >>> tnp.array_equiv(tnp.asarray([1, 1]), 1)
    Array(True, bool)
    """
    x, y = array_of("array_equiv", a1), array_of("array_equiv", a2)
    try:
        same = equal(x, y)
    except ValueError:
        return array_of("array_equiv", np.bool_(False))
    return reduce_and(same, range(same.ndim))


def iscomplexobj(x: Any) -> bool:
    """Return whether the dtype is complex.

    x: an array of any shape, a number, or any object with a dtype. Returns a Python bool.

    >>> tnp.iscomplexobj(tnp.asarray([1j])), tnp.iscomplexobj(1.0)
    (True, False)
    """
    dtype = getattr(x, "dtype", None)
    return dtypes.is_complex(array_of("iscomplexobj", x).dtype if dtype is None else dtype)


def isrealobj(x: Any) -> bool:
    """Return whether the dtype is not complex.

    x: an array of any shape, or a number. Returns a Python bool.

    >>> tnp.isrealobj(1.0)
    True
    """
    return not iscomplexobj(x)


def iscomplex(x: Any) -> Array:
    """Return whether the imaginary part is not 0.

    x: [*s]. Returns bool [*s], false for real dtypes.

    >>> tnp.iscomplex(tnp.asarray([1j, 1.0]))
    Array([ True, False], bool)
    """
    value = operand("iscomplex", x)
    if dtypes.is_complex(value.dtype):
        return comparison.ne(parts.imag(value), 0)
    return _everywhere(value, False)


def isreal(x: Any) -> Array:
    """Return whether the imaginary part is 0.

    x: [*s]. Returns bool [*s], true for real dtypes.

    >>> tnp.isreal(tnp.asarray([1j, 1.0]))
    Array([False,  True], bool)
    """
    return bits.not_(iscomplex(x))


def isscalar(element: Any) -> bool:
    """Return whether `element` is a number or an array without axes.

    element: any object, an array of any shape too. Returns a Python bool.

    >>> tnp.isscalar(1.0), tnp.isscalar([1.0])
    (True, False)
    """
    if isinstance(element, Array | np.ndarray):
        return element.ndim == 0
    return bool(np.isscalar(element))
