"""The von Mises distribution of angles around `loc`, of concentration `kappa`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.numpy import exp, inf, log, nan, where
from tracer.runtime.eager.call_cache import replayed
from tracer.scipy.operands import at_elements
from tracer.scipy.special import cosm1, i0e
from tracer.scipy.stats.standard import standard, within
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import set_boundaries


def logpdf(x: Any, kappa: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density, e^(kappa cos y) / (2π I0(kappa) scale) of y = (x - loc) / scale.

    >>> tracer.scipy.stats.vonmises.logpdf(tnp.asarray([0.0, 2.0]), 1.0)
    Array([-1.07379142, -2.48993826], f64)
    """
    return at_elements(_log_density, "vonmises.logpdf", x, kappa, loc, scale)


def pdf(x: Any, kappa: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density, exp of `logpdf`.

    >>> tracer.scipy.stats.vonmises.pdf(tnp.asarray([0.0, 2.0]), 1.0)
    Array([0.34171049, 0.08291509], f64)
    """
    return exp(at_elements(_log_density, "vonmises.pdf", x, kappa, loc, scale))


def _log_density(x: Array, kappa: Array, loc: Array, scale: Array) -> Array:
    sharp = where(kappa >= 0, kappa, 1.0)
    rest = log(2 * math.pi * i0e(sharp)) + log(scale)
    y = standard(x, loc, scale, kappa >= 0)
    return within(y, -inf, inf, lambda y: sharp * cosm1(y) - rest, below=nan, above=nan, safe=0.0)


set_boundaries(globals(), make=replayed)
say_of_elements((logpdf, pdf))
