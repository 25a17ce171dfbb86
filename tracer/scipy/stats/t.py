"""Student's t distribution of `df` degrees of freedom, around `loc`, in units of `scale`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.numpy import exp, inf, log, ones_like, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.saddle_points import log_beta
from tracer.scipy.stats.standard import log1p_square, standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, (1 + y²/df)^(-(df + 1)/2) / (√df B(1/2, df/2) scale) of y = (x - loc) / scale.

    >>> tracer.scipy.stats.t.logpdf(tnp.asarray([0.0, 2.0]), 3.0)
    Array([-1.00088885, -2.69548457], f64)
    """
    return at_elements(_log_density, "t.logpdf", x, df, loc, scale)


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.t.pdf(tnp.asarray([0.0, 2.0]), 3.0)
    Array([0.3675526 , 0.06750966], f64)
    """
    return exp(at_elements(_log_density, "t.pdf", x, df, loc, scale))


def _log_density(x: Array, df: Array, loc: Array, scale: Array) -> Array:
    endless = df == inf
    v = where((df > 0) & ~endless, df, 1.0)

    def formula(y: Array) -> Array:
        student = -log_beta(0.5 * ones_like(v), 0.5 * v) - 0.5 * log(v) - 0.5 * (v + 1.0) * log1p_square(y, v)
        return where(endless, -0.5 * y * y - 0.5 * math.log(2 * math.pi), student) - log(scale)

    return within(standard(x, loc, scale, df > 0), -inf, inf, formula, below=-inf, above=-inf, safe=0.0)


set_boundaries(globals(), make=replayed)
say_of_elements((logpdf, pdf))
