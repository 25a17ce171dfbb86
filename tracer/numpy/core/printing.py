"""How arrays are printed: NumPy's options, which hold for arrays of ours, and numbers as text."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tracer.trace.docstrings import signed_as


def get_printoptions() -> dict[str, Any]:
    """NumPy's options of printing, which hold here too.

    Returns a dict of names and numbers or texts.

    >>> tnp.get_printoptions()["precision"]
    8
    """
    return dict(np.get_printoptions())


@signed_as(np.set_printoptions)
def set_printoptions(precision: int | None = None, **options: Any) -> None:
    """Set NumPy's options of printing, which hold for arrays of all shapes and dtypes, NumPy's too.

    precision: how many digits after the point, 8 unless it is said; threshold: beyond how many elements an array is cut
    short, to `edgeitems` at each end; linewidth: of a line, in characters; suppress: whether small numbers are written
    without exponents; nanstr, infstr: what NaN and infinity are called; sign: "+" or " " before what is positive, or
    "-" for neither; floatmode: "fixed", "unique", "maxprec" or "maxprec_equal"; formatter: functions by kinds of
    elements; legacy, override_repr: as of `numpy.set_printoptions`. None leaves an option as it is, but takes
    `formatter` and `override_repr` back.

    >>> before = tnp.get_printoptions()["precision"]
    >>> tnp.set_printoptions(precision=3); tnp.asarray([tnp.pi])
    Array([3.142], f64)
    >>> tnp.set_printoptions(precision=before)
    """
    np.set_printoptions(precision, **options)


@signed_as(np.set_printoptions)
def printoptions(**options: Any) -> AbstractContextManager[Any]:
    """NumPy's options of printing, set for a `with` block.

    The names are those of `set_printoptions`, for arrays of all shapes and dtypes. Options have their old values again
    after the block.

    >>> with tnp.printoptions(precision=3):
    ...     print(tnp.asarray([tnp.pi]))
    [3.142]
    """
    return np.printoptions(**options)


@signed_as(np.array2string)
def array2string(a: Any, *args: Any, **options: Any) -> str:
    """The elements as text, by NumPy's options.

    a: any shape and dtype; the rest as of `numpy.array2string`: precision, separator, max_line_width, threshold say
    how. Returns a str.

    >>> tnp.array2string(tnp.asarray([1.5, 2.0]), separator=", ")
    '[1.5, 2. ]'
    """
    return np.array2string(np.asarray(a), *args, **options)


def base_repr(number: int, base: int = 2, padding: int = 0) -> str:
    """An integer in a base of 2 to 36.

    number: a Python integer; base: by default 2; padding: how many zeros to put in front. Returns a str.

    >>> tnp.base_repr(10, base=3)
    '101'
    """
    return np.base_repr(number, base, padding)


def binary_repr(num: int, width: int | None = None) -> str:
    """An integer in binary; a negative one as two's complement, if a width is given.

    num: a Python integer; width: of the text at least. Returns a str.

    >>> tnp.binary_repr(-3, width=4)
    '1101'
    """
    return np.binary_repr(num, width)


@signed_as(np.format_float_positional)
def format_float_positional(x: Any, *args: Any, **options: Any) -> str:
    """A number in digits, with as few as tell it from its neighbours.

    x: a number, or an array []; the rest as of `numpy.format_float_positional`: precision and trim say how many digits
    there are. Returns a str.

    >>> tnp.format_float_positional(tnp.asarray(0.1))
    '0.1'
    """
    return np.format_float_positional(np.asarray(x).item(), *args, **options)


@signed_as(np.format_float_scientific)
def format_float_scientific(x: Any, *args: Any, **options: Any) -> str:
    """A number as a fraction and a power of ten, with as few digits as tell it from its neighbours.

    x: a number, or an array []; the rest as of `numpy.format_float_scientific`: precision and exp_digits say how many
    digits there are. Returns a str.

    >>> tnp.format_float_scientific(tnp.asarray(1500.0))
    '1.5e+03'
    """
    return np.format_float_scientific(np.asarray(x).item(), *args, **options)
