"""lgamma and digamma, both evaluated in f64."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps

from tracer.ir.dtypes import F64
from tracer.schedule.math import coefficients as c
from tracer.schedule.math.double_double import fast_two_sum, log_pair
from tracer.schedule.math.expand import Value, fma, horner, polynomial, select
from tracer.schedule.math.logarithms import log


def in_double(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """Return the function evaluated in f64 for either format: these are too rare to have polynomials for f32."""

    @wraps(function)
    def evaluated(x: Value) -> Value:
        return function(x.convert(F64)).convert(x.dtype)

    return evaluated


@in_double
def lgamma(x: Value) -> Value:
    """Return log|gamma(x)|; infinite at 0, -1, -2, ... and at infinities.

    Between 1/2 and 3 (x - 1)(x - 2)(7/16 + R(x)); the same at x + 1 less log|x| where |x| < 1/2; Stirling's series with
    the logarithm in two parts from 3 on. For x <= -1/2 the reflection log(pi / |x sin(pi x)|) - lgamma(-x), whose terms
    cancel near its roots: there the error is at most 2^-50 max(1, lgamma(-x)).
    """
    size = abs(x)
    near_zero = size < 0.5
    high, low = log_pair(size)
    # (x - 1)(x - 2)(7/16 + R(x)), at x + 1 near 0, where x itself is the first factor
    first = select(near_zero, x, size - 1.0)
    second = first - 1.0
    product = first * second
    product_lost = fma(first, second, -product)
    rational = _rational(first + 0.5, c.LGAMMA_F64, c.LGAMMA_F64_BELOW)
    logarithm = select(near_zero, high, 0.0)
    middle = fma(product, 7 / 16, fma(product, rational, product_lost * 0.5)) - logarithm
    # (x - 1/2)(log x - 1) + (log(2 pi) - 1)/2 + S(1/x)
    inverse = 1.0 / size
    series = fma(inverse, polynomial(inverse * inverse, c.STIRLING_F64), 0.5 * math.log(2 * math.pi) - 0.5)
    factor = size - 0.5
    b, b_lost = fast_two_sum(high, x.like(-1.0))
    product = factor * b
    product_lost = fma(factor, b, -product) + fma(factor, b_lost + low, series)
    large = select(product < math.inf, product + product_lost, product)
    positive = select(size < 3.0, middle, large)
    # the reflection
    sine, _, fraction = _sin_and_cos_of_pi(size)
    reflected = -(log(abs(sine) * size * (1 / math.pi)) + positive)
    result = select(x > -0.5, positive, reflected)
    pole = (fraction.equals(0.0) & (x <= 0.0)) | size.equals(math.inf)
    return select(pole, math.inf, result)


@in_double
def digamma(x: Value) -> Value:
    """Return the logarithmic derivative of gamma; NaN at 0, negative integers and -inf.

    Between 1/2 and 2 (x - root)(17/16 + R(x)), from 2 on log(x) - 1/(2x) - S(1/x) with the logarithm in two parts,
    between 0 and 1/2 from x + 1, and for x < 0 the reflection digamma(1 - x) - pi cot(pi x), whose terms cancel near
    its roots: there the error is at most 2^-50 max(1, digamma(1 - x)).
    """
    negative = x < 0.0
    low_positive = ~negative & (x < 0.5)
    argument = select(negative, 1.0 - x, select(low_positive, x + 1.0, x))
    distance = argument - ROOT
    rational = _rational(argument - 0.5, c.DIGAMMA_F64, c.DIGAMMA_F64_BELOW)
    beside_root = fma(rational, -ROOT_LOW, -17 / 16 * ROOT_LOW)
    middle = fma(distance, 17 / 16, fma(distance, rational, beside_root))
    high, low = log_pair(argument)
    inverse = 1.0 / argument
    square = inverse * inverse
    series = fma(inverse, -0.5, fma(square, -polynomial(square, c.DIGAMMA_TAIL_F64), low))
    positive = select(argument < 2.0, middle, high + series)
    sine, cosine, fraction = _sin_and_cos_of_pi(x)
    correction = select(negative, cosine * -math.pi, -1.0) / select(negative, sine, x)
    result = select(negative | low_positive, positive + correction, positive)
    result = select((x <= 0.0) & fraction.equals(0.0), math.nan, result)
    return select(x.equals(math.inf), x, result)


ROOT, ROOT_LOW = 1.4616321449683622, 9.549995429965697e-17


def _rational(x: Value, above: tuple[float, ...], below: tuple[float, ...]) -> Value:
    return horner(x, above) / horner(x, below)


def _sin_and_cos_of_pi(x: Value) -> tuple[Value, Value, Value]:
    """Return (sin(pi f), cos(pi f), f) for f = x - round(x); that is sin(pi x) and cos(pi x) up to a common sign."""
    f = x - x.round_even()
    z = f * f
    sine = fma(f, math.pi, (f * z) * polynomial(z, c.SIN_PI_F64))
    return sine, fma(z, polynomial(z, c.COS_PI_F64), 1.0), f
