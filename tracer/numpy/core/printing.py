"""Printing of arrays, by NumPy's options, and formatting of numbers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tracer.trace.docstrings import signed_as


def get_printoptions() -> dict[str, Any]:
    """Return NumPy's print options, which hold for Array too.

    Returns a dict from names to numbers, bools or text.

    >>> tnp.get_printoptions()["precision"]
    8
    """
    return dict(np.get_printoptions())


@signed_as(np.set_printoptions)
def set_printoptions(precision: int | None = None, **options: Any) -> None:
    """Set NumPy's print options, which hold for arrays of all shapes and dtypes, NumPy's included.

    precision: how many digits after the point, by default 8; threshold: the number of elements beyond which an array is
    abbreviated to `edgeitems` at each end; linewidth: characters a line; suppress: whether small numbers are written
    without exponents; nanstr, infstr: the text of NaN and infinity; sign: "+" or " " before positive numbers, or "-"
    for neither; floatmode: "fixed", "unique", "maxprec" or "maxprec_equal"; formatter: functions by type of element;
    legacy, override_repr: as in `numpy.set_printoptions`. None leaves an option unchanged, but resets `formatter` and
    `override_repr`.

    >>> before = tnp.get_printoptions()["precision"]
    >>> tnp.set_printoptions(precision=3); tnp.asarray([tnp.pi])
    Array([3.142], f64)
    >>> tnp.set_printoptions(precision=before)
    """
    np.set_printoptions(precision, **options)


@signed_as(np.set_printoptions)
def printoptions(**options: Any) -> AbstractContextManager[Any]:
    """Return a context manager that sets NumPy's print options for a `with` block.

    The options are as in `set_printoptions`, for arrays of all shapes and dtypes. The block's end restores them.

    >>> with tnp.printoptions(precision=3):
    ...     print(tnp.asarray([tnp.pi]))
    [3.142]
    """
    return np.printoptions(**options)


@signed_as(np.array2string)
def array2string(a: Any, *args: Any, **options: Any) -> str:
    """Return the elements as text, by NumPy's print options.

    a: any shape and dtype; the other parameters as in `numpy.array2string`: precision, separator, max_line_width,
    threshold choose the format. Returns a str.

    >>> tnp.array2string(tnp.asarray([1.5, 2.0]), separator=", ")
    '[1.5, 2. ]'
    """
    return np.array2string(np.asarray(a), *args, **options)


def base_repr(number: int, base: int = 2, padding: int = 0) -> str:
    """Return an integer as text in a base of 2 to 36.

    number: a Python integer; base: by default 2; padding: how many zeros to prepend. Returns a str.

    >>> tnp.base_repr(10, base=3)
    '101'
    """
    return np.base_repr(number, base, padding)


def binary_repr(num: int, width: int | None = None) -> str:
    """Return an integer as binary text; a negative integer as two's complement if a width is given.

    num: a Python integer; width: the minimum number of digits. Returns a str.

    >>> tnp.binary_repr(-3, width=4)
    '1101'
    """
    return np.binary_repr(num, width)


@signed_as(np.format_float_positional)
def format_float_positional(x: Any, *args: Any, **options: Any) -> str:
    """Return a number as decimal text, with the fewest digits that identify it.

    x: a number, or an array []; the other parameters as in `numpy.format_float_positional`: precision and trim choose
    the number of digits. Returns a str.

    >>> tnp.format_float_positional(tnp.asarray(0.1))
    '0.1'
    """
    return np.format_float_positional(np.asarray(x).item(), *args, **options)


@signed_as(np.format_float_scientific)
def format_float_scientific(x: Any, *args: Any, **options: Any) -> str:
    """Return a number in scientific notation, with the fewest digits that identify it.

    x: a number, or an array []; the other parameters as in `numpy.format_float_scientific`: precision and exp_digits
    choose the number of digits. Returns a str.

    >>> tnp.format_float_scientific(tnp.asarray(1500.0))
    '1.5e+03'
    """
    return np.format_float_scientific(np.asarray(x).item(), *args, **options)
