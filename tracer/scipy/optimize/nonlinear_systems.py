"""Systems of equations: `root`, by trust regions. Jacobians are derivatives in forward mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.errors import ArgumentError, ShapeError, message
from tracer.numpy import inf, maximum
from tracer.scipy.optimize.functions import Unknowns, options_of, rounding, solution
from tracer.scipy.optimize.results import CONVERGED, RootResults
from tracer.scipy.optimize.trust_regions import DAMPED, DOGLEG, End, Limits, minimized
from tracer.trace.array import Array
from tracer.trace.source import here


def root(
    fun: Callable[..., Any], x0: Any, args: Any = (), *, method: str = "hybr", tol: Any = None,
    options: dict[str, Any] | None = None,
) -> RootResults:  # fmt: skip
    """Find x with fun(x, *args) = 0, for as many equations as unknowns.

    fun: returns a tree of real numbers, [n] together, from a tree like x0 and the args; x0: a tree of real numbers
    [*s], [n] together, where a list of numbers is a vector; args: a tuple of trees. method: "hybr", Newton's with the
    steps of Powell's dogleg, or "lm", Levenberg-Marquardt; this also ends at other minima of the norm, with success
    False. tol: the relative size of a last step. options: xtol (1.5e-8), another name of tol; maxfev (200 (n + 1)),
    evaluations. Both are of float dtype.

    Returns `RootResults`. Works under `jit` and `vmap`. Derivatives by args and captured arrays are by the implicit
    function theorem, exact where the Jacobian is regular. x0 has derivative zero. Raises ArgumentError for an unknown
    method or option, ShapeError for another number of equations.

    >>> result = tracer.scipy.optimize.root(lambda x, a: tnp.cos(x) - a * x, tnp.ones(1), (1.0,))
    >>> result.x, result.success
    (Array([0.73908513], f64), Array(True, bool))
    """
    unknowns = Unknowns("root", x0, args)
    if method not in ("hybr", "lm"):
        raise ArgumentError(message(f'root{here()}: method is "hybr" or "lm"', f"got {method!r}"))
    f, held = unknowns.vector(fun)
    n = unknowns.start.size
    count = f(unknowns.start, *held).size
    if count != n:
        raise ShapeError(
            message(
                f"root{here()}: there are as many equations as unknowns", f"got {count} equations for {n} unknowns",
                help="least_squares takes other numbers",
            )
        )  # fmt: skip
    options = options_of("root", options, {"xtol": 1.49012e-08 if tol is None else tol, "maxfev": 200 * (n + 1)})
    xtol = maximum(options["xtol"], rounding(unknowns.start))
    limits = Limits(-inf, xtol, -inf, options["maxfev"])

    def solve(start: Array, *held: Array) -> tuple[Array, End]:
        end = minimized(lambda x: f(x, *held), start, DOGLEG if method == "hybr" else DAMPED, limits, to_zero=True)
        return end.x, end

    x, end = solution(f, unknowns.start, solve, held)
    return RootResults(
        unknowns.tree(x), end.status == CONVERGED, end.status, end.residual, end.evaluations, end.jacobians,
        end.evaluations - 1,
    )  # fmt: skip
