"""Elementwise special functions: erf, erfc, erf_inv, lgamma, digamma, polygamma."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.primitive import Composite, Eager, NoRule, Pointwise, Primitive, Rule
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import Type
from tracer.primitives.base.rules import Value, per_operand, pointwise, pointwise_batch, pointwise_infer
from tracer.primitives.elementwise.arithmetic import add, div, mul, neg, sub
from tracer.primitives.elementwise.comparison import eq, le, lt, select
from tracer.primitives.elementwise.conversion import expand_in_single, reference_in_single
from tracer.primitives.elementwise.exponential import exp, scipy_special
from tracer.primitives.elementwise.powers import integer_pow, square
from tracer.primitives.elementwise.rounding import floor, round_even
from tracer.primitives.elementwise.trigonometric import tan
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.trace import Operand

_ROOT_PI = math.sqrt(math.pi)


def _scipy(name: str) -> Rule:
    """Make a reference from a SciPy function."""

    def reference(x: Any) -> Any:
        return scipy_special(name)(x)

    return reference_in_single(reference)


def _erf_inv_reference(x: Any) -> Any:
    return np.where(x == 0, x, scipy_special("erfinv")(x))  # SciPy loses the sign of -0


erf_p = Primitive(
    name="erf", infer=pointwise_infer("erf", "f"), reference=_scipy("erf"),
    jvp=per_operand(lambda ctx, dx, x: mul(dx, mul(exp(neg(square(x))), 2 / _ROOT_PI))),
    transpose=NoRule("erf is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ERF), splat=True,
)  # fmt: skip

erfc_p = Primitive(
    name="erfc", infer=pointwise_infer("erfc", "f"), reference=_scipy("erfc"),
    jvp=per_operand(lambda ctx, dx, x: mul(dx, mul(exp(neg(square(x))), -2 / _ROOT_PI))),
    transpose=NoRule("erfc is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ERFC), splat=True,
)  # fmt: skip

erf_inv_p = Primitive(
    name="erf_inv", infer=pointwise_infer("erf_inv", "f"),
    reference=reference_in_single(_erf_inv_reference),
    jvp=per_operand(lambda ctx, dx, x: mul(dx, mul(exp(square(ctx.outputs[0])), _ROOT_PI / 2))),
    transpose=NoRule("erf_inv is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.ERF_INV), splat=True,
)  # fmt: skip


# The gamma function and its logarithmic derivatives


def _lgamma_reference(x: Any) -> Any:
    """Compute log |gamma(x)| by SciPy. Near 0 it is -log |x| to the last bit; SciPy's is infinite for subnormals."""
    size = np.abs(x)
    value = np.where(size < 2.0**-60, -np.log(size), scipy_special("gammaln")(x))
    return np.where(np.isinf(x), size, value)


def _digamma_reference(x: Any) -> Any:
    """Compute digamma by SciPy, below 0 by reflection (Abramowitz & Stegun 6.3.7), exact beside the poles."""
    psi, finite = scipy_special("psi"), np.isfinite(x)
    beside = np.where(finite, x - np.round(x), np.nan)
    reflected = psi(1 - x) - np.pi / np.tan(np.pi * beside)
    values = np.where(finite & (x < 0), reflected, psi(x))
    return np.where((x <= 0) & (x == np.floor(x)), np.nan, values).astype(x.dtype)


lgamma_p = Primitive(
    name="lgamma", infer=pointwise_infer("lgamma", "f"), reference=reference_in_single(_lgamma_reference),
    jvp=per_operand(lambda ctx, dx, x: mul(dx, digamma(x))),
    transpose=NoRule("lgamma is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.LGAMMA), splat=True,
)  # fmt: skip

digamma_p = Primitive(
    name="digamma", infer=pointwise_infer("digamma", "f"), reference=reference_in_single(_digamma_reference),
    jvp=per_operand(lambda ctx, dx, x: mul(dx, polygamma(1, x))),
    transpose=NoRule("digamma is not linear"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.DIGAMMA), splat=True,
)  # fmt: skip

_infer_float = pointwise_infer("polygamma", "f")
_LARGEST_ORDER = 170


def _polygamma_infer(x: Type, *, order: int) -> Type:
    if not 1 <= order <= _LARGEST_ORDER:
        known = f"the order must be 1 or more, and at most {_LARGEST_ORDER}: f64 holds no larger factorial"
        raise ArgumentError(message(f"polygamma{here()}: {known}", f"got {order}", help="order 0 is digamma"))
    result: Type = _infer_float(x)
    return result


def _polygamma_reference(x: Any, *, order: int) -> Any:
    value = scipy_special("polygamma")(order, x).astype(x.dtype)
    pole = (x <= 0) & (x == np.floor(x))
    return np.where(pole, x.dtype.type(np.inf if order % 2 else np.nan), value)


_SHIFT = 10  # start of the asymptotic series: its first omitted term is below 1e-17 of the sum
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)  # B_2, B_4, ...


def _polygamma_expand(x: Operand, *, order: int) -> Any:
    """Compute polygamma by recurrence and series, below 0.5 by reflection about 0.5 (DLMF 5.15.5, 5.15.6, 5.15.8)."""
    low = lt(x, 0.5)
    upper = _polygamma_above(select(low, sub(1, x), x), order)
    angle = mul(sub(x, round_even(x)), math.pi)  # cot(pi x) has period 1
    cotangent = div(1, tan(angle))
    slope = mul(_horner(_cotangent_derivative(order), cotangent), math.pi ** (order + 1))
    reflected = sub(upper if order % 2 == 0 else neg(upper), slope)
    value = select(low, reflected, upper)
    at_pole = select(le(x, 0), eq(x, floor(x)), False)
    return select(at_pole, math.inf if order % 2 else math.nan, value)


def _polygamma_above(x: Operand, n: int) -> Any:
    """Compute (-1)^(n+1) n! times the sum over k of (x + k)^-(n+1), for x > 0.

    Terms from `_SHIFT` on are summed by the Euler-Maclaurin formula.
    """
    total = integer_pow(x, -(n + 1))
    for k in range(1, _SHIFT):
        total = add(total, integer_pow(add(x, k), -(n + 1)))
    far = add(x, _SHIFT)
    inverse = div(1, far)
    # n! far^-(n+1) / 2 + (n-1)! far^-n + sum of B_2k (2k+n-1)! / (2k)! far^-(2k+n), all over n!
    terms = [b * math.factorial(2 * k + n - 1) / math.factorial(2 * k) / math.factorial(n)
             for k, b in enumerate(_BERNOULLI, 1)]  # fmt: skip
    series = mul(_horner(terms, square(inverse)), inverse)
    tail = mul(add(add(mul(inverse, 0.5), 1 / n), mul(series, inverse)), integer_pow(inverse, n))
    return mul(add(total, tail), math.factorial(n) * (-1) ** (n + 1))


def _horner(coefficients: list[float], x: Operand) -> Any:
    value: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = add(mul(x, value), coefficient)
    return value


def _cotangent_derivative(order: int) -> list[float]:
    """Return the polynomial P in c = cot(u) with P(c) = d^order cot / du^order, from dc/du = -(1 + c^2)."""
    polynomial = [0.0, 1.0]
    for _ in range(order):
        slope = [power * a for power, a in enumerate(polynomial)][1:]
        polynomial = [-(a + b) for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    return polynomial


polygamma_p = Primitive(
    name="polygamma", infer=_polygamma_infer, reference=reference_in_single(_polygamma_reference),
    jvp=per_operand(lambda ctx, dx, x, *, order: mul(dx, polygamma(order + 1, x))),
    transpose=NoRule("polygamma is not linear"),
    batch=pointwise_batch, lower=Composite(expand_in_single(_polygamma_expand), computes=True), splat=True,
    eager=Eager.COMPILED,
)  # fmt: skip


def erf(x: Value) -> Any:
    """Compute the error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    x: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> erf(tnp.asarray([0.0, 1.0]))
    Array([0.        , 0.84270079], f64)
    """
    return pointwise(erf_p, x)


def erfc(x: Value) -> Any:
    """Compute 1 - erf(x) without cancellation for large x.

    x: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> erfc(tnp.asarray([0.0, 10.0]))
    Array([1.00000000e+00, 2.08848758e-45], f64)
    """
    return pointwise(erfc_p, x)


def erf_inv(x: Value) -> Any:
    """Compute the inverse of erf. Infinite at -1 and 1, NaN beyond.

    x: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> erf_inv(tnp.asarray([0.0, 0.5]))
    Array([0.        , 0.47693628], f64)
    """
    return pointwise(erf_inv_p, x)


def lgamma(x: Value) -> Any:
    """Compute log |gamma(x)|. Infinite at 0, -1, -2, ... and at both infinities.

    x: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> lgamma(tnp.asarray([0.5, 5.0]))
    Array([0.57236494, 3.17805383], f64)
    """
    return pointwise(lgamma_p, x)


def digamma(x: Value) -> Any:
    """Compute the derivative of lgamma. NaN at 0, -1, -2, ...

    x: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes.

    >>> digamma(tnp.asarray([1.0, 0.0]))
    Array([-0.57721566,         nan], f64)
    """
    return pointwise(digamma_p, x)


def polygamma(m: int, x: Value) -> Any:
    """Compute the m-th derivative of digamma, m a Python integer.

    At 0, -1, -2, ... it is infinite for odd orders and NaN for even ones.

    >>> polygamma(1, tnp.asarray([1.0, 0.5]))
    Array([1.64493407, 4.9348022 ], f64)
    """
    order = integer("polygamma", "the order", m)
    return digamma(x) if order == 0 else pointwise(polygamma_p, x, order=order)


SPECIAL = (erf_p, erfc_p, erf_inv_p, lgamma_p, digamma_p, polygamma_p)
