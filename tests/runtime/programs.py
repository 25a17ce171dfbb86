"""Functions of arrays, written in primitives: what the tests of the runtime compile."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.ir.types import Type, array_type
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers
from tracer.primitives.arrays.indexing.gather import gather
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.primitives.control.effects import HostFunction, callback
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.comparison import ge, lt
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.stage import stage

F64 = array_type(np.dtype("float64"), ())


def double(x: Any) -> Any:
    return add(x, x)


def arange(n: int, dtype: str = "float64") -> Array:
    return as_array(np.arange(n, dtype=dtype))


def count_up(start: Any, test: Callable[[Any, Any], Any], bound: float) -> Any:
    """Add 1.0 while test(x, bound)."""
    types: Sequence[Type] = [start.type]
    cond = stage(lambda xs: [test(xs[0], bound)], types, name="cond").program
    body = stage(lambda xs: [add(xs[0], 1.0)], types, name="body").program
    return while_program(cond, body, [], [], [start])[0]


def forever(x: Any) -> Any:
    """A loop that never ends: x grows until adding 1.0 changes nothing."""
    return count_up(x, ge, 0.0)


def count_to(bound: float) -> Callable[[Any], Any]:
    return lambda x: count_up(x, lt, bound)


def take(x: Any, i: Any) -> Any:
    """x[i] for vectors, checked."""
    i = as_array(i)
    numbers = GatherDimensionNumbers((), (0,), (0,))
    return gather(x, broadcast_in_dim(i, (*i.type.shape, 1), tuple(range(len(i.type.shape)))), numbers, (1,))


def call_host(function: Callable[..., Any], x: Any) -> Any:
    """function(x), run in Python, of the same type."""
    host = HostFunction(lambda v: (function(v),), function.__name__)
    return callback(host, [x], [x.type], ordered=True, vmap_method="sequential")[0]


def scaled(x: Any, factor: Any) -> Any:
    if isinstance(factor, Array) and factor.shape == ():
        factor = broadcast_in_dim(factor, x.shape, ())
    return mul(x, factor)


def same(result: Any, expected: Any) -> None:
    """The result is an Array of the expected values and dtype."""
    assert type(result) is Array
    value = np.asarray(result)
    assert value.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(value, expected)


def line(offset: int) -> int:
    """The number of the caller's line, and so many lines further."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno + offset
