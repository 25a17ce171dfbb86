"""`minimize`: minima of functions of many variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from tracer.errors import ArgumentError, ShapeError, message
from tracer.numpy import broadcast_to, concatenate, finfo, inf
from tracer.numpy.core.conversion import array_of
from tracer.scipy.optimize.bounded_descent import lbfgsb, projected_gradient
from tracer.scipy.optimize.descent import End, bfgs, newton_cg
from tracer.scipy.optimize.functions import Unknowns, options_of, solution
from tracer.scipy.optimize.results import CONVERGED, OptimizeResults
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here
from tracer.transforms.gradients import grad

_NAME = "minimize"


def minimize(
    fun: Callable[..., Any], x0: Any, args: Any = (), method: str | None = None, bounds: Any = None,
    tol: Any = None, options: dict[str, Any] | None = None,
) -> OptimizeResults:  # fmt: skip
    """Find a local minimum of fun(x, *args) by x.

    fun: returns one float [], from a tree like x0 and the args; x0: a tree of real numbers [*s], [n] together, floats
    or cast to such (a list of numbers is a vector); args: a tuple of trees. method: "BFGS", "L-BFGS-B" (the default
    with bounds) or "Newton-CG". bounds: for "L-BFGS-B", pairs (low, high) for each unknown, None for none, or an object
    with `lb` and `ub`. tol: the tolerance of the method: `gtol`, `xtol`, or both `ftol` and `gtol`. options, by method:

    - BFGS: gtol (1e-5), norm (inf), maxiter (200 n), xrtol (0), line_search_maxiter (20).
    - L-BFGS-B: maxcor (10), ftol (2.2e-9), gtol (1e-5), maxfun (15000), maxiter (15000), maxls (20).
    - Newton-CG: xtol (1e-5), maxiter (200 n), line_search_maxiter (20).

    Returns `OptimizeResults`. `fun` is differentiated, and the iteration is one compiled loop. `jit` and `vmap` take
    it, and each lane ends alone. Raises ArgumentError for an unknown method or option. Raises ShapeError for a function
    of other than one value, and for bounds that do not fit.

    x and fun have derivatives by the implicit function theorem. They are by args, by all that `fun` closes over, and by
    bounds that are active. They are exact where x is stationary and its Hessian (of the variables within the bounds) is
    regular. x0 and the remaining fields have derivative zero.

    >>> def rosenbrock(x, a):
    ...     return (a - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2
    >>> result = tracer.scipy.optimize.minimize(rosenbrock, tnp.zeros(2), (1.0,), method="BFGS")
    >>> result.x.round(4), result.success
    (Array([1., 1.], f64), Array(True, bool))
    >>> solve = lambda a: tracer.scipy.optimize.minimize(rosenbrock, tnp.zeros(2), (a,), method="L-BFGS-B").x
    >>> tracer.jacobian(solve)(1.0).round(3)
    Array([1., 2.], f64*)
    """
    method = ("BFGS" if bounds is None else "L-BFGS-B") if method is None else method
    chosen = _METHODS.get(method.lower()) if isinstance(method, str) else None  # type: ignore[redundant-expr]
    if chosen is None:
        raise ArgumentError(
            message(f"minimize{here()}: no such method", f"got {method!r}", help="BFGS, L-BFGS-B, Newton-CG")
        )
    if bounds is not None and chosen is not _lbfgsb:
        raise ArgumentError(
            message(f"minimize{here()}: {method} takes no bounds", help='take method="L-BFGS-B", or leave bounds out')
        )
    unknowns = Unknowns(_NAME, x0, args)
    limits = () if bounds is None else _bounds(bounds, unknowns.start)
    f, held = unknowns.scalar(fun)
    return chosen(unknowns, f, held, limits, tol, options)


def _bfgs(unknowns: Unknowns, f: Any, held: list[Array], limits: Any, tol: Any, given: Any) -> OptimizeResults:
    n, tolerance = unknowns.start.size, 1e-5 if tol is None else tol
    defaults = {"gtol": tolerance, "norm": inf, "maxiter": 200 * n, "xrtol": 0.0, "line_search_maxiter": 20}
    options = options_of("minimize with BFGS", given, defaults)
    return _result(unknowns, f, held, limits, partial(_unbounded, bfgs, f, options))


def _newton_cg(unknowns: Unknowns, f: Any, held: list[Array], limits: Any, tol: Any, given: Any) -> OptimizeResults:
    defaults = {
        "xtol": 1e-5 if tol is None else tol, "maxiter": 200 * unknowns.start.size, "line_search_maxiter": 20
    }  # fmt: skip
    options = options_of("minimize with Newton-CG", given, defaults)
    return _result(unknowns, f, held, limits, partial(_unbounded, newton_cg, f, options))


def _lbfgsb(unknowns: Unknowns, f: Any, held: list[Array], limits: Any, tol: Any, given: Any) -> OptimizeResults:
    rounding = float(finfo(unknowns.start.dtype).eps)
    defaults = {
        "maxcor": 10, "ftol": max(2.220446049250313e-09, rounding) if tol is None else tol,
        "gtol": 1e-5 if tol is None else tol, "maxfun": 15000, "maxiter": 15000, "maxls": 20,
    }  # fmt: skip
    options = options_of("minimize with L-BFGS-B", given, defaults)
    return _result(unknowns, f, held, limits, partial(_within, f, len(limits), options))


_METHODS = {"bfgs": _bfgs, "l-bfgs-b": _lbfgsb, "newton-cg": _newton_cg}


def _unbounded(method: Callable[..., End], f: Any, options: dict[str, Any], start: Array, *held: Array) -> Any:
    end = method(lambda x: f(x, *held), start, **options)
    return end.x, end


def _within(f: Any, count: int, options: dict[str, Any], start: Array, *more: Array) -> Any:
    low, high = more[:count] or (None, None)
    end = lbfgsb(lambda x: f(x, *more[count:]), start, low, high, **options)
    return end.x, end


def _result(unknowns: Unknowns, f: Any, held: list[Array], limits: Any, solve: Callable[..., Any]) -> OptimizeResults:
    count = len(limits)

    def residual(x: Array, *more: Array) -> Array:
        low, high = more[:count] or (None, None)
        return projected_gradient(x, grad(f)(x, *more[count:]), low, high)

    x, end = solution(residual, unknowns.start, solve, held, *limits)
    inverse = end.hess_inv if end.hess_inv.size else None
    return OptimizeResults(
        unknowns.tree(x), end.status == CONVERGED, end.status, f(x, *held), unknowns.tree(end.gradient), inverse,
        end.evaluations, end.evaluations, end.iterations,
    )  # fmt: skip


def _bounds(bounds: Any, start: Array) -> tuple[Array, Array]:
    """Return the bounds as vectors. Raises ShapeError where they do not fit, ArgumentError where they are reversed."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        pair = [array_of(_NAME, side) for side in (bounds.lb, bounds.ub)]
    else:
        rows = [tuple(row) for row in bounds]
        if any(len(row) != 2 for row in rows):
            raise ShapeError(message(f"minimize{here()}: bounds are pairs (low, high)", f"got {bounds!r}"))
        sides = zip(*rows, strict=True) if rows else ((), ())
        pair = [
            concatenate([array_of(_NAME, none if x is None else x).reshape(1) for x in side])
            for side, none in zip(sides, (-math.inf, math.inf), strict=True)
        ]
    if any(side.ndim > 1 or (side.ndim == 1 and side.size not in (1, start.size)) for side in pair):
        raise ShapeError(
            message(
                f"minimize{here()}: there is one pair of bounds for each of the {start.size} unknowns",
                f"got {pair[0].size} pairs", help="None stands for no bound",
            )
        )  # fmt: skip
    low, high = (broadcast_to(side.astype(start.dtype), start.shape) for side in pair)
    ends = [concrete_value(side) for side in (low, high)]
    if ends[0] is not None and ends[1] is not None and (ends[0] > ends[1]).any():
        text = f"minimize{here()}: each lower bound is at most the upper one"
        raise ArgumentError(message(text, f"got {ends[0].tolist()} and {ends[1].tolist()}"))
    return low, high
