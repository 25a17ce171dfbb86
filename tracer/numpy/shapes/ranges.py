"""Ranges of values: arange, linspace, logspace, geomspace."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from tracer.errors import ArgumentError, ShapeError, TracerIntegerError, message
from tracer.ir import dtypes
from tracer.ir import shape as sizes_
from tracer.ir.dtypes import DType
from tracer.numpy.core.conversion import array_of, broadcast, cast, common_pair, dtype_of_argument
from tracer.numpy.core.promotion import literal, promoted_inexact
from tracer.numpy.elementwise.powers import power
from tracer.numpy.elementwise.transcendental import log10
from tracer.numpy.shapes.creation import asarray
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.broadcasting import axis_of, broadcast_in_dim
from tracer.primitives.base.shapes import broadcasted_iota, expand_dims, moveaxis, reshape
from tracer.primitives.elementwise import arithmetic
from tracer.primitives.elementwise.rounding import floor
from tracer.runtime.system.devices import default_device, made, made_on
from tracer.settings import config
from tracer.trace.array import Array, concrete_value, is_recorded
from tracer.trace.captured_values import looked_at
from tracer.trace.integers import integer
from tracer.trace.source import here


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None) -> Array:
    """Return start, start + step, ... before stop; `arange(stop)` starts at 0.

    start, stop, step: numbers, step by default 1; dtype: by default `config.default_int` for integers, else the default
    float. Returns [n] with n = ceil((stop - start) / step), at least 0. All three must be concrete, because they decide
    the shape. Raises ArgumentError for a step of 0.

    >>> tnp.arange(3), tnp.arange(1.0, 2.0, 0.25)
    (Array([0, 1, 2], i64), Array([1.  , 1.25, 1.5 , 1.75], f64))
    """
    if device is not None:
        return made_on("arange", device, arange, start, stop, step, dtype)
    first, last = (0, start) if stop is None else (start, stop)
    by = 1 if step is None else step
    first, last, by = (_static_number("arange", v) for v in (first, last, by))
    if any(isinstance(v, complex) for v in (first, last, by)):
        raise ArgumentError(
            message(
                f"arange{here()}: complex numbers have no order to count in",
                f"got start={first}, stop={last}, step={by}",
                help="linspace takes complex ends",
            )
        )
    if by == 0:
        raise ArgumentError(message(f"arange{here()}: the step must not be 0"))
    if dtype is None:
        given = [np.asarray(v) for v in (first, last, by)]
        for v, g in zip((first, last, by), given, strict=True):
            if g.dtype.kind == "O":
                array_of("arange", v)  # raises: it does not fit in 64 bits
        pair, _ = common_pair(
            "arange", [(g.dtype, not isinstance(v, np.generic)) for g, v in zip(given, (first, last, by), strict=True)]
        )
        wanted = config.default_int if dtypes.is_bool(pair) or pair == dtypes.I64 else pair
    else:
        wanted = dtype_of_argument("arange", dtype)
    steps = -((first - last) // by) if _all_integers(first, last, by) else (last - first) / by
    if not math.isfinite(steps):
        raise ArgumentError(
            message(f"arange{here()}: the number of values is not finite", f"got {first} to {last} by {by}")
        )
    return made(_counted(max(0, math.ceil(steps)), first, by, wanted), None, "arange")


def _all_integers(*numbers: Any) -> bool:
    return all(isinstance(n, int) for n in numbers)


def _static_number(name: str, value: Any) -> Any:
    """Return a concrete bound as a Python scalar."""
    if isinstance(value, Array | np.ndarray):
        if isinstance(value, Array) and is_recorded(value):
            raise TracerIntegerError(
                message(
                    f"{name}{here()}: its bounds must be known while tracing, because they decide the shape",
                    f"got {value!r}",
                    help="take them from x.shape, or mark the argument static: jit(f, static_argnums=...)",
                )
            )
        if value.size != 1:
            raise ArgumentError(message(f"{name}{here()}: its bounds are single numbers", f"got {value!r}"))
        return (looked_at(value) if isinstance(value, np.ndarray) else np.asarray(value)).item()
    if not isinstance(value, int | float | complex | np.generic):
        raise ArgumentError(
            message(f"{name}{here()}: its bounds are numbers", f"got {type(value).__name__}: {value!r}"[:80])
        )
    return value if not isinstance(value, np.integer | np.bool_ | bool) else int(value)


def _counted(count: int, first: Any, by: Any, dtype: DType) -> Array:
    if count == 0:
        return broadcast_in_dim(literal("arange", 0, dtype), (0,), ())
    if dtypes.is_bool(dtype):
        return array_of("arange", np.arange(first, first + count * by, by)[:count].astype(bool))
    index = broadcasted_iota(dtype, (count,), 0)
    if by != 1:
        index = arithmetic.mul(index, _term(by, dtype))
    from_zero = first == 0 and not (by < 0 and dtypes.is_inexact(dtype))  # else the first would be -0
    return index if from_zero else arithmetic.add(index, _term(first, dtype))


def _term(value: Any, dtype: DType) -> Any:
    return literal("arange", value if isinstance(value, int) else dtype.type(value), dtype)


@overload
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: Literal[False] = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Array: ...  # fmt: skip


@overload
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, *, retstep: Literal[True], dtype: Any = None,
    axis: int = 0, device: Any = None,
) -> tuple[Array, Array]: ...  # fmt: skip


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """Return `num` evenly spaced values from start to stop, which is included if `endpoint`.

    start, stop: numbers or arrays, which broadcast to [*s]; axis: position of the new axis; retstep: return the spacing
    as well; dtype: integers are rounded down. Returns [num, *s] by default, floats or complex numbers. Raises
    ShapeError for a negative num.

    >>> tnp.linspace(0.0, 1.0, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], f64)
    """
    if device is not None:
        with default_device(device):
            return linspace(start, stop, num, endpoint, retstep, dtype, axis)  # type: ignore[call-overload]  # or a pair
    if isinstance(num, float | str):
        raise ArgumentError(
            message(f"linspace{here()}: the number of values is an integer", f"got {num!r}", help="arange takes a step")
        )
    count = integer("linspace", "num", num)
    if count < 0:
        raise ShapeError(message(f"linspace{here()}: the number of values must not be negative", f"got num={count}"))
    first, last = promoted_inexact("linspace", asarray(start), asarray(stop))
    computed = first.dtype
    parts = count - 1 if endpoint else count
    step = arithmetic.div(arithmetic.sub(last, first), parts if parts > 0 else math.nan)
    wanted = computed if dtype is None else dtype_of_argument("linspace", dtype)
    values = _spaced(first, last, count, endpoint, step)
    if dtypes.is_integer(wanted) and not dtypes.is_complex(computed):
        values = floor(values)
    result = moveaxis(cast(values, wanted), 0, axis)
    if retstep and parts < 1:
        return result, array_of("linspace", dtypes.real_dtype(step.dtype).type(math.nan))
    return (result, step) if retstep else result


def _spaced(first: Array, last: Array, count: int, endpoint: bool, step: Array) -> Array:
    """Return first + i step, in NumPy's order of operations so that grids have the same bits, and the exact end."""
    sizes = (count, *first.shape)
    if count == 0:
        return broadcast_in_dim(literal("linspace", 0, first.dtype), sizes, ())
    if count == 1:
        return expand_dims(first, (0,))
    position = cast(broadcasted_iota(dtypes.real_dtype(first.dtype), sizes, 0), first.dtype)
    values = arithmetic.add(arithmetic.mul(position, broadcast(step, sizes)), broadcast(first, sizes))
    if not endpoint:
        return values
    return concatenate([slice_in_dim(values, 0, count - 1), expand_dims(last, (0,))], 0)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Array:
    """Return base to the powers of `linspace(start, stop, num)`.

    start, stop, num, endpoint, axis, dtype: as in `linspace`; base: a number, or an array that broadcasts with both.
    Returns [num, *s] by default, floats or complex numbers.

    >>> tnp.logspace(0.0, 2.0, 3)
    Array([  1.,  10., 100.], f64)
    """
    bases = array_of("logspace", base)
    if bases.ndim:
        ends = [array_of("logspace", end) for end in (start, stop)]
        sizes = sizes_.broadcast(bases.shape, *(end.shape for end in ends), operation=f"logspace{here()}")
        first, last = (broadcast(end, sizes) for end in ends)
        exponents = linspace(first, last, num, endpoint, axis=axis)
        at = axis_of("logspace", axis, exponents.ndim)
        bases = broadcast(bases, sizes)
        result = power(reshape(bases, (*sizes[:at], 1, *sizes[at:])), exponents)
    else:
        result = power(base, linspace(start, stop, num, endpoint, axis=axis))
    return result if dtype is None else cast(result, dtype_of_argument("logspace", dtype))


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Array:
    """Return `num` values from start to stop with a constant ratio between neighbours. Both have one sign.

    start, stop: numbers or arrays, which broadcast to [*s]; endpoint, axis, dtype: as in `linspace`. Returns [num, *s]
    by default, floats or complex numbers. Raises ArgumentError for a bound of 0.

    >>> tnp.geomspace(1.0, 100.0, 3)
    Array([  1.,  10., 100.], f64)
    """
    ends = asarray(start), asarray(stop)
    first, last = promoted_inexact("geomspace", *ends)
    count = integer("geomspace", "num", num)
    if any(known is not None and (known == 0).any() for known in map(concrete_value, ends)):
        raise ArgumentError(message(f"geomspace{here()}: no ratio leads from or to zero", f"got {start} and {stop}"))
    exponents = linspace(0.0 * first, log10(last / first), count, endpoint, axis=0)
    result = first * power(10.0, exponents)
    if count:
        result = result.at[0].set(first)
    if count > 1 and endpoint:
        result = result.at[-1].set(last)
    result = moveaxis(result, 0, axis)
    return result if dtype is None else result.astype(dtype)
