"""What else of NumPy's takes our arrays: numpy.polynomial and numpy.testing, which hand nothing to their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import polynomial, testing

from tests.foreign.outcomes import NUMPY, PLAIN, REFUSED, Case

_rng = np.random.default_rng(7)
C, X = _rng.uniform(0.5, 1.5, 3), _rng.uniform(0.1, 0.9, 5)
_BASES = {
    "polynomial": "polyval", "chebyshev": "chebval", "legendre": "legval", "hermite": "hermval",
    "hermite_e": "hermeval", "laguerre": "lagval",
}  # fmt: skip


def _values(basis: str, name: str) -> list[Case]:
    """The values of a series of traced coefficients, which the function takes in as NumPy's, and of known ones."""
    function, label = getattr(getattr(polynomial, basis), name), f"polynomial.{basis}.{name}"
    return [
        Case(label, function, (X, C), jit=REFUSED, grad=REFUSED),
        Case(f"{label} of known coefficients", lambda x: function(x, [1.0, 2.0, 3.0]), (X,)),
    ]


def _taken_in(name: str, call: Any, *operands: Any) -> Case:
    return Case(f"polynomial.{name}", call, operands, NUMPY, REFUSED, REFUSED)


def _of_coefficients(name: str, *operands: Any) -> Case:
    return _taken_in(f"polynomial.{name}", getattr(polynomial.polynomial, name), *operands)


def _checks(name: str, call: Any) -> Case:
    return Case(f"testing.{name}", call, (X,), PLAIN, REFUSED, None)


_polynomial, _series = polynomial.polynomial, polynomial.Polynomial
_known, _chebyshev, _poly1d = (
    _series([1.0, 2.0, 3.0]),
    polynomial.Chebyshev([1.0, 2.0, 3.0]),
    np.poly1d([1.0, 2.0, 3.0]),
)

POLYNOMIALS = [
    *[case for basis, name in _BASES.items() for case in _values(basis, name)],
    *[_of_coefficients(name, C, C[:2]) for name in ("polyadd", "polysub", "polymul", "polydiv")],
    *[_of_coefficients(name, C) for name in ("polyder", "polyint", "polyroots", "polyfromroots", "polycompanion")],
    _taken_in("polynomial.polyvander", lambda x: _polynomial.polyvander(x, 2), X),
    _taken_in("polynomial.polyfit", lambda x, y: _polynomial.polyfit(x, y, 1), X, X**2),
    _taken_in("polynomial.polyval2d", lambda x, c: _polynomial.polyval2d(x, x, c), X, np.outer(C, C)),
    Case("polynomial.polynomial.polyvalfromroots", _polynomial.polyvalfromroots, (X, C), REFUSED, REFUSED, REFUSED),
    _taken_in("Polynomial of known coefficients", _known.__call__, X),
    _taken_in("Chebyshev of known coefficients", _chebyshev.__call__, X),
    _taken_in("Polynomial", lambda c: _series(c)(0.5), C),
    _taken_in("Polynomial.deriv", lambda c: _series(c).deriv().coef, C),
    _taken_in("Polynomial.__mul__", lambda c: (_series(c) * _known).coef, C),
    _taken_in("Polynomial.fit", lambda x, y: _series.fit(x, y, 2).convert().coef, X, X**2),
    Case("poly1d of known coefficients", _poly1d.__call__, (X,)),
    Case("poly1d", lambda c: np.poly1d(c)(2.0), (C,), NUMPY, REFUSED),
]

TESTING = [
    _checks("assert_allclose", lambda x: testing.assert_allclose(x, X)),
    _checks("assert_array_equal", lambda x: testing.assert_array_equal(x, x)),
    _checks("assert_array_less", lambda x: testing.assert_array_less(x, x + 1.0)),
    _checks("assert_equal", lambda x: testing.assert_equal(x, X)),
    Case(
        "testing.assert_equal of two of ours", lambda x: testing.assert_equal(x, x + 0.0), (X,), REFUSED, REFUSED, None
    ),
]
