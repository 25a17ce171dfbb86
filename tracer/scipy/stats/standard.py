"""Formulas of a standard variable, turned into formulas of a distribution's operands: validity, support, loc and scale.

The standard variable is y = (x - loc) / scale, and y = k - loc for counts. Invalid and NaN operands give NaN. Outside
the support, and at infinity, results are constants with derivative 0.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.numpy import absolute, floor, inf, log, log1p, nan, where
from tracer.trace.array import Array

Formula = Callable[..., Any]

QUANTILES = ("ppf", "isf")
_MIRROR = {"cdf": "sf", "sf": "cdf", "logcdf": "logsf", "logsf": "logcdf"}
# Results below and above the support
_OUTSIDE = {"logpdf": (-inf, -inf), "cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-inf, 0.0), "logsf": (0.0, -inf)}


def continuous(
    *, valid: Formula | None = None, stand_ins: tuple[float, ...] = (), support: Any = (-inf, inf), inside: Any = 0.0,
    outside: float = -inf, **formulas: Formula,
) -> dict[str, Formula]:  # fmt: skip
    """Return formulas of (x, *parameters, loc, scale), by name, from formulas of (y, *parameters).

    valid: the condition on the parameters; stand_ins: valid parameters that replace invalid ones. support: the bounds
    of y; inside: a point between them, which replaces y outside; either is constant or a function of (y, *parameters).
    outside: `logpdf` outside the support. formulas: `logpdf` of (y, *parameters, scale); `ppf` and `isf` of
    (q, *parameters); `cdf`, `sf` and their logarithms. The logarithms follow from `cdf` and `sf` unless given.
    """
    ends = {**_OUTSIDE, "logpdf": (outside, outside)}

    def of_operands(name: str, formula: Formula) -> Formula:
        def whole(x: Array, *others: Array) -> Array:
            *given, loc, scale = others
            usable, parameters = scale > 0, given
            if valid is not None:
                fits = valid(*given)
                usable, parameters = usable & fits, _replaced(given, fits, stand_ins)
            if name in QUANTILES:
                usable = usable & (x >= 0) & (x <= 1)
                return where(usable, loc + scale * formula(where(usable, x, 0.5), *parameters), nan)
            y = where(usable, (x - loc) / where(usable, scale, 1.0), nan)
            last = (scale,) if name == "logpdf" else ()
            return _within(
                y, lambda y: formula(y, *parameters, *last), _at(support, y, parameters), ends[name],
                _at(inside, y, parameters),
            )  # fmt: skip

        return whole

    found = {name: of_operands(name, formula) for name, formula in formulas.items()}
    if {"cdf", "sf"} <= found.keys():
        cdf, sf = found["cdf"], found["sf"]
        found.setdefault("logcdf", lambda *operands: _log_probability(cdf(*operands), sf(*operands)))
        found.setdefault("logsf", lambda *operands: _log_probability(sf(*operands), cdf(*operands)))
    return found


def discrete(
    *, valid: Formula, stand_ins: tuple[float, ...], support: Any = (0.0, inf), **formulas: Formula
) -> dict[str, Formula]:
    """Return formulas of (k, *parameters, loc), by name, from formulas of (y, *parameters).

    valid, stand_ins, support: as of `continuous`. formulas: `logpmf` of whole y, `cdf`, and `ppf` of (q, *parameters).
    """

    def of_operands(name: str, formula: Formula) -> Formula:
        def whole(k: Array, *others: Array) -> Array:
            *given, loc = others
            usable = valid(*given)
            parameters = _replaced(given, usable, stand_ins)
            if name in QUANTILES:
                usable = usable & (k >= 0) & (k <= 1)
                return where(usable, loc + formula(where(usable, k, 0.5), *parameters), nan)
            y = where(usable, k - loc, nan)
            low, high = _at(support, y, parameters)
            if name == "cdf":
                return _within(y, lambda y: formula(y, *parameters), (low, high), _OUTSIDE["cdf"], low)
            inside = (y >= low) & (y <= high) & (floor(y) == y) & (absolute(y) < inf)
            return where(y != y, nan, where(inside, formula(where(inside, y, low), *parameters), -inf))

        return whole

    return {name: of_operands(name, formula) for name, formula in formulas.items()}


def mirrored(formulas: dict[str, Formula]) -> dict[str, Formula]:
    """Return the formulas of the distribution of -x."""

    def mirror(formula: Formula) -> Formula:
        return lambda x, *others: formula(-x, *others[:-2], -others[-2], others[-1])

    return {_MIRROR.get(name, name): mirror(formula) for name, formula in formulas.items()}


def log1p_square(y: Array, v: Any) -> Array:
    """Return log(1 + y² / v), for large |y| without overflow."""
    ratio = absolute(y) / v**0.5
    large = ratio > 1e8
    small = where(large, 1.0, ratio)
    return where(large, 2.0 * log(where(large, ratio, 1.0)), log1p(small * small))


def _replaced(parameters: list[Array], valid: Any, stand_ins: tuple[float, ...]) -> list[Array]:
    """Return the parameters, with the stand-ins where they are invalid."""
    return [where(valid, given, other) for given, other in zip(parameters, stand_ins, strict=True)]


def _at(value: Any, y: Array, parameters: list[Array]) -> Any:
    """Return a constant, or the value of a function of (y, *parameters)."""
    return value(y, *parameters) if callable(value) else value


def _within(y: Array, formula: Formula, support: tuple[Any, Any], ends: tuple[Any, Any], inside: Any) -> Array:
    """Return the formula of y on the support where y is finite, and the constants `ends` on both sides."""
    low, high = support
    under, over = (y < low) | (y == -inf), (y > high) | (y == inf)
    found = formula(where(under | over, inside, y))
    return where(y != y, nan, where(under, ends[0], where(over, ends[1], found)))


def _log_probability(probability: Array, complement: Array) -> Array:
    """Return log(probability), from the complement where that is more exact."""
    likely, none = probability > 0.5, probability == 0
    log_part = log(where(likely | none, 0.5, probability))
    return where(likely, log1p(-where(likely, complement, 0.5)), where(none, -inf, log_part))
