"""Fits the polynomials of `tracer.schedule.math` and writes its `coefficients.py` and `pi_bits.py`.

    python tools/fit_math.py [NAME ...]     prints the error of each fit; with no names, refits all and writes the files

Each fit minimises the greatest weighted error over a fine Chebyshev grid by the Remez exchange (Muller, Elementary
Functions, 3rd ed. 2016, chapter 3) in 60-digit arithmetic. Coefficients are rounded to the target format one by
one from the constant term up, the others being fitted again each time, so that later ones absorb what the
rounding of earlier ones cost. A rational fit linearises: each round is weighted by the denominator of the one before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from mpmath import mp, mpf

mp.dps = 60

Real = mpf
Function = Callable[[Real], Real]
TARGET = Path(__file__).parents[1] / "tracer" / "schedule" / "math"
GRID = 60  # grid points for each coefficient


@dataclass(frozen=True)
class Fit:
    """function(x) by terms[0] coefficients in powers of x over [low, high], divided by terms[1] more if not 0.

    weight(x) multiplies the error before it is compared: 1/|f| for a relative error.
    fixed: leading coefficients that are given. bits: of the format that coefficients round to (24 or 53).
    """

    name: str
    function: Function
    low: Real
    high: Real
    terms: tuple[int, int]
    bits: int
    weight: Function
    fixed: tuple[Real, ...] = ()


def rounded(value: Real, bits: int) -> Real:
    """The nearest number of the format."""
    if bits == 24:
        return mpf(float(np.float32(float(value))))
    return mpf(float(value))


def solve(rows: list[list[Real]], right: list[Real]) -> list[Real]:
    """Gaussian elimination with row pivoting."""
    n = len(rows)
    matrix = [[*row, b] for row, b in zip(rows, right, strict=True)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(matrix[i][k]))
        matrix[k], matrix[pivot] = matrix[pivot], matrix[k]
        for i in range(k + 1, n):
            factor = matrix[i][k] / matrix[k][k]
            if factor:
                for j in range(k, n + 1):
                    matrix[i][j] -= factor * matrix[k][j]
    solution = [mpf(0)] * n
    for k in reversed(range(n)):
        tail = sum((matrix[k][j] * solution[j] for j in range(k + 1, n)), mpf(0))
        solution[k] = (matrix[k][n] - tail) / matrix[k][k]
    return solution


def horner(coefficients: list[Real], x: Real) -> Real:
    """The sum of coefficients[k] * x^k."""
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def exchange(errors: list[Real], count: int) -> list[int]:
    """The `count` alternating extrema of the error with the greatest least magnitude."""
    peaks: list[int] = []
    for i, e in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > count:
        if len(peaks) - count == 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        else:
            k = min(range(len(peaks) - 1), key=lambda j: max(abs(errors[peaks[j]]), abs(errors[peaks[j + 1]])))
            del peaks[k : k + 2]
    return peaks


def grid(fit: Fit) -> list[Real]:
    """Chebyshev's points over the interval, thickest at its ends."""
    n = GRID * (sum(fit.terms) + 1)
    middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    xs = [middle - half * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]
    least = max(abs(fit.low), abs(fit.high)) / 10**5  # errors weighted by a power of x say nothing at 0
    return [x for x in xs if abs(x) > least]


def remez(
    xs: list[Real], fs: list[Real], ws: list[Real], start: int, terms: tuple[int, int]
) -> tuple[list[Real], list[Real], Real]:
    """Powers start.. of the numerator and 1.. of the denominator, and the greatest weighted error."""
    p, q = terms
    count = p + q + 1
    n = len(xs)
    reference = [round((n - 1) * (i / (count - 1)) ** 1.1) for i in range(count)]  # not symmetric: never singular
    last = [mpf(1)] * n
    numerator: list[Real] = []
    denominator: list[Real] = []
    worst = mpf(0)
    for _ in range(40):
        for _inner in range(1 if q == 0 else 3):
            rows = [
                [xs[i] ** (start + k) for k in range(p)]
                + [-fs[i] * xs[i] ** k for k in range(1, q + 1)]
                + [(-1) ** j * last[i] / ws[i]]
                for j, i in enumerate(reference)
            ]
            solution = solve(rows, [fs[i] for i in reference])
            numerator, denominator = solution[:p], [mpf(1), *solution[p : p + q]]
            last = [horner(denominator, x) for x in xs]
        errors = [w * (x**start * horner(numerator, x) / d - f) for x, f, w, d in zip(xs, fs, ws, last, strict=True)]
        worst = max(abs(e) for e in errors)
        peaks = exchange(errors, count)
        if len(peaks) < count:
            break
        reference = peaks
        if worst - min(abs(errors[i]) for i in peaks) < worst * mpf("0.01"):
            break
    return numerator, denominator, worst


def least_squares(
    xs: list[Real], fs: list[Real], ws: list[Real], start: int, terms: tuple[int, int]
) -> tuple[list[Real], list[Real], Real]:
    """As `remez` for a polynomial, in the mean square, where the exchange has no unique answer."""
    powers = [[w * x ** (start + k) for x, w in zip(xs, ws, strict=True)] for k in range(terms[0])]
    target = [w * f for f, w in zip(fs, ws, strict=True)]
    dot: Callable[[list[Real], list[Real]], Real] = mp.fdot
    solution = solve([[dot(a, b) for b in powers] for a in powers], [dot(a, target) for a in powers])
    return solution, [mpf(1)], mpf(0)


def fitted(fit: Fit) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """The rounded coefficients (numerator, denominator) and the greatest weighted error that they leave."""
    xs = grid(fit)
    fs = [fit.function(x) for x in xs]
    ws = [fit.weight(x) for x in xs]
    known = list(fit.fixed)
    p, q = fit.terms
    denominator = [mpf(1)]
    if q:
        _, denominator, _ = remez(xs, fs, ws, 0, fit.terms)
        denominator = [rounded(c, fit.bits) for c in denominator]
        scale = [horner(denominator, x) for x in xs]
        fs = [f * d for f, d in zip(fs, scale, strict=True)]
        ws = [w / abs(d) for w, d in zip(ws, scale, strict=True)]
    while len(known) < p:
        rest = [f - horner(known, x) for x, f in zip(xs, fs, strict=True)]
        unique = fit.low >= 0 or not known  # else powers from a higher one on are no Haar system
        method = remez if unique and p - len(known) > 4 else least_squares
        free, _, _ = method(xs, rest, ws, len(known), (p - len(known), 0))
        known.append(rounded(free[0], fit.bits))
    error = max(w * abs(horner(known, x) - f) for x, f, w in zip(xs, fs, ws, strict=True))
    return tuple(map(float, known)), tuple(map(float, denominator if q else [])), float(error)


def away_from_zero(x: Real) -> Real:
    """Formulas that divide by a power of x are evaluated this close to 0 instead of at it."""
    return x if abs(x) > mpf(10) ** -12 else mpf(10) ** -12


def one(_x: Real) -> Real:
    """The weight of an absolute error."""
    return mpf(1)


def both(
    name: str,
    function: Function,
    interval: tuple[object, object],
    terms: tuple[int | tuple[int, int], int | tuple[int, int]],
    weight: Function = one,
    fixed: tuple[Real, ...] = (),
) -> list[Fit]:
    """The fit for f32 and for f64; `terms` gives the sizes for each."""
    low, high = mpf(interval[0]), mpf(interval[1])
    fits = []
    for label, bits, size in (("F32", 24, terms[0]), ("F64", 53, terms[1])):
        pair = size if isinstance(size, tuple) else (size, 0)
        if pair[0]:
            fits.append(
                Fit(f"{name}_{label}", lambda x: function(away_from_zero(x)), low, high, pair, bits, weight, fixed)
            )
    return fits


def of_root(function: Function) -> Function:
    """x -> function(sqrt(x)), for even functions fitted in powers of the square."""
    return lambda z: function(mp.sqrt(z))


HALF_LN2 = mp.log(2) / 2 * mpf("1.002")


def fits() -> list[Fit]:
    """Every polynomial, with the expression it stands for."""
    table: list[Fit] = []
    # (e^r - 1 - r) / r^2
    table += both("EXP", lambda r: (mp.expm1(r) - r) / r**2, (-HALF_LN2, HALF_LN2), (5, 10), lambda r: r**2)
    # (2^r - 1) / r
    table += both("EXP2", lambda r: mp.expm1(r * mp.log(2)) / r, ("-0.5005", "0.5005"), (6, 11), abs)
    # (log(1+f) - f) / f^2
    table += both("LOG", lambda f: (mp.log1p(f) - f) / f**2, ("-0.25", "0.5"), (9, 20), abs)
    table += both("LOG2", lambda f: (mp.log1p(f) - f) / f**2 / mp.log(2), ("-0.25", "0.5"), (9, 20), abs)
    # (atanh(s) - s) / s^3 in s^2 for |s| <= 0.302
    table += both("ATANH", of_root(lambda s: (mp.atanh(s) - s) / s**3), (0, "0.0915"), (5, 11), lambda z: z)
    # (atanh(s) - s - s^3 / 3) / s^5 in s^2 for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)
    table += both(
        "ATANH5", of_root(lambda s: (mp.atanh(s) - s - s**3 / 3) / s**5), (0, "0.02945"), (3, 8), lambda z: z**2
    )
    # (sin(r) - r) / r^3 in r^2, |r| <= pi/2 and a little more
    table += both("SIN", of_root(lambda r: (mp.sin(r) - r) / r**3), (0, "2.4745"), (4, 8), lambda z: z)
    # (tan(r) - r) / r^3 in r^2, |r| <= pi/4 and a little more: k is rounded in floats
    table += both("TAN", of_root(lambda r: (mp.tan(r) - r) / r**3), (0, "0.6205"), (7, 15), lambda z: z)
    # (sinh(r) - r) / r^3 and (cosh(r) - 1 - r^2 / 2) / r^4 in r^2
    table += both("SINH", of_root(lambda r: (mp.sinh(r) - r) / r**3), (0, HALF_LN2**2), (2, 5), lambda z: z)
    table += both(
        "COSH", of_root(lambda r: (mp.cosh(r) - 1 - r**2 / 2) / r**4), (0, HALF_LN2**2), (2, 5), lambda z: z**2
    )
    # (tanh(r) - r) / r^3 in r^2, |r| <= ln(2)/4
    table += both("TANH", of_root(lambda r: (mp.tanh(r) - r) / r**3), (0, HALF_LN2**2 / 4), (0, 6), lambda z: z)
    # (atan(t) - t) / t^3 in t^2, |t| <= 1/2
    table += both("ATAN", of_root(lambda t: (mp.atan(t) - t) / t**3), (0, "0.2505"), (6, 13), lambda z: z)
    # (asin(s) - s) / s^3 in s^2, |s| <= 1/2
    table += both("ASIN", of_root(lambda s: (mp.asin(s) - s) / s**3), (0, "0.25"), (6, 13), lambda z: z)
    # ((1 - h)^(-1/3) - 1) / h
    table += both("CBRT", lambda h: ((1 - h) ** (-mpf(1) / 3) - 1) / h, ("-0.1035", "0.1035"), (4, 8), abs)
    # (erf_inv(x) / x - sqrt(pi) / 2) / w in w - 17/4, w = -log(1 - x^2) up to 25/4
    table += both("ERF_INV", erf_inv_slope, ("-4.25", "2.001"), (11, 24), lambda v: v + mpf("4.251"))
    # t - 5/16 - erf_inv(1 - e^(-t^2)) in 1/t - r, 1 - e^(-t^2) from 3/5 to the last number below 1
    table += both("ERF_INV_TAIL", lambda v: erf_inv_tail(v + mpf("0.2434")), (0, "0.8015"), ((5, 4), 0))
    table += both("ERF_INV_TAIL", lambda v: erf_inv_tail(v + mpf("0.165")), (0, "0.8799"), (0, (11, 10)))
    # lgamma(x) / ((x - 1) (x - 2)) - 7/16 in x - 1/2, 1/2 <= x <= 3
    table += both("LGAMMA", lambda w: lgamma_over_roots(w + mpf("0.5")), (0, "2.5"), (0, (10, 8)))
    # lgamma(x) - (x - 1/2) (log(x) - 1) - (log(2 pi) - 1) / 2 over 1/x, in 1/x^2, x >= 3
    table += both("STIRLING", of_root(lambda r: stirling_rest(r) / r), ("1e-9", "0.1112"), (0, 11), mp.sqrt)
    # digamma(x) / (x - root) - 17/16 in x - 1/2, 1/2 <= x <= 2
    table += both("DIGAMMA", lambda w: digamma_over_root(w + mpf("0.5")), (0, "1.5"), (0, (8, 7)))
    # log(x) - 1/(2 x) - digamma(x) over 1/x^2, in 1/x^2, x >= 2
    table += both("DIGAMMA_TAIL", of_root(lambda r: digamma_rest(r) / r**2), ("1e-4", "0.2502"), (0, 16), lambda z: z)
    # (sin(pi f) - pi f) / f^3 in f^2 and tan(pi f) / f, f <= 1/2 and 1/4
    table += both("SIN_PI", of_root(lambda f: (mp.sin(mp.pi * f) - mp.pi * f) / f**3), (0, "0.25"), (0, 9), lambda z: z)
    table += both("COS_PI", of_root(lambda f: (mp.cos(mp.pi * f) - 1) / f**2), (0, "0.25"), (0, 10), lambda z: z)
    return table


@cache
def erf_inv_slope(v: Real) -> Real:
    """(erf_inv(x) / x - sqrt(pi) / 2) / w where w = -log(1 - x^2) = v + 17/4."""
    w = max(v + mpf("4.25"), mpf(10) ** -15)
    x = mp.sqrt(-mp.expm1(-w))
    return (mp.erfinv(x) / x - mp.sqrt(mp.pi) / 2) / w


def erf_inv_tail(r: Real) -> Real:
    """t - 5/16 - erf_inv(1 - e^(-t^2)) at t = 1/r, by Newton's method on log(erfc)."""
    t = 1 / r
    y = t - mpf("0.3")
    for _ in range(12):
        tail = mp.erfc(y)
        y -= (mp.log(tail) + t * t) / (-2 / mp.sqrt(mp.pi) * mp.exp(-y * y) / tail)
    return t - mpf(5) / 16 - y


def lgamma_over_roots(x: Real) -> Real:
    """lgamma(x) / ((x - 1) (x - 2)) - 7/16."""
    x = x if min(abs(x - 1), abs(x - 2)) > mpf(10) ** -12 else x + mpf(10) ** -12
    return mp.loggamma(x) / ((x - 1) * (x - 2)) - mpf("0.4375")


def stirling_rest(r: Real) -> Real:
    """What Stirling's formula lacks at 1/r."""
    x = 1 / r
    return mp.loggamma(x) - (x - mpf("0.5")) * (mp.log(x) - 1) - (mp.log(2 * mp.pi) - 1) / 2


def digamma_over_root(x: Real) -> Real:
    """digamma(x) / (x - root) - 17/16."""
    x = x if abs(x - DIGAMMA_ROOT) > mpf(10) ** -12 else x + mpf(10) ** -12
    return mp.digamma(x) / (x - DIGAMMA_ROOT) - mpf("1.0625")


def digamma_rest(r: Real) -> Real:
    """What log(x) - 1/(2 x) exceeds digamma(x) by at x = 1/r."""
    return -mp.log(r) - r / 2 - mp.digamma(1 / r)


DIGAMMA_ROOT = mp.findroot(mp.digamma, mpf("1.4616"))

HEADER = '''"""Coefficients of the polynomials, written by `tools/fit_math.py`: run it to change them.

Constant term first. The expression that each stands for is beside its fit there; the comment is the max
error of the approximation itself, as a power of two, in the measure it was fitted in.
"""

from typing import Final

'''


def lines(name: str, values: tuple[float, ...], bits: int) -> str:
    """A tuple as source, within the line length."""
    texts = [repr(v) if bits == 53 else str(np.float32(v)) for v in values]
    texts = [t if "." in t or "e" in t else t + ".0" for t in texts]
    one_line = f"{name}: Final = ({', '.join(texts)})"
    if len(one_line) <= 110:
        return one_line + "\n"
    body = ""
    row = "   "
    for text in texts:
        if len(row) + len(text) + 2 > 108:
            body += row + "\n"
            row = "   "
        row += f" {text},"
    return f"{name}: Final = (\n{body}{row}\n)  # fmt: skip\n"


LEAD, WORDS = 12, 19  # zeros before 1/pi, so that 2^40 has a window of bits too, and words to reach past 2^1024

PI_BITS = '''"""The bits of pi and 1/pi that argument reduction needs, written by `tools/fit_math.py`."""

from typing import Final

from tracer.schedule.math.expand import DOUBLE, SINGLE, Format

PI_PARTS: Final[dict[Format, tuple[float, float, float]]] = {{
    SINGLE: {single},
    DOUBLE: {double},
}}
"""pi as a sum of numbers of each format, largest first."""

INVERSE_WINDOWS: Final = (
{windows}
)
"""(least, high, low): 1/pi less the bits that give multiples of 2 with every f32 from `least` on."""

INVERSE_LEAD: Final = {lead}
INVERSE_WORDS: Final = (
{words}
)  # fmt: skip
"""1/pi in words of 64 bits, the bit of weight 1 in place `INVERSE_LEAD` of the first, from the top."""
'''


def pi_bits() -> str:
    """The source of `pi_bits.py`."""
    with mp.workprec(2000):
        inverse = 1 / mp.pi
        windows = []
        for exponent in (17, 50, 76, 102):
            unit = mpf(2) ** (24 - exponent)  # times the last place of 2^exponent this is 2
            part = inverse if exponent == 17 else inverse - mp.floor(inverse / unit) * unit
            high, low = summands(part, 2, 53)
            windows.append(f"    ({2.0**exponent!r}, {high!r}, {low!r}),".replace("e+", "e"))
        bits = int(mp.floor(inverse * mpf(2) ** (64 * WORDS - 1 - LEAD)))
        words = [f"0x{bits >> 64 * (WORDS - 1 - k) & (1 << 64) - 1:016X}," for k in range(WORDS)]
        return PI_BITS.format(
            single=repr(summands(mp.pi, 3, 24)),
            double=repr(summands(mp.pi, 3, 53)),
            windows="\n".join(windows),
            lead=LEAD,
            words="\n".join("    " + " ".join(words[k : k + 4]) for k in range(0, WORDS, 4)),
        )


def summands(value: Real, count: int, bits: int) -> tuple[float, ...]:
    """The value as a sum of numbers of the format, each the nearest to what is left."""
    parts = []
    for _ in range(count):
        parts.append(float(rounded(value, bits)))
        value -= mpf(parts[-1])
    return tuple(parts)


def main(names: list[str]) -> None:
    """Fits what the names begin, or all."""
    text = HEADER
    for fit in fits():
        if names and not any(fit.name.startswith(n) for n in names):
            continue
        numerator, denominator, error = fitted(fit)
        print(f"{fit.name:16} 2^{float(mp.log(error, 2)):.1f}", flush=True)
        text += f"# 2^{float(mp.log(error, 2)):.1f}\n" + lines(fit.name, numerator, fit.bits)
        if denominator:
            text += lines(fit.name + "_BELOW", denominator, fit.bits)
    if names:
        print(text)
    else:
        (TARGET / "coefficients.py").write_text(text)
        (TARGET / "pi_bits.py").write_text(pi_bits())


if __name__ == "__main__":
    main(sys.argv[1:])
