"""Plans of Fourier transforms: radices, and tables of roots of unity, made once for each length and dtype.

A plan is an array of words:

    0  h, the complex length     1, 2  n1 and n2, whose product is h; 0 where h is transformed at once
    3  the steps of n1, or of h     4  the steps of n2
    5  exp(-2πi j2 k1 / h) of the first j2 of every eight     6  the same of j2 < 8, in lanes
    7  exp(-2πi k / 2h) for k <= h / 2, if the transform is of real numbers
    8  n, if h is a longer length by which a convolution transforms lines of n, else 0
    9  c[j] = exp(-πi j² / n)     10  the transform of the conjugates of c[j], |j| < n, of length h and over h

A plan of columns (see `columns`) is steps alone. Steps are a count. Then come for each pass the address of its
function, m, l and the address of its roots: see `butterflies`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from tracer.codegen.llvm.kernels.fft.butterflies import LANES, NAME, RADICES, REAL, roots
from tracer.codegen.llvm.kernels.fft.column_passes import PASS, column_radices
from tracer.codegen.llvm.toolchain.target import bits_in_force


@cache
def radices(n: int) -> tuple[int, ...]:
    """Return the radices of a length in turn, () where it has other prime factors or is 1.

    >>> radices(96), radices(16), radices(34)
    ((8, 4, 3), (4, 4), ())
    """
    found: list[int] = []
    for radix in RADICES:
        while n % radix == 0 and not (radix == 8 and n % 16 == 0 and n % 32 and n % 64):
            found.append(radix)
            n //= radix
    return tuple(found) if n == 1 else ()


Address = Callable[[str], int]
PLAN: Final = "tracer_fft_plan_"
_NAMED: Final = re.compile(rf"@({PLAN}(f32|f64)_(complex|real|columns|between|halves)_(\d+)_(\d+)_(\d+))\b")
_kept: dict[tuple[str, int], Any] = {}  # key: the symbol and the bits of a vector, for which passes are compiled


def plan_name(kind: str, n: int, n1: int, longer: int, *, real: bool) -> str:
    """Return the symbol of a plan for length n of real or complex numbers, in two steps unless n1 is 0.

    longer: the length of the transforms that convolve, or 0.
    """
    return f"{PLAN}{kind}_{'real' if real and not longer else 'complex'}_{n}_{n1}_{longer}"


def table_name(kind: str, table: str, h: int, n1: int) -> str:
    """Return the symbol of a table of `short_lines`, "between" or "halves", or of a plan of "columns"."""
    return f"{PLAN}{kind}_{table}_{h}_{n1}_0"


def plans_named(text: str) -> list[str]:
    """Return the symbols of the plans that a text names."""
    return [found[0] for found in _NAMED.findall(text)] if PLAN in text else []


def plan_symbols(text: str, address_of: Address) -> dict[str, int]:
    """Return the addresses of the plans that a module's text names, made if needed.

    address_of: gives the address of a pass by its name.
    """
    found = {}
    if PLAN in text:
        for name, kind, numbers, n, n1, longer in _NAMED.findall(text):
            key = name, bits_in_force()
            plan = _kept.get(key) or _made(kind, numbers, int(n), int(n1), int(longer), address_of)
            found[name] = int(_kept.setdefault(key, plan)[0].ctypes.data)  # the first of two threads' plans is kept
    return found


def _made(kind: str, form: str, n: int, n1: int, longer: int, address_of: Address) -> tuple[Any, ...]:
    """Return a plan, or a table of `short_lines`, and the arrays that it points to."""
    match form:
        case "halves":
            return (roots(np.arange(n // 2 + 1), 2 * n, kind),)
        case "columns":
            return _steps(kind, n, _column_passes(kind, n), address_of)
        case "between":
            table = roots(np.outer(np.arange(n // n1), np.arange(n1)), n, kind)
            blocks = table.reshape(n // n1 // LANES, LANES, n1, 2)
            return (np.ascontiguousarray(blocks.transpose(0, 2, 3, 1)),)
        case _:
            return _plan(kind, n, n1, longer, form == "real", address_of)


def _plan(kind: str, n: int, n1: int, longer: int, real: bool, address_of: Address) -> tuple[Any, ...]:
    h = longer or (n // 2 if real else n)
    n2 = h // n1 if n1 else 0
    if n1:
        first = _steps(kind, n1, _line_passes(kind, n1, "turn", "begin"), address_of)
        second = _steps(kind, n2, _line_passes(kind, n2, "end"), address_of)
    else:
        first, second = _steps(kind, h, [(radix, f"{NAME}{radix}_{kind}") for radix in radices(h)], address_of), ()
    starts, lanes = _between(kind, n1, n2) if n1 else (np.zeros(0), np.zeros(0))
    halves = roots(np.arange(h // 2 + 1), 2 * h, kind) if real else np.zeros(0)
    chirp, spectrum = _chirp(kind, n, longer) if longer else (np.zeros(0), np.zeros(0))
    tables = (first[0], second[0] if n2 else starts, starts, lanes, halves)
    words = [h, n1, n2, *(x.ctypes.data for x in tables), n if longer else 0, chirp.ctypes.data, spectrum.ctypes.data]
    return np.array(words, np.int64), first, second, *tables, chirp, spectrum


def _chirp(kind: str, n: int, longer: int) -> tuple[Any, Any]:
    """Return the words 9 and 10 of a plan as pairs; squares are taken modulo 2n, so angles keep their digits."""
    j = np.arange(n)
    chirp = roots(j * j % (2 * n), 2 * n, "f64")
    response = np.zeros(longer, np.complex128)
    response[:n] = chirp[:, 0] - 1j * chirp[:, 1]
    response[longer - n + 1 :] = response[1:n][::-1]
    spectrum = np.fft.fft(response) / longer
    return chirp.astype(REAL[kind]), spectrum.view(np.float64).astype(REAL[kind])


def _column_passes(kind: str, n: int) -> list[tuple[int, str]]:
    chosen = column_radices(n)
    parts = ("first", *("middle" for _ in chosen[2:]), "last")
    return [(radix, f"{PASS}{part}{radix}_{kind}") for radix, part in zip(chosen, parts, strict=True)]


def _line_passes(kind: str, n: int, last: str, first: str = "") -> list[tuple[int, str]]:
    """Return the passes of one of two steps of a line. A step that loads rows has no first pass of its own."""
    chosen = column_radices(n, 8)
    if chosen[0] == 1 and not first:
        chosen = chosen[1:]
    names = [f"{NAME}{radix}_{kind}" for radix in chosen]
    if first:
        names[0] = f"{PASS}{first}{chosen[0]}_{kind}"
    names[-1] = f"{PASS}{last}{chosen[-1]}_{kind}"
    return list(zip(chosen, names, strict=True))


def _steps(kind: str, n: int, passes: Sequence[tuple[int, str]], address_of: Address) -> tuple[Any, ...]:
    """Return the steps of length n by passes, each a radix and the name of its function."""
    kept, words, m, before = [], [], n, 1
    for radix, name in passes:
        m //= radix
        table = roots(np.outer(np.arange(1, m), np.arange(1, radix)), radix * m, kind)
        kept.append(table)
        words += [address_of(name), m, before, table.ctypes.data]
        before *= radix
    return np.array([len(passes), *words], np.int64), kept


def _between(kind: str, n1: int, n2: int) -> tuple[Any, Any]:
    """Return roots between both steps: of every block's first column, [blocks, n1, 2], and of lanes, [n1, 2, 8].

    The last block ends at n2.
    """
    first, each = np.minimum(np.arange(0, n2, LANES), n2 - LANES), np.arange(n1)
    lanes = roots(np.outer(each, np.arange(LANES)), n1 * n2, kind)
    return roots(np.outer(first, each), n1 * n2, kind), np.ascontiguousarray(np.moveaxis(lanes, -1, -2))
