"""Minima and roots of functions of one real number: Brent 1973, Algorithms for Minimization without Derivatives."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.lax import while_loop
from tracer.numpy import absolute, asarray, finfo, isfinite, maximum, minimum, sign, where
from tracer.numpy.core.conversion import array_of, floating
from tracer.scipy.optimize.functions import Unknowns, options_of, solution
from tracer.scipy.optimize.results import CONVERGED, EXHAUSTED, UNDEFINED, ScalarResults, ScalarRootResults
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.transforms.gradients import grad, value_and_grad

_GOLDEN = (3 - np.sqrt(5)) / 2
_GROWTH = (1 + np.sqrt(5)) / 2

Function = Callable[[Array], Array]


def minimize_scalar(
    fun: Callable[..., Any], bracket: Any = None, bounds: Any = None, args: Any = (), method: str | None = None,
    tol: Any = None, options: dict[str, Any] | None = None,
) -> ScalarResults:  # fmt: skip
    """Find a local minimum of fun(x, *args) by a real number x.

    fun: returns one float []; bracket: two numbers from which a minimum is searched downhill, by default (0, 1); or
    three, the middle one with the smallest value; bounds: the ends of the interval for "bounded"; args: a tuple of
    trees. method: "brent" or "bounded" (the default with bounds). tol: the relative precision of x, for "bounded" the
    absolute one. options: xtol or xatol, other names of tol; maxiter (500).

    Returns `ScalarResults`. Works under `jit` and `vmap`. x and fun have derivatives by args and captured arrays, by
    the implicit function theorem. This holds for a minimum within the bounds, where fun has a derivative of zero, and a
    second one. Raises ArgumentError for an unknown method or option.

    >>> result = tracer.scipy.optimize.minimize_scalar(lambda x, a: (x - a) ** 2, args=(3.0,))
    >>> result.x.round(6), result.success
    (Array(3., f64), Array(True, bool))
    """
    method = ("brent" if bounds is None else "bounded") if method is None else method.lower()
    if method not in ("brent", "bounded") or (method == "bounded") != (bounds is not None):
        raise ArgumentError(
            message(
                f'minimize_scalar{here()}: method is "brent", or "bounded" with bounds',
                f"got {method!r} with bounds={bounds!r}",
            )
        )
    points = [array_of("minimize_scalar", x) for x in (bounds if bounds is not None else bracket or (0.0, 1.0))]
    if len(points) not in ((2,) if bounds is not None else (2, 3)):
        raise ArgumentError(
            message(f"minimize_scalar{here()}: bounds are two numbers, a bracket two or three", f"got {len(points)}")
        )
    given = asarray([floating(x) for x in points])
    name = "xtol" if method == "brent" else "xatol"
    precision = 3 * np.sqrt(finfo(given.dtype).eps) if tol is None else tol
    options = options_of("minimize_scalar", options, {name: precision, "maxiter": 500})
    unknowns = Unknowns("minimize_scalar", given[1], args)
    f, held = unknowns.scalar(fun)
    run = partial(_minimum, f, method, options[name], options["maxiter"], given)
    x, (value, evaluations, iterations) = solution(grad(f), unknowns.start, run, held)
    known = isfinite(value)
    status = where(~known, UNDEFINED, where(iterations < options["maxiter"], CONVERGED, EXHAUSTED))
    return ScalarResults(x[0], f(x, *held), status == CONVERGED, status, evaluations, iterations)


def root_scalar(
    f: Callable[..., Any], args: Any = (), method: str | None = None, bracket: Any = None, x0: Any = None,
    xtol: Any = 2e-12, rtol: Any = None, maxiter: Any = 100,
) -> ScalarRootResults:  # fmt: skip
    """Find a real number x with f(x, *args) = 0.

    f: returns one float []; args: a tuple of trees; bracket: two numbers at which f has different signs; x0: where
    Newton's iteration starts. method: "brentq" or "bisect" with a bracket, "newton" with x0. xtol, rtol: absolute and
    relative precision of x; rtol is by default four roundings; maxiter: iterations at most.

    Returns `ScalarRootResults`, NaN where f has one sign at both ends. Under `jit` and `vmap`. The root has derivatives
    by args and captured arrays, by the implicit function theorem. Raises ArgumentError for an unknown method, and for a
    method without its start.

    >>> tracer.scipy.optimize.root_scalar(lambda x, a: x * x - a, (2.0,), bracket=(0.0, 2.0)).root
    Array(1.41421356, f64)
    >>> solve = lambda a: tracer.scipy.optimize.root_scalar(lambda x: x * x - a, x0=1.0).root
    >>> tracer.grad(solve)(4.0)
    Array(0.25, f64*)
    """
    method = ("newton" if bracket is None else "brentq") if method is None else method.lower()
    if method not in ("brentq", "bisect", "newton") or (x0 if method == "newton" else bracket) is None:
        raise ArgumentError(
            message(
                f'root_scalar{here()}: method is "brentq" or "bisect" with a bracket, or "newton" with x0',
                f"got {method!r} with bracket={bracket!r}, x0={x0!r}",
            )
        )
    given = [array_of("root_scalar", x) for x in ([x0] if method == "newton" else bracket)]
    points = asarray([floating(x) for x in given])
    unknowns = Unknowns("root_scalar", points[0], args)
    function, held = unknowns.scalar(f)
    relative = 4 * finfo(points.dtype).eps if rtol is None else rtol
    iterate = {"brentq": brent_root, "bisect": _bisected_root, "newton": _newton_root}[method]
    run = partial(_scalar_root, function, iterate, points, xtol, relative, maxiter)
    x, (evaluations, iterations, converged) = solution(
        lambda x, *held: function(x, *held)[None], unknowns.start, run, held
    )
    return ScalarRootResults(x[0], converged, evaluations, iterations)


class _Search(NamedTuple):
    """Interval of Brent's search, the best, second and third best points and values, the last two steps."""

    low: Any
    high: Any
    x: Any
    w: Any
    v: Any
    fx: Any
    fw: Any
    fv: Any
    step: Any
    before: Any
    iterations: Any


def _minimum(
    f: Any, method: str, precision: Any, maxiter: Any, points: Array, start: Array, *held: Array
) -> tuple[Array, tuple[Any, Any, Any]]:  # fmt: skip
    def function(x: Array) -> Array:
        return f(x[None], *held)

    evaluations: Any = 0
    if method == "bounded":
        low, high = points[0], points[1]
        middle = low + _GOLDEN * (high - low)
    elif len(points) == 3:
        low, middle, high = minimum(points[0], points[2]), points[1], maximum(points[0], points[2])
    else:
        low, middle, high, evaluations = _bracketed(function, points[0], points[1])
    value = function(middle)
    absolutely = precision / 3 if method == "bounded" else 1e-11
    relatively = np.sqrt(finfo(points.dtype).eps) if method == "bounded" else precision / 3

    def tolerance(s: _Search) -> Array:
        return relatively * absolute(s.x) + absolutely

    def unfinished(s: _Search) -> Array:
        far = absolute(s.x - 0.5 * (s.low + s.high)) > 2 * tolerance(s) - 0.5 * (s.high - s.low)
        return far & (s.iterations < maxiter) & isfinite(s.fx)

    nothing = middle * 0
    begin = _Search(low, high, middle, middle, middle, value, value, value, nothing, nothing, asarray(0))
    end = while_loop(unfinished, lambda s: _brent_step(function, s, tolerance(s)), begin)
    return end.x[None], (end.fx, evaluations + 1 + end.iterations, end.iterations)


def _bracketed(f: Function, a: Array, b: Array) -> tuple[Array, Array, Array, Array]:
    """Go downhill from two points until the value rises; return three points in order, and the evaluations.

    A trial is the minimum of a parabola if it lies ahead and near, else a golden section further.
    """
    fa, fb = f(a), f(b)
    swap = fa < fb
    a, b, fa, fb = where(swap, b, a), where(swap, a, b), maximum(fa, fb), minimum(fa, fb)
    c = b + _GROWTH * (b - a)
    start = (a, b, c, fa, fb, f(c), asarray(3), asarray(True))

    def go(s: Any) -> Any:
        a, b, c, fa, fb, fc, count, bold = s
        r, q = (b - a) * (fb - fc), (b - c) * (fb - fa)
        twice = 2 * (q - r)
        u = b - ((b - c) * q - (b - a) * r) / where(twice == 0, 1, twice)
        inside = bold & (twice != 0) & ((u - c) * (b - u) > 0)
        ahead = bold & (twice != 0) & ((u - c) * (c - b) > 0) & (absolute(u - c) < 100 * absolute(c - b))
        u = where(inside | ahead, u, c + _GROWTH * (c - b))
        fu = f(u)
        lower, higher = inside & (fu < fc), inside & (fu > fb)
        on = lower | ~inside
        triple = where(on, b, a), where(lower, u, where(on, c, b)), where(lower, c, where(on | higher, u, c))
        values = where(on, fb, fa), where(lower, fu, where(on, fc, fb)), where(lower, fc, where(on | higher, fu, fc))
        return *triple, *values, count + 1, ~inside | lower | higher

    a, b, c, _, _, _, count, _ = while_loop(lambda s: (s[5] < s[4]) & (s[6] < 200), go, start)
    return minimum(a, c), b, maximum(a, c), count


def _brent_step(f: Function, s: _Search, tolerance: Array) -> _Search:
    """Try the minimum of a parabola, or a golden section where it leaves the interval or does not shrink."""
    middle = 0.5 * (s.low + s.high)
    r, q = (s.x - s.w) * (s.fx - s.fv), (s.x - s.v) * (s.fx - s.fw)
    p = (s.x - s.v) * q - (s.x - s.w) * r
    q = 2 * (q - r)
    p, q = where(q > 0, -p, p), absolute(q)
    parabolic = (
        (absolute(s.before) > tolerance)
        & (absolute(p) < absolute(0.5 * q * s.before))
        & (p > q * (s.low - s.x))
        & (p < q * (s.high - s.x))
    )
    step = p / where(parabolic, q, 1)
    tried = s.x + step
    near = (tried - s.low < 2 * tolerance) | (s.high - tried < 2 * tolerance)
    step = where(near, where(middle >= s.x, tolerance, -tolerance), step)
    longer = where(s.x >= middle, s.low - s.x, s.high - s.x)
    step, before = where(parabolic, step, _GOLDEN * longer), where(parabolic, s.step, longer)
    u = s.x + where(absolute(step) >= tolerance, step, where(step > 0, tolerance, -tolerance))
    fu = f(u)
    better = fu <= s.fx
    low = where(better, where(u >= s.x, s.x, s.low), where(u < s.x, u, s.low))
    high = where(better, where(u >= s.x, s.high, s.x), where(u < s.x, s.high, u))
    second = ~better & ((fu <= s.fw) | (s.w == s.x))
    third = ~better & ~second & ((fu <= s.fv) | (s.v == s.x) | (s.v == s.w))
    return _Search(
        low, high, where(better, u, s.x),
        where(better, s.x, where(second, u, s.w)), where(better | second, s.w, where(third, u, s.v)),
        where(better, fu, s.fx),
        where(better, s.fx, where(second, fu, s.fw)), where(better | second, s.fw, where(third, fu, s.fv)),
        step, before, s.iterations + 1,
    )  # fmt: skip


def _scalar_root(
    f: Any, iterate: Any, points: Array, xtol: Any, rtol: Any, maxiter: Any, start: Array, *held: Array
) -> tuple[Array, Any]:  # fmt: skip
    x, *counts = iterate(lambda x: f(x[None], *held), points, lambda x: xtol + rtol * absolute(x), maxiter)
    return x[None], tuple(counts)


def brent_root(f: Function, points: Array, tolerance: Function, maxiter: Any) -> Any:
    """Combine inverse quadratic interpolation, secants and bisection: chapter 4, `zero`."""
    a, b = points[0], points[1]
    fa, fb = f(a), f(b)

    def unfinished(s: Any) -> Any:
        _, b, c, _, fb, _, _, _, k = s
        return (fb != 0) & (absolute(c - b) / 2 > tolerance(b) / 2) & (k < maxiter)

    def iteration(s: Any) -> Any:
        a, b, c, fa, fb, fc, d, e, k = s
        limit = tolerance(b) / 2
        middle = (c - b) / 2
        ratio = fb / where(fa == 0, 1, fa)
        q, r = fa / where(fc == 0, 1, fc), fb / where(fc == 0, 1, fc)
        secant = a == c
        p = where(secant, 2 * middle * ratio, ratio * (2 * middle * q * (q - r) - (b - a) * (r - 1)))
        q = where(secant, 1 - ratio, (q - 1) * (r - 1) * (ratio - 1))
        p, q = absolute(p), where(p > 0, -q, q)
        good = (2 * p < minimum(3 * middle * q - absolute(limit * q), absolute(e * q))) & (
            (absolute(e) >= limit) & (absolute(fa) > absolute(fb))
        )
        d, e = where(good, p / where(good, q, 1), middle), where(good, d, middle)
        a, fa = b, fb
        b = b + where(absolute(d) > limit, d, where(middle > 0, limit, -limit))
        return (*_ordered(a, b, c, fa, f(b), fc, d, e), k + 1)

    one_sign = sign(fa) * sign(fb) > 0
    begin = (*_ordered(a, b, a, fa, fb, fa, b - a, b - a), asarray(0))
    _, x, c, _, fx, _, _, _, k = while_loop(unfinished, iteration, begin)
    converged = ~one_sign & isfinite(fx) & ((fx == 0) | (absolute(c - x) <= tolerance(x)))
    return where(one_sign, np.nan, x), k + 2, k, converged


def _ordered(a: Any, b: Any, c: Any, fa: Any, fb: Any, fc: Any, d: Any, e: Any) -> tuple[Any, ...]:
    """Let b be the best estimate, and the root between b and c."""
    same = sign(fb) * sign(fc) > 0
    c, fc, d, e = where(same, a, c), where(same, fa, fc), where(same, b - a, d), where(same, b - a, e)
    swap = absolute(fc) < absolute(fb)
    a, b, c = where(swap, b, a), where(swap, c, b), where(swap, b, c)
    fa, fb, fc = where(swap, fb, fa), where(swap, fc, fb), where(swap, fb, fc)
    return a, b, c, fa, fb, fc, d, e


def _bisected_root(f: Function, points: Array, tolerance: Function, maxiter: Any) -> Any:
    low, high = points[0], points[1]
    below, above = f(low), f(high)

    def iteration(s: Any) -> Any:
        low, high, k = s
        middle = low + (high - low) / 2
        value = f(middle)
        left = sign(value) == sign(below)
        return where(left | (value == 0), middle, low), where(left, high, middle), k + 1

    low, high, k = while_loop(
        lambda s: (absolute(s[1] - s[0]) > tolerance(s[0])) & (s[2] < maxiter), iteration, (low, high, asarray(0))
    )
    one_sign = sign(below) * sign(above) > 0
    x = where(below == 0, points[0], where(above == 0, points[1], low + (high - low) / 2))
    found = ~one_sign & isfinite(below + above)
    return where(one_sign, np.nan, x), k + 2, k, found & (absolute(high - low) <= tolerance(low))


def _newton_root(f: Function, points: Array, tolerance: Function, maxiter: Any) -> Any:
    both = value_and_grad(f)

    def iteration(s: Any) -> Any:
        x, _, k = s
        value, slope = both(x)
        change = where(value == 0, 0, -value / slope)
        return x + change, absolute(change), k + 1

    x, change, k = while_loop(
        lambda s: (s[1] > tolerance(s[0])) & (s[2] < maxiter),
        iteration,
        (points[0], points[0] * 0 + np.inf, asarray(0)),
    )
    return x, 2 * k, k, isfinite(x) & (change <= tolerance(x))
