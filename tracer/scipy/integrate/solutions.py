"""Results of initial value problems: trees of arrays, which pass through `jit` and `vmap`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any, NamedTuple

from tracer.numpy import arange, clip, searchsorted, where
from tracer.numpy.core.conversion import array_of
from tracer.scipy.integrate.stepping import interpolated, real
from tracer.trace.array import Array
from tracer.transforms.vectorize import vmap

_MESSAGES = {
    0: "the end of the interval is reached",
    1: "a terminal event occurred",
    -1: "stopped: steps became smaller than the spacing of floats, or max_steps are taken",
}


class OdeSolution(NamedTuple):
    """Solution of `solve_ivp` as a function of time, a tree of arrays: sol(t) is [n], or [n, m] for times [m].

    ts: the ends of steps [k + 1], ys: the values there [k + 1, n]; sizes: of the steps [k]; coefficients: of the powers
    of the share of each step [k, d, n]; steps: how many of them are used.

    >>> result = tracer.scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, 2.0), [1.0], dense_output=True, rtol=1e-8)
    >>> result.sol(tnp.asarray([0.0, 1.0])).round(4)
    Array([[1.    , 0.3679]], f64)
    """

    ts: Array
    ys: Array
    sizes: Array
    coefficients: Array
    steps: Array

    def __call__(self, t: Any) -> Array:
        """Return the values at times; beyond the ends, the outermost polynomials continue."""
        times = array_of("OdeSolution", t)
        found = vmap(self._at)(times.ravel())
        return found[0] if not times.ndim else found.T

    def _at(self, t: Array) -> Array:
        sign = where(self.sizes[0] < 0, -1, 1)
        ends = where(arange(self.ts.size) > self.steps, float("inf"), sign * self.ts)
        step = clip(searchsorted(ends, sign * t) - 1, 0, self.steps - 1)
        share = ((t - self.ts[step]) / self.sizes[step]).astype(real(self.ys.dtype))
        return interpolated(self.ys[step], self.coefficients[step], share)


class OdeResult(NamedTuple):
    """Result of `solve_ivp`, a tree of arrays. `message`, in words, is for concrete results.

    t: times [m]; y: values [n, m]; sol: `OdeSolution` or None; t_events, y_events: times [k] and values [k, n] of each
    event, NaN where there are no more, or None; nfev, njev, nlu: evaluations of the function and its Jacobian, and
    factorisations; status: 0 for the end of the interval, 1 for a terminal event, -1 where no more steps are taken;
    success: whether it is not -1; num_points: how many columns of t and y are used.

    >>> result = tracer.scipy.integrate.solve_ivp(lambda t, y: [1.0], (0.0, 2.0), [0.0])
    >>> result.t[-1], result.y[0, -1], result.success
    (Array(2., f64), Array(2., f64), Array(True, bool))
    """

    t: Any
    y: Any
    sol: OdeSolution | None
    t_events: list[Any] | None
    y_events: list[Any] | None
    nfev: Any
    njev: Any
    nlu: Any
    status: Any
    success: Any
    num_points: Any

    @property
    def message(self) -> str:
        """Status in words."""
        return _MESSAGES[int(self.status)]
