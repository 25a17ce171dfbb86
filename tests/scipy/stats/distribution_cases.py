"""Every function of tracer.scipy.stats' distributions of elements: where it is compared with SciPy's.

name: (parameters that the distribution has, its places, parameters that it has not). Fractions stand in FRACTIONS.
"""

from __future__ import annotations

from typing import Any

import numpy as np

REALS = np.asarray([-np.inf, -1e200, -700.0, -40.0, -3.0, -0.3, -1e-9, 0.0, 1e-9, 0.4, 1.0, 2.5, 8.0, 40.0, 700.0,
                    1e200, np.inf, np.nan])  # fmt: skip
SHARES = np.asarray([-np.inf, -0.5, 0.0, 1e-300, 1e-9, 0.1, 0.5, 0.8, 1 - 1e-9, 1.0, 1.5, np.inf, np.nan])
ANGLES = np.asarray([-1.0, 0.0, 1e-9, 0.5, 2.0, 3.0, 6.0, 6.5, np.nan])
COUNTS = np.asarray([-np.inf, -1.0, 0.0, 0.5, 1.0, 2.0, 5.0, 17.0, 40.0, 1000.0, 1e6, np.inf, np.nan])
FRACTIONS = np.asarray([-0.1, 0.0, 1e-300, 1e-9, 0.2, 0.3, 0.5, 0.75, 1 - 1e-9, 1.0, 1.1, np.nan])

CASES: dict[str, tuple[list[tuple[float, ...]], Any, list[tuple[float, ...]]]] = {
    "bernoulli": ([(0.3,), (0.0,), (1.0,)], COUNTS, [(-0.1,), (1.1,)]),
    "beta": ([(0.5, 0.5), (2.0, 3.0), (1.0, 1.0), (40.0, 0.7), (300.0, 200.0)], SHARES, [(0.0, 1.0), (1.0, -1.0)]),
    "betabinom": ([(5, 2.0, 3.0), (40, 0.3, 7.0), (0, 1.0, 1.0), (2000, 5.0, 5.0)], COUNTS, [(5, 0.0, 1.0)]),
    "binom": ([(5, 0.3), (40, 0.9), (0, 0.5), (3000, 0.01), (1e7, 0.1), (5, 0.0), (5, 1.0)], COUNTS, [(1.5, 0.5)]),
    "cauchy": ([()], REALS, []),
    "chi2": ([(1.0,), (2.0,), (7.5,), (300.0,)], REALS, [(0.0,), (-1.0,)]),
    "expon": ([()], REALS, []),
    "gamma": ([(0.3,), (1.0,), (4.0,), (16.5,), (900.0,)], REALS, [(0.0,), (-1.0,)]),
    "gennorm": ([(0.5,), (1.0,), (2.0,), (8.0,)], REALS, [(0.0,), (-1.0,)]),
    "geom": ([(0.3,), (1e-9,), (1.0,)], COUNTS, [(0.0,), (1.5,)]),
    "gumbel_l": ([()], REALS, []),
    "gumbel_r": ([()], REALS, []),
    "laplace": ([()], REALS, []),
    "logistic": ([()], REALS, []),
    "nbinom": ([(5, 0.3), (0.4, 0.9), (3000.0, 0.2), (2.0, 1.0)], COUNTS, [(0.0, 0.5), (1.0, 0.0)]),
    "pareto": ([(0.5,), (3.0,)], REALS, [(0.0,), (-1.0,)]),
    "poisson": ([(0.0,), (0.3,), (7.0,), (50.5,), (1e6,)], COUNTS, [(-1.0,)]),
    "t": ([(0.4,), (3.0,), (50.0,), (1e10,), (np.inf,)], REALS, [(0.0,), (-1.0,)]),
    "truncnorm": ([(-1.0, 2.0), (0.5, 3.0), (30.0, 31.0), (-np.inf, -1.0)], REALS, [(1.0, 1.0), (2.0, 1.0)]),
    "uniform": ([()], SHARES, []),
    "vonmises": ([(0.0,), (0.4,), (90.0,)], ANGLES, [(-1.0,)]),
    "wrapcauchy": ([(0.01,), (0.5,), (0.99,)], ANGLES, [(0.0,), (1.0,)]),
}  # fmt: skip
