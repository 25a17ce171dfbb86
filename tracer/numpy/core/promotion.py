"""Type promotion: operands of one operation are cast to one dtype and broadcast to one shape.

dtypes follow the lattice of `tracer.ir.dtypes`. Python scalars are weak: they may raise the category of the result
(bool, integer, float, complex), never its width. An integer array never widens a floating one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes, shape
from tracer.ir.dtypes import DType
from tracer.ir.program import Literal
from tracer.ir.types import array_type
from tracer.numpy.core.conversion import (
    Pair,
    array_of,
    broadcast,
    cast,
    common_pair,
    default_pair,
    inexact_dtype,
    room_for,
)
from tracer.settings import config
from tracer.trace.array import KEY_DTYPE, Array
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.trace import Operand


def promoted(name: str, *values: Any) -> list[Any]:
    """Return the values in their common dtype and shape. Scalars beside arrays become literals."""
    if len(values) == 2:
        x, y = values
        if type(x) is Array and type(y) is Array and x.dtype == y.dtype is not KEY_DTYPE and x.shape == y.shape:
            return [x, y]
    return _fit(name, _arguments(name, values), inexact=False)


def promoted_inexact(name: str, *values: Any) -> list[Any]:
    """Return the values as `promoted` does, with integers and bools cast to a float dtype."""
    if len(values) == 1:
        x = array_of(name, values[0], copy=state.innermost is not None)
        return [x if dtypes.is_inexact(x.dtype) else _checked_cast(x)]
    return _fit(name, _arguments(name, values), inexact=True)


def promoted_real(name: str, *values: Any) -> list[Any]:
    """Return the values as `promoted_inexact` does. Raises DTypeError for complex numbers."""
    operands = promoted_inexact(name, *values)
    require_real(name, operands[0].type.dtype, *values)
    return operands


def require_real(name: str, dtype: DType, *values: Any) -> None:
    """Raise DTypeError if the dtype to which the values are promoted is complex."""
    if dtypes.is_complex(dtype):
        raise DTypeError(
            message(
                f"{name}{here()} takes real numbers",
                f"got {' and '.join(str(array_of(name, value).type) for value in values)}",
                help="take .real, .imag or abs(...) of the complex ones",
            )
        )


def promoted_numbers(name: str, *values: Any) -> list[Any]:
    """Return the values as `promoted` does. Raises DTypeError for bools."""
    operands = promoted(name, *values)
    if operands[0].type.dtype == dtypes.BOOL:
        raise DTypeError(
            message(
                f"{name}{here()} is not defined on bool", help="logical_not, ^ and | are, or cast with .astype(int)"
            )
        )
    return operands


def promoted_counts(name: str, *values: Any) -> list[Any]:
    """Return the values as `promoted` does, with bools cast to int32."""
    operands = promoted(name, *values)
    if all(x.type.dtype == dtypes.BOOL for x in operands):
        return [cast(x, dtypes.I32) if isinstance(x, Array) else literal(name, x.value, dtypes.I32) for x in operands]
    return operands


def inexact_beside(name: str, x: Array, *others: Any) -> Array:
    """Cast `x` to the float dtype in which it is computed together with `others`, arrays and scalars."""
    dtype, weak = _inexact_pair(common_pair(name, [_pair(other) for other in (x, *others)]))
    return cast(x, dtype, weak)


def operand(name: str, x: Any) -> Array:
    """Return one argument of an operation as an array. Traced operations copy NumPy arrays."""
    return x if type(x) is Array else array_of(name, x, copy=state.innermost is not None)


def _checked_cast(x: Array) -> Array:
    dtype, weak = _inexact_pair((x.dtype, x.weak_type))
    return cast(x, dtype, weak)


def _inexact_pair(pair: Pair) -> Pair:
    dtype, weak = pair
    return (config.default_float if weak else inexact_dtype(dtype)) if not dtypes.is_inexact(dtype) else dtype, weak


def _arguments(name: str, values: tuple[Any, ...]) -> list[Any]:
    """Return arrays and scalars, at least one of them an array."""
    copy = state.innermost is not None
    found = False
    result: list[Any] = []
    for x in values:
        if isinstance(x, bool | int | float | complex | np.generic):
            result.append(x)
        else:
            result.append(array_of(name, x, copy=copy))
            found = True
    if not found:  # prefer a NumPy scalar: its dtype is fixed, and all operands must fit
        first = next((i for i, x in enumerate(result) if isinstance(x, np.generic)), 0)
        result[first] = array_of(name, result[first])
    return result


def _pair(x: Any) -> Pair:
    if isinstance(x, Array):
        return x.dtype, x.weak_type
    if isinstance(x, np.generic):
        return (x.dtype if x.dtype in dtypes.SHORT_NAMES else array_of("promotion", x).dtype), False
    return (dtypes.I64, True) if type(x) is int else default_pair(x)  # `literal` checks the range


def _fit(name: str, arguments: list[Any], *, inexact: bool) -> list[Any]:
    pair = common_pair(name, [_pair(x) for x in arguments])
    dtype, weak = _inexact_pair(pair) if inexact else pair
    sizes = _common_shape(name, arguments)
    return [
        broadcast(x if x.dtype == dtype else cast(x, dtype, weak), sizes)
        if isinstance(x, Array)
        else literal(name, x, dtype, weak)
        for x in arguments
    ]


def _common_shape(name: str, arguments: list[Any]) -> tuple[int, ...]:
    shapes = [x.shape for x in arguments if isinstance(x, Array)]
    first = shapes[0]
    if all(other == first for other in shapes):
        return first
    return shape.broadcast(*shapes, operation=f"{name}{here()}")


def parameter(name: str, value: Any, dtype: DType) -> Any:
    """Return a scalar parameter as a literal of a dtype; an array is cast to it."""
    if isinstance(value, bool | int | float | complex | np.generic):
        return literal(name, value, dtype)
    return cast(array_of(name, value), dtype)


def literal(name: str, value: Any, dtype: DType, weak: bool = False) -> Literal:
    """Return a scalar as a literal of a dtype. Raises DTypeError for integers out of range and complex to real."""
    try:
        rounds_once = type(value) is int and dtypes.is_inexact(dtype) and -(2**63) <= value < 2**63
        if dtypes.is_narrow(dtype) and not _fits(value, dtype):
            raise OverflowError
        if value != value and dtypes.is_integer(dtype):
            raise OverflowError
        found = np.int64(value).astype(dtype) if rounds_once else dtype.type(value)
    except TypeError:
        raise DTypeError(
            message(f"{name}{here()}: complex numbers do not become real ones", f"got {value}", help="take its .real")
        ) from None
    except OverflowError:
        raise DTypeError(
            message(
                f"{name}{here()}: {'the integer ' if value == value else ''}{value} does not fit in "
                f"{dtypes.short_name(dtype)}",
                help=room_for(value, dtype),
            )
        ) from None
    return Literal(found, array_type(dtype, (), weak))


def _fits(value: Any, dtype: DType) -> bool:
    """Return whether a scalar is in range of a narrow integer dtype, whose casts would wrap."""
    if not dtypes.is_integer(dtype) or isinstance(value, bool):
        return True
    limits = dtypes.iinfo(dtype)
    return bool(limits.min <= int(value) <= limits.max)


def fitted(name: str, value: Any, dtype: DType) -> Array:
    """Cast values to be written into an array of a dtype. Raises DTypeError for a Python integer out of range."""
    if type(value) is int and dtypes.is_integer(dtype):
        return array_of(name, literal(name, value, dtype).value)
    return cast(array_of(name, value), dtype)


def same_dtype(name: str, x: Array, value: Any) -> Operand:
    """Cast a fill value or initial value to an array's dtype."""
    if isinstance(value, bool | int | float | complex | np.generic):
        return literal(name, value, x.dtype)
    return cast(operand(name, value), x.dtype)
