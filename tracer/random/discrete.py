"""Samples from discrete distributions."""

from __future__ import annotations

from typing import Any

from tracer.errors import ArgumentError, DTypeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import finfo
from tracer.primitives.elementwise.arithmetic import add, div, mul, neg, sub
from tracer.primitives.elementwise.comparison import eq, lt, select
from tracer.primitives.elementwise.conversion import convert_element_type, dtype_named
from tracer.primitives.elementwise.exponential import log, log1p
from tracer.primitives.elementwise.rounding import floor
from tracer.random.arguments import (
    Parameter,
    fitted,
    halves,
    inexact,
    integer_dtype,
    joint_shape,
    one_key,
    operand,
    shape_of,
)
from tracer.random.uniform import uniform_of
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.source import here


def bernoulli(key: Parameter, p: Parameter = 0.5, shape: Any = None, mode: str = "low") -> Array:
    """Draw True with probability `p`, a float or an array of floats; the shape is p's unless given.

    Returns bool. mode: "high" compares twice as many bits, for probabilities smaller than a mantissa resolves.

    >>> tracer.random.bernoulli(tracer.random.key(0), 0.5, (4,))
    Array([ True,  True, False, False], bool)
    """
    keys, chance = one_key("bernoulli", key), operand("bernoulli", p)
    if not dtypes.is_float(chance.type.dtype):  # type: ignore[union-attr]  # an array or a literal
        raise DTypeError(
            message(f"random.bernoulli{here()}: the probability is a float", f"got {chance.type}", help="as in 0.5")
        )
    if mode not in ("low", "high"):
        raise ArgumentError(message(f"random.bernoulli{here()}: unknown mode {mode!r}", help="'low' or 'high'"))
    dtype, sizes = inexact(chance), joint_shape("bernoulli", shape, chance)
    threshold = fitted(chance, sizes, dtype)
    if mode == "high":
        first, second = halves(uniform_of(keys, (2, *sizes), dtype))
        result: Array = lt(mul(second, 2.0 ** -finfo(dtype).nmant), sub(threshold, first))
    else:
        result = lt(uniform_of(keys, sizes, dtype), threshold)
    return result


def rademacher(key: Parameter, shape: Any = (), dtype: Any = None) -> Array:
    """Draw -1 or 1 with equal probability; of `config.default_int` unless `dtype` says otherwise.

    >>> tracer.random.rademacher(tracer.random.key(0), (2,), "int8")
    Array([1, 1], i8)
    """
    heads = bernoulli(key, 0.5, shape_of("rademacher", shape))
    result: Array = sub(
        mul(
            convert_element_type(
                heads, config.default_int if dtype is None else dtype_named("random.rademacher", dtype)
            ),
            2,
        ),
        1,
    )
    return result


def geometric(key: Parameter, p: Parameter, shape: Any = None, dtype: Any = None) -> Array:
    """Draw the number of trials of probability `p` until the first success: 1, 2, ....

    dtype: of integers, by default `config.default_int`.

    p: above 0, at most 1.

    >>> tracer.random.geometric(tracer.random.key(0), 0.5, (3,))
    Array([2, 3, 1], i64)
    """
    keys, chosen, chance = one_key("geometric", key), integer_dtype("geometric", dtype), operand("geometric", p)
    real, sizes = inexact(chance), joint_shape("geometric", shape, chance)
    u = uniform_of(keys, sizes, real)
    failures = div(log(select(eq(u, 0), 1, u)), log1p(neg(fitted(chance, sizes, real))))
    result: Array = convert_element_type(add(floor(failures), 1), chosen)
    return result
