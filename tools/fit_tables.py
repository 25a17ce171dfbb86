"""Fits the piecewise polynomials of `tracer.schedule.math` and writes its `tables.py`.

    python -m tools.fit_tables [NAME ...]     prints the error of each; with no names, refits all and writes the file

Each function has sixteen polynomials in x less a centre. A centre is moved by some 2^-10 of the interval, so that the
value there is nearly a number of the format (Gal & Bachelis 1991, ACM Trans. Math. Softw. 17(1)).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mpmath import mp, mpf

from tools.fit_math import TARGET, Function, Real, horner, rounded, solve

ENTRIES = 16
TRIALS = 400  # centres that are looked at
PLACES = 100  # of an interval where the error is looked at


@dataclass(frozen=True)
class Table:
    """function(x) in sixteen intervals, each by `terms` coefficients.

    bounds: of the interval of an entry. apart: a slope that is added by itself, in f32 what 2 / sqrt(pi) lost.
    """

    name: str
    function: Function
    bounds: Callable[[int], tuple[Real, Real]]
    terms: int
    bits: int
    apart: Real = 0


def evenly(scale: str) -> Callable[[int], tuple[Real, Real]]:
    """Intervals about multiples of 1 / scale, the first from 0 on: the entry is round(scale x)."""
    step = 1 / mpf(scale)
    return lambda entry: (max((entry - mpf("0.5")) * step, mpf(0)), (entry + mpf("0.5")) * step)


def growing(scale: str) -> Callable[[int], tuple[Real, Real]]:
    """Four intervals for each octave of 1 + scale x, the first in entry 12: exponents count from there, modulo 4."""

    def bounds(entry: int) -> tuple[Real, Real]:
        octave, quarter = mpf(2) ** ((entry // 4 + 1) % 4), entry % 4
        low, high = (octave * (1 + mpf(q) / 4) for q in (quarter, quarter + 1))
        return (low - 1) / mpf(scale), (high - 1) / mpf(scale)

    return bounds


def centre_of(table: Table, low: Real, high: Real) -> Real:
    """A number of the format near the middle where the function is nearly one."""
    if low == 0 and table.function(mpf(0)) == 0:
        return mpf(0)
    unit = mpf(2) ** (mp.floor(mp.log(high - low, 2)) - 18)
    middle = mp.nint((low + high) / 2 / unit) * unit
    places = [middle + unit * i for i in range(-TRIALS // 2, TRIALS // 2)]

    def lost(x: Real) -> Real:
        return abs(table.function(x) - rounded(table.function(x), table.bits))

    return min(places, key=lost)


def slope_of(table: Table, centre: Real, low: Real, high: Real) -> list[Real]:
    """The coefficients of (function(centre + d) - function(centre)) / d, by interpolation in Chebyshev's points."""
    count, first = table.terms - 1, table.function(centre)
    middle, half = (low + high) / 2 - centre, (high - low) / 2
    places = [middle + half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    rows = [[d**k for k in range(count)] for d in places]
    return solve(rows, [(table.function(centre + d) - first) / d - table.apart for d in places])


def rows_of(table: Table) -> tuple[list[tuple[float, ...]], float]:
    """The centres, the constant terms and so on, sixteen of each, and the greatest relative error."""
    columns, worst = [], mpf(0)
    for entry in range(ENTRIES):
        low, high = table.bounds(entry)
        centre = centre_of(table, low, high)
        first = table.function(centre)
        slope = [rounded(c, table.bits) for c in slope_of(table, centre, low, high)]
        columns.append((float(centre), float(rounded(first, table.bits)), *map(float, slope)))
        for i in range(1, PLACES):
            x = low + (high - low) * i / PLACES
            error = first + (x - centre) * (horner(slope, x - centre) + table.apart) - table.function(x)
            worst = max(worst, abs(error / table.function(x)))
    return list(zip(*columns, strict=True)), float(worst)


def scaled_erfc(x: Real) -> Real:
    """e^(x^2) erfc(x)."""
    return mp.exp(x * x) * mp.erfc(x)


SLOPE = 2 / mp.sqrt(mp.pi)  # of erf at 0


def tables() -> list[Table]:
    """Every table, for f32 and for f64."""
    return [
        Table("TANH_F32", mp.tanh, growing("1.63"), 7, 24),
        Table("ERF_F32", mp.erf, evenly("3.87"), 7, 24, SLOPE - rounded(SLOPE, 24)),
        Table("ERF_F64", mp.erf, evenly("2.6125"), 13, 53),
        Table("SCALED_ERFC_F32", scaled_erfc, growing("1.46"), 7, 24),
        Table("SCALED_ERFC_F64", scaled_erfc, growing("0.55"), 15, 53),
    ]


HEADER = '''"""Coefficients of piecewise polynomials, written by `tools/fit_tables.py`: run it to change them.

Of each function rows of sixteen numbers: the centres of the intervals, the values there, and what stands before the
powers of the distance to them. The comment is the max relative error of the approximation itself, as a power of
two, with the values exact.
"""

from typing import Final

'''


def source(table: Table, rows: list[tuple[float, ...]], error: float) -> str:
    """A table as source, within the line length."""
    text = f"# 2^{float(mp.log(error, 2)):.1f}\n{table.name}: Final = (\n"
    for row in rows:
        line = "    ("
        for value in row:
            word = repr(value) if table.bits == 53 else str(np.float32(value))
            if len(line) + len(word) > 106:
                text += line.rstrip() + "\n"
                line = "     "
            line += word + ", "
        text += line[:-2] + "),\n"
    return text + ")  # fmt: skip\n"


def main(names: list[str]) -> None:
    """Fits what the names begin, or all."""
    text = HEADER
    for table in tables():
        if names and not any(table.name.startswith(n) for n in names):
            continue
        rows, error = rows_of(table)
        print(f"{table.name:16} 2^{float(mp.log(error, 2)):.1f}", flush=True)
        text += source(table, rows, error)
    if names:
        print(text)
    else:
        (TARGET / "tables.py").write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
