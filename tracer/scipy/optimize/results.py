"""Results of optimisation: trees of arrays, which pass through `jit` and `vmap`."""

from __future__ import annotations

from typing import Any, NamedTuple

from tracer.trace.array import Array

CONVERGED, EXHAUSTED, IMPRECISE, UNDEFINED = range(4)

_MESSAGES = {
    CONVERGED: "converged: the tolerances are met",
    EXHAUSTED: "stopped: the number of iterations or evaluations reached its limit",
    IMPRECISE: "stopped: no step improves the value; rounding errors or a wrong derivative may be the cause",
    UNDEFINED: "stopped: a value is not finite",
}


def _message(status: Any) -> str:
    return _MESSAGES[int(status)]


class OptimizeResults(NamedTuple):
    """Result of `minimize`: a tree of arrays. `message`, in words, is for concrete results.

    x: the solution, a tree like x0; success: bool; status: 0 converged, 1 too many iterations or evaluations, 2 no step
    improves the value, 3 not finite; fun: the value at x; jac: the gradient there, a tree like x0; hess_inv: the
    inverse Hessian as "BFGS" has it [n, n], else None; nfev, njev, nit: evaluations of values, of gradients, and
    iterations.

    >>> result = tracer.scipy.optimize.minimize(lambda x: (x - 1.0) @ (x - 1.0), tnp.zeros(2), method="BFGS")
    >>> result.x.round(6), result.message
    (Array([1., 1.], f64), 'converged: the tolerances are met')
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Array | None
    nfev: Any
    njev: Any
    nit: Any

    @property
    def message(self) -> str:
        """Status in words."""
        return _message(self.status)


class RootResults(NamedTuple):
    """Result of `root`: a tree of arrays, with fields as of `OptimizeResults`; fun and x are trees like x0."""

    x: Any
    success: Any
    status: Any
    fun: Any
    nfev: Any
    njev: Any
    nit: Any

    @property
    def message(self) -> str:
        """Status in words."""
        return _message(self.status)


class LeastSquaresResults(NamedTuple):
    """Result of `least_squares`: a tree of arrays.

    x: the solution, a tree like x0; cost: half the sum of the losses; fun: the residuals; jac: their Jacobian [m, n],
    weighed by the loss; grad: the gradient of the cost [n]; optimality: its largest magnitude, projected at bounds;
    success, status, nfev, njev: as of `OptimizeResults`; active_mask: -1 for unknowns at the lower bound, 1 at the
    upper one, else 0 [n].
    """

    x: Any
    cost: Any
    fun: Any
    jac: Any
    grad: Any
    optimality: Any
    nfev: Any
    njev: Any
    status: Any
    success: Any
    active_mask: Any

    @property
    def message(self) -> str:
        """Status in words."""
        return _message(self.status)


class ScalarResults(NamedTuple):
    """Result of `minimize_scalar`: arrays [], with fields as of `OptimizeResults`."""

    x: Any
    fun: Any
    success: Any
    status: Any
    nfev: Any
    nit: Any

    @property
    def message(self) -> str:
        """Status in words."""
        return _message(self.status)


class ScalarRootResults(NamedTuple):
    """Result of `root_scalar`: arrays [], under SciPy's names. `flag`, in words, is for concrete results."""

    root: Any
    converged: Any
    function_calls: Any
    iterations: Any

    @property
    def flag(self) -> str:
        """Whether the iteration converged, in words."""
        return "converged" if self.converged else "not converged"
