"""Greatest common divisors and least common multiples of integers."""

from __future__ import annotations

from typing import Any

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.lax.loops import while_loop
from tracer.numpy.core.conversion import array_of, broadcast
from tracer.numpy.core.promotion import promoted
from tracer.numpy.elementwise.arithmetic import absolute, remainder
from tracer.numpy.reduce.reductions import any
from tracer.numpy.shapes.manipulation import broadcast_shapes
from tracer.numpy.shapes.where import where
from tracer.trace.array import Array
from tracer.trace.source import here


def gcd(x1: Any, x2: Any) -> Array:
    """Return the greatest common divisor of integers of either sign, broadcast together; gcd(0, 0) is 0.

    x1, x2: integers, whose shapes broadcast to [*s]. Returns [*s], in the promoted dtype. Raises DTypeError for other
    dtypes. By Euclid's algorithm on all elements at once.

    >>> tnp.gcd(tnp.asarray([12, -7, 0]), 18)
    Array([ 6,  1, 18], i64)
    """
    x, y = _integers("gcd", x1, x2)

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        larger, smaller = pair
        rest = remainder(larger, where(smaller == 0, 1, smaller))
        return where(smaller == 0, larger, smaller), where(smaller == 0, 0, rest)

    found: Array = while_loop(lambda pair: any(pair[1] != 0), step, (x, y))[0]
    return absolute(found)


def lcm(x1: Any, x2: Any) -> Array:
    """Return the least common multiple of integers of either sign, broadcast together; 0 if either is 0.

    >>> tnp.lcm(tnp.asarray([4, -6, 0]), 6)
    Array([12,  6,  0], i64)
    """
    x, y = _integers("lcm", x1, x2)
    divisor = gcd(x, y)
    return x // where(divisor == 0, 1, divisor) * y


def _integers(name: str, x1: Any, x2: Any) -> list[Array]:
    operands = promoted(name, x1, x2)
    dtype = operands[0].type.dtype
    if not dtypes.is_integer(dtype):
        raise DTypeError(
            message(f"{name}{here()} takes integers", f"got {dtypes.short_name(dtype)}", help="cast with .astype(int)")
        )
    arrays = [x if isinstance(x, Array) else array_of(name, x.value).astype(dtype) for x in operands]
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [broadcast(absolute(x), shape) for x in arrays]
