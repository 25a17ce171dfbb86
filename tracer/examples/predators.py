"""Lynxes and hares: a differential equation fitted to the furs of twenty years, by gradients through its solver.

Hares grow and are eaten, lynxes eat and die (Lotka 1925, Volterra 1926). The solver chooses its steps by their error,
so their number depends on the parameters; reverse mode goes back through its while_loop.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import jit, lax, value_and_grad
from tracer.experimental.ode import odeint

# Furs in thousands, Hudson's Bay Company, 1900 to 1920: Odum 1953, Fundamentals of Ecology; Howard 2009.
YEARS: Final = np.arange(1900, 1921)
HARES: Final = np.array([
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1, 40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6,
    16.2, 24.7,
])  # fmt: skip
LYNXES: Final = np.array([
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4, 8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
])  # fmt: skip


class Rates(NamedTuple):
    """Rates of birth and death in a year, and first populations.

    A rate that the other animals cause is for a thousand of them.

    Each is float64 []; populations are in thousands.
    """

    hare_births: tracer.Array
    hare_deaths: tracer.Array
    lynx_births: tracer.Array
    lynx_deaths: tracer.Array
    hares: tracer.Array
    lynxes: tracer.Array


START: Final = Rates(*map(np.log, (0.5, 0.02, 0.02, 0.5, 30.0, 4.0)))
"""Logarithms of a first guess; every parameter is positive."""


def populations(rates: Rates, years: tracer.Array) -> tracer.Array:
    """Return hares and lynxes, float64 [n, 2] in thousands, at times float64 [n] in years after 1900."""

    def change(state: tracer.Array, _: tracer.Array) -> tracer.Array:
        hares, lynxes = state
        return tnp.stack([
            (rates.hare_births - rates.hare_deaths * lynxes) * hares,
            (rates.lynx_births * hares - rates.lynx_deaths) * lynxes,
        ])  # fmt: skip

    result: tracer.Array = odeint(change, tnp.stack([rates.hares, rates.lynxes]), years)
    return result


def misfit(logs: Rates) -> tracer.Array:
    """Return the mean squared error of the logarithms of the populations, float64 [], for logarithms of rates."""
    rates = Rates(*map(tnp.exp, logs))
    predicted = populations(rates, tnp.asarray(YEARS - YEARS[0], "float64"))
    return tnp.mean((tnp.log(predicted) - tnp.log(tnp.stack([HARES, LYNXES], axis=1))) ** 2)


@jit(static_argnames="steps")
def fit(start: Rates = START, *, steps: int = 400, rate: float = 0.02) -> tuple[Rates, tracer.Array]:
    """Return the fitted rates and the misfit at every step, float64 [steps], by Adam (Kingma & Ba 2015)."""

    def step(
        state: tuple[tracer.Array, tracer.Array, tracer.Array], i: tracer.Array
    ) -> tuple[tuple[tracer.Array, tracer.Array, tracer.Array], tracer.Array]:
        x, first, second = state
        error, slopes = value_and_grad(lambda x: misfit(Rates(*x)))(x)
        first, second = 0.9 * first + 0.1 * slopes, 0.999 * second + 0.001 * slopes**2
        unbiased, scale = first / (1 - 0.9 ** (i + 1)), tnp.sqrt(second / (1 - 0.999 ** (i + 1)))
        return (x - rate * unbiased / (scale + 1e-8), first, second), error

    x = tnp.stack(start)
    (x, _, _), errors = lax.scan(step, (x, tnp.zeros_like(x), tnp.zeros_like(x)), tnp.arange(steps))
    return Rates(*tnp.exp(x)), errors
