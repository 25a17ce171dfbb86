"""Products with logarithms: entropies, divergences, losses, power transformations."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.numpy import absolute, exp, expm1, finfo, hypot, iscomplexobj, isfinite, isnan, log, log1p, where
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.promotion import promoted_inexact, promoted_real
from tracer.trace.array import Array
from tracer.transforms.custom.derivatives import custom_jvp


def xlogy(x: Any, y: Any) -> Array:
    """Return x log(y), and 0 where x is 0 and y is not NaN. If log(y) is not finite there, derivatives are 0, too.

    >>> tracer.scipy.special.xlogy(0.0, 0.0)
    Array(0., f64*)
    """
    a, b = _floats("xlogy", x, y)
    gone = (a == 0) & ~isnan(b) & ~_has_log(b)
    return where(gone, a * 0.0, a * log(where(gone, 1.0, b)))


def _floats(name: str, x: Any, y: Any) -> list[Array]:
    return list(promoted_inexact(name, array_of(name, x), array_of(name, y)))


def _has_log(x: Array) -> Array:
    """Return whether log(x) is finite."""
    return isfinite(x) & ((x != 0) if iscomplexobj(x) else (x > 0))


def xlog1py(x: Any, y: Any) -> Array:
    """Return x log(1 + y), and 0 where x is 0 and y is not NaN.

    >>> tracer.scipy.special.xlog1py(0.0, -1.0)
    Array(0., f64*)
    """
    a, b = _floats("xlog1py", x, y)
    gone = (a == 0) & ~isnan(b) & ~_has_log(b + 1)
    return where(gone, a * 0.0, a * log1p(where(gone, 0.0, b)))


def entr(x: Any) -> Array:
    """Return -x log(x): 0 at 0, -inf below.

    >>> tracer.scipy.special.entr(tnp.asarray([0.0, 1.0]))
    Array([0., 0.], f64)
    """
    (value,) = promoted_real("entr", x)
    return where(value < 0, -math.inf, 0.0 - xlogy(value, value))


def rel_entr(p: Any, q: Any) -> Array:
    """Return p log(p / q): 0 where p is 0 and q is not negative, inf outside of p > 0, q > 0.

    Logarithms are subtracted where the quotient overflows or underflows; near 1 the formula is p log1p((p - q) / q).

    >>> tracer.scipy.special.rel_entr(tnp.asarray([1.0, 1e300]), tnp.asarray([1.0, 1e-300]))
    Array([0.00000000e+000, 1.38155106e+303], f64)
    """
    a, b = (_array(v) for v in promoted_real("rel_entr", p, q))
    inside = (a > 0) & (b > 0)
    x, y = where(inside, a, 1.0), where(inside, b, 1.0)
    outside = where((a == 0) & (b >= 0), 0.0, math.inf)
    return where(inside, x * _log_ratio(x, y), where((a != a) | (b != b), math.nan, outside))


@custom_jvp
def _log_ratio(x: Array, y: Array) -> Array:
    ratio = x / y
    close = (ratio > 0.5) & (ratio < 2.0)
    fits = (ratio >= float(finfo(ratio.dtype).smallest_normal)) & (ratio < math.inf)
    apart = where(fits, log(where(fits, ratio, 1.0)), log(x) - log(y))
    return where(close, log1p(where(close, (x - y) / y, 0.0)), apart)


_log_ratio.defjvps(lambda dx, _, x, y: dx / x, lambda dy, _, x, y: -(dy / y))


def kl_div(p: Any, q: Any) -> Array:
    """Return p log(p / q) - p + q.

    >>> tracer.scipy.special.kl_div(tnp.asarray([1.0, 2.0]), 1.0)
    Array([0.        , 0.38629436], f64)
    """
    a, b = (_array(v) for v in promoted_real("kl_div", p, q))
    found = rel_entr(a, b)
    defined = (a >= 0) & (b >= 0) & (found < math.inf)
    return where(defined, where(defined, found, 0.0) - (a - b), found)


def boxcox(x: Any, lmbda: Any) -> Array:
    """Return (x^lmbda - 1) / lmbda, and log(x) where lmbda is 0.

    >>> tracer.scipy.special.boxcox(4.0, tnp.asarray([0.5, 0.0]))
    Array([2.        , 1.38629436], f64)
    """
    value, power = (_array(v) for v in promoted_real("boxcox", x, lmbda))
    return _powered(log(value), power)


def boxcox1p(x: Any, lmbda: Any) -> Array:
    """Return `boxcox` of 1 + x, exact for small x.

    >>> tracer.scipy.special.boxcox1p(3.0, tnp.asarray([0.5, 0.0]))
    Array([2.        , 1.38629436], f64)
    """
    value, power = (_array(v) for v in promoted_real("boxcox1p", x, lmbda))
    return _powered(log1p(value), power)


def _powered(logarithm: Any, power: Any) -> Array:
    small, inside, outside, step = _halves(logarithm, power)
    series: Any = 1.0
    for k in range(_BOXCOX_TERMS, 1, -1):
        series = 1.0 + inside / k * series
    return where(small, logarithm * series, expm1(outside) / step)


_BOXCOX_TERMS = 10  # 0.02^10 is 1e-17


def _halves(value: Any, power: Any) -> tuple[Array, Array, Array, Array]:
    """Return where the product is small, the product there and beyond, and the power beyond, each safe elsewhere."""
    product = where(power == 0, 0.0, power) * where(power == 0, 0.0, value)
    small = absolute(product) < 0.02
    finite = small & isfinite(value)
    inside = where(finite, power, 0.0) * where(finite, value, 0.0)
    step = where(small, 1.0, power)
    return small, inside, step * where(small, 0.0, value), step


def inv_boxcox(y: Any, lmbda: Any) -> Array:
    """Return the x whose `boxcox` is y.

    >>> tracer.scipy.special.inv_boxcox(2.0, tnp.asarray([0.5, 0.0]))
    Array([4.       , 7.3890561], f64)
    """
    value, power = (_array(v) for v in promoted_real("inv_boxcox", y, lmbda))
    return exp(_unpowered(value, power))


def inv_boxcox1p(y: Any, lmbda: Any) -> Array:
    """Return the x whose `boxcox1p` is y.

    >>> tracer.scipy.special.inv_boxcox1p(2.0, tnp.asarray([0.5, 0.0]))
    Array([3.       , 6.3890561], f64)
    """
    value, power = (_array(v) for v in promoted_real("inv_boxcox1p", y, lmbda))
    return expm1(_unpowered(value, power))


def _unpowered(value: Any, power: Any) -> Array:
    small, inside, outside, step = _halves(value, power)
    series: Any = 0.0
    for k in range(_BOXCOX_TERMS, 0, -1):
        series = 1.0 / k - inside * series
    return where(small, value * series, log1p(outside) / step)


def huber(delta: Any, r: Any) -> Array:
    """Return Huber's loss: r^2 / 2 up to delta, delta (|r| - delta / 2) beyond; inf where delta is negative.

    >>> tracer.scipy.special.huber(1.0, tnp.asarray([0.5, 3.0]))
    Array([0.125, 2.5  ], f64)
    """
    width, value = (_array(v) for v in promoted_real("huber", delta, r))
    size = absolute(value)
    return where(width < 0, math.inf, where(size <= width, 0.5 * value * value, width * (size - 0.5 * width)))


def pseudo_huber(delta: Any, r: Any) -> Array:
    """Return the smooth loss delta^2 (sqrt(1 + (r / delta)^2) - 1), 0 where delta is 0; inf where delta is negative.

    >>> tracer.scipy.special.pseudo_huber(1.0, tnp.asarray([0.0, 3.0]))
    Array([0.        , 2.16227766], f64)
    """
    width, value = (_array(v) for v in promoted_real("pseudo_huber", delta, r))
    none, endless = width == 0, absolute(value) == math.inf
    large, size = where(none, 1.0, width), where(none | endless, 0.0, value)
    loss = large * (size / (large + hypot(large, size))) * size
    return where(width < 0, math.inf, where(endless & ~none, math.inf, loss))


def _array(x: Any) -> Any:
    return x if isinstance(x, Array) else x.value
