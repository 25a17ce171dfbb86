"""Complex operands in double precision, and squares whose exponential keeps its digits."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.ir import dtypes
from tracer.numpy import exp, iscomplexobj, round
from tracer.numpy.core.conversion import array_of, cast
from tracer.numpy.core.promotion import promoted_inexact
from tracer.trace.array import Array


def complex_operand(name: str, z: Any) -> tuple[Array, Any]:
    """Return the operand in complex128, and the complex dtype of results: complex64 for all but double precision."""
    (value,) = promoted_inexact(name, z)
    given = array_of(name, value)
    double = given.dtype in (dtypes.F64, dtypes.C128)
    return cast(given, dtypes.C128), dtypes.C128 if double else dtypes.C64


def is_complex(name: str, z: Any) -> bool:
    """Return whether the operand is complex after promotion."""
    return iscomplexobj(array_of(name, promoted_inexact(name, z)[0]))


def bell(x: Array) -> Array:
    """Return e^(-x²/2) with a relative error of some eps, for x up to 40: the square's leading bits are exact."""
    head = round(x * 64.0) * 0.015625
    return exp(-0.5 * head * head) * exp(-0.5 * (x - head) * (x + head))
