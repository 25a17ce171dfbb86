"""The wrapped Cauchy distribution of angles from 0 to 2π, of concentration `c` between 0 and 1."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.numpy import exp, inf, log, log1p, sin, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.stats.standard import standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, c: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, (1 - c²) / (2π (1 + c² - 2c cos y) scale) of y = (x - loc) / scale from 0 to 2π.

    >>> tracer.scipy.stats.wrapcauchy.logpdf(tnp.asarray([0.0, 2.0]), 0.5)
    Array([-0.73926478, -2.63607282], f64)
    """
    return at_elements(_log_density, "wrapcauchy.logpdf", x, c, loc, scale)


def pdf(x: Any, c: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.wrapcauchy.pdf(tnp.asarray([0.0, 2.0]), 0.5)
    Array([0.47746483, 0.07164207], f64)
    """
    return exp(at_elements(_log_density, "wrapcauchy.pdf", x, c, loc, scale))


def _log_density(x: Array, c: Array, loc: Array, scale: Array) -> Array:
    valid = (c > 0) & (c < 1)
    r = where(valid, c, 0.5)
    constant = log1p(-r) + log1p(r) - math.log(2 * math.pi) - log(scale)

    def formula(y: Array) -> Array:
        half = sin(0.5 * y)
        return constant - log((1.0 - r) ** 2 + 4.0 * r * half * half)

    return within(standard(x, loc, scale, valid), 0.0, 2 * math.pi, formula, below=-inf, above=-inf, safe=1.0)


set_boundaries(globals(), make=replayed)
say_of_elements((logpdf, pdf))
