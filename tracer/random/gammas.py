"""The gamma distribution and its relatives: beta, dirichlet, chisquare, f, t, generalized_normal, ball.

Samples are differentiable in their parameters at constant quantile (`lax.random_gamma_grad`), however drawn.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.errors import ShapeError, message
from tracer.ir.dtypes import DType
from tracer.ir.types import Shape
from tracer.lax.incomplete_gamma import log_gamma_grad, random_gamma_grad
from tracer.lax.loops import while_loop
from tracer.lax.mapping import map
from tracer.primitives.arrays.random import random_split
from tracer.primitives.arrays.reductions.reductions import reduce_max
from tracer.primitives.base.broadcasting import expand_dims, reduce_sum
from tracer.primitives.base.shapes import reshape
from tracer.primitives.elementwise.arithmetic import div, max, neg
from tracer.primitives.elementwise.bits import and_
from tracer.primitives.elementwise.comparison import eq, ge, le, select
from tracer.primitives.elementwise.complex import abs
from tracer.primitives.elementwise.exponential import exp, log
from tracer.primitives.elementwise.powers import pow, sqrt
from tracer.primitives.elementwise.stop_gradient import stop_gradient
from tracer.random.arguments import Parameter, fitted, float_dtype, joint_shape, one_key, operand, shape_of, whole
from tracer.random.continuous import exponential_of, normal_of
from tracer.random.discrete import rademacher
from tracer.random.keys import split_keys
from tracer.random.uniform import uniform_of
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.transforms.custom.derivatives import custom_jvp


def gamma(key: Parameter, a: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw samples from the density x^(a - 1) exp(-x) / Gamma(a), x > 0; the shape is the shape of `a` unless given.

    a: positive. Marsaglia & Tsang 2000, ACM Trans. Math. Softw. 26(3). For small `a`, many samples underflow;
    `loggamma` gives their logarithms.

    >>> tracer.random.gamma(tracer.random.key(0), 2.0, (3,))
    Array([1.3520308 , 1.12435945, 3.73240416], f64)
    """
    keys, chosen, power = one_key("gamma", key), float_dtype("gamma", dtype), operand("gamma", a)
    sizes = joint_shape("gamma", shape, power)
    return _gamma(keys, whole(power, sizes, chosen), logarithm=False)


def loggamma(key: Parameter, a: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw logarithms of samples from the gamma distribution, finite even if the samples underflow.

    a: positive.

    >>> tracer.random.loggamma(tracer.random.key(0), 1e-3, (2,))
    Array([-1113.02584633, -2280.53575798], f64)
    """
    keys, chosen, power = one_key("loggamma", key), float_dtype("loggamma", dtype), operand("loggamma", a)
    sizes = joint_shape("loggamma", shape, power)
    return _gamma(keys, whole(power, sizes, chosen), logarithm=True)


def beta(key: Parameter, a: Parameter, b: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw samples from the density proportional to x^(a - 1) (1 - x)^(b - 1), 0 < x < 1.

    a, b: positive.

    >>> tracer.random.beta(tracer.random.key(0), 2.0, 3.0, (3,))
    Array([0.32795607, 0.61380901, 0.76013421], f64)
    """
    keys, chosen = one_key("beta", key), float_dtype("beta", dtype)
    first, second = operand("beta", a), operand("beta", b)
    sizes = joint_shape("beta", shape, first, second)
    x, y = (
        _gamma(k, whole(power, sizes, chosen), logarithm=True)
        for k, power in zip(split_keys(keys, 2), (first, second), strict=True)
    )
    largest = max(x, y)
    x, y = exp(x - largest), exp(y - largest)
    return x / (x + y)


def dirichlet(key: Parameter, alpha: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw vectors with sum 1, of density proportional to the product of x_i^(alpha_i - 1).

    alpha: [*s, n], positive; shape: [*b], to which s broadcasts, by default s. Returns [*b, n]. Raises ShapeError for a
    scalar alpha.

    >>> tracer.random.dirichlet(tracer.random.key(0), tnp.asarray([1.0, 2.0, 3.0]))
    Array([0.07065346, 0.16705569, 0.76229085], f64)
    """
    keys, chosen, powers = one_key("dirichlet", key), float_dtype("dirichlet", dtype), operand("dirichlet", alpha)
    if not powers.type.shape:
        raise ShapeError(
            message(
                f"random.dirichlet{here()}: alpha has one parameter for each part",
                f"got {powers.type}",
                help="as in [1.0, 2.0, 3.0]",
            )
        )
    parts = powers.type.shape[-1]
    sizes = joint_shape("dirichlet", None if shape is None else (*shape_of("dirichlet", shape), parts), powers)
    samples = _gamma(keys, whole(powers, sizes, chosen), logarithm=True)
    last = (samples.ndim - 1,)
    scaled = exp(samples - stop_gradient(expand_dims(reduce_max(samples, last), last)))
    return scaled / expand_dims(reduce_sum(scaled, last), last)


def chisquare(key: Parameter, df: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw sums of `df` squared standard normals; df need not be an integer.

    df: positive.

    >>> tracer.random.chisquare(tracer.random.key(0), 4.0, (3,))
    Array([2.70406159, 2.2487189 , 7.46480832], f64)
    """
    keys, chosen, degrees = one_key("chisquare", key), float_dtype("chisquare", dtype), operand("chisquare", df)
    return _chisquare(keys, whole(degrees, joint_shape("chisquare", shape, degrees), chosen))


def f(key: Parameter, dfnum: Parameter, dfden: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw ratios of two chi-squares, each divided by its degrees of freedom.

    dfnum, dfden: the degrees of freedom, positive.

    >>> tracer.random.f(tracer.random.key(0), 3.0, 5.0, (2,))
    Array([1.54798047, 0.35745633], f64)
    """
    keys, chosen = one_key("f", key), float_dtype("f", dtype)
    above, below = operand("f", dfnum), operand("f", dfden)
    sizes = joint_shape("f", shape, above, below)
    above, below = whole(above, sizes, chosen), whole(below, sizes, chosen)
    key_below, key_above = split_keys(keys, 2)
    return (_chisquare(key_above, above) / above) / (_chisquare(key_below, below) / below)


def t(key: Parameter, df: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw samples from Student's distribution of `df` degrees of freedom.

    df: positive.

    >>> tracer.random.t(tracer.random.key(0), 3.0, (3,))
    Array([ 1.40115888, -0.60724612,  1.12196326], f64)
    """
    keys, chosen, degrees = one_key("t", key), float_dtype("t", dtype), operand("t", df)
    sizes = joint_shape("t", shape, degrees)
    half = whole(degrees, sizes, chosen) / 2
    key_normal, key_gamma = split_keys(keys, 2)
    return normal_of(key_normal, sizes, chosen) * sqrt(half / _gamma(key_gamma, half, logarithm=False))


def generalized_normal(key: Parameter, p: Parameter, shape: Any = (), dtype: Any = None) -> Array:
    """Draw samples from the density proportional to exp(-|x|^p); p is one number.

    >>> tracer.random.generalized_normal(tracer.random.key(0), 3.0, (3,))
    Array([ 0.74663734, -1.07920374, -0.1386478 ], f64)
    """
    keys, sizes = one_key("generalized_normal", key), shape_of("generalized_normal", shape)
    return _generalized_normal(keys, operand("generalized_normal", p), sizes, float_dtype("generalized_normal", dtype))


def ball(key: Parameter, d: int, p: Parameter = 2, shape: Any = (), dtype: Any = None) -> Array:
    """Draw uniform points in the d-dimensional unit ball under the p-norm. Returns [*shape, d].

    d: a concrete integer; p: a positive number, inf for the cube.

    Barthe, Guédon, Mendelson & Naor 2005, Ann. Probab. 33(2).

    >>> tracer.random.ball(tracer.random.key(0), 2, shape=(2,))
    Array([[-0.87015073, -0.45473046],
           [ 0.07910167, -0.18007603]], f64)
    """
    keys, sizes, chosen = one_key("ball", key), shape_of("ball", shape), float_dtype("ball", dtype)
    power, dimensions = operand("ball", p), shape_of("ball", integer("random.ball", "d", d))
    direction, radius = split_keys(keys, 2)
    point = _generalized_normal(direction, power, (*sizes, *dimensions), chosen)
    power = fitted(power, (), chosen)
    size = reduce_sum(_power(abs(point), power), (point.ndim - 1,)) + exponential_of(radius, sizes, chosen)
    return point / expand_dims(_power(size, div(chosen.type(1), power)), (point.ndim - 1,))


def _chisquare(key: Array, degrees: Array) -> Array:
    return exp(_gamma(key, degrees / 2, logarithm=True)) * 2


def _generalized_normal(key: Array, p: Any, shape: Shape, dtype: DType) -> Array:
    inverse = div(dtype.type(1), fitted(p, (), dtype))
    size, side = split_keys(key, 2)
    samples = _gamma(size, whole(inverse, shape, dtype), logarithm=False)
    return rademacher(side, shape, dtype) * _power(samples, inverse)


def _power(x: Array, y: Any) -> Array:
    return pow(x, fitted(y, x.shape, x.dtype))


def _gamma(key: Array, a: Array, *, logarithm: bool) -> Array:
    """Draw one sample for every element of `a`, each from a key of its own."""
    alphas = reshape(stop_gradient(a), (a.size,))
    keys = random_split(key, (a.size,))
    samples = map(lambda pair: _sample(pair[0], pair[1], logarithm), (keys, alphas))
    return (_log_quantile if logarithm else _quantile)(reshape(samples, a.shape), a)


def _sample(key: Array, alpha: Array, logarithm: bool) -> Array:
    """Draw one sample, or its logarithm.

    Where alpha < 1, it is a sample of alpha + 1 times a uniform sample to the power of 1 / alpha.
    """
    dtype, large = alpha.dtype, ge(alpha, 1)
    shifted = select(large, alpha, alpha + 1) - dtype.type(1 / 3)
    scale = dtype.type(1 / 3) / sqrt(shifted)

    def rejected(state: Any) -> Array:
        _, squared, cubed, u = state
        return and_(
            ge(u, 1 - dtype.type(0.0331) * (squared * squared)),
            ge(log(u), squared * 0.5 + shifted * ((1 - cubed) + log(cubed))),
        )

    def draw(state: Any) -> Any:
        again, normal_key, uniform_key = split_keys(state[0], 3)

        def redraw(state: Any) -> Any:
            following, own = split_keys(state[0], 2)
            x = normal_of(own, (), dtype)
            return following, x, x * scale + 1

        _, x, v = while_loop(lambda state: le(state[2], 0), redraw, (normal_key, dtype.type(0), dtype.type(-1)))
        return again, x * x, (v * v) * v, uniform_of(uniform_key, (), dtype)

    loop_key, boost_key = split_keys(key, 2)
    cubed = while_loop(rejected, draw, (loop_key, dtype.type(0), dtype.type(1), dtype.type(2)))[2]
    if logarithm:
        boost = neg(exponential_of(boost_key, (), dtype))
        return (log(shifted) + log(cubed)) + select(large | eq(boost, 0), 0, boost * (1 / alpha))
    return (shifted * cubed) * select(large, 1, pow(1 - uniform_of(boost_key, (), dtype), 1 / alpha))


@custom_jvp
def _quantile(sample: Array, a: Array) -> Array:
    return sample


@custom_jvp
def _log_quantile(log_sample: Array, a: Array) -> Array:
    return log_sample


_quantile.defjvps(None, lambda tangent, _, sample, a: random_gamma_grad(a, sample) * tangent)
_log_quantile.defjvps(None, lambda tangent, _, log_sample, a: log_gamma_grad(a, log_sample) * tangent)
