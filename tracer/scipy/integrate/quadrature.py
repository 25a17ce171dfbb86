"""`quad`: integrals of functions by adaptive Gauss-Kronrod rules of 10 and 21 points.

From Piessens, de Doncker-Kapenga, Überhuber & Kahaner 1983, QUADPACK. These are the routine QAG, its rule's digits and
estimate of the error, and QAGI's substitution for infinite intervals.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tracer.lax import while_loop
from tracer.numpy import absolute, argmax, asarray, finfo, maximum, minimum, result_type, sum, where, zeros
from tracer.numpy.core.conversion import array_of, floating
from tracer.primitives.elementwise.stop_gradient import stop_gradient
from tracer.trace.array import Array, concrete_value
from tracer.trace.tracebacks import call_user
from tracer.transforms.functions import check_callable
from tracer.transforms.vectorize import vmap

_HALF_NODES = (
    0.995657163025808080735527280689003, 0.973906528517171720077964012084452, 0.930157491355708226001207180059508,
    0.865063366688984510732096688423493, 0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
    0.562757134668604683339000099272694, 0.433395394129247190799265943165784, 0.294392862701460198131126603103866,
    0.148874338981631210884826001129720,
)  # fmt: skip
_HALF_WEIGHTS = (
    0.011694638867371874278064396062192, 0.032558162307964727478818972459390, 0.054755896574351996031381300244580,
    0.075039674810919952767043140916190, 0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
    0.123491976262065851077958109831074, 0.134709217311473325928054001771707, 0.142775938577060080797094273138717,
    0.147739104901338491374841515972068,
)  # fmt: skip
_MIDDLE_WEIGHT = 0.149445554002904916664936468389821
_HALF_GAUSS = (
    0.066671344308688137593568809893332, 0.149451349150580593145776339657697, 0.219086362515982043995534934228163,
    0.269266719309996355091226921569469, 0.295524224714752870173892994651338,
)  # fmt: skip

_NODES = np.array([*_HALF_NODES, 0, *(-x for x in reversed(_HALF_NODES))])
_KRONROD = np.array([*_HALF_WEIGHTS, _MIDDLE_WEIGHT, *reversed(_HALF_WEIGHTS)])
_GAUSS = np.zeros(21)
_GAUSS[1::2] = [*_HALF_GAUSS, *reversed(_HALF_GAUSS)]


class _Parts(NamedTuple):
    low: Array
    high: Array
    value: Array
    error: Array
    rows: Array


def quad(
    func: Callable[..., Any], a: Any, b: Any, args: Any = (), *, epsabs: Any = 1.49e-8, epsrel: Any = 1.49e-8,
    limit: int = 50,
) -> tuple[Array, Array]:  # fmt: skip
    """Integrate func(x, *args) by x from a to b.

    func: returns one float or complex number [] for a float []; it is called once, on a batch of points. a, b: real
    numbers []; concrete infinities are substituted. args: a tuple of trees. epsabs, epsrel: the absolute and relative
    error at which the intervals are fine enough; limit: how many there are at most, a concrete integer.

    Returns (integral, estimate of its error), arrays []. An error above the tolerances means that the limit was
    reached: there is no extrapolation at singular ends. Under `jit` and `vmap`, with derivatives by limits and args of
    every order and mode.

    >>> value, error = tracer.scipy.integrate.quad(lambda x: tnp.exp(-x * x), -tnp.inf, tnp.inf)
    >>> value, error < 1e-7
    (Array(1.77245385, f64), Array(True, bool))
    >>> tracer.grad(lambda b: tracer.scipy.integrate.quad(tnp.sin, 0.0, b)[0])(1.0)
    Array(0.84147098, f64*)
    """
    check_callable(func, "quad")
    limits = [array_of("quad", x) for x in (a, b)]
    below, above = (_infinity(x) for x in limits)  # of the limits as given: jit stages their conversion
    low, high = (floating(x) for x in limits)
    dtype = result_type(low.dtype, high.dtype)
    given = args if isinstance(args, tuple) else (args,)

    def at(x: Array) -> Array:
        return floating(array_of("quad", call_user(func, (x, *given), {}))).reshape(())

    sign, low, high, f = _finite(at, low.astype(dtype), high.astype(dtype), below, above)
    value, error = _integral(f, low, high, epsabs, epsrel, limit)
    return sign * value, error


def _infinity(limit: Array) -> int:
    """Return the sign of a concrete infinite limit, 0 for any other."""
    known = concrete_value(limit)
    return 0 if known is None or not np.isinf(known).all() else int(np.sign(known.real))


def _finite(
    f: Callable[[Array], Array], low: Array, high: Array, below: int, above: int
) -> tuple[int, Array, Array, Callable[[Array], Array]]:
    """Return a sign, finite limits, and the function of t with x = end + (1 - t) / t where a limit is infinite.

    below, above: signs of infinite limits.
    """
    if below > 0 or above < 0:  # backwards
        sign, first, last, g = _finite(f, high, low, above, below)
        return -sign, first, last, g
    if not below and not above:
        return 1, low, high, f
    zero, one = asarray(0, low.dtype), asarray(1, low.dtype)

    def substituted(t: Array) -> Array:
        x = (1 - t) / t
        if below and above:
            return (f(x) + f(-x)) / (t * t)
        return f(low + x if above else high - x) / (t * t)

    return 1, zero, one, substituted


def _integral(
    f: Callable[[Array], Array], low: Array, high: Array, epsabs: Any, epsrel: Any, limit: int
) -> tuple[Array, Array]:  # fmt: skip
    value, error = _rule(f, low, high)

    def rough(p: _Parts) -> Array:
        goal = maximum(epsabs, epsrel * absolute(sum(p.value)))
        return (sum(p.error) > stop_gradient(goal)) & (p.rows < limit)

    def halve(p: _Parts) -> _Parts:
        i = argmax(p.error)
        middle = 0.5 * (p.low[i] + p.high[i])
        halves = [(p.low[i], middle), (middle, p.high[i])]
        found = [_rule(f, *half) for half in halves]
        for k, half, (value, error) in zip((i, p.rows), halves, found, strict=True):
            low, high = half
            p = p._replace(
                low=p.low.at[k].set(low), high=p.high.at[k].set(high), value=p.value.at[k].set(value),
                error=p.error.at[k].set(error),
            )  # fmt: skip
        return p._replace(rows=p.rows + 1)

    rows = [zeros(limit, x.dtype).at[0].set(x) for x in (low, high, value, error)]
    parts = while_loop(rough, halve, _Parts(*rows, asarray(1, int)))  # type: ignore[call-arg]
    return sum(parts.value), sum(parts.error)


def _rule(f: Callable[[Array], Array], low: Array, high: Array) -> tuple[Array, Array]:
    """Return the integral over an interval, and the estimate of its error."""
    half = 0.5 * (high - low)
    points = 0.5 * (high + low) + half * asarray(_NODES, low.dtype)
    values = vmap(f)(points)
    weights, gauss = (asarray(w, low.dtype) for w in (_KRONROD, _GAUSS))
    value = half * (values @ weights)
    size = absolute(half)
    known = stop_gradient(values)
    mean = known @ weights / 2
    spread = size * (absolute(known - mean) @ weights)
    error = size * absolute(known @ (weights - gauss))
    positive = (spread > 0) & (error > 0)
    ratio = 200 * error / where(positive, spread, 1)
    error = where(positive, spread * minimum(1, ratio * ratio**0.5), error)
    least = 50 * finfo(low.dtype).eps * size * (absolute(known) @ weights)
    return value, stop_gradient(maximum(error, least))
