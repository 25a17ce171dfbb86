"""Measure special functions in float64 beside mpmath and SciPy, for the section of docs/math-accuracy.md on them.

    python -m tools.measure_special [COUNT]     from the repository's root; some minutes

By domain, COUNT (400) arguments are drawn. The section is replaced, the table of the math functions stays.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import scipy.special

from tools.measure_math import SPECIAL_HEAD, TARGET
from tracer import jit
from tracer.scipy import special

TEXT = """{head}

Written by `python -m tools.measure_special`, {date}, with SciPy {scipy} and mpmath {mpmath}, from {count} random
arguments of each domain. Errors are relative to the exact value of the rounded arguments, in float64 under `jit`;
complex ones are of both parts together. Errors of J and Y are relative to the larger of the value and the amplitude
sqrt(2 / (π x)), those of spherical harmonics to sqrt((2n + 1) / 4π). "max / condition" is the error over the larger of
1 and |x f' / f|, by which a rounding of x is magnified, at the arguments that follow. "SciPy" is that of SciPy's
function, inf where its result is infinite or NaN and should not be. Derivatives are held to bounds by
tests/scipy/special_functions.

| function | domain | median | max | max / condition | at | SciPy |
|---|---|---:|---:|---:|---|---:|
{rows}
"""

_rng = np.random.default_rng(0)
Draw = Callable[[int], Any]


def uniform(low: float, high: float) -> Draw:
    """Numbers evenly between two."""
    return lambda count: _rng.uniform(low, high, count)


def spread(low: float, high: float, sign: float = 1.0) -> Draw:
    """Numbers of exponents, to base 10, evenly between two."""
    return lambda count: sign * 10 ** _rng.uniform(low, high, count)


def whole(low: int, high: int, sign: float = 1.0) -> Draw:
    """Whole numbers from one up to, without, another."""
    return lambda count: sign * _rng.integers(low, high, count).astype(float)


def plane(radius: Draw, low: float, high: float) -> Draw:
    """Complex numbers of angles between two multiples of π."""
    return lambda count: radius(count) * np.exp(1j * np.pi * _rng.uniform(low, high, count))


def beside(place: float, distance: Draw) -> Draw:
    """Numbers at drawn distances from a place."""
    return lambda count: place + distance(count)


@dataclass(frozen=True)
class Domain:
    """Operands to draw of one function. slope: by the last operand, of the exact function; scale: of the errors."""

    name: str
    text: str
    draws: tuple[Draw, ...]
    exact: Callable[..., Any]
    slope: Callable[..., Any] | None = None
    scale: Callable[..., Any] | None = None


def _owen(h: Any, a: Any) -> Any:
    if a > 1:
        tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
        return (tail(h) + tail(a * h)) / 2 - tail(h) * tail(a * h) - _owen(a * h, 1 / a)
    end = min(a, 14 / h)
    integral = mpmath.quad(lambda x: mpmath.exp(-((h * x) ** 2) / 2) / (1 + x * x), mpmath.linspace(0, end, 4))
    return mpmath.exp(-h * h / 2) * integral / (2 * mpmath.pi)


def _faddeeva(z: Any) -> Any:
    with mpmath.workdps(60):
        return mpmath.exp(-z * z) * mpmath.erfc(mpmath.mpc(0, -1) * z)


def _voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    z = mpmath.mpc(x, gamma) / (sigma * mpmath.sqrt(2))
    return _faddeeva(z).real / (sigma * mpmath.sqrt(2 * mpmath.pi))


def _zeta(s: Any, q: Any) -> Any:
    with mpmath.workdps(200):  # its error is absolute
        return mpmath.zeta(s, q)


def _zeta_left(s: Any, q: Any) -> Any:
    """The terms of q + k < 0 one by one: mpmath's own value there has no digits."""
    negative = int(mpmath.ceil(-q))
    return sum((q + k) ** -int(s) for k in range(negative)) + _zeta(s, q + negative)


def _amplitude(x: float) -> float:
    return float(np.sqrt(2 / np.pi / max(x, 1.0)))


def _harmonic(n: Any, m: Any, theta: Any, phi: Any) -> Any:
    size, value, below = abs(int(m)), mpmath.sqrt(1 / (4 * mpmath.pi)), mpmath.mpf(0)
    for k in range(1, size + 1):
        value *= -mpmath.sqrt(mpmath.mpf(2 * k + 1) / (2 * k)) * mpmath.sin(theta)
    for k in range(size + 1, int(n) + 1):
        first = mpmath.sqrt(mpmath.mpf(4 * k * k - 1) / (k * k - m * m))
        last = mpmath.sqrt(((k - 1) ** 2 - m * m) / (4 * mpmath.mpf(k - 1) ** 2 - 1))
        value, below = first * (mpmath.cos(theta) * value - last * below), value
    return value * (-1 if m < 0 and size % 2 else 1) * mpmath.expj(m * phi)


def _kummer(text: str, *draws: Draw) -> Domain:
    slope = lambda a, b, x: a / b * mpmath.hyp1f1(a + 1, b + 1, x)  # noqa: E731
    return Domain("hyp1f1", text, draws, mpmath.hyp1f1, slope)


def _gauss(text: str, *draws: Draw) -> Domain:
    slope = lambda a, b, c, x: a * b / c * mpmath.hyp2f1(a + 1, b + 1, c + 1, x)  # noqa: E731
    return Domain("hyp2f1", text, draws, mpmath.hyp2f1, slope)


def _waves(name: str, exact: Callable[..., Any]) -> list[Domain]:
    scale = _amplitude
    return [
        Domain(name, "0 < x < 60", (uniform(0, 60),), exact, scale=scale),
        Domain(name, "1e-9 < x < 1e6", (spread(-9, 6),), exact, scale=scale),
    ]


def _decays(name: str, exact: Callable[..., Any], top: float) -> Domain:
    return Domain(name, f"1e-9 < x < {10**top:.0e}", (spread(-9, top),), exact)


TEN, SMALL = uniform(-10, 10), uniform(0.1, 10)
DOMAINS = [
    Domain("wofz", "upper half plane, 1e-9 < abs(z) < 1e3", (plane(spread(-9, 3), 0, 1),), _faddeeva),
    Domain("wofz", "real, up to 25", (lambda n: _rng.uniform(-25, 25, n) + 0j,), _faddeeva),
    Domain("wofz", "lower half plane, abs(z) < 20", (plane(uniform(0, 20), -1, 0),), _faddeeva,
           lambda z: 2j / mpmath.sqrt(mpmath.pi) - 2 * z * _faddeeva(z)),
    Domain("voigt_profile", "abs(x) < 30, sigma, gamma < 3",
           (uniform(-30, 30), uniform(0.1, 3), uniform(0, 3)), _voigt),
    Domain("loggamma", "1e-9 < abs(z) < 1e4", (plane(spread(-9, 4), -1, 1),), mpmath.loggamma),
    Domain("loggamma", "beside 1", (beside(1.0, plane(spread(-9, 0), -1, 1)),), mpmath.loggamma),
    Domain("loggamma", "beside 2", (beside(2.0, plane(spread(-9, 0), -1, 1)),), mpmath.loggamma),
    Domain("owens_t", "h < 10, a < 5", (uniform(0, 10), uniform(0, 5)), _owen),
    Domain("owens_t", "1e-6 < h < 37, 1e-6 < a < 1e6", (spread(-6, 1.56), spread(-6, 6)), _owen),
    *_waves("j0", lambda x: mpmath.besselj(0, x)), *_waves("j1", lambda x: mpmath.besselj(1, x)),
    *_waves("y0", lambda x: mpmath.bessely(0, x)), *_waves("y1", lambda x: mpmath.bessely(1, x)),
    _decays("k0", lambda x: mpmath.besselk(0, x), 2.8), _decays("k1", lambda x: mpmath.besselk(1, x), 2.8),
    _decays("k0e", lambda x: mpmath.besselk(0, x) * mpmath.exp(x), 4),
    _decays("k1e", lambda x: mpmath.besselk(1, x) * mpmath.exp(x), 4),
    _decays("i0e", lambda x: mpmath.besseli(0, x) * mpmath.exp(-x), 4),
    _decays("i1e", lambda x: mpmath.besseli(1, x) * mpmath.exp(-x), 4),
    Domain("sph_harm_y", "n < 30",
           (whole(15, 30), whole(-15, 16), uniform(0, np.pi), uniform(-np.pi, np.pi)), _harmonic,
           scale=lambda n, *_: float(np.sqrt((2 * n + 1) / (4 * np.pi)))),
    Domain("sph_harm_y", "n < 300", (whole(200, 300), whole(-200, 200), uniform(0, np.pi), uniform(-np.pi, np.pi)),
           _harmonic, scale=lambda n, *_: float(np.sqrt((2 * n + 1) / (4 * np.pi)))),
    _kummer("a, b in (0.1, 10), abs(x) < 30", SMALL, SMALL, uniform(-30, 30)),
    _kummer("abs(a) < 10, b in (0.1, 10), abs(x) < 600", TEN, SMALL, uniform(-600, 600)),
    _kummer("abs(a) < 100, b in (0.1, 100), abs(x) < 100", uniform(-100, 100), uniform(0.1, 100), uniform(-100, 100)),
    _kummer("a = 0, -1, ..., -39, b in (0.1, 10), abs(x) < 100", whole(0, 40, -1), SMALL, uniform(-100, 100)),
    _kummer("abs(a) < 10, b in (-10, 0), 0 < x < 30", TEN, uniform(-10, 0), uniform(0, 30)),
    _kummer("abs(a) < 10, b in (-10, 0), -30 < x < 0", TEN, uniform(-10, 0), uniform(-30, 0)),
    _gauss("a, b, c in (0.1, 10), -3 < x < 1", SMALL, SMALL, SMALL, uniform(-3, 1)),
    _gauss("abs(a), abs(b) < 10, c in (0.1, 10), -3 < x < 1", TEN, TEN, SMALL, uniform(-3, 1)),
    _gauss("abs(a), abs(b) < 5, c in (0.1, 10), -1e6 < x < -1",
           uniform(-5, 5), uniform(-5, 5), SMALL, spread(0, 6, -1)),
    _gauss("abs(a), abs(b) < 5, c in (0.1, 10), 1e-12 < 1 - x < 1", uniform(-5, 5), uniform(-5, 5), SMALL,
           beside(1.0, spread(-12, 0, -1))),
    _gauss("a, b, c whole, from 1, to 8, 8, 19, -20 < x < 1", whole(1, 9), whole(1, 9), whole(1, 20), uniform(-20, 1)),
    _gauss("abs(a), abs(b) < 50, c in (0.1, 50), -2 < x < 1", uniform(-50, 50), uniform(-50, 50), uniform(0.1, 50),
           uniform(-2, 1)),
    _gauss("a = 0, -1, ..., -29, abs(b) < 10, c in (0.1, 10), -1 < x < 1",
           whole(0, 30, -1), TEN, SMALL, uniform(-1, 1)),
    _gauss("a = 0, -1, ..., -29, abs(b) < 10, c in (0.1, 10), 1 < x < 2", whole(0, 30, -1), TEN, SMALL, uniform(1, 2)),
    _gauss("abs(a), abs(b) < 10, c in (-10, 0), -3 < x < 1", TEN, TEN, uniform(-10, 0), uniform(-3, 1)),
    Domain("zeta", "s in (1, 50), q in (0.01, 100)", (uniform(1.01, 50), spread(-2, 2)), _zeta),
    Domain("zeta", "s = 2, ..., 11, -30 < q < 0", (whole(2, 12), uniform(-30, 0)), _zeta_left,
           lambda s, q: -s * _zeta_left(s + 1, q)),
    Domain("spence", "1e-9 < x < 1e9", (spread(-9, 9),), lambda x: mpmath.polylog(2, 1 - x).real),
    Domain("betainc", "a, b in (0.1, 10)", (SMALL, SMALL, uniform(0, 1)),
           lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True)),
]  # fmt: skip


def measured(domain: Domain, count: int) -> str:
    """Return a row of the table."""
    operands = [draw(count) for draw in domain.draws]
    values, scales, conditions = [], [], []
    with mpmath.workdps(40):
        for numbers in zip(*operands, strict=True):
            point = [mpmath.mpmathify(v.item()) for v in numbers]
            values.append(domain.exact(*point))
            floor = domain.scale(*map(float, numbers)) if domain.scale else 0.0
            scales.append(max(abs(values[-1]), mpmath.mpf(floor)))
            slope = abs(domain.slope(*point) * point[-1] / values[-1]) if domain.slope and values[-1] else 1
            conditions.append(max(1.0, float(slope)))
        usual = [1e-290 < scale < 1e290 for scale in scales]
        found = [
            np.asarray([_error(v, e, s) for v, e, s in zip(f(*operands), values, scales, strict=True)])[usual]
            for f in (lambda *xs: np.asarray(jit(getattr(special, domain.name))(*xs)), _scipys(domain.name))
        ]
    condition = np.asarray(conditions)[usual]
    ours, theirs = found[0] / condition, found[1] / condition
    worst = int(np.argmax(ours))
    at = ", ".join(f"{x[usual][worst]:.6g}" for x in operands)
    row = f"| {domain.name} | {domain.text} | {np.median(found[0]):.0e} | {found[0].max():.0e} | {ours.max():.0e} |"
    return f"{row} {at} | {theirs.max():.0e} |"


def _scipys(name: str) -> Callable[..., Any]:
    if name == "sph_harm_y":
        return lambda n, m, *angles: scipy.special.sph_harm_y(n.astype(int), m.astype(int), *angles)
    return getattr(scipy.special, name)  # type: ignore[no-any-return]


def _error(value: Any, exact: Any, scale: Any) -> float:
    if not np.isfinite(value):
        return np.inf
    return float(abs(mpmath.mpmathify(value.item()) - exact) / scale)


def main(count: int) -> None:
    """Replace the section."""
    rows = []
    for domain in DOMAINS:
        rows.append(measured(domain, count))
        print(rows[-1], flush=True)
    section = TEXT.format(
        head=SPECIAL_HEAD, date=datetime.date.today().isoformat(), scipy=scipy.__version__, mpmath=mpmath.__version__,
        count=count, rows="\n".join(rows),
    )  # fmt: skip
    TARGET.write_text(TARGET.read_text(encoding="utf-8").partition(SPECIAL_HEAD)[0].rstrip() + "\n\n" + section)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
