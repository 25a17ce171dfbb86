"""Samples from continuous distributions, as formulas of uniform or normal samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType, finfo
from tracer.ir.types import Shape
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.elementwise.arithmetic import add, clamp, div, mul, neg, sub
from tracer.primitives.elementwise.comparison import ge, le, lt, select
from tracer.primitives.elementwise.complex import abs, complex, sign
from tracer.primitives.elementwise.exponential import exp, log, log1p
from tracer.primitives.elementwise.powers import pow, sqrt, square
from tracer.primitives.elementwise.rounding import nextafter
from tracer.primitives.elementwise.special import erf, erf_inv
from tracer.primitives.elementwise.trigonometric import tan
from tracer.random.arguments import (
    Parameter,
    fitted,
    float_dtype,
    halves,
    joint_shape,
    one_key,
    operand,
    shape_of,
)
from tracer.random.discrete import rademacher
from tracer.random.keys import split_keys
from tracer.random.uniform import uniform_of
from tracer.trace.array import Array
from tracer.trace.source import here


def normal(key: Parameter, shape: Any = (), dtype: Any = None) -> Array:
    """Draw samples from the standard normal distribution; complex samples have variance 1/2 in each part.

    Computed as sqrt(2) * erf_inv(u), with u uniform in (-1, 1).

    dtype: a float or complex one, by default `config.default_float`. Raises DTypeError for any other dtype.

    >>> tracer.random.normal(tracer.random.key(0), (2, 3), "float32")
    Array([[ 1.622642  ,  2.0252645 , -0.43359438],
           [-0.07861735,  0.17609091, -0.9720893 ]], f32)
    """
    keys, sizes = one_key("normal", key), shape_of("normal", shape)
    return normal_of(keys, sizes, float_dtype("normal", dtype, of_complex=True))


def normal_of(key: Array, shape: Shape, dtype: DType) -> Array:
    """Draw standard normal samples from a typed key."""
    if dtypes.is_complex(dtype):
        real = dtypes.real_dtype(dtype)
        parts = [div(normal_of(part, shape, real), math.sqrt(2)) for part in split_keys(key, 2)]
        pair: Array = complex(*parts)
        return pair
    above = np.nextafter(dtype.type(-1), dtype.type(0))
    samples: Array = mul(erf_inv(uniform_of(key, shape, dtype, above, dtype.type(1))), math.sqrt(2))
    return samples


def truncated_normal(key: Parameter, lower: Parameter, upper: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw samples from the standard normal distribution truncated to (lower, upper).

    lower, upper: numbers or arrays. By default the shape is the joint shape of the bounds.

    >>> tracer.random.truncated_normal(tracer.random.key(0), -1.0, 1.0, (3,))
    Array([-0.13999612, -0.50631466,  0.90652156], f64)
    """
    keys, chosen = one_key("truncated_normal", key), float_dtype("truncated_normal", dtype)
    low, high = operand("truncated_normal", lower), operand("truncated_normal", upper)
    sizes = joint_shape("truncated_normal", shape, low, high)
    low, high = fitted(low, sizes, chosen), fitted(high, sizes, chosen)
    root = math.sqrt(2)
    samples = uniform_of(keys, sizes, chosen, erf(div(low, root)), erf(div(high, root)))
    infinity = chosen.type(np.inf)
    result: Array = clamp(nextafter(low, infinity), mul(erf_inv(samples), root), nextafter(high, -infinity))
    return result


def lognormal(key: Parameter, sigma: Parameter = 1.0, shape: Any = None, dtype: Any = None) -> Array:
    """Draw samples exp(sigma * normal).

    sigma: a number or an array.

    >>> tracer.random.lognormal(tracer.random.key(0), 0.5, (3,))
    Array([0.90219818, 0.67544544, 2.4794663 ], f64)
    """
    keys, chosen = one_key("lognormal", key), float_dtype("lognormal", dtype)
    scale = operand("lognormal", sigma)
    sizes = joint_shape("lognormal", shape, scale)
    result: Array = exp(mul(normal_of(keys, sizes, chosen), fitted(scale, sizes, chosen)))
    return result


def exponential(key: Parameter, shape: Any = (), dtype: Any = None) -> Array:
    """Draw samples from the density exp(-x), x >= 0: -log(1 - u).

    >>> tracer.random.exponential(tracer.random.key(0), (3,))
    Array([0.54207056, 0.24372319, 3.36163426], f64)
    """
    keys, sizes, chosen = _plain("exponential", key, shape, dtype)
    return exponential_of(keys, sizes, chosen)


def exponential_of(key: Array, shape: Shape, dtype: DType) -> Array:
    """Draw exponential samples from a typed key."""
    result: Array = neg(log1p(neg(uniform_of(key, shape, dtype))))
    return result


def gumbel(key: Parameter, shape: Any = (), dtype: Any = None, mode: str | None = None) -> Array:
    """Draw samples from the standard Gumbel distribution, -log(-log(u)).

    mode: "low" (the default), or "high", which draws twice the bits, for events rarer than a mantissa resolves.

    >>> tracer.random.gumbel(tracer.random.key(0), (3,))
    Array([ 0.13790566, -0.42599294,  3.34403911], f64)
    """
    keys, sizes, chosen = _plain("gumbel", key, shape, dtype)
    return gumbel_of(keys, sizes, chosen, mode)


def gumbel_of(key: Array, shape: Shape, dtype: DType, mode: str | None = None) -> Array:
    """Draw Gumbel samples from a typed key."""
    info = finfo(dtype)
    if mode not in (None, "low", "high"):
        raise ArgumentError(
            message(f"random.gumbel{here()}: unknown mode {mode!r}", help="'low' (the default) or 'high'")
        )
    if mode == "high":
        first, second = halves(uniform_of(key, (2, *shape), dtype))
        finer = add(add(first, mul(second, 2.0**-info.nmant)), float(info.tiny))
        inner = log1p(neg(select(ge(first, 0.5), first, finer)))
    else:
        inner = log(uniform_of(key, shape, dtype, info.tiny, dtype.type(1)))
    result: Array = neg(log(neg(inner)))
    return result


def laplace(key: Parameter, shape: Any = (), dtype: Any = None) -> Array:
    """Draw samples from the density exp(-|x|) / 2.

    >>> tracer.random.laplace(tracer.random.key(0), (3,))
    Array([ 0.17803369,  0.83796278, -2.66848708], f64)
    """
    keys, sizes, chosen = _plain("laplace", key, shape, dtype)
    u = uniform_of(keys, sizes, chosen, -1.0 + float(finfo(chosen).epsneg), 1.0)
    result: Array = mul(sign(u), log1p(neg(abs(u))))
    return result


def logistic(key: Parameter, shape: Any = (), dtype: Any = None) -> Array:
    """Draw samples from the logistic distribution: log(u / (1 - u)).

    >>> tracer.random.logistic(tracer.random.key(0), (3,))
    Array([-0.32911032, -1.28738678,  3.32634015], f64)
    """
    keys, sizes, chosen = _plain("logistic", key, shape, dtype)
    u = uniform_of(keys, sizes, chosen, finfo(chosen).tiny, 1.0)
    result: Array = sub(log(u), log1p(neg(u)))
    return result


def cauchy(key: Parameter, shape: Any = (), dtype: Any = None) -> Array:
    """Draw samples from the density 1 / (pi (1 + x^2)): tan(pi (u - 1/2)).

    >>> tracer.random.cauchy(tracer.random.key(0), (3,))
    Array([-0.26192951, -1.23784602,  9.14252843], f64)
    """
    keys, sizes, chosen = _plain("cauchy", key, shape, dtype)
    u = uniform_of(keys, sizes, chosen, finfo(chosen).eps, 1.0)
    result: Array = tan(mul(sub(u, 0.5), math.pi))
    return result


def pareto(key: Parameter, b: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw samples from the density b / x^(b + 1), x >= 1.

    b: positive.

    >>> tracer.random.pareto(tracer.random.key(0), 2.0, (3,))
    Array([1.31132133, 1.12959775, 5.36994212], f64)
    """
    keys, chosen, power = one_key("pareto", key), float_dtype("pareto", dtype), operand("pareto", b)
    sizes = joint_shape("pareto", shape, power)
    result: Array = exp(div(exponential_of(keys, sizes, chosen), fitted(power, sizes, chosen)))
    return result


def rayleigh(key: Parameter, scale: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw samples from the density x exp(-x^2 / (2 scale^2)) / scale^2.

    scale: positive.

    >>> tracer.random.rayleigh(tracer.random.key(0), 2.0, (3,))
    Array([2.63997102, 3.49983995, 0.53136889], f64)
    """
    keys, chosen, sigma = one_key("rayleigh", key), float_dtype("rayleigh", dtype), operand("rayleigh", scale)
    sizes = joint_shape("rayleigh", shape, sigma)
    result: Array = mul(fitted(sigma, sizes, chosen), sqrt(mul(log(uniform_of(keys, sizes, chosen)), -2)))
    return result


def weibull_min(
    key: Parameter, scale: Parameter, concentration: Parameter, shape: Any = (), dtype: Any = None
) -> Array:
    """Draw samples from the Weibull distribution: scale * (-log(1 - u))^(1 / concentration).

    scale, concentration: positive, numbers or arrays that broadcast to the shape.

    >>> tracer.random.weibull_min(tracer.random.key(0), 1.0, 2.0, (3,))
    Array([0.73625441, 0.49368328, 1.833476  ], f64)
    """
    keys, chosen = one_key("weibull_min", key), float_dtype("weibull_min", dtype)
    factor, power = operand("weibull_min", scale), operand("weibull_min", concentration)
    sizes = joint_shape("weibull_min", shape, factor, power)
    factor, power = fitted(factor, sizes, chosen), div(chosen.type(1), fitted(power, sizes, chosen))
    result: Array = mul(pow(exponential_of(keys, sizes, chosen), power), factor)
    return result


def maxwell(key: Parameter, shape: Any = (), dtype: Any = None) -> Array:
    """Draw lengths of vectors of three normal samples.

    >>> tracer.random.maxwell(tracer.random.key(0), (3,))
    Array([1.98906991, 0.42460738, 1.24030791], f64)
    """
    keys, sizes, chosen = _plain("maxwell", key, shape, dtype)
    return _maxwell(keys, sizes, chosen)


def _maxwell(key: Array, shape: Shape, dtype: DType) -> Array:
    result: Array = sqrt(reduce_sum(square(normal_of(key, (*shape, 3), dtype)), (len(shape),)))
    return result


def double_sided_maxwell(key: Parameter, loc: Parameter, scale: Parameter, shape: Any = (), dtype: Any = None) -> Array:
    """Draw Maxwell samples of either sign, scaled and shifted.

    loc, scale: numbers or arrays; shape: of the axes before the joint shape of loc and scale; by default that shape
    again, as in JAX. Returns [*shape, *joint shape].

    >>> tracer.random.double_sided_maxwell(tracer.random.key(0), 0.0, 1.0, (3,))
    Array([ 1.98461204, -2.4782074 , -1.6334815 ], f64)
    """
    keys, chosen = one_key("double_sided_maxwell", key), float_dtype("double_sided_maxwell", dtype)
    centre, factor = operand("double_sided_maxwell", loc), operand("double_sided_maxwell", scale)
    own = joint_shape("double_sided_maxwell", None, centre, factor)
    sizes = (*(shape_of("double_sided_maxwell", shape) or own), *own)
    first, second = split_keys(keys, 2)
    signed = mul(rademacher(second, sizes, chosen), _maxwell(first, sizes, chosen))
    result: Array = add(mul(signed, fitted(factor, sizes, chosen)), fitted(centre, sizes, chosen))
    return result


def triangular(
    key: Parameter, left: Parameter, mode: Parameter, right: Parameter, shape: Any = None, dtype: Any = None
) -> Array:
    """Draw samples from the density that rises from `left` to `mode` and falls to `right`, both linearly.

    left, mode, right: in ascending order.

    >>> tracer.random.triangular(tracer.random.key(0), 0.0, 1.0, 3.0, (3,))
    Array([1.13204461, 0.80553483, 2.54385174], f64)
    """
    keys, chosen = one_key("triangular", key), float_dtype("triangular", dtype)
    bounds = [operand("triangular", x) for x in (left, mode, right)]
    sizes = joint_shape("triangular", shape, *bounds)
    low, top, high = (fitted(x, sizes, chosen) for x in bounds)
    u, width = uniform_of(keys, sizes, chosen), sub(high, low)
    rising = add(low, sqrt(mul(mul(u, width), sub(top, low))))
    falling = sub(high, sqrt(mul(mul(sub(1, u), width), sub(high, top))))
    result: Array = select(lt(u, div(sub(top, low), width)), rising, falling)
    return result


def wald(key: Parameter, mean: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw samples from the inverse Gaussian distribution of the mean and of shape parameter 1.

    mean: positive.

    Michael, Schucany & Haas 1976, The American Statistician 30(2).

    >>> tracer.random.wald(tracer.random.key(0), 1.0, (3,))
    Array([0.18700294, 1.61073217, 1.51062865], f64)
    """
    keys, chosen, centre = one_key("wald", key), float_dtype("wald", dtype), operand("wald", mean)
    sizes = joint_shape("wald", shape, centre)
    mu = fitted(centre, sizes, chosen)
    first, second = split_keys(keys, 2)
    y, z = square(normal_of(first, sizes, chosen)), uniform_of(second, sizes, chosen)
    mu_squared = square(mu)
    root = sqrt(add(mul(mul(mu, 4), y), mul(mu_squared, square(y))))
    x = sub(add(mu, div(mul(mu_squared, y), 2)), mul(div(mu, 2), root))
    result: Array = select(le(z, div(mu, add(mu, x))), x, div(mu_squared, x))
    return result


def _plain(name: str, key: Parameter, shape: Any, dtype: Any) -> tuple[Array, Shape, DType]:
    """Return the key, shape and dtype of a sampler without parameters."""
    return one_key(name, key), shape_of(name, shape), float_dtype(name, dtype)
