"""`odeint`: ordinary differential equations by an explicit Runge-Kutta method with error control."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tracer import numpy as tnp
from tracer.absent import absent
from tracer.errors import DTypeError, ShapeError, message
from tracer.flatten_util import ravel_pytree
from tracer.ir import dtypes
from tracer.lax.loops import scan
from tracer.scipy.integrate.runge_kutta import explicit
from tracer.scipy.integrate.stepping import Slope, State, Tolerances, begin, first_step, reach, value_at
from tracer.scipy.integrate.tableaus import RK45
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries
from tracer.transforms.functions import check_callable
from tracer.transforms.vectorize import vmap

__all__ = ["odeint"]

_METHOD = explicit(RK45)


def odeint(
    func: Callable[..., Any], y0: Any, t: Any, *args: Any, rtol: Any = 1.4e-8, atol: Any = 1.4e-8,
    mxstep: Any = math.inf, hmax: Any = math.inf,
) -> Any:  # fmt: skip
    """Solve dy/dt = func(y, t, *args) from y0 at t[0], and return y at every t.

    func: returns a tree like y; y0: a tree of floats or complex numbers [*s]; t: floats [n], ascending; args: trees of
    arrays. rtol, atol: tolerances of a step's error, relative and absolute; mxstep: steps between two times,
    past which the result is NaN; hmax: the largest step. Returns a tree of arrays [n, *s]. Raises DTypeError for times
    that are not floats, ShapeError for other than one axis of them.

    Derivatives of every order and mode follow the steps taken; reverse mode keeps residuals as `while_loop` does.
    The method of Dormand & Prince 1980, steps by Hairer, Norsett & Wanner, Solving ODEs I, section II.4.

    >>> from tracer.experimental.ode import odeint
    >>> odeint(lambda y, t: -y, 1.0, tnp.asarray([0.0, 1.0, 2.0]))
    Array([1.        , 0.36787944, 0.13533528], f64)
    """
    check_callable(func, "odeint")
    times = _times(t)
    start, restored = ravel_pytree(y0)
    if not dtypes.is_inexact(start.dtype):
        start = start.astype(times.dtype)

    def slope(now: Array, y: Array) -> Array:
        return ravel_pytree(func(restored(y), now, *args))[0].astype(start.dtype)

    solved = _solve(slope, start, times, rtol, atol, mxstep, hmax)
    return vmap(restored)(solved)


def _times(t: Any) -> Array:
    times = as_array(t, "odeint: the times")
    if not dtypes.is_float(times.dtype):
        text = f"odeint{here()}: the times are floats"
        raise DTypeError(message(text, f"got {times.type}", help="cast them, t.astype(float)"))
    if times.ndim != 1 or not times.size:
        text = f"odeint{here()}: the times are one axis of at least one"
        raise ShapeError(message(text, f"got {times.type}", help="t[0] is the time of y0"))
    return times


def _solve(f: Slope, y0: Array, times: Array, rtol: Any, atol: Any, mxstep: Any, hmax: Any) -> Array:
    slope = f(times[0], y0)
    first = first_step(_METHOD, f, times[0], y0, slope, 1, rtol, atol)
    tolerances = Tolerances(rtol, atol, hmax)
    start = begin(_METHOD, f, times[0], y0, first, slope, 2)

    def advance(state: State, target: Array) -> tuple[State, Array]:
        state = reach(_METHOD, f, state._replace(attempts=start.attempts), target, tolerances, mxstep)
        return state, tnp.where(state.t < target, math.nan, value_at(_METHOD, f, state.last, target))

    _, later = scan(advance, start, times[1:])
    return tnp.concatenate([y0[None], later])


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)


set_boundaries(globals(), __all__)
