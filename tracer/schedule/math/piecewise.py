"""Functions by sixteen polynomials in x less a centre, their coefficients looked up: see `tools/fit_tables.py`.

A coefficient costs as much as its FMA where tables of sixteen are held in registers. Then intervals are so short that
seven coefficients (f64: some fourteen) do.
"""

from __future__ import annotations

from tracer.schedule.math.expand import Value, fma, lookup

Rows = tuple[tuple[float, ...], ...]


def evenly(size: Value, scale: float) -> Value:
    """Return the entry for intervals about multiples of 1 / scale, of a number below 15.5 of them."""
    return fma(size, scale, size.format.magic).bits


def growing(size: Value, scale: float) -> Value:
    """Return the entry for four intervals in each octave of 1 + scale * size, from 1 to 16."""
    return fma(size, scale, 1.0).bits >> (size.format.fraction - 2)


def parts(size: Value, entry: Value, rows: Rows) -> tuple[Value, Value, Value]:
    """Return (d, slope, value): the function is value + d * slope."""
    centres, values, *others = rows
    d = size - lookup(entry, centres)
    slope = lookup(entry, others[-1])
    for row in reversed(others[:-1]):
        slope = fma(slope, d, lookup(entry, row))
    return d, slope, lookup(entry, values)


def piecewise(size: Value, entry: Value, rows: Rows, apart: float = 0.0) -> Value:
    """Return the function itself. apart: an addend of the slope, too small to be a part of it."""
    d, slope, value = parts(size, entry, rows)
    return fma(d, slope, fma(d, apart, value) if apart else value)
