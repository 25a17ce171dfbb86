"""Counts drawn by rejection: poisson, binomial, multinomial.

Every trial draws for all elements at once, from the keys of JAX; elements that were accepted before keep their value.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.types import Shape
from tracer.lax.loops import scan, while_loop
from tracer.primitives.arrays.random import random_split
from tracer.primitives.base.broadcasting import full, full_like
from tracer.primitives.base.shapes import moveaxis
from tracer.primitives.control.cumulative import cumsum
from tracer.primitives.elementwise.arithmetic import clamp
from tracer.primitives.elementwise.bits import and_, not_, or_
from tracer.primitives.elementwise.comparison import eq, ge, gt, le, lt, ne, select
from tracer.primitives.elementwise.complex import abs
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.exponential import log, log1p
from tracer.primitives.elementwise.powers import sqrt
from tracer.primitives.elementwise.rounding import ceil, floor
from tracer.primitives.elementwise.special import lgamma
from tracer.random.arguments import (
    Parameter,
    broadcasts_to,
    float_dtype,
    inexact,
    integer_dtype,
    joint_shape,
    one_key,
    operand,
    shape_of,
    whole,
)
from tracer.random.keys import split_keys
from tracer.random.uniform import uniform_of
from tracer.trace.array import Array
from tracer.trace.source import here

# the tail of Stirling's series for log k!, k = 0 to 9
_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def poisson(key: Parameter, lam: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw counts of events of rate `lam`: k with probability lam^k exp(-lam) / k!.

    dtype: of integers, by default `config.default_int`.

    lam: at least 0, rounded to float32, as in JAX. Raises DTypeError for a dtype that is not an integer's. Below 10 by
    Knuth's products of uniform samples, else by Hörmann 1993, Insurance: Mathematics and Economics 12(1). Not
    differentiable.

    >>> tracer.random.poisson(tracer.random.key(0), 4.0, (5,))
    Array([0, 1, 5, 5, 2], i64)
    """
    keys, chosen, rate = one_key("poisson", key), integer_dtype("poisson", dtype), operand("poisson", lam)
    rates = whole(rate, joint_shape("poisson", shape, rate), dtypes.F32)
    few = or_(ne(rates, rates), lt(rates, 10))
    by_products = _poisson_products(keys, select(few, rates, 0))
    by_rejection = _poisson_rejection(keys, select(few, np.float32(1e5), rates))
    counts = convert_element_type(select(few, by_products, by_rejection), chosen)
    return select(eq(rates, 0), 0, counts)


def _poisson_products(key: Array, rates: Array) -> Array:
    """Count the uniform samples multiplied before their product falls to exp(-rate)."""

    def step(state: Any) -> Any:
        rng, count, log_product = state
        following, own = split_keys(rng, 2)
        count = select(gt(log_product, -rates), count + 1, count)
        return following, count, log_product + log(uniform_of(own, rates.shape, dtypes.F32))

    zero = full_like(rates, 0)
    return while_loop(lambda state: gt(state[2], -rates).any(), step, (key, zero, zero))[1] - 1


def _poisson_rejection(key: Array, rates: Array) -> Array:
    exact = convert_element_type(rates, dtypes.F64)  # the likelihood is a small difference of large terms
    log_rates = log(exact)
    b = 0.931 + 2.53 * sqrt(rates)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    surely = 0.9277 - 3.6224 / (b - 2)

    def trial(u: Array, v: Array) -> tuple[Array, Array]:
        u = u - 0.5
        distance = 0.5 - abs(u)
        k = floor((2 * a / distance + b) * u + rates + 0.43)
        bound = log(v * inverse_alpha / (a / (distance * distance) + b))
        number = convert_element_type(k, dtypes.F64)
        likelihood = convert_element_type(number * log_rates - exact - lgamma(number + 1), dtypes.F32)
        at_once = and_(ge(distance, 0.07), le(v, surely))
        refused = or_(lt(k, 0), and_(lt(distance, 0.013), gt(v, distance)))
        return k, or_(at_once, and_(not_(refused), le(bound, likelihood)))

    return _by_trials(key, rates.shape, dtypes.F32, trial)


def _by_trials(key: Array, shape: Shape, dtype: DType, trial: Callable[[Array, Array], tuple[Array, Array]]) -> Array:
    """Return the first accepted value of `trial(u, v)` of two uniform samples, for every element."""

    def step(state: Any) -> Any:
        rng, found, accepted = state
        following, first, second = split_keys(rng, 3)
        k, accept = trial(uniform_of(first, shape, dtype), uniform_of(second, shape, dtype))
        return following, select(accept, k, found), or_(accepted, accept)

    start = (key, full(shape, -1, dtype), full(shape, False, dtypes.BOOL))
    return while_loop(lambda state: not_(state[2]).any(), step, start)[1]


def binomial(key: Parameter, n: Parameter, p: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw successes among `n` trials of probability `p`, as floats.

    n, p: numbers or arrays. NaN for a negative or NaN n or p, infinite for infinite n. By sums of waiting times for few
    successes, else by Hörmann 1993, J. Stat. Comput. Simul. 46(1-2).

    >>> tracer.random.binomial(tracer.random.key(0), 10, 0.3, (5,))
    Array([4., 1., 3., 4., 3.], f64)
    """
    keys, chosen = one_key("binomial", key), float_dtype("binomial", dtype)
    trials, chance = operand("binomial", n), operand("binomial", p)
    sizes, real = joint_shape("binomial", shape, trials, chance), inexact(chance)
    return _binomial(keys, whole(trials, sizes, real), whole(chance, sizes, real), chosen)


def _binomial(key: Array, given: Array, chance: Array, dtype: DType) -> Array:
    rare = lt(chance, 0.5)
    q = select(rare, chance, 1 - chance)
    without_count = or_(ne(given, given), lt(given, 0))
    without_chance = or_(ne(q, q), lt(q, 0))
    q = select(without_chance, 0.01, q)
    endless = eq(given, np.inf)
    bounded = select(or_(without_count, endless), 0, given)
    few, count = le(bounded * q, 10), floor(bounded)
    by_waiting = convert_element_type(_binomial_waiting(key, select(few, count, 0), q), dtype)
    many = select(few, 1e4, count)
    by_rejection = convert_element_type(_binomial_rejection(key, many, select(few, 0.5, q)), dtype)
    invalid = or_(without_chance, without_count)
    samples = select(invalid, np.nan, select(few, by_waiting, by_rejection))
    samples = select(and_(endless, not_(invalid)), np.inf, samples)
    as_drawn = or_(or_(rare, without_count), or_(ne(chance, chance), endless))
    return select(as_drawn, samples, convert_element_type(count, dtype) - samples)


def _binomial_waiting(key: Array, count: Array, chance: Array) -> Array:
    """Count the geometric waiting times that fit into `count` trials."""
    log_failure = log1p(-chance)

    def step(state: Any) -> Any:
        rng, successes, waited = state
        own, following = split_keys(rng, 2)
        successes = select(le(waited, count), successes + 1, successes)
        wait = ceil(log(uniform_of(own, chance.shape, chance.dtype)) / log_failure)
        return following, successes, waited + wait

    zero = full_like(chance, 0)
    return while_loop(lambda state: le(state[2], count).any(), step, (key, zero, zero))[1] - 1


def _binomial_rejection(key: Array, count: Array, chance: Array) -> Array:
    deviation = sqrt(count * chance * (1 - chance))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    centre = count * chance + 0.5
    surely = 0.92 - 4.2 / b
    odds = chance / (1 - chance)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = floor((count + 1) * chance)

    def trial(u: Array, v: Array) -> tuple[Array, Array]:
        u = u - 0.5
        distance = 0.5 - abs(u)
        at_once = and_(ge(distance, 0.07), le(v, surely))
        k = floor((2 * a / distance + b) * u + centre)
        refused = or_(lt(k, 0), gt(k, count))
        bound = log(v * alpha / (a / (distance * distance) + b))
        likelihood = (
            (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * log(odds * (count - k + 1) / (k + 1))
            + _stirling_tail(mode)
            + _stirling_tail(count - mode)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        return k, or_(at_once, and_(not_(refused), le(bound, likelihood)))

    return _by_trials(key, chance.shape, chance.dtype, trial)


def _stirling_tail(k: Array) -> Array:
    """Return log k! - (k + 1/2) log(k + 1) + (k + 1) - log(2 pi) / 2: tabled up to 9, then its series."""
    square = (k + 1) * (k + 1)
    tail = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    for number, value in enumerate(_TAILS):
        tail = select(eq(k, number), value, tail)
    return tail


def multinomial(
    key: Parameter, n: Parameter, p: Parameter, *, shape: Any = None, dtype: Any = None, unroll: int | bool = 1
) -> Array:
    """Draw counts of each outcome in `n` trials, as floats that sum to n.

    p: [*s, k], the probabilities of the outcomes; n: broadcasts to shape[:-1]; shape: of the result, [*b, k], by
    default p's; unroll: of the `scan` over the outcomes.

    >>> tracer.random.multinomial(tracer.random.key(0), 20.0, tnp.asarray([0.2, 0.3, 0.5]))
    Array([ 3.,  6., 11.], f64)
    """
    keys, chances, trials = one_key("multinomial", key), operand("multinomial", p), operand("multinomial", n)
    sizes = chances.type.shape if shape is None else shape_of("multinomial", shape)
    if not sizes or not broadcasts_to(chances.type.shape, sizes) or not broadcasts_to(trials.type.shape, sizes[:-1]):
        raise ShapeError(
            message(
                f"random.multinomial{here()}: p has the outcomes along its last axis, n one axis less",
                f"got p {chances.type}, n {trials.type} for shape {sizes}",
                help="as in n = 20, p = [0.2, 0.3, 0.5]",
            )
        )
    real, chosen = _joint_float(trials, chances), float_dtype("multinomial", dtype)
    outcomes = moveaxis(whole(chances, sizes, real), -1, 0)
    remaining = cumsum(outcomes, 0, reverse=True)
    ratios = clamp(0, outcomes / select(eq(remaining, 0), 1, remaining), 1)

    def draw(left: Array, given: Any) -> tuple[Array, Array]:
        own, ratio = given
        count = _binomial(own, left, ratio, real)
        return left - count, count

    inputs = (random_split(keys, (outcomes.shape[0],)), ratios)
    _, counts = scan(draw, whole(trials, sizes[:-1], real), inputs, unroll=unroll)
    return convert_element_type(moveaxis(counts, 0, -1), chosen)


def _joint_float(trials: Any, chances: Any) -> DType:
    floats = [x.type.dtype for x in (trials, chances) if dtypes.is_float(x.type.dtype) and not x.type.weak]
    return max(floats, key=lambda d: d.itemsize) if floats else inexact(chances)
